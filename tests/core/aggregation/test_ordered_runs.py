"""Every store keeps one waiting order of a job: a repair or a backfill.

One transaction opens the run of the order and ends the order. The run replaces windows.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta

import pytest

from core.aggregation.orders import Pipelines
from core.aggregation.runs import (
    ALL_DAYS,
    NO_CUT,
    AggregationRun,
    Days,
    Move,
    Order,
    OrderedKind,
    RowSource,
    RunOrder,
    Staged,
    ordered_run,
)
from core.aggregation.tick import commit_run
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.core.aggregation.test_orders import given
from tests.core.aggregation.test_store import activity
from tests.fakes.aggregation_engines import HOME_ACTIVITY, AggregatingStore, AggregationEngine, committed, ingest, stage
from tests.fakes.builders import reading
from tests.fakes.runs import LATER, NOW, close, opened_run, planned, staged_result, window

TODAY = Days(date(2026, 2, 1), date(2026, 2, 3))


@pytest.fixture
def pipelines(store: AggregatingStore) -> Pipelines:
    return Pipelines(store.database)


def wanted(kind: OrderedKind = "backfill", days: Days = TODAY) -> RunOrder:
    return RunOrder(kind, days, NOW, "somebody", "because 👩")


def entry(move: Move, days: Days | None = TODAY, who: str = "somebody") -> Order:
    return Order(HOME_ACTIVITY, move, who, "because 👩", NOW, days=None if move == "withdraw" else days)


def ordered(store: AggregatingStore) -> AggregationRun:
    """Return the run of the order that waits, which is not open yet."""
    standing = store.read_standing(HOME_ACTIVITY)
    run = ordered_run(HOME_ACTIVITY, standing, RowSource("sql", standing.reached), "local", NOW)
    assert isinstance(run, AggregationRun)
    return run


def begun(store: AggregatingStore, pipelines: Pipelines, kind: OrderedKind = "repair") -> AggregationRun:
    """Order a run, and open it."""
    assert given(pipelines.place, entry(kind), store.read_standing(HOME_ACTIVITY))
    run = ordered(store)
    assert store.open_run(run, store.read_standing(HOME_ACTIVITY).order)
    return run


def increment(store: AggregatingStore, database: AggregationEngine, *windows: HomeActivity) -> None:
    """Commit an event, and a run of it."""
    close(store, database, opened_run(store), *windows)


def test_an_order_waits_as_it_was_placed_and_ends_in_the_transaction_of_its_plan(
    store: AggregatingStore, pipelines: Pipelines
) -> None:
    ingest(store, [reading()])
    assert given(pipelines.place, entry("backfill"), store.read_standing(HOME_ACTIVITY))
    standing = store.read_standing(HOME_ACTIVITY)
    assert (standing.order, standing.cut) == (wanted(), NO_CUT)
    run = ordered(store)
    assert (run.kind, run.days, run.rows_from, run.cut_to) == ("backfill", TODAY, "sql", standing.reached)
    assert store.open_run(run, standing.order)
    after = store.read_standing(HOME_ACTIVITY)
    assert (after.order, after.open_run) == (None, run)
    assert store.read_runs(HOME_ACTIVITY, 10, 10) == (pipelines.find_run(HOME_ACTIVITY, run.run_id),) == (run,)


def test_days_without_an_end_are_kept(store: AggregatingStore, pipelines: Pipelines) -> None:
    for days in (ALL_DAYS, Days(since=date(2026, 2, 1)), Days(until=date(2026, 2, 1))):
        order = wanted(days=days)
        assert given(pipelines.place, entry("backfill", days), store.read_standing(HOME_ACTIVITY))
        assert store.read_standing(HOME_ACTIVITY).order == order
        assert given(pipelines.withdraw, entry("withdraw"), store.read_standing(HOME_ACTIVITY))


def test_of_orders_at_the_same_time_one_waits_and_the_others_are_refused(
    store: AggregatingStore, pipelines: Pipelines
) -> None:
    standing = store.read_standing(HOME_ACTIVITY)
    orders = [replace(wanted(), who=f"person {number}") for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        entries = [entry("backfill", who=one.who) for one in orders]
        placed = list(pool.map(lambda one: given(pipelines.place, one, standing), entries))
    assert placed.count(True) == 1
    assert store.read_standing(HOME_ACTIVITY).order == orders[placed.index(True)]
    assert len(pipelines.read_history(HOME_ACTIVITY).splitlines()) == 1


def test_a_backfill_begins_an_aggregate_and_a_repair_mends_one(
    store: AggregatingStore, database: AggregationEngine, pipelines: Pipelines
) -> None:
    assert not given(pipelines.place, entry("repair"), store.read_standing(HOME_ACTIVITY))
    increment(store, database, window())
    assert not given(pipelines.place, entry("backfill"), store.read_standing(HOME_ACTIVITY))
    assert given(pipelines.place, entry("repair"), store.read_standing(HOME_ACTIVITY))


def test_a_plan_whose_order_was_withdrawn_opens_nothing(store: AggregatingStore, pipelines: Pipelines) -> None:
    ingest(store, [reading()])
    pipelines.place(entry("backfill"), store.read_standing(HOME_ACTIVITY))
    run = ordered(store)
    assert given(pipelines.withdraw, entry("withdraw"), store.read_standing(HOME_ACTIVITY))
    assert not given(pipelines.withdraw, entry("withdraw"), store.read_standing(HOME_ACTIVITY))
    assert not store.open_run(run, wanted())
    assert (store.read_standing(HOME_ACTIVITY).number, store.read_runs(HOME_ACTIVITY, 10, 10)) == (0, ())
    moves = [json.loads(line) for line in pipelines.read_history(HOME_ACTIVITY).splitlines()]
    assert [(one["move"], one["by"], one.get("days")) for one in moves] == [
        ("backfill", "somebody", "2026-02-01 to 2026-02-03"),
        ("withdraw", "somebody", None),
    ]


def test_an_order_that_never_has_a_run_is_dropped_and_the_history_says_why(
    store: AggregatingStore, pipelines: Pipelines
) -> None:
    pipelines.place(entry("backfill"), store.read_standing(HOME_ACTIVITY))
    assert store.drop_order(HOME_ACTIVITY, wanted(), "it already has commits", LATER)
    assert not store.drop_order(HOME_ACTIVITY, wanted(), "it already has commits", LATER)
    assert store.read_standing(HOME_ACTIVITY).order is None
    last = json.loads(pipelines.read_history(HOME_ACTIVITY).splitlines()[-1])
    assert (last["move"], last["by"], last["why"]) == ("withdraw", "the app", "it already has commits")


def test_a_pause_holds_an_order(store: AggregatingStore, pipelines: Pipelines) -> None:
    ingest(store, [reading()])
    pipelines.place(entry("backfill"), store.read_standing(HOME_ACTIVITY))
    pipelines.pause(entry("pause", None))
    assert not store.open_run(ordered(store), wanted())
    pipelines.resume(entry("resume", None))
    assert store.open_run(ordered(store), wanted())


def test_a_repair_replaces_its_windows_leaves_the_cut_and_is_followed_by_increments(
    store: AggregatingStore, database: AggregationEngine, pipelines: Pipelines
) -> None:
    increment(store, database, window(readings=9), window(minute=15), window("home-2"))
    cut = store.read_standing(HOME_ACTIVITY).cut
    run = begun(store, pipelines)
    assert (run.cut_from, run.cut_to, run.number) == (cut, cut, 2)
    stage(database, f"{run.run_id}-s", run.run_id, [window(), window(readings=0, minute=15)], whole=True)
    close(store, database, run)
    assert activity(store) == (window(),)
    assert store.read_standing(HOME_ACTIVITY).cut == cut
    increment(store, database, window())
    assert (activity(store)[0].readings, activity(store, "home-2")) == (4, (window("home-2"),))


def test_a_backfill_moves_the_cut_to_the_rows_that_it_read(
    store: AggregatingStore, database: AggregationEngine, pipelines: Pipelines
) -> None:
    ingest(store, [reading()])
    run = begun(store, pipelines, "backfill")
    ingest(store, [reading()])
    stage(database, f"{run.run_id}-s", run.run_id, [window()], whole=True)
    close(store, database, run)
    standing = store.read_standing(HOME_ACTIVITY)
    assert (standing.cut, activity(store)) == (run.cut_to, (window(),))
    following = planned(store)
    assert (following.cut_from, following.kind) == (run.cut_to, "increment")


def half_committed(
    store: AggregatingStore, database: AggregationEngine, run: AggregationRun
) -> tuple[AggregationRun, Staged]:
    """Commit the first of two slices of a run; return the run after it, and its result."""
    stage(database, f"{run.run_id}-s", run.run_id, [window(), window("home-2")], whole=True)
    staged = staged_result(store, database, run, [])
    times = iter([LATER, LATER + timedelta(hours=1)])
    told = commit_run(store, run, staged, lambda: next(times), LATER + timedelta(minutes=1))
    assert told.startswith("committed ")
    half = store.read_standing(HOME_ACTIVITY).open_run
    assert half is not None
    assert half.committed_slices > 0
    return half, staged


def test_a_repair_with_committed_slices_may_fail_and_a_backfill_may_not(
    store: AggregatingStore, database: AggregationEngine, pipelines: Pipelines, single: None
) -> None:
    ingest(store, [reading()])
    run, staged = half_committed(store, database, begun(store, pipelines, "backfill"))
    assert not store.fail_run(run, "why", LATER)
    assert committed(store, run, staged, LATER)
    run, _ = half_committed(store, database, begun(store, pipelines, "repair"))
    assert store.fail_run(run, "why", LATER)
    increment(store, database, window(minute=30))
    assert [one.status for one in store.read_runs(HOME_ACTIVITY, 10, 3)] == ["committed", "failed", "committed"]
    assert activity(store) == (window(), window(minute=30))
