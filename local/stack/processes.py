"""Child processes that end with this one: started by a command, ended in reverse order."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from local.programs import APP

GRACE = 15.0  # seconds between SIGTERM and SIGKILL
READY = 180.0  # seconds until a child must be ready, on a busy machine too: one that dies is reported at once
TAIL = 15  # lines

Pause = Callable[[float], None]


class ChildFailed(Exception):
    """A child died, or was not ready in time. The message ends with its last lines."""


@dataclass(frozen=True, slots=True)
class Command:
    """A module of the code in a folder to start, with its arguments, and settings on top of the current environment."""

    name: str
    module: str
    arguments: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path = APP


class Child:
    """One process. Its output goes to two files of the folder, so that no pipe fills up."""

    def __init__(self, command: Command, folder: Path) -> None:
        self.name = command.name
        self.output = folder / f"{command.name}.out"
        self.errors = folder / f"{command.name}.err"
        with self.output.open("wb") as output, self.errors.open("wb") as errors:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", command.module, *command.arguments],
                cwd=command.folder,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **command.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,  # Ctrl-C reaches this process alone, which ends its children in order
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def exit_code(self) -> int | None:
        return self._popen.poll()

    def refuse_dead(self) -> None:
        """Raise ChildFailed when it ended, with any exit code."""
        if not self.running:
            raise ChildFailed(f"{self.name} ended with code {self._popen.returncode}:\n{self.tail()}")

    def wait_ready(self, mark: str, pause: Pause) -> str:
        """Return the first line of its output that contains the mark. Raises ChildFailed when none comes in time."""
        deadline = time.monotonic() + READY
        while True:
            with self.output.open(errors="replace") as lines:
                for line in lines:
                    if mark in line and line.endswith("\n"):
                        return line.strip()
            self.refuse_dead()
            if time.monotonic() > deadline:
                raise ChildFailed(f"{self.name} was not ready in {READY:g} s:\n{self.tail()}")
            pause(0.05)

    def wait_done(self, pause: Pause) -> None:
        """Return when it has ended with exit code 0. Raises ChildFailed for a different code."""
        while self.running:
            pause(0.05)
        if self._popen.returncode:
            self.refuse_dead()

    def tail(self) -> str:
        """Return its last lines on standard error, or on standard output when the former is empty."""
        for path in (self.errors, self.output):
            if lines := tail(path):
                return lines
        return "  (it wrote nothing)"

    def cut_connections(self) -> None:
        """Send SIGUSR1, which has the emulator cut every connection."""
        self._popen.send_signal(signal.SIGUSR1)

    def recreate_hubs(self) -> None:
        """Send SIGUSR2, which has the emulator delete its hubs and create them again."""
        self._popen.send_signal(signal.SIGUSR2)

    def kill(self) -> None:
        self._popen.kill()
        self._popen.wait()

    def end(self, grace: float = GRACE) -> None:
        """Send SIGTERM, and SIGKILL when it does not end in time."""
        if self.running:
            self._popen.terminate()
            try:
                self._popen.wait(grace)
            except subprocess.TimeoutExpired:
                self.kill()


class Children:
    """A `with` block that ends all its children, after an error too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._children: list[Child] = []

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the children. During that time, Interruption holds back a second Ctrl-C."""
        while self._children:
            self._children[-1].end()
            self._children.pop()

    def start(self, command: Command) -> Child:
        """Start a child that ends with this block at the latest."""
        child = Child(command, self.folder)
        self._children.append(child)
        return child


def tail(path: Path) -> str:
    """Return the last lines of a file, indented, or an empty text when there are none."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 16_384))
        lines = file.read().decode(errors="replace").splitlines()[-TAIL:]
    return "\n".join(f"  {line}" for line in lines)
