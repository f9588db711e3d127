"""The guard: find the new events of a batch, and the numbers that are missing before and among them."""

from bisect import bisect_left
from dataclasses import dataclass

from core.model.commits import PartitionState
from core.model.events import Event, EventBatch, SequenceNumber, Span, number_of


@dataclass(frozen=True, slots=True)
class Guarded:
    """The new events of a batch, from number `first` on. There are none when all are redelivered.

    `gap` reaches from the first to the last missing number, or None when none is missing, or when the hub was already
    asked for all of them.
    """

    run: tuple[Event, ...]
    first: SequenceNumber
    gap: Span | None


def guard(batch: EventBatch, state: PartitionState) -> Guarded:
    """Drop redelivered events and those before the anchor, and find the gap before the last event.

    Raises StreamIncarnationChanged when an event that looks redelivered was enqueued after the checkpoint's event.
    """
    events, first = batch.events, state.next_number
    known = bisect_left(events, first, key=number_of)
    for event in events[:known]:
        state.refuse_other_hub(event)
    fresh = events[known:] if known else events
    if not fresh:
        return Guarded((), first, None)
    gap = _missing(fresh, first)
    if gap and batch.asked and batch.asked.holds(gap):
        gap = None
    return Guarded(fresh, first, gap)


def _missing(events: tuple[Event, ...], first: SequenceNumber) -> Span | None:
    last = events[-1].sequence_number
    if last - first + 1 == len(events):  # the numbers rise, so none is missing
        return None
    below = next(place for place, event in enumerate(events) if event.sequence_number != first + place)
    above = next((place for place, event in enumerate(reversed(events)) if event.sequence_number != last - place), 0)
    end = last - above if above else events[0].sequence_number - 1
    return Span(SequenceNumber(first + below), SequenceNumber(end))
