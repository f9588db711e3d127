import logging
import random

import pytest

from local.event_hubs import Emulator
from local.event_hubs.codec import Symbol, UInt
from local.event_hubs.frames import AMQP_HEADER, BEGIN, FLOW, OPEN, SASL_HEADER, SASL_INIT, composite, frame
from tests.acceptance.event_hubs.clients import HUB, publish, talk, wait_until
from tests.local.event_hubs.messages import attach_sender, transfer

GREETING = SASL_HEADER + frame(composite(SASL_INIT, Symbol("ANONYMOUS"), b"", "localhost"), kind=1) + AMQP_HEADER
PERFORMATIVES = (
    composite(OPEN, "peer", "localhost", UInt(65536)),
    composite(BEGIN, None, UInt(0), UInt(100), UInt(100)),
    attach_sender("$cbs"),
    composite(FLOW, UInt(0), UInt(100), UInt(0), UInt(100), UInt(0), UInt(0), UInt(10)),
    transfer(b"\x00\x53\x75\xa0\x01x"),
)
STREAM = GREETING + b"".join(map(frame, PERFORMATIVES))


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


def test_random_changed_and_cut_streams_are_survived(emulator: Emulator, caplog: pytest.LogCaptureFixture) -> None:
    for make in (random_bytes, random_frames, changed_bytes):
        for seed in range(150):
            talk(emulator, make(seed, random.Random(seed)))
    for length in range(len(STREAM)):
        talk(emulator, STREAM[:length])
    wait_until(lambda: emulator.connection_count == 0)
    publish(emulator, ["still there"])
    assert emulator.end_of(HUB)["0"] == 0
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
