"""A reader who follows a page in a copy of the checkout: writes its files and runs its commands."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.acceptance.tutorial.page import Changed, Command, Section, Step, Written
from tests.patience import allowed

DEADLINE = 180.0  # seconds of an idle machine for the output of a command that does not end
USUAL_PORT = 7071


def free_port() -> int:
    """Return a port of loopback that nothing uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def in_a_copy(folder: Path) -> "Reader":
    """Return a reader in a copy of the checkout with the packages of this Python, so that `make setup` finds all."""
    from tests.checkout import copy_checkout  # a reader on a bare machine lacks what it imports

    venv = copy_checkout(folder) / ".venv"
    venv.mkdir()
    for entry in Path(sys.prefix).iterdir():
        if entry.name in {"bin", "lib", "lib64", "include", "pyvenv.cfg"}:
            (venv / entry.name).symlink_to(entry)
    for done in ("local.done", "dev.done", "spark.done"):
        (venv / done).touch()
    return Reader(folder)


class Reader:
    """Follows the steps of a page, and remembers the outputs that the page does not show."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.differing: list[str] = []
        self.last = ""  # the output of the command that was taken last
        self._running: subprocess.Popen[bytes] | None = None
        self._output = folder / ".local-run" / "tutorial.out"

    def take(self, step: Step) -> None:
        match step:
            case Written(name, text):
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_text(text, encoding="utf-8")
            case Changed(diff):
                subprocess.run(
                    ["git", "apply", "--unidiff-zero", "-"], cwd=self.folder, input=diff, text=True, check=True
                )
            case Section():
                self.stop()
            case Command() if step.line.startswith("git clone "):
                pass  # the copy of the checkout is the clone
            case Command() if step.is_endless:
                self.begin(step.line)
                self._compare(step, lambda: self.shown)
            case Command():
                self._compare(step, lambda: self.run(step.line))

    def begin(self, line: str) -> None:
        """Start a command that does not end."""
        words, environment = self._shell(line), self._environment()
        self._output.parent.mkdir(exist_ok=True)
        with self._output.open("wb") as output:
            self._running = subprocess.Popen(
                words, cwd=self.folder, env=environment, stdout=output, start_new_session=True
            )

    @property
    def shown(self) -> str:
        return self._output.read_text(encoding="utf-8")

    def run(self, line: str) -> str:
        done = subprocess.run(
            self._shell(line), cwd=self.folder, env=self._environment(), capture_output=True, text=True, check=False
        )
        failed = f"exit code {done.returncode}\n" if done.returncode else ""
        return done.stdout + done.stderr + failed

    def stop(self) -> None:
        """Stop what runs, as Ctrl-C does."""
        if self._running is not None:
            os.killpg(self._running.pid, signal.SIGINT)
            self._running.wait(timeout=allowed(60))
            self._running = None

    def _compare(self, command: Command, read: Callable[[], str]) -> None:
        until = time.monotonic() + allowed(DEADLINE) * (self._running is not None)
        while not command.shows(output := read()) and time.monotonic() < until:
            time.sleep(0.5)
        self.last = output
        if not command.shows(output):
            self.differing.append(f"$ {command.line}\n{output}")

    def _shell(self, line: str) -> list[str]:
        return [str(shutil.which("bash")), "-c", line]

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "TMPDIR", "LANG"}}
        hub = str(free_port()) if self._running is None else ""
        return {**kept, "PORT": str(self.port), "HUB_PORT": hub, "PYTHONIOENCODING": "utf-8"}
