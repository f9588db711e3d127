"""Commands in separate processes, and waits with a deadline."""

import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from local.programs import APP
from tests import patience

DEADLINE = 300.0  # seconds of an idle machine, where a demo with chaos takes 30 to 60
KEYS = [
    "published",
    "accounted",
    "written",
    "filtered",
    "dead_lettered",
    "letters",
    "gaps",
    "redelivered_dropped",
    "ledger_balanced",
    "seconds",
    "events_per_second",
]


class Ended(NamedTuple):
    """The exit code and output of a command."""

    code: int
    out: list[str]
    err: str


class Started:
    """A command with all its descendants, which share a mark in their environment."""

    def __init__(self, *command: str) -> None:
        self._mark = f"HUBLEDGER_TEST={uuid.uuid4()}"
        name, _, value = self._mark.partition("=")
        self._popen = subprocess.Popen(
            [sys.executable, "-m", *command, *_patient(command[0])],
            cwd=APP,
            env={**os.environ, name: value},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait(self, deadline: float = DEADLINE) -> Ended:
        out, err = patience.ended(self._popen, deadline)
        return Ended(self._popen.returncode, out.splitlines(), err)

    def stop(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def wait_for_line(self, holds: Callable[[str], bool]) -> str:
        """Return the first line of its standard output that holds."""
        assert self._popen.stdout is not None
        alarm = threading.Timer(patience.allowed(DEADLINE), self._popen.kill)
        alarm.start()
        try:
            return next(line for line in self._popen.stdout if holds(line))
        finally:
            alarm.cancel()

    def kill_child(self, module: str) -> None:
        """Kill one of its descendants, by the module that it runs."""
        pid = next(pid for pid in self.left() if module.encode() in Path(f"/proc/{pid}/cmdline").read_bytes())
        os.kill(pid, signal.SIGKILL)

    def left(self) -> list[int]:
        """Return its processes that still run."""
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and self._marked(entry)]

    def _marked(self, entry: Path) -> bool:
        try:
            return self._mark.encode() in (entry / "environ").read_bytes()
        except OSError:
            return False

    def end(self) -> None:
        """End the command, and close its pipes, also when it has ended already and nobody read its output."""
        if self._popen.poll() is None:
            self._popen.terminate()
        patience.ended(self._popen, DEADLINE)


Start = Callable[..., Started]


def _patient(module: str) -> list[str]:
    """Return the option that gives a demo as much patience as this machine needs."""
    return ["--patience", str(round(patience.allowed(60)))] if module == "local.demo" else []


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


def wait_until(holds: Callable[[], bool]) -> None:
    """Return as soon as a condition holds; fail after the deadline."""
    patience.until(holds, DEADLINE)
