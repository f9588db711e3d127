"""Start the host again after a death, as Azure's host does with its worker.

Here worker and host are one process, so this parent stands for the host that outlives its workers. Source: the host's
`WorkerProcess` errors: three for each worker process, each less than half an hour after the one before.
"""

import logging
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta

from local.functions_host.errors import RECYCLED, REFUSED

logger = logging.getLogger("functions_host")

EXCEEDED = (
    "Exceeded language worker restart retry count for runtime:python. Shutting down and proactively recycling the "
    "Functions Host"
)
MOST_DEATHS = 3
APART = timedelta(minutes=30)
WITH_PARENT = "--ends-with-parent"


class Deaths:
    """The deaths of the workers. One that comes half an hour after the last is the first again."""

    def __init__(self) -> None:
        self.count = 0
        self._last: float | None = None

    def add(self, at: float) -> bool:
        """Count a death at a second of a monotonic clock. Return True when the host ends."""
        if self._last is not None and at - self._last >= APART.total_seconds():
            self.count = 0
        self.count, self._last = self.count + 1, at
        return self.count >= MOST_DEATHS


class Supervisor:
    """The parent of one worker at a time. `command` starts a worker on the port that the first one gets too."""

    def __init__(self, command: Sequence[str], clock: Callable[[], float]) -> None:
        self._command = command
        self._clock = clock
        self._deaths = Deaths()
        self._is_stopping = False
        self._worker: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Run workers until a signal, or until the host ends. Return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._pass_on)
        while True:
            code = self._run_worker()
            if self._is_stopping or code == REFUSED:
                return 1 if code == REFUSED else code
            is_last = self._deaths.add(self._clock())
            about = {"action": "worker_died", "exit_code": code, "deaths": self._deaths.count}
            logger.error("the worker process died", extra=about)
            if is_last:
                logger.critical(EXCEEDED, extra={"action": "host_recycled"})
                return RECYCLED

    def _run_worker(self) -> int:
        """Run a worker in its own session, so that Ctrl-C reaches it once. It ends when this process does."""
        with subprocess.Popen(self._command, stdin=subprocess.PIPE, start_new_session=True) as self._worker:
            if self._is_stopping:
                self._worker.terminate()
            return self._worker.wait()

    def _pass_on(self, number: int, _: object) -> None:
        self._is_stopping = True
        if self._worker is not None:
            self._worker.send_signal(number)


def command_of(arguments: Sequence[str], port: int) -> list[str]:
    return [sys.executable, "-m", "local.functions_host", *arguments, "--port", str(port), WITH_PARENT]


def free_port(wanted: int) -> int:
    """Return the port, or a free one for 0, so that every worker has the same."""
    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        return wanted or int(candidate.getsockname()[1])
