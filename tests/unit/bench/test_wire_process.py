"""bench/wire_process.py: the counter passes on the answer that a call waits for while it holds the GIL."""

import ctypes
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta

import pytest

from bench.wire_process import SeparateWire
from tests.patience import allowed
from tests.unit.bench.test_wire import BATCH, CALL, packet

ECHO = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    line, _ = listener.accept()
    while piece := line.recv(1_000):
        line.sendall(piece)
"""
PATIENCE = timedelta(seconds=10)


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server in a separate process, which echoes its input."""
    with subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.kill()


def answer_without_the_gil(port: int, patience: timedelta = PATIENCE) -> int:
    """Send a request, and wait for its answer as fast_executemany does: no other thread of this process runs."""
    libc, request, answer = ctypes.PyDLL(None), packet(CALL), ctypes.create_string_buffer(100)
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", patience.seconds, patience.microseconds)
        )
        usual = sys.getswitchinterval()
        sys.setswitchinterval(60.0)  # seconds: no thread takes the GIL between the two calls
        try:
            libc.send(line.fileno(), request, len(request), 0)
            return int(libc.recv(line.fileno(), answer, len(answer), 0))
        finally:
            sys.setswitchinterval(usual)


def test_a_call_that_holds_the_gil_gets_its_answer_through_the_separate_wire(echo: int) -> None:
    wire, through = SeparateWire.before(f"SERVER=127.0.0.1,{echo};Encrypt=no")
    try:
        assert through == f"Encrypt=no;SERVER=127.0.0.1,{wire.port}"
        assert answer_without_the_gil(wire.port) == len(packet(CALL))
        assert wire.requests == 1
    finally:
        wire.close()


def test_the_separate_wire_counts_what_the_wire_counts(echo: int) -> None:
    wire = SeparateWire("127.0.0.1", echo)
    with socket.create_connection(("127.0.0.1", wire.port), timeout=allowed(10)) as line:
        for kind in (CALL, BATCH):
            line.sendall(packet(kind))
            line.recv(100)
        assert wire.requests == 2
    wire.close()
