"""Child processes that never outlive us: started by command, known by pid, ended in reverse order."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

APP = Path(__file__).resolve().parent.parent  # the folder of function_app.py
GRACE = 15.0  # seconds between SIGTERM and SIGKILL
READY = 60.0  # seconds until a child must be ready
TAIL = 15  # lines

Pause = Callable[[float], None]


class ChildFailed(Exception):
    """A child died, or did not become ready; the message ends with its last lines."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to start: a module with its arguments, and settings on top of our own environment."""

    name: str
    module: str
    arguments: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class Child:
    """One process. What it prints is in two files of the folder, so that no pipe fills up."""

    def __init__(self, command: Command, folder: Path) -> None:
        self.name = command.name
        self.output = folder / f"{command.name}.out"
        self.errors = folder / f"{command.name}.err"
        with self.output.open("wb") as output, self.errors.open("wb") as errors:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", command.module, *command.arguments],
                cwd=APP,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **command.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,  # Ctrl-C reaches us alone, and we end the children in order
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    @property
    def running(self) -> bool:
        """Whether it is still there."""
        return self._popen.poll() is None

    def exit_code(self) -> int | None:
        """None while it is running."""
        return self._popen.poll()

    def refuse_dead(self) -> None:
        """ChildFailed when it ended, however it did."""
        if not self.running:
            raise ChildFailed(f"{self.name} ended with code {self._popen.returncode}:\n{self.tail()}")

    def wait_ready(self, mark: str, pause: Pause) -> str:
        """The first line of its output that has the mark."""
        deadline = time.monotonic() + READY
        while (line := self._line_with(mark)) is None:
            self.refuse_dead()
            if time.monotonic() > deadline:
                raise ChildFailed(f"{self.name} was not ready in {READY:g} s:\n{self.tail()}")
            pause(0.05)
        return line

    def wait_done(self, pause: Pause) -> None:
        """Return when it has ended well; ChildFailed when it ended otherwise."""
        while self.running:
            pause(0.05)
        if self._popen.returncode:
            self.refuse_dead()

    def tail(self) -> str:
        """Its last lines on standard error, or on standard output where that is empty."""
        for path in (self.errors, self.output):
            if lines := tail(path):
                return lines
        return "  (it said nothing)"

    def cut_connections(self) -> None:
        """Of the emulator, which takes SIGUSR1 for that."""
        self._popen.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """SIGKILL: it gets no chance to tidy up."""
        self._popen.kill()
        self._popen.wait()

    def end(self, grace: float = GRACE) -> None:
        """SIGTERM, and SIGKILL when that does not end it in time."""
        if self.running:
            self._popen.terminate()
            try:
                self._popen.wait(grace)
            except subprocess.TimeoutExpired:
                self.kill()

    def _line_with(self, mark: str) -> str | None:
        with self.output.open(errors="replace") as lines:
            return next((line.strip() for line in lines if mark in line and line.endswith("\n")), None)


class Children:
    """A `with` block whose children are gone when it is left, whatever happened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._children: list[Child] = []

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """A second Ctrl-C does not disturb this: see Interruption."""
        while self._children:
            self._children[-1].end()
            self._children.pop()

    def start(self, command: Command) -> Child:
        """A child that ends with this block at the latest."""
        child = Child(command, self.folder)
        self._children.append(child)
        return child


def tail(path: Path) -> str:
    """The last lines of a file, indented; empty when there are none."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 16_384))
        lines = file.read().decode(errors="replace").splitlines()[-TAIL:]
    return "\n".join(f"  {line}" for line in lines)
