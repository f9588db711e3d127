"""core/guard.py: which events are new, and what is missing before and among them."""

from datetime import timedelta
from uuid import UUID

import pytest

from core.commits import Checkpoint
from core.errors import StreamIncarnationChanged
from core.events import Event, SequenceNumber
from core.guard import Gap, Guarded, guard
from tests.fakes.builders import batch, event, events, partition


def checkpoint(number: int) -> Checkpoint:
    return Checkpoint(SequenceNumber(number), str(number * 64), event(number).enqueued_at, 1, UUID(int=1))


def gap(first: int, last: int) -> Gap:
    return Gap(SequenceNumber(first), SequenceNumber(last))


def test_all_events_are_new_to_a_partition_without_a_checkpoint() -> None:
    assert guard(batch(events(7, 9)), None) == Guarded(events(7, 9), None)


def test_events_that_follow_the_checkpoint_are_all_new() -> None:
    assert guard(batch(events(5, 9)), checkpoint(4)) == Guarded(events(5, 9), None)


@pytest.mark.parametrize("at", [9, 10, 99])
def test_a_batch_that_is_committed_already_is_dropped_whole(at: int) -> None:
    assert guard(batch(events(5, 9)), checkpoint(at)) == Guarded((), None)


@pytest.mark.parametrize("at", [5, 6, 8])
def test_the_redelivered_part_of_a_batch_is_dropped(at: int) -> None:
    assert guard(batch(events(5, 9)), checkpoint(at)) == Guarded(events(at + 1, 9), None)


@pytest.mark.parametrize(("at", "missing"), [(3, gap(4, 4)), (0, gap(1, 4))])
def test_what_lies_between_checkpoint_and_batch_is_a_gap(at: int, missing: Gap) -> None:
    assert guard(batch(events(5, 9)), checkpoint(at)) == Guarded(events(5, 9), missing)


def holed() -> tuple[Event, ...]:
    return (*events(0, 2), *events(5, 6), event(9))


@pytest.mark.parametrize(
    ("at", "run", "missing"),
    [
        (None, events(0, 2), None),
        (0, events(1, 2), None),
        (2, events(5, 6), gap(3, 4)),
        (4, events(5, 6), None),
        (5, (event(6),), None),
        (6, (event(9),), gap(7, 8)),
        (8, (event(9),), None),
        (9, (), None),
    ],
)
def test_a_batch_with_holes_gives_its_first_unbroken_run(
    at: int | None, run: tuple[Event, ...], missing: Gap | None
) -> None:
    assert guard(batch(holed()), None if at is None else checkpoint(at)) == Guarded(run, missing)


def test_a_single_event_is_a_run() -> None:
    assert guard(batch([event(0)]), None) == Guarded((event(0),), None)


def test_an_old_number_enqueued_after_the_checkpoint_is_another_incarnation() -> None:
    later = checkpoint(100).enqueued_at + timedelta(microseconds=1)
    with pytest.raises(StreamIncarnationChanged) as refusal:
        guard(batch([event(3, at=later)]), checkpoint(100))
    assert (refusal.value.partition, refusal.value.sequence_number) == (partition(), 3)
    assert refusal.value.checkpoint == 100


def test_the_number_of_the_checkpoint_itself_enqueued_later_is_another_incarnation() -> None:
    later = checkpoint(4).enqueued_at + timedelta(seconds=1)
    with pytest.raises(StreamIncarnationChanged):
        guard(batch([event(4, at=later), *events(5, 9)]), checkpoint(4))


def test_another_incarnation_is_seen_behind_events_that_look_redelivered() -> None:
    later = checkpoint(9).enqueued_at + timedelta(seconds=1)
    with pytest.raises(StreamIncarnationChanged) as refusal:
        guard(batch([event(3), event(4), event(5, at=later)]), checkpoint(9))
    assert refusal.value.sequence_number == 5


def test_events_enqueued_at_the_same_instant_are_redelivered() -> None:
    at = checkpoint(9).enqueued_at
    assert guard(batch([event(8, at=at), event(9, at=at)]), checkpoint(9)) == Guarded((), None)


def test_new_numbers_may_carry_any_time() -> None:
    early = event(5, at=checkpoint(0).enqueued_at)
    assert guard(batch([early]), checkpoint(4)).run == (early,)
