"""Every store bounds the runs of the pipeline, and keeps the orders of a person and the reasons of failures."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, cast

import pytest

from core.aggregation.orders import Pipelines
from core.aggregation.runs import (
    ALL_DAYS,
    NO_CUT,
    AggregationRun,
    Cut,
    Days,
    Failure,
    Move,
    Order,
    OrderedKind,
    Pause,
    RowSource,
    RunOrder,
    Staged,
    ordered_run,
    planned_run,
)
from core.aggregation.store import LOG_LENGTH
from core.aggregation.tick import commit_run
from core.errors import AggregationConflict
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.core.aggregation.test_store import activity
from tests.fakes.aggregation_engines import (
    HOME_ACTIVITY,
    AggregatingStore,
    AggregationEngine,
    committed,
    finish,
    ingest,
    stage,
)
from tests.fakes.builders import EPOCH, commit, event, letter, partition, reading, settled
from tests.fakes.runs import LATER, NOW, close, opened_run, planned, staged_result, window

COMMITTED_AT = EPOCH + timedelta(days=1)  # of the builders' commits


def given(act: Callable[..., None], *about: object) -> bool:
    """Give an order, and return False where the state does not fit it."""
    try:
        act(*about)
    except AggregationConflict:
        return False
    return True


@pytest.fixture
def pipelines(store: AggregatingStore) -> Pipelines:
    return Pipelines(store.database)


def order(move: Move, run: AggregationRun | None = None) -> Order:
    return Order(HOME_ACTIVITY, move, "somebody", "because 👩", NOW, None if run is None else run.run_id)


def planned_open(store: AggregatingStore, rows: int = 1_000) -> AggregationRun:
    """Open the next run."""
    standing = store.read_standing(HOME_ACTIVITY)
    reach = store.read_reach(standing.cut, rows)
    assert reach is not None
    run = planned_run(HOME_ACTIVITY, standing, "local", NOW, reach)
    assert run is not None
    assert store.open_run(run)
    return run


def cut_of(store: AggregatingStore, **numbers: int) -> str:
    stream_id = cast(Any, store).read_partition(partition()).stream_id
    return json.dumps({f"{stream_id}/{name[1:]}": number for name, number in numbers.items()}, separators=(",", ":"))


def reached(store: AggregatingStore, cut: Cut, rows: int) -> tuple[str, int]:
    reach = store.read_reach(cut, rows)
    assert reach is not None
    assert reach.limit == rows
    return reach.cut_to, reach.rows


def test_a_run_takes_the_commits_of_all_partitions_side_by_side_until_it_has_its_rows(store: AggregatingStore) -> None:
    given_up = settled({}, letters=[letter(event(0))])  # an event that gave no row
    store.commit_batch(commit(store.read_partition(partition("2")), 0, 0, given_up))  # type: ignore[attr-defined]
    for of, rows in (("0", 3), ("0", 3), ("0", 3), ("1", 1), ("1", 1)):
        ingest(store, [reading()] * rows, of=of)
    first = Cut(cut_of(store, p0=1, p1=1, p2=1))
    assert reached(store, NO_CUT, 1) == (cut_of(store, p0=1), 3)
    assert reached(store, NO_CUT, 4) == (cut_of(store, p0=1, p1=1), 4)
    assert reached(store, NO_CUT, 5) == (cut_of(store, p0=1, p1=2, p2=1), 5)
    assert reached(store, first, 1_000) == (cut_of(store, p0=3, p1=2, p2=1), 7)
    assert reached(store, NO_CUT, 1_000)[0] == store.read_standing(HOME_ACTIVITY).reached
    assert store.read_reach(store.read_standing(HOME_ACTIVITY).reached, 1_000) is None


def test_a_run_takes_a_bounded_number_of_commits_of_a_partition(
    store: AggregatingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        ingest(store, [reading()])
    monkeypatch.setattr("core.aggregation.store.MOST_COMMITS", 2)
    assert reached(store, NO_CUT, 1_000) == (cut_of(store, p0=2), 2)


def test_a_paused_job_opens_no_run_until_it_is_resumed(store: AggregatingStore, pipelines: Pipelines) -> None:
    ingest(store, [reading()])
    assert not given(pipelines.resume, order("resume"))
    assert given(pipelines.pause, order("pause"))
    assert not given(pipelines.pause, order("pause"))
    standing = store.read_standing(HOME_ACTIVITY)
    assert standing.pause == Pause(NOW, "somebody", "because 👩")
    run = planned_run(HOME_ACTIVITY, standing, "local", NOW)
    assert run is not None
    assert not store.open_run(run)
    assert given(pipelines.resume, order("resume"))
    assert store.read_standing(HOME_ACTIVITY).pause is None
    assert store.open_run(run)
    moves = [json.loads(line) for line in pipelines.read_history(HOME_ACTIVITY).splitlines()]
    assert [(one["move"], one["by"], one["why"], one["run_id"]) for one in moves] == [
        ("pause", "somebody", "because 👩", None),
        ("resume", "somebody", "because 👩", None),
    ]


def failure(run: AggregationRun, why: str = "its job failed", **changed: Any) -> Failure:
    return replace(Failure(run.run_id, run.submits, run.attempt, LATER, why), **changed)


def test_the_first_reason_of_a_submit_stands_and_each_submit_has_its_own(
    store: AggregatingStore, pipelines: Pipelines
) -> None:
    ingest(store, [reading()])
    run = planned_open(store)
    told = failure(run, "why", engine_job_id="job-1", reason="👩", log="x" * 5_000 + "the end", link="https://spark")
    overtaken = replace(run, attempt=7)
    assert not store.renew_intent(overtaken, 8, LATER, failure(run))
    assert not store.fail_run(overtaken, "why", LATER, failure(run))
    assert pipelines.read_failures(run.run_id) == ()
    store.note_failure(told)
    store.note_failure(failure(run, "later"))
    assert store.renew_intent(replace(run, engine="livy"), 2, LATER, failure(run, "later still"))
    second = store.read_standing(HOME_ACTIVITY).open_run
    assert second is not None
    assert (second.engine, second.attempt, second.submits) == ("livy", 2, 2)
    assert store.fail_run(second, "gave up", LATER, failure(second))
    kept = replace(told, log=("x" * 5_000 + "the end")[-LOG_LENGTH:])
    assert pipelines.read_failures(run.run_id) == (failure(second), kept)
    assert pipelines.read_failures("none") == ()
    assert (pipelines.count_failures(LATER), pipelines.count_failures(LATER + timedelta(seconds=1))) == (2, 0)


def test_a_discarded_run_is_closed_with_its_order_and_a_closed_one_is_left_alone(
    store: AggregatingStore, pipelines: Pipelines
) -> None:
    ingest(store, [reading()])
    run = planned_open(store)
    assert (run.rows_limit, run.rows_planned) == (1_000, 1)
    assert store.read_standing(HOME_ACTIVITY).last_run == run == pipelines.find_run(HOME_ACTIVITY, run.run_id)
    assert pipelines.find_run(HOME_ACTIVITY, "none") is pipelines.find_run("other", run.run_id) is None
    assert given(pipelines.discard_run, order("discard_run", run), run, None)
    closed = pipelines.find_run(HOME_ACTIVITY, run.run_id)
    assert closed is not None
    told = "the run was discarded by somebody: because 👩"
    assert (closed.status, closed.failure, closed.closed_at) == ("failed", told, NOW)
    assert not given(pipelines.discard_run, order("discard_run", run), run, None)
    assert len(pipelines.read_history(HOME_ACTIVITY).splitlines()) == 1


def test_a_discarded_result_is_gone_and_is_discarded_once(
    store: AggregatingStore, database: AggregationEngine, pipelines: Pipelines
) -> None:
    ingest(store, [reading()])
    run = planned_open(store)
    for name in ("a", "b"):
        finish(database, name, run.run_id, LATER)
    staged = pipelines.read_staged(run.run_id)
    assert staged is not None
    assert given(pipelines.discard_result, order("discard_result", run), run)
    second = store.read_staged(run.run_id)
    assert second is not None
    assert (staged.staging_id, second.staging_id) == ("a", "b")
    assert store.discard_staged(second)
    assert not store.discard_staged(second)
    assert store.read_staged(run.run_id) is None
    assert not given(pipelines.discard_result, order("discard_result", run), run)
    assert len(pipelines.read_history(HOME_ACTIVITY).splitlines()) == 1


def test_the_oldest_commit_is_the_first_after_the_cut_of_any_partition(
    store: AggregatingStore, database: AggregationEngine, pipelines: Pipelines
) -> None:
    assert pipelines.read_history(HOME_ACTIVITY) == ""
    assert pipelines.read_oldest_commit(HOME_ACTIVITY) is None
    store.read_standing(HOME_ACTIVITY)
    assert pipelines.read_oldest_commit(HOME_ACTIVITY) is None
    ingest(store, [reading()])
    assert pipelines.read_oldest_commit(HOME_ACTIVITY) == COMMITTED_AT
    run = planned_open(store)
    finish(database, "s", run.run_id, LATER)
    staged = store.read_staged(run.run_id)
    assert staged is not None
    assert committed(store, run, staged, LATER)
    assert pipelines.read_oldest_commit(HOME_ACTIVITY) is None
    ingest(store, [reading()], of="10")
    assert pipelines.read_oldest_commit(HOME_ACTIVITY) == COMMITTED_AT


TODAY = Days(date(2026, 2, 1), date(2026, 2, 3))


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
        wish = wanted(days=days)
        assert given(pipelines.place, entry("backfill", days), store.read_standing(HOME_ACTIVITY))
        assert store.read_standing(HOME_ACTIVITY).order == wish
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
