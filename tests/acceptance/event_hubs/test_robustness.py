"""Broken and random bytes: nothing kills the server, and no connection is left."""

import logging
import random
import socket
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from local.event_hubs import Emulator
from local.event_hubs.codec import Described, Symbol, UInt, ULong
from local.event_hubs.frames import (
    AMQP_HEADER,
    ATTACH,
    BEGIN,
    FLOW,
    OPEN,
    SASL_HEADER,
    SASL_INIT,
    SOURCE,
    TARGET,
    composite,
    frame,
)
from local.event_hubs.sections import PROPERTIES
from tests.acceptance.event_hubs.clients import HUB, publish, received, signed_in, talk, wait_until
from tests.local.event_hubs.messages import attach_sender, section, transfer
from tests.patience import allowed

GREETING = SASL_HEADER + frame(composite(SASL_INIT, Symbol("ANONYMOUS"), b"", "localhost"), kind=1) + AMQP_HEADER
STREAM = GREETING + b"".join(
    map(
        frame,
        (
            composite(OPEN, "peer", "localhost", UInt(65536)),
            composite(BEGIN, None, UInt(0), UInt(100), UInt(100)),
            attach_sender("$cbs"),
            composite(FLOW, UInt(0), UInt(100), UInt(0), UInt(100), UInt(0), UInt(0), UInt(10)),
            transfer(b"\x00\x53\x75\xa0\x01x"),
        ),
    )
)


def connect(server: Emulator) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=allowed(10))


@pytest.fixture
def server(emulator: Emulator, caplog: pytest.LogCaptureFixture) -> Iterator[Emulator]:
    """An emulator that afterwards has no connection, serves, and has logged no error."""
    yield emulator
    wait_until(lambda: emulator.connection_count == 0)
    publish(emulator, ["still there"])
    assert emulator.end_of(HUB)["0"] == 0
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def random_bytes(seed: int, chance: random.Random) -> bytes:
    return (b"", AMQP_HEADER, SASL_HEADER, STREAM)[seed % 4] + chance.randbytes(chance.randrange(1, 2000))


def random_frames(seed: int, chance: random.Random) -> bytes:
    frames = GREETING + frame(composite(OPEN, "peer"))
    for _ in range(10):
        body = b"\x00\x53" + bytes((chance.choice(range(0x10, 0x19)),)) + chance.randbytes(chance.randrange(60))
        frames += frame(body, channel=chance.randrange(2), kind=chance.choice((0, 0, 0, 1, 7)))
    return frames


def changed_bytes(seed: int, chance: random.Random) -> bytes:
    changed = bytearray(STREAM)
    for _ in range(chance.randrange(1, 6)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


@pytest.mark.parametrize("make", [random_bytes, random_frames, changed_bytes])
def test_broken_streams_are_survived(server: Emulator, make: Callable[[int, random.Random], bytes]) -> None:
    for seed in range(150):
        talk(server, make(seed, random.Random(seed)))


def test_a_stream_cut_after_any_byte_is_survived(server: Emulator) -> None:
    for length in range(len(STREAM)):
        talk(server, STREAM[:length])


def test_a_stream_that_comes_byte_by_byte_is_understood(server: Emulator) -> None:
    with connect(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in STREAM:
            connection.sendall(bytes((byte,)))
        connection.shutdown(socket.SHUT_WR)
        answer = received(connection)
    assert b"\x00\x53\x15" in answer, "the delivery has a disposition"


def test_a_peer_that_asks_and_never_reads_is_cut_and_takes_little_memory(server: Emulator) -> None:
    node = Described(ULong(SOURCE), ["$management"]), Described(ULong(TARGET), ["$management"])
    begun = (
        attach_sender("$management", 1),
        composite(ATTACH, "answers", UInt(2), True, None, None, *node),
        composite(FLOW, UInt(0), UInt(1_000_000), UInt(0), UInt(100), UInt(2), UInt(0), UInt(1_000_000)),
    )
    request = frame(transfer(section(PROPERTIES, ["i" * 60_000]), 1, 1))
    tracemalloc.start()
    try:
        with connect(server) as connection, pytest.raises(ConnectionError):
            connection.sendall(signed_in(server, *begun))
            for _ in range(1_000):
                connection.sendall(request)
        assert tracemalloc.get_traced_memory()[1] < 15_000_000, "the answers are 60 MB"
    finally:
        tracemalloc.stop()
