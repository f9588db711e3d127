"""core/ingest/guard.py: which events are new, and what is missing before and among them."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from core.errors import StreamIncarnationChanged
from core.ingest.guard import Guarded, guard
from core.model.commits import Checkpoint, PartitionState
from core.model.events import Event, SequenceNumber, Span
from tests.fakes.builders import batch, event, events, partition


def checkpoint(number: int) -> Checkpoint:
    return Checkpoint(SequenceNumber(number), str(number * 64), event(number).enqueued_at, 1, UUID(int=1))


def committed(number: int) -> PartitionState:
    """A partition that is committed up to a number."""
    return PartitionState(partition(), 1, checkpoint(number))


def anchored(number: int) -> PartitionState:
    """A partition without a commit that begins at a number."""
    return PartitionState(partition(), 1, None, SequenceNumber(number))


def gap(first: int, last: int) -> Span:
    return Span(SequenceNumber(first), SequenceNumber(last))


def guarded(run: tuple[Event, ...], first: int, missing: Span | None = None) -> Guarded:
    return Guarded(run, SequenceNumber(first), missing)


@pytest.mark.parametrize(
    ("state", "run", "missing"),
    [
        pytest.param(anchored(5), events(5, 9), None, id="all events from the anchor on are new"),
        pytest.param(anchored(7), events(7, 9), None, id="events before the anchor are dropped"),
        pytest.param(anchored(10), (), None, id="a batch before the anchor is dropped whole"),
        pytest.param(anchored(2), events(5, 9), gap(2, 4), id="between anchor and batch is a gap"),
        pytest.param(committed(4), events(5, 9), None, id="events that follow the checkpoint are new"),
        *(pytest.param(committed(at), (), None, id=f"committed already at {at}") for at in (9, 10, 99)),
        *(pytest.param(committed(at), events(at + 1, 9), None, id=f"redelivered up to {at}") for at in (5, 6, 8)),
        pytest.param(committed(3), events(5, 9), gap(4, 4), id="one number is missing before the batch"),
        pytest.param(committed(0), events(5, 9), gap(1, 4), id="between checkpoint and batch is a gap"),
    ],
)
def test_a_batch_has_the_events_that_are_new_and_the_gap_before_them(
    state: PartitionState, run: tuple[Event, ...], missing: Span | None
) -> None:
    assert guard(batch(events(5, 9)), state) == guarded(run, state.next_number, missing)


def test_a_partition_that_is_neither_anchored_nor_committed_is_not_guessed_about() -> None:
    with pytest.raises(ValueError, match="telemetry/hubledger/0 is not anchored"):
        guard(batch(events(0, 1)), PartitionState(partition(), 1, None))


def holed() -> tuple[Event, ...]:
    return (*events(0, 2), *events(5, 6), event(9))


@pytest.mark.parametrize(
    ("at", "run", "missing"),
    [
        (0, holed()[1:], gap(3, 8)),
        (2, holed()[3:], gap(3, 8)),
        (4, holed()[3:], gap(7, 8)),
        (5, holed()[4:], gap(7, 8)),
        (6, holed()[5:], gap(7, 8)),
        (7, holed()[5:], gap(8, 8)),
        (8, holed()[5:], None),
        (9, (), None),
    ],
)
def test_the_gap_of_a_batch_with_holes_reaches_from_the_first_missing_number_to_the_last(
    at: int, run: tuple[Event, ...], missing: Span | None
) -> None:
    assert guard(batch(holed()), committed(at)) == guarded(run, at + 1, missing)


@pytest.mark.parametrize(
    ("asked", "missing"),
    [(gap(3, 8), None), (gap(0, 99), None), (gap(3, 7), gap(3, 8)), (gap(4, 8), gap(3, 8)), (gap(20, 30), gap(3, 8))],
)
def test_what_the_hub_was_asked_for_is_no_gap_any_more(asked: Span, missing: Span | None) -> None:
    known = replace(batch(holed()), asked=asked)
    assert guard(known, committed(0)) == guarded(holed()[1:], 1, missing)


def test_an_old_number_enqueued_after_the_checkpoint_is_another_incarnation() -> None:
    later = checkpoint(100).enqueued_at + timedelta(microseconds=1)
    with pytest.raises(StreamIncarnationChanged) as refusal:
        guard(batch([event(3, at=later)]), committed(100))
    assert refusal.value.partition == partition()
    assert refusal.value.evidence == "event 3 was enqueued after the checkpoint at 100"


def test_the_number_of_the_checkpoint_itself_enqueued_later_is_another_incarnation() -> None:
    later = checkpoint(4).enqueued_at + timedelta(seconds=1)
    with pytest.raises(StreamIncarnationChanged):
        guard(batch([event(4, at=later), *events(5, 9)]), committed(4))


def test_a_different_incarnation_is_seen_in_events_that_look_redelivered() -> None:
    later = checkpoint(9).enqueued_at + timedelta(seconds=1)
    with pytest.raises(StreamIncarnationChanged) as refusal:
        guard(batch([event(3), event(4), event(5, at=later)]), committed(9))
    assert "event 5 was enqueued" in refusal.value.evidence


def test_events_enqueued_at_the_same_instant_are_redelivered() -> None:
    at = checkpoint(9).enqueued_at
    assert guard(batch([event(8, at=at), event(9, at=at)]), committed(9)) == guarded((), 10)


def test_new_numbers_may_carry_any_time() -> None:
    early = event(5, at=checkpoint(0).enqueued_at)
    assert guard(batch([early]), committed(4)).run == (early,)
