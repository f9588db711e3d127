"""Compare the books with the hub: whether it is still theirs, its events of letters, and its partitions."""

import json
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from core.ingest.incarnation import created_differently, differing_event
from core.ledger.faults import LedgerFault
from core.ledger.store.ledger import Ledger
from core.ledger.whereabouts import LetterEvent
from core.model.commits import PartitionState
from core.model.events import Event, Incarnation, PartitionId
from core.model.hub import HubReader
from core.model.spans import SequenceNumber, Span
from core.model.values import encode_properties, looks_like_a_tag

PAGE = 100  # letters that are in memory at once, with their bodies
SETTLING = timedelta(minutes=10)  # a stream that was opened since then may not have anchored all its partitions yet
UNREAD = {"$amqp", "$json"}  # the names under which properties that could not be read are stored
PRECISION = timedelta(milliseconds=1)  # of the hub's enqueued times


class LetterComparison:
    """Compares the letters of a range with the hub's events, in order; letters without an event are ignored."""

    def __init__(self, store: Ledger, id: PartitionId, span: Span) -> None:
        self._id = id
        self._letters = _letters(store, id, span)
        self._letter = next(self._letters, None)

    def see(self, event: Event) -> Iterator[LedgerFault]:
        """Yield a fault for each part of the event that its letter stores differently."""
        number = event.sequence_number
        while self._letter is not None and self._letter.sequence_number < number:
            self._letter = next(self._letters, None)
        if self._letter is not None and self._letter.sequence_number == number:
            for different in _differences(self._letter, event):
                text = f"letter {number} has {different} than the hub's event"
                yield LedgerFault(self._id, "letter_changed", number, number, text)


def incarnation_faults(
    states: Iterable[PartitionState], incarnation: Incarnation | None, hub: HubReader
) -> Iterator[LedgerFault]:
    """Yield the fault of a hub that was created at a different time, or whose event at a checkpoint differs.

    Raises HubUnreachable or HubRefused. The recount reports a hub that ends before the checkpoint.
    """
    compared = [(state, state.checkpoint.sequence_number) for state in states if state.checkpoint is not None]
    created_at = hub.created_at() if compared else None
    stored = None if incarnation is None else incarnation.hub_created_at
    for state, number in compared:
        if created_at is not None and stored is not None and created_at != stored:
            evidence: str | None = created_differently(created_at, stored)
        else:
            evidence = differing_event(state, hub, hub.extent(state.partition))
        if evidence is not None:
            text = f"{evidence}: it is a different hub"
            yield LedgerFault(state.partition.partition_id, "hub", number, number, text)


def find_unbooked(
    hub: HubReader, named: Collection[PartitionId], incarnation: Incarnation | None, now: datetime
) -> Iterator[LedgerFault]:
    """Yield the partitions that had events in the hub and are not in the books.

    Yields none for a stream that was just opened. Raises HubUnreachable or HubRefused.
    """
    if incarnation is not None and timedelta() <= now - incarnation.opened_at < SETTLING:
        return
    for partition in hub.partitions():
        if partition.partition_id not in named and (extent := hub.extent(partition)).last >= 0:
            text = f"the hub gave numbers up to {extent.last}, but the books have nothing of the partition:"
            text = f"{text} it was never read, or its books are gone"
            yield LedgerFault(partition.partition_id, "partition", extent.beginning, extent.last, text)


def _letters(store: Ledger, id: PartitionId, span: Span) -> Iterator[LetterEvent]:
    after = SequenceNumber(span.first - 1)
    while page := store.read_letter_events(id, after, span.last, PAGE):
        yield from page
        after = page[-1].sequence_number


def _differences(letter: LetterEvent, event: Event) -> Iterator[str]:
    if letter.body is not None and letter.body != event.body:
        yield "a different body"
    if abs(letter.enqueued_at - event.enqueued_at) >= PRECISION:
        yield "a different enqueued time"
    if letter.partition_key != event.partition_key:
        yield "a different partition key"
    if _differ(letter.properties, json.loads(encode_properties(event.properties))):
        yield "different properties"


def _differ(stored: Mapping[str, object], sent: Mapping[str, object]) -> bool:
    """Return True for properties with other names or other values; those that could not be read are not compared."""
    if UNREAD & (stored.keys() ^ sent.keys()):
        return False
    return stored.keys() != sent.keys() or any(not _agree(value, sent[name]) for name, value in stored.items())


def _agree(one: object, other: object) -> bool:
    """Return False for two values in JSON that cannot be those of one value of AMQP.

    The host and the SDK give some values different types, at any depth, for example a tag or none: those cannot be
    compared. They also give a float of four bytes different digits.
    """
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_agree, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() == other.keys():
            return all(_agree(value, other[name]) for name, value in one.items())
        return looks_like_a_tag(one) or looks_like_a_tag(other)
    if isinstance(one, float) and isinstance(other, float):
        return one == other or _single(one) == _single(other) is not None
    return type(one) is not type(other) or one == other


def _single(value: float) -> bytes | None:
    """Return a number as a float of four bytes; None when it is too large for one."""
    try:
        return struct.pack(">f", value)
    except OverflowError:
        return None
