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


def test_all_events_from_the_anchor_on_are_new_to_a_partition_without_a_checkpoint() -> None:
    assert guard(batch(events(7, 9)), anchored(7)) == guarded(events(7, 9), 7)


def test_events_before_the_anchor_are_dropped() -> None:
    assert guard(batch(events(5, 9)), anchored(7)) == guarded(events(7, 9), 7)
    assert guard(batch(events(5, 9)), anchored(10)) == guarded((), 10)


def test_what_lies_between_anchor_and_batch_is_a_gap() -> None:
    assert guard(batch(events(5, 9)), anchored(2)) == guarded(events(5, 9), 2, gap(2, 4))


def test_a_partition_that_is_neither_anchored_nor_committed_is_not_guessed_about() -> None:
    with pytest.raises(ValueError, match="telemetry/hubledger/0 is not anchored"):
        guard(batch(events(0, 1)), PartitionState(partition(), 1, None))


def test_events_that_follow_the_checkpoint_are_all_new() -> None:
    assert guard(batch(events(5, 9)), committed(4)) == guarded(events(5, 9), 5)


@pytest.mark.parametrize("at", [9, 10, 99])
def test_a_batch_that_is_committed_already_is_dropped_whole(at: int) -> None:
    assert guard(batch(events(5, 9)), committed(at)) == guarded((), at + 1)


@pytest.mark.parametrize("at", [5, 6, 8])
def test_the_redelivered_part_of_a_batch_is_dropped(at: int) -> None:
    assert guard(batch(events(5, 9)), committed(at)) == guarded(events(at + 1, 9), at + 1)


@pytest.mark.parametrize(("at", "missing"), [(3, gap(4, 4)), (0, gap(1, 4))])
def test_what_lies_between_checkpoint_and_batch_is_a_gap(at: int, missing: Span) -> None:
    assert guard(batch(events(5, 9)), committed(at)) == guarded(events(5, 9), at + 1, missing)


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


def test_a_single_event_is_a_run() -> None:
    assert guard(batch([event(0)]), anchored(0)) == guarded((event(0),), 0)


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
