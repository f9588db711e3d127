import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, cast

import pytest

from core.aggregation import runs
from core.aggregation.orders import Pipelines
from core.aggregation.runs import NO_CUT, AggregationRun, Cut, Days, Failure, Move, Order, OrderedKind, planned_run
from core.aggregation.store import LOG_LENGTH
from core.aggregation.tick import commit_run
from core.errors import AggregationConflict
from tests.core.aggregation.test_store import activity
from tests.fakes import aggregation_engines
from tests.fakes.aggregation_engines import HOME_ACTIVITY, AggregatingStore, AggregationEngine, finish, ingest, stage
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


TODAY = Days(date(2026, 2, 1), date(2026, 2, 3))
WANTED = runs.RunOrder("backfill", TODAY, NOW, "somebody", "because 👩")


def order(move: Move, run: AggregationRun | None = None, days: Days | None = None, who: str = "somebody") -> Order:
    return Order(HOME_ACTIVITY, move, who, "because 👩", NOW, None if run is None else run.run_id, days=days)


def place(store: AggregatingStore, kind: OrderedKind, days: Days = TODAY) -> bool:
    return given(Pipelines(store.database).place, order(kind, days=days), store.read_standing(HOME_ACTIVITY))


def moves_of(pipelines: Pipelines) -> list[tuple[str | None, ...]]:
    moves = [json.loads(line) for line in pipelines.read_history(HOME_ACTIVITY).splitlines()]
    return [(one["move"], one["by"], one["why"], one.get("days")) for one in moves]


def planned_open(store: AggregatingStore, rows: int = 1_000) -> AggregationRun:
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
    store.commit_batch(commit(store.read_partition(partition("2")), 0, 0, given_up))
    for of, rows in (("0", 3), ("0", 3), ("0", 3), ("1", 1), ("1", 1)):
        ingest(store, [reading()] * rows, of=of)
    first = Cut(cut_of(store, p0=1, p1=1, p2=1))
    assert reached(store, NO_CUT, 1) == (cut_of(store, p0=1), 3)
    assert reached(store, NO_CUT, 4) == (cut_of(store, p0=1, p1=1), 4)
    assert reached(store, NO_CUT, 5) == (cut_of(store, p0=1, p1=2, p2=1), 5)
    assert reached(store, first, 1_000) == (cut_of(store, p0=3, p1=2, p2=1), 7)
    assert reached(store, NO_CUT, 1_000)[0] == store.read_standing(HOME_ACTIVITY).reached
    assert store.read_reach(store.read_standing(HOME_ACTIVITY).reached, 1_000) is None


def test_commits_that_changed_no_row_make_no_run_and_no_lag_until_they_are_as_many_as_a_run_takes(
    store: AggregatingStore, pipelines: Pipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit gives a letter and no row, as retries without success do."""
    for number in (0, 1):
        given_up = settled({}, letters=[letter(event(number))])
        state = store.read_partition(partition())
        store.commit_batch(commit(state, number, number, given_up))
    assert (store.read_reach(NO_CUT, 1_000), pipelines.read_oldest_commit(HOME_ACTIVITY)) == (None, None)
    monkeypatch.setattr("core.aggregation.store.MOST_COMMITS", 2)
    assert reached(store, NO_CUT, 1_000) == (cut_of(store, p0=2), 0)
    monkeypatch.undo()
    ingest(store, [reading()])
    assert reached(store, NO_CUT, 1_000) == (cut_of(store, p0=3), 1)
    assert pipelines.read_oldest_commit(HOME_ACTIVITY) is not None


def test_a_paused_job_opens_no_run_until_it_is_resumed(store: AggregatingStore, pipelines: Pipelines) -> None:
    ingest(store, [reading()])
    assert not given(pipelines.resume, order("resume"))
    assert given(pipelines.pause, order("pause"))
    assert not given(pipelines.pause, order("pause"))
    standing = store.read_standing(HOME_ACTIVITY)
    assert standing.pause == runs.Pause(NOW, "somebody", "because 👩")
    run = planned_run(HOME_ACTIVITY, standing, "local", NOW)
    assert run is not None
    assert not store.open_run(run)
    assert given(pipelines.resume, order("resume"))
    assert store.read_standing(HOME_ACTIVITY).pause is None
    assert store.open_run(run)
    assert moves_of(pipelines) == [(move, "somebody", "because 👩", None) for move in ("pause", "resume")]


def failure(run: AggregationRun, why: str = "its job failed", **changed: Any) -> Failure:
    return replace(Failure(run.run_id, run.submits, run.attempt, LATER, why), **changed)


def test_the_first_reason_of_a_submit_stands(store: AggregatingStore, pipelines: Pipelines) -> None:
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


def test_a_discarded_result_and_a_discarded_run_are_gone_once(
    store: AggregatingStore, database: AggregationEngine, pipelines: Pipelines
) -> None:
    ingest(store, [reading()])
    run = planned_open(store)
    assert (run.rows_limit, run.rows_planned) == (1_000, 1)
    assert store.read_standing(HOME_ACTIVITY).last_run == run == pipelines.find_run(HOME_ACTIVITY, run.run_id)
    assert pipelines.find_run(HOME_ACTIVITY, "none") is pipelines.find_run("other", run.run_id) is None
    for name in ("a", "b"):
        finish(database, name, run.run_id, LATER)
    staged = pipelines.read_staged(run.run_id)
    assert staged is not None
    assert given(pipelines.discard_result, order("discard_result", run), run)
    second = store.read_staged(run.run_id)
    assert second is not None
    assert (staged.staging_id, second.staging_id) == ("a", "b")
    assert [store.discard_staged(second), store.discard_staged(second)] == [True, False]
    assert store.read_staged(run.run_id) is None
    assert not given(pipelines.discard_result, order("discard_result", run), run)
    with pytest.raises(AggregationConflict, match="has no job in the engine yet: try again, or discard the run"):
        pipelines.cancel(order("cancel", run), run, None)
    assert given(pipelines.discard_run, order("discard_run", run), run, None)
    closed = pipelines.find_run(HOME_ACTIVITY, run.run_id)
    assert closed is not None
    told = "the run was discarded by somebody: because 👩"
    assert (closed.status, closed.failure, closed.closed_at) == ("failed", told, NOW)
    assert not given(pipelines.discard_run, order("discard_run", run), run, None)
    assert [move for move, *_ in moves_of(pipelines)] == ["discard_result", "discard_run"]


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
    assert aggregation_engines.committed(store, run, staged, LATER)
    assert pipelines.read_oldest_commit(HOME_ACTIVITY) is None
    ingest(store, [reading()], of="10")
    assert pipelines.read_oldest_commit(HOME_ACTIVITY) == COMMITTED_AT


def ordered(store: AggregatingStore) -> AggregationRun:
    standing = store.read_standing(HOME_ACTIVITY)
    run = runs.ordered_run(HOME_ACTIVITY, standing, runs.RowSource("sql", standing.reached), "local", NOW)
    assert isinstance(run, AggregationRun)
    return run


def test_a_backfill_begins_an_aggregate_and_a_repair_replaces_its_windows_at_its_cut(
    store: AggregatingStore, database: AggregationEngine, pipelines: Pipelines
) -> None:
    """An order waits as it was placed, and ends in the transaction that opens its run."""
    assert not place(store, "repair")
    for days in (runs.ALL_DAYS, Days(since=date(2026, 2, 1)), Days(until=date(2026, 2, 1))):
        assert place(store, "backfill", days)
        assert store.read_standing(HOME_ACTIVITY).order == replace(WANTED, days=days)
        assert given(pipelines.withdraw, order("withdraw"), store.read_standing(HOME_ACTIVITY))
    ingest(store, [reading()])
    assert place(store, "backfill")
    standing = store.read_standing(HOME_ACTIVITY)
    assert (standing.order, standing.cut) == (WANTED, NO_CUT)
    run = ordered(store)
    assert (run.kind, run.days, run.rows_from, run.cut_to) == ("backfill", TODAY, "sql", standing.reached)
    assert store.open_run(run, standing.order)
    after = store.read_standing(HOME_ACTIVITY)
    assert (after.order, after.open_run) == (None, run)
    assert store.read_runs(HOME_ACTIVITY, 10, 10) == (pipelines.find_run(HOME_ACTIVITY, run.run_id),) == (run,)
    ingest(store, [reading()])  # its cut is that of the rows which it read
    whole = [window(readings=9), window(minute=15), window("home-2")]
    stage(database, f"{run.run_id}-s", run.run_id, whole, whole=True)
    close(store, database, run)
    assert (store.read_standing(HOME_ACTIVITY).cut, activity(store)) == (run.cut_to, tuple(whole[:2]))
    following = planned(store)
    assert (following.cut_from, following.kind) == (run.cut_to, "increment")
    assert not place(store, "backfill")
    assert place(store, "repair")
    repair = ordered(store)
    assert store.open_run(repair, store.read_standing(HOME_ACTIVITY).order)
    assert (repair.cut_from, repair.cut_to, repair.number) == (run.cut_to, run.cut_to, 2)
    stage(database, f"{repair.run_id}-s", repair.run_id, [window(), window(readings=0, minute=15)], whole=True)
    close(store, database, repair)
    assert (store.read_standing(HOME_ACTIVITY).cut, activity(store)) == (run.cut_to, (window(),))
    close(store, database, opened_run(store), window())
    assert (activity(store)[0].readings, activity(store, "home-2")) == (4, (window("home-2"),))


def test_of_orders_at_once_one_waits_and_the_others_are_refused(store: AggregatingStore, pipelines: Pipelines) -> None:
    standing = store.read_standing(HOME_ACTIVITY)
    orders = [replace(WANTED, who=f"person {number}") for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        entries = [order("backfill", days=TODAY, who=one.who) for one in orders]
        placed = list(pool.map(lambda one: given(pipelines.place, one, standing), entries))
    assert placed.count(True) == 1
    assert store.read_standing(HOME_ACTIVITY).order == orders[placed.index(True)]
    assert len(pipelines.read_history(HOME_ACTIVITY).splitlines()) == 1


def test_a_plan_whose_order_was_withdrawn_or_dropped_opens_nothing_and_the_history_says_why(
    store: AggregatingStore, pipelines: Pipelines
) -> None:
    ingest(store, [reading()])
    assert place(store, "backfill")
    run = ordered(store)
    assert given(pipelines.withdraw, order("withdraw"), store.read_standing(HOME_ACTIVITY))
    assert not given(pipelines.withdraw, order("withdraw"), store.read_standing(HOME_ACTIVITY))
    assert not store.open_run(run, WANTED)
    assert (store.read_standing(HOME_ACTIVITY).number, store.read_runs(HOME_ACTIVITY, 10, 10)) == (0, ())
    assert place(store, "backfill")
    dropped = [store.drop_order(HOME_ACTIVITY, WANTED, "it already has commits", LATER) for _ in range(2)]
    assert (dropped, store.read_standing(HOME_ACTIVITY).order) == ([True, False], None)
    days = "2026-02-01 to 2026-02-03"
    assert moves_of(pipelines) == [
        ("backfill", "somebody", "because 👩", days),
        ("withdraw", "somebody", "because 👩", None),
        ("backfill", "somebody", "because 👩", days),
        ("withdraw", "the app", "it already has commits", None),
    ]


def half_committed(
    store: AggregatingStore, database: AggregationEngine, kind: OrderedKind
) -> tuple[AggregationRun, runs.Staged]:
    """Order a run, and commit the first of its two slices. Return the run after it, and its result."""
    assert place(store, kind)
    run = ordered(store)
    assert store.open_run(run, store.read_standing(HOME_ACTIVITY).order)
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
    store: AggregatingStore, database: AggregationEngine, single: None
) -> None:
    ingest(store, [reading()])
    run, staged = half_committed(store, database, "backfill")
    assert not store.fail_run(run, "why", LATER)
    assert aggregation_engines.committed(store, run, staged, LATER)
    run, _ = half_committed(store, database, "repair")
    assert store.fail_run(run, "why", LATER)
    close(store, database, opened_run(store), window(minute=30))
    assert [one.status for one in store.read_runs(HOME_ACTIVITY, 10, 3)] == ["committed", "failed", "committed"]
    assert activity(store) == (window(), window(minute=30))
