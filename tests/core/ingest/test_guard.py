"""core/ingest/guard.py: which events are new, and what is missing before and among them."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from core.errors import StreamIncarnationChanged
from core.ingest.guard import Guarded, guard
from core.model.commits import Checkpoint, PartitionState
from core.model.events import Event, SequenceNumber, Span
from tests.core.ingest.conftest import gap
from tests.fakes.builders import batch, event, events, partition


def committed(number: int) -> PartitionState:
    """A partition that is committed up to a number."""
    checkpoint = Checkpoint(SequenceNumber(number), str(number * 64), event(number).enqueued_at, 1, UUID(int=1))
    return PartitionState(partition(), 1, checkpoint)


def anchored(number: int) -> PartitionState:
    """A partition without a commit that begins at a number."""
    return PartitionState(partition(), 1, None, SequenceNumber(number))


FIVE, HOLED = events(5, 9), (*events(0, 2), *events(5, 6), event(9))
EARLY = event(5, at=event(0).enqueued_at)


@pytest.mark.parametrize(
    ("given", "state", "run", "missing"),
    [
        pytest.param(FIVE, anchored(5), FIVE, None, id="all events from the anchor on are new"),
        pytest.param(FIVE, anchored(7), FIVE[2:], None, id="events before the anchor are dropped"),
        pytest.param(FIVE, anchored(10), (), None, id="a batch before the anchor is dropped whole"),
        pytest.param(FIVE, anchored(2), FIVE, gap(2, 4), id="between anchor and batch is a gap"),
        pytest.param(FIVE, committed(4), FIVE, None, id="events that follow the checkpoint are new"),
        *(pytest.param(FIVE, committed(at), (), None, id=f"committed already at {at}") for at in (9, 10, 99)),
        *(pytest.param(FIVE, committed(at), events(at + 1, 9), None, id=f"redelivered to {at}") for at in (5, 6, 8)),
        pytest.param(FIVE, committed(3), FIVE, gap(4, 4), id="one number is missing before the batch"),
        pytest.param(FIVE, committed(0), FIVE, gap(1, 4), id="between checkpoint and batch is a gap"),
        pytest.param(HOLED, committed(0), HOLED[1:], gap(3, 8), id="a gap reaches over all holes"),
        pytest.param(HOLED, committed(2), HOLED[3:], gap(3, 8), id="a gap begins after the checkpoint"),
        pytest.param(HOLED, committed(4), HOLED[3:], gap(7, 8), id="holes before the checkpoint are none"),
        pytest.param(HOLED, committed(7), HOLED[5:], gap(8, 8), id="the checkpoint is in a hole"),
        pytest.param(HOLED, committed(8), HOLED[5:], None, id="the checkpoint ends the last hole"),
        pytest.param((EARLY,), committed(4), (EARLY,), None, id="new numbers of any time"),
        pytest.param((event(8, at=event(9).enqueued_at),), committed(9), (), None, id="of the checkpoint's instant"),
    ],
)
def test_a_batch_has_the_events_that_are_new_and_the_gap_before_and_among_them(
    given: tuple[Event, ...], state: PartitionState, run: tuple[Event, ...], missing: Span | None
) -> None:
    assert guard(batch(given), state) == Guarded(run, state.next_number, missing)


@pytest.mark.parametrize(
    ("asked", "missing"),
    [(gap(3, 8), None), (gap(0, 99), None), (gap(3, 7), gap(3, 8)), (gap(4, 8), gap(3, 8)), (gap(20, 30), gap(3, 8))],
)
def test_what_the_hub_was_asked_for_is_no_gap_any_more(asked: Span, missing: Span | None) -> None:
    known = replace(batch(HOLED), asked=asked)
    assert guard(known, committed(0)) == Guarded(HOLED[1:], SequenceNumber(1), missing)


def test_a_partition_that_is_neither_anchored_nor_committed_is_not_guessed_about() -> None:
    with pytest.raises(ValueError, match="telemetry/hubledger/0 is not anchored"):
        guard(batch(events(0, 1)), PartitionState(partition(), 1, None))


@pytest.mark.parametrize(
    ("numbers", "checkpoint"), [([3], 100), ([4], 4), ([4, 5, 6], 4), ([3, 4, 5], 9)], ids=lambda value: str(value)
)
def test_an_old_number_enqueued_after_the_checkpoint_is_another_incarnation(
    numbers: list[int], checkpoint: int
) -> None:
    later = event(checkpoint).enqueued_at + timedelta(microseconds=1)
    changed = next(number for number in reversed(numbers) if number <= checkpoint)
    with pytest.raises(StreamIncarnationChanged) as refusal:
        guard(
            batch([event(number, at=later if number == changed else None) for number in numbers]), committed(checkpoint)
        )
    assert refusal.value.partition == partition()
    assert refusal.value.evidence == f"event {changed} was enqueued after the checkpoint at {checkpoint}"
