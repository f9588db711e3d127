"""The guard: which events of a batch are new, and whether any are missing before them."""

from dataclasses import dataclass

from core.commits import Checkpoint
from core.errors import StreamIncarnationChanged
from core.events import Event, EventBatch, SequenceNumber


@dataclass(frozen=True, slots=True)
class Gap:
    """Sequence numbers, both ends included, that lie between what is committed and what arrived."""

    first: SequenceNumber
    last: SequenceNumber


@dataclass(frozen=True, slots=True)
class Guarded:
    """The first unbroken run of new events of a batch (empty when all were seen before), and the gap before it."""

    run: tuple[Event, ...]
    gap: Gap | None


def guard(batch: EventBatch, checkpoint: Checkpoint | None) -> Guarded:
    """Drop redelivered events and cut what is left at the first missing number.

    Raises StreamIncarnationChanged when an event that looks redelivered was enqueued after the checkpoint's event.
    """
    events = batch.events
    if checkpoint is None:
        return Guarded(_unbroken(events), None)
    known = _redelivered(batch, checkpoint)
    fresh = events[known:] if known else events
    if not fresh:
        return Guarded((), None)
    return Guarded(_unbroken(fresh), _gap_before(fresh[0], checkpoint))


def _redelivered(batch: EventBatch, checkpoint: Checkpoint) -> int:
    known = 0
    for event in batch.events:
        if event.sequence_number > checkpoint.sequence_number:
            break
        if event.enqueued_at > checkpoint.enqueued_at:
            raise StreamIncarnationChanged(batch.partition, event.sequence_number, checkpoint.sequence_number)
        known += 1
    return known


def _gap_before(event: Event, checkpoint: Checkpoint) -> Gap | None:
    following = SequenceNumber(checkpoint.sequence_number + 1)
    if event.sequence_number == following:
        return None
    return Gap(following, SequenceNumber(event.sequence_number - 1))


def _unbroken(events: tuple[Event, ...]) -> tuple[Event, ...]:
    first = events[0].sequence_number
    if events[-1].sequence_number - first + 1 == len(events):  # they rise, so none is missing
        return events
    for index, event in enumerate(events):
        if event.sequence_number != first + index:
            return events[:index]
    return events
