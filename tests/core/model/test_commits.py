"""core/model/commits.py: what a commit says of itself."""

from dataclasses import replace

from core.errors import StopReason
from core.model.commits import Checkpoint, PartitionState, PartitionStop
from core.model.events import SequenceNumber
from tests.fakes.builders import EPOCH, alert, commit, event, partition, reading, settled

NEW = PartitionState(partition(), 7, None)


def test_the_first_commit_of_a_partition_expects_no_checkpoint() -> None:
    first = commit(NEW, 3, 8)
    assert (first.expected, first.events, first.partition) == (None, 6, partition())


def test_the_state_after_a_commit_is_what_the_next_one_expects() -> None:
    first = commit(NEW, 3, 8)
    state = first.state_after(12)
    last = event(8)
    assert state.checkpoint == Checkpoint(SequenceNumber(8), last.offset, last.enqueued_at, 12, first.commit_id)
    assert (state.partition, state.stream_id) == (partition(), 7)
    assert commit(state, 9, 9).expected == 8


def test_the_state_after_a_commit_has_only_the_stops_that_do_not_end_with_it() -> None:
    reasons: tuple[StopReason, ...] = ("outage", "held", "incarnation")
    stopped = replace(NEW, stops=tuple(PartitionStop(reason, "it was met", 1, EPOCH) for reason in reasons))
    whole = commit(stopped, 3, 8).ending(outage=True, held=True)
    cut = commit(stopped, 3, 8).ending(outage=True, held=False)
    assert (whole.ends, cut.ends) == (("outage", "held"), ("outage",))
    assert [stop.reason for stop in whole.state_after(12).stops] == ["incarnation"]
    assert [stop.reason for stop in cut.state_after(12).stops] == ["held", "incarnation"]
    assert commit(NEW, 3, 8).ending(outage=True, held=True).ends == ()


def test_rows_are_counted_over_all_classes() -> None:
    assert settled({0: [reading(), alert()], 1: [reading()]}).rows_written == 3
    assert settled({}).rows_written == 0
