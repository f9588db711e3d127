from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from local.functions_host.durable.episodes import Answer, Turn, begin, conclude
from local.functions_host.durable.instances import (
    Entry,
    Episode,
    EpisodeCommit,
    Event,
    EventType,
    Instance,
    Status,
    control,
)
from tests.local.functions_host.doubles import NOON
from tests.local.functions_host.durable.doubles import (
    FUNCTIONS,
    STARTED,
    activity,
    all_of,
    completed,
    instance,
    raised,
    timer,
)

SUSPEND = control(EventType.EXECUTION_SUSPENDED, "why")


def read(*events: Event, of: Instance | None = None, past: Sequence[str] = ()) -> Turn | EpisodeCommit:
    entries = [Entry(number, None, each) for number, each in enumerate(events)]
    it = of or instance()
    return begin(it, Episode(it, past, entries), NOON)


def turn_of(*events: Event, of: Instance | None = None, past: Sequence[str] = ()) -> Turn:
    turn = read(*events, of=of, past=past)
    assert isinstance(turn, Turn)
    return turn


def commit_of(*events: Event, of: Instance | None = None) -> EpisodeCommit:
    commit = read(*events, of=of)
    assert isinstance(commit, EpisodeCommit)
    return commit


def answered(actions: list[Any], of: Instance | None = None, **more: Any) -> EpisodeCommit:
    values = {"is_done": False, "output": None, "error": None, "custom_status": None, **more}
    return conclude(turn_of(STARTED, of=of), Answer(actions=actions, **values), FUNCTIONS, lambda: "new")


def kinds(events: Sequence[Event]) -> list[str]:
    return [EventType(each["EventType"]).name for each in events]


def test_the_events_of_an_earlier_execution_are_dropped() -> None:
    it = instance()
    entries = [Entry(1, "earlier", completed(0)), Entry(2, "execution", completed(1)), Entry(3, None, raised("go"))]
    turn = begin(it, Episode(it, [], entries), NOON)
    assert [each.get("TaskScheduledId") for each in turn.new] == [None, 1, None]  # type: ignore[union-attr]
    assert sorted(turn.consumed) == [1, 2, 3]


def test_suspending_takes_the_controls_and_leaves_the_rest() -> None:
    commit = commit_of(STARTED, raised("go"), SUSPEND)
    assert (commit.status, list(commit.consumed)) == (Status.SUSPENDED, [0, 2])


def test_new_work_is_recorded_and_sent_in_one_commit() -> None:
    commit = answered([all_of(activity(), timer())], custom_status='"half"')
    orders = ["TASK_SCHEDULED", "TIMER_CREATED"]
    assert kinds(commit.events) == ["ORCHESTRATOR_STARTED", "EXECUTION_STARTED", *orders, "ORCHESTRATOR_COMPLETED"]
    assert [(each.task_id, each.name) for each in commit.activities] == [(0, "work")]
    assert [(each.due_at.hour, each.execution_id) for each in commit.outgoing] == [(13, "execution")]
    assert (commit.status, commit.custom_status, commit.waits_for_nothing) == (Status.RUNNING, '"half"', False)


def test_an_end_sets_no_timer() -> None:
    commit = answered([timer(cancelled=True)], is_done=True)
    assert (commit.status, commit.outgoing) == (Status.COMPLETED, ())


def test_a_timer_is_hidden_for_whole_seconds_cut_as_in_the_queue_of_azure() -> None:
    """From NOON: below a second at once, others up to a second early."""
    waits = {"12:00:00.999": 0, "11:59:00": 0, "12:00:01": 1, "12:00:02.999": 2, "13:00:00": 3600}
    for fire_at, seconds in waits.items():
        (fired,) = answered([timer(f"2026-11-21T{fire_at}Z")]).outgoing
        assert fired.due_at == NOON + timedelta(seconds=seconds)
        assert fired.event["FireAt"].startswith(f"2026-11-21T{fire_at}")


def test_an_orchestrator_that_waits_for_nothing_is_marked() -> None:
    assert answered([]).waits_for_nothing
