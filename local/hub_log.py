"""The events of a hub in their order, read from the emulator's file after the emulator has ended."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from core.model.events import Event
from core.model.spans import SequenceNumber
from local.books import reading
from local.event_hubs.codec import decode
from local.event_hubs.sections import DATA, MESSAGE_ANNOTATIONS, sections

PARTITION_KEY = "x-opt-partition-key"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EVENTS = """
SELECT partition_id, sequence_number, "offset", enqueued_at, payload FROM event ORDER BY partition_id, sequence_number
"""


def read_log(file: Path) -> Iterator[tuple[str, Event]]:
    """Yield the partition and the event of each event of the one hub, in order within a partition."""
    with reading(file) as connection:
        for partition_id, number, offset, enqueued_at, payload in connection.execute(_EVENTS):
            at = _EPOCH + timedelta(milliseconds=enqueued_at)
            key, body = _read(payload)
            yield partition_id, Event(SequenceNumber(number), str(offset), at, key, {}, body)


def _read(payload: bytes) -> tuple[str | None, bytes]:
    """Return the partition key and the body of a message; a feed publishes no properties."""
    key, data = None, []
    for code, _, at, _ in sections(payload):
        if code == MESSAGE_ANNOTATIONS:
            annotations: dict[Any, Any] = decode(payload, at)[0]
            key = annotations.get(PARTITION_KEY)
        elif code == DATA:
            data.append(decode(payload, at)[0])
    return key, b"".join(data)
