"""Broken and random bytes: nothing kills the server, and no connection is left behind."""

from __future__ import annotations

import logging
import random
import socket
import struct

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
    TRANSFER,
    composite,
    frame,
)
from tests.acceptance.event_hubs.clients import HUB, publish, wait_until

STREAM = b"".join(
    (
        SASL_HEADER,
        frame(composite(SASL_INIT, Symbol("ANONYMOUS"), b"", "localhost"), kind=1),
        AMQP_HEADER,
        frame(composite(OPEN, "peer", "localhost", UInt(65536))),
        frame(composite(BEGIN, None, UInt(0), UInt(100), UInt(100))),
        frame(
            composite(
                ATTACH,
                "l",
                UInt(0),
                False,
                None,
                None,
                Described(ULong(SOURCE), []),
                Described(ULong(TARGET), ["$cbs"]),
            )
        ),
        frame(composite(FLOW, UInt(0), UInt(100), UInt(0), UInt(100), UInt(0), UInt(0), UInt(10))),
        frame(composite(TRANSFER, UInt(0), UInt(0), b"t", UInt(0), False, False) + b"\x00\x53\x75\xa0\x01x"),
    )
)


def connect(emulator: Emulator) -> socket.socket:
    return socket.create_connection(("127.0.0.1", emulator.port), timeout=10)


def talk(emulator: Emulator, data: bytes) -> None:
    """Send the bytes, read what comes at once, and hang up."""
    with connect(emulator) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass
        except ConnectionError:
            return


@pytest.fixture
def unharmed(emulator: Emulator, caplog: pytest.LogCaptureFixture) -> object:
    """Afterwards no connection is left, the server serves, and nothing was raised that nobody expected."""
    yield emulator
    wait_until(lambda: emulator.connection_count == 0)
    publish(emulator, ["still there"])
    assert emulator.end_of(HUB)["0"] == 0
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_random_bytes_are_survived(emulator: Emulator, unharmed: object) -> None:
    for seed in range(150):
        chance = random.Random(seed)
        head = (b"", AMQP_HEADER, SASL_HEADER, STREAM)[seed % 4]
        talk(emulator, head + chance.randbytes(chance.randrange(1, 2000)))


def test_random_frames_are_survived(emulator: Emulator, unharmed: object) -> None:
    for seed in range(150):
        chance = random.Random(seed)
        frames = b""
        for _ in range(10):
            body = b"\x00\x53" + bytes((chance.choice(range(0x10, 0x19)),)) + chance.randbytes(chance.randrange(60))
            frames += frame(body, channel=chance.randrange(2), kind=chance.choice((0, 0, 0, 1, 7)))
        talk(emulator, STREAM[: STREAM.rindex(b"AMQP") + 8] + frame(composite(OPEN, "peer")) + frames)


def test_changed_bytes_are_survived(emulator: Emulator, unharmed: object) -> None:
    for seed in range(150):
        chance = random.Random(seed)
        changed = bytearray(STREAM)
        for _ in range(chance.randrange(1, 6)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        talk(emulator, bytes(changed))


def test_a_stream_cut_after_any_byte_is_survived(emulator: Emulator, unharmed: object) -> None:
    for length in range(len(STREAM)):
        talk(emulator, STREAM[:length])


def test_a_stream_that_comes_byte_by_byte_is_understood(emulator: Emulator, unharmed: object) -> None:
    with connect(emulator) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in STREAM:
            connection.sendall(bytes((byte,)))
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    assert b"\x00\x53\x15" in answer, "the delivery has a disposition"


@pytest.mark.parametrize("size", [0, 7, 65_537, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_frame_of_a_size_that_was_not_agreed_ends_the_connection(
    emulator: Emulator, unharmed: object, size: int
) -> None:
    with connect(emulator) as connection:
        connection.sendall(
            AMQP_HEADER + frame(composite(OPEN, "peer")) + struct.pack(">IBBH", size, 2, 0, 0) + b"x" * 64
        )
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    assert b"amqp:connection:framing-error" in answer


def test_many_connections_that_say_nothing_leave_nothing(emulator: Emulator, unharmed: object) -> None:
    connections = [connect(emulator) for _ in range(100)]
    wait_until(lambda: emulator.connection_count == 100)
    for connection in connections:
        connection.close()
