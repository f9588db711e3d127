"""The wire counter in a process of its own: `python -m bench.wire_process HOST PORT`.

`fast_executemany` holds the GIL while it waits for the server, so a proxy in the same process cannot pass the answer
on.
"""

import subprocess
import sys
from collections.abc import Iterable

from bench.wire import Wire, led_through, server_of

GRACE = 10.0  # seconds until the process must have ended


class SeparateWire:
    """A Wire in a child process, which ends when its standard input does: with this process at the latest."""

    def __init__(self, host: str, port: int) -> None:
        command = [sys.executable, "-m", "bench.wire_process", host, str(port)]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = self._answer()

    @staticmethod
    def before(connection_string: str) -> "tuple[SeparateWire, str]":
        """Return a proxy of the server that a connection string names, and the string that leads through the proxy."""
        wire = SeparateWire(*server_of(connection_string))
        return wire, led_through(connection_string, wire.port)

    @property
    def requests(self) -> int:
        """The number of requests so far."""
        assert self._child.stdin is not None
        self._child.stdin.write("\n")
        self._child.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        with self._child:
            assert self._child.stdin is not None
            self._child.stdin.close()
            self._child.wait(GRACE)

    def _answer(self) -> int:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            self.close()
            raise RuntimeError(f"the wire counter ended with code {self._child.returncode}")
        return int(line)


def serve(wire: Wire, questions: Iterable[str]) -> None:
    """Print the port, and then the number of requests for each line."""
    print(wire.port, flush=True)
    for _ in questions:
        print(wire.requests, flush=True)
    wire.close()


if __name__ == "__main__":
    serve(Wire(sys.argv[1], int(sys.argv[2])), sys.stdin)
