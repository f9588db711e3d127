"""The anchor: the first number of a partition that counts, read from the hub once and stored for good."""

from datetime import datetime
from typing import Literal

from core.model.clock import parse_instant
from core.model.commits import PartitionState
from core.model.events import Event
from core.model.hub import HubReader
from core.model.spans import SequenceNumber

# Where a stream begins: at the first event that the hub holds ("first"), at the first event that was enqueued after the
# stream was opened ("latest"), or at the first event from a time on.
Anchoring = Literal["first", "latest"] | datetime
_NAMED: dict[str, Anchoring] = {"first": "first", "latest": "latest"}


def anchoring_of(text: str) -> Anchoring:
    """Return the anchoring that a text names: `first`, `latest` or a time; ValueError for any other text."""
    return _NAMED[text] if text in _NAMED else parse_instant(text)


def choose_anchor(
    state: PartitionState, anchoring: Anchoring, hub: HubReader, in_hand: Event | None = None
) -> SequenceNumber:
    """Return the first number of a partition without a commit; `in_hand` is the first event that was delivered.

    While no event has been enqueued at or after the time, the anchor is the next number that the hub will give.
    """
    if anchoring == "first":
        return _first_held(state, hub, in_hand)
    extent = hub.extent(state.partition)  # read first: events that arrive later come after it
    found = hub.first_at(state.partition, _moment(state, anchoring))
    return SequenceNumber(extent.last + 1) if found is None else found.sequence_number


def _first_held(state: PartitionState, hub: HubReader, in_hand: Event | None) -> SequenceNumber:
    """Return the lower of the hub's first number and that of the event in hand.

    Retention may have removed that event since its delivery. No number is lower than 0, so number 0 needs no call to
    the hub.
    """
    if in_hand is None:
        return hub.extent(state.partition).beginning
    if in_hand.sequence_number == 0:
        return in_hand.sequence_number
    return min(hub.extent(state.partition).beginning, in_hand.sequence_number)


def _moment(state: PartitionState, anchoring: Anchoring) -> datetime:
    if isinstance(anchoring, datetime):
        return anchoring
    if state.opened_at is None:
        raise ValueError(f"{state.partition}: the store has no time at which its stream was opened")
    return state.opened_at
