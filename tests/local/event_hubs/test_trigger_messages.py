"""The messages that were published to the real trigger pass through a hub, whatever their reader makes of them."""

import pytest

from local.event_hubs.codec import Described, ULong, encode
from local.event_hubs.frames import ACCEPTED, DISPOSITION, TRANSFER
from local.event_hubs.sections import (
    APPLICATION_PROPERTIES,
    DELIVERY_ANNOTATIONS,
    HEADER,
    MESSAGE_ANNOTATIONS,
    sections,
)
from tests.fakes import trigger_events
from tests.local.event_hubs.messages import message, transfer
from tests.local.event_hubs.peer import make_broker, publisher, reader

pytestmark = pytest.mark.asyncio
_CASE = bytes.fromhex("005374c11604a10463617365a10178a1017681000000000000000100")
_OK = bytes.fromhex("5375a0087b226f6b223a317d")
NOT_DELIVERED: dict[str, bytes] = {
    "a body that is a value": _CASE + bytes.fromhex("5377a10474657874"),
    "a body that is a map": _CASE + bytes.fromhex("5377c10d02a1016b810000000000000001"),
    "a body of two sequences": _CASE + bytes.fromhex("5376c00a0181000000000000000100 5376c00a01810000000000000002"),
    "a key that is a number": message(partition_key=5),
    "a key of 300 characters": message(partition_key="k" * 300),
    "a thousand properties": encode(Described(ULong(APPLICATION_PROPERTIES), {f"p{n}": n for n in range(1000)}))
    + message(),
    "a large body": message(b"x" * 900_000),
}
REFUSED: dict[str, bytes] = {
    "no sections": b"hello world",
    "a section with a name of its own": bytes.fromhex("00a30a6d793a73656374696f6ec10100") + b"\x00" + _OK,
    "a key that is not UTF-8": bytes.fromhex("005372c11a02a313782d6f70742d706172746974696f6e2d6b6579a102fffe00") + _OK,
}


def kept(whole: bytes) -> bytes:
    """Return the sections of a message that a hub passes on as they are."""
    replaced = (HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS)
    return b"".join(whole[start:end] for code, start, _, end in sections(whole) if code not in replaced)


async def passed(whole: bytes) -> bytes | None:
    """Publish a message and return the payload that a reader gets, None for a message that is refused."""
    broker = make_broker()
    peer = publisher(broker)
    parts = [whole[at : at + 60_000] for at in range(0, len(whole), 60_000)]
    peer.put(*(transfer(part, more=part is not parts[-1]) for part in parts))
    [state] = [fields[4] for code, fields, _ in peer.frames() if code == DISPOSITION]
    if state.descriptor != ACCEPTED:
        return None
    consumer = reader(broker)
    consumer.grant(1)
    return b"".join(payload for code, _, payload in consumer.frames() if code == TRANSFER)


async def test_every_message_of_the_trigger_passes_with_the_bytes_of_its_sections() -> None:
    messages = {one.name: one.message for one in trigger_events.published()} | NOT_DELIVERED
    assert len(messages) > 100
    different = [name for name, whole in messages.items() if kept(await passed(whole) or b"") != kept(whole)]
    assert different == []


async def test_properties_that_are_null_are_none() -> None:
    assert kept(await passed(bytes.fromhex("0053744000") + _OK) or b"") == b"\x00" + _OK


async def test_what_is_no_message_is_refused() -> None:
    assert [name for name, whole in REFUSED.items() if await passed(whole) is not None] == []
