from dataclasses import replace

import pytest

from core.errors import CheckpointConflict, StopReason, StreamIncarnationChanged
from core.model.commits import Checkpoint, PartitionState, PartitionStop
from core.model.events import SequenceNumber
from tests.fakes.builders import EPOCH, alert, commit, event, partition, reading, settled

NEW = PartitionState(partition(), 7, None)


def test_a_commit_expects_the_checkpoint_of_the_one_before_it_and_the_first_expects_none() -> None:
    first, last = commit(NEW, 3, 8), event(8)
    assert (first.expected, first.events, first.partition) == (None, 6, partition())
    state = first.state_after(12)
    assert state.checkpoint == Checkpoint(SequenceNumber(8), last.offset, last.enqueued_at, 12, first.commit_id)
    assert (state.partition, state.stream_id) == (partition(), 7)
    assert commit(state, 9, 9).expected == 8
    assert settled({0: [reading(), alert()], 1: [reading()]}).rows_written == 3
    assert settled({}).rows_written == 0


def test_a_transform_cannot_change_an_event() -> None:
    given = event(3, "body")
    with pytest.raises(AttributeError):
        given.body = b"changed"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        given.note = "added"  # type: ignore[attr-defined]
    assert given == event(3, "body")
    assert given != event(3, "other")


def test_the_state_after_a_commit_has_only_the_stops_that_do_not_end_with_it() -> None:
    reasons: tuple[StopReason, ...] = ("outage", "held", "incarnation")
    stopped = replace(NEW, stops=tuple(PartitionStop(reason, "it was met", 1, EPOCH) for reason in reasons))
    whole = commit(stopped, 3, 8).ending(outage=True, held=True, erasure_key=True)
    cut = commit(stopped, 3, 8).ending(outage=True, held=False, erasure_key=True)
    assert (whole.ends, cut.ends) == (("outage", "held"), ("outage",))
    assert [stop.reason for stop in whole.state_after(12).stops] == ["incarnation"]
    assert [stop.reason for stop in cut.state_after(12).stops] == ["held", "incarnation"]
    assert commit(NEW, 3, 8).ending(outage=True, held=True, erasure_key=True).ends == ()


def test_a_conflict_or_a_changed_incarnation_says_which_checkpoint_and_that_nothing_was_written() -> None:
    for expected, where in ((None, "no longer absent"), (SequenceNumber(41), "no longer at 41")):
        said = f"is {where}: another owner committed first; nothing was written"
        assert str(CheckpointConflict(partition("3"), expected)) == f"checkpoint of telemetry/hubledger/3 {said}"
    text = str(StreamIncarnationChanged(partition("3"), "the hub ends at 7, before the checkpoint at 41"))
    assert text.startswith("telemetry/hubledger/3: the hub ends at 7, before the checkpoint at 41, so the hub was")
