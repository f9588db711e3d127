from datetime import timedelta
from typing import Any

from local.functions_host.durable.episodes import Answer, Turn, begin, conclude
from local.functions_host.durable.instances import Entry, Episode, EpisodeCommit, Status
from tests.local.functions_host.doubles import NOON
from tests.local.functions_host.durable.doubles import FUNCTIONS, STARTED, completed, instance, raised, timer


def turn_of(*entries: Entry) -> Turn:
    turn = begin(instance(), Episode(instance(), [], entries), NOON)
    assert isinstance(turn, Turn)
    return turn


def answered(action: dict[str, Any], *, is_done: bool = False) -> EpisodeCommit:
    return conclude(
        turn_of(Entry(0, None, STARTED)), Answer([action], is_done, None, None, None), FUNCTIONS, lambda: "new"
    )


def test_the_events_of_an_earlier_execution_are_dropped() -> None:
    turn = turn_of(Entry(1, "earlier", completed(0)), Entry(2, "execution", completed(1)), Entry(3, None, raised("go")))
    assert [each.get("TaskScheduledId") for each in turn.new] == [None, 1, None]
    assert sorted(turn.consumed) == [1, 2, 3]


def test_an_end_sets_no_timer() -> None:
    commit = answered(timer(cancelled=True), is_done=True)
    assert (commit.status, commit.outgoing) == (Status.COMPLETED, ())


def test_a_timer_is_hidden_for_whole_seconds_cut_as_in_the_queue_of_azure() -> None:
    """From NOON: below a second at once, others up to a second early."""
    waits = {"12:00:00.999": 0, "11:59:00": 0, "12:00:01": 1, "12:00:02.999": 2, "13:00:00": 3600}
    for fire_at, seconds in waits.items():
        (fired,) = answered(timer(f"2026-11-21T{fire_at}Z")).outgoing
        assert fired.due_at == NOON + timedelta(seconds=seconds)
        assert fired.event["FireAt"].startswith(f"2026-11-21T{fire_at}")
