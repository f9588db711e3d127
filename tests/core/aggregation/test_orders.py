"""Every store bounds the runs of the pipeline, and keeps a person's orders and the reasons of failed attempts."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from core.aggregation.orders import Pipelines
from core.aggregation.runs import NO_CUT, AggregationRun, Cut, Failure, Move, Order, Pause, planned_run
from core.aggregation.store import LOG_LENGTH
from core.errors import AggregationConflict
from tests.fakes.aggregation_engines import (
    HOME_ACTIVITY,
    AggregatingStore,
    AggregationEngine,
    committed,
    finish,
    ingest,
)
from tests.fakes.builders import EPOCH, commit, event, letter, partition, reading, settled
from tests.fakes.runs import LATER, NOW

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


def planned(store: AggregatingStore, rows: int = 1_000) -> AggregationRun:
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
    for of, rows in (("0", 3), ("0", 3), ("0", 3), ("1", 1), ("1", 1), ("2", 0)):
        ingest(store, [reading()] * rows, of=of) if rows else ingest_letter(store, of)
    first = Cut(cut_of(store, p0=1, p1=1, p2=1))
    assert reached(store, NO_CUT, 1) == (cut_of(store, p0=1), 3)
    assert reached(store, NO_CUT, 4) == (cut_of(store, p0=1, p1=1), 4)
    assert reached(store, NO_CUT, 5) == (cut_of(store, p0=1, p1=2, p2=1), 5)
    assert reached(store, first, 1_000) == (cut_of(store, p0=3, p1=2, p2=1), 7)
    assert reached(store, NO_CUT, 1_000)[0] == store.read_standing(HOME_ACTIVITY).reached
    assert store.read_reach(store.read_standing(HOME_ACTIVITY).reached, 1_000) is None


def ingest_letter(store: AggregatingStore, of: str) -> None:
    """Commit an event that gave no row."""
    state = cast(Any, store).read_partition(partition(of))
    cast(Any, store).commit_batch(commit(state, 0, 0, settled({}, letters=[letter(event(0))])))


def test_a_run_takes_a_bounded_number_of_commits_of_a_partition(
    store: AggregatingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        ingest(store, [reading()])
    monkeypatch.setattr("core.aggregation.store.MOST_COMMITS", 2)
    assert reached(store, NO_CUT, 1_000) == (cut_of(store, p0=2), 2)


def test_the_rows_of_a_run_are_kept_with_it(store: AggregatingStore, pipelines: Pipelines) -> None:
    ingest(store, [reading(), reading()])
    run = planned(store)
    assert (run.rows_limit, run.rows_planned) == (1_000, 2)
    assert store.read_standing(HOME_ACTIVITY).last_run == run == pipelines.find_run(HOME_ACTIVITY, run.run_id)
    assert pipelines.find_run(HOME_ACTIVITY, "none") is None
    assert pipelines.find_run("other", run.run_id) is None


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


def test_a_job_without_a_row_has_no_history(pipelines: Pipelines) -> None:
    assert pipelines.read_history(HOME_ACTIVITY) == ""
    assert pipelines.read_oldest_commit(HOME_ACTIVITY) is None


def test_of_two_who_pause_at_the_same_time_one_does(pipelines: Pipelines) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: given(pipelines.pause, order("pause")), range(4)))
    assert done.count(True) == 1


def failure(run: AggregationRun, why: str = "its job failed", **changed: Any) -> Failure:
    return replace(Failure(run.run_id, run.submits, run.attempt, LATER, why), **changed)


def test_the_first_reason_of_a_submit_stands_and_each_submit_has_its_own(
    store: AggregatingStore, pipelines: Pipelines
) -> None:
    ingest(store, [reading()])
    run = planned(store)
    told = failure(run, "why", engine_job_id="job-1", reason="👩", log="x" * 5_000 + "the end", link="https://spark")
    store.note_failure(told)
    store.note_failure(failure(run, "later"))
    assert store.renew_intent(run, 2, LATER, failure(run, "later still"))
    second = store.read_standing(HOME_ACTIVITY).last_run
    assert second is not None
    assert store.fail_run(second, "gave up", LATER, failure(second))
    kept = replace(told, log=("x" * 5_000 + "the end")[-LOG_LENGTH:])
    assert pipelines.read_failures(run.run_id) == (failure(second), kept)
    assert pipelines.read_failures("none") == ()
    assert (pipelines.count_failures(LATER), pipelines.count_failures(LATER + timedelta(seconds=1))) == (2, 0)


def test_an_overtaken_end_of_an_attempt_writes_no_failure(store: AggregatingStore, pipelines: Pipelines) -> None:
    ingest(store, [reading()])
    run = planned(store)
    assert not store.renew_intent(replace(run, attempt=7), 8, LATER, failure(run))
    assert not store.fail_run(replace(run, attempt=7), "why", LATER, failure(run))
    assert pipelines.read_failures(run.run_id) == ()


def test_a_run_that_goes_to_a_different_engine_names_it(store: AggregatingStore) -> None:
    ingest(store, [reading()])
    run = planned(store)
    assert store.renew_intent(replace(run, engine="livy"), 2, LATER, failure(run))
    moved = store.read_standing(HOME_ACTIVITY).open_run
    assert moved is not None
    assert (moved.engine, moved.attempt, moved.submits) == ("livy", 2, 2)


def test_a_discarded_run_is_closed_with_its_order_and_a_closed_one_is_left_alone(
    store: AggregatingStore, pipelines: Pipelines
) -> None:
    ingest(store, [reading()])
    run = planned(store)
    assert given(pipelines.discard_run, order("discard_run", run), run, None)
    closed = pipelines.find_run(HOME_ACTIVITY, run.run_id)
    assert closed is not None
    assert (closed.status, closed.failure, closed.closed_at) == (
        "failed",
        "the run was discarded by somebody: because 👩",
        NOW,
    )
    assert not given(pipelines.discard_run, order("discard_run", run), run, None)
    assert len(pipelines.read_history(HOME_ACTIVITY).splitlines()) == 1


def test_a_discarded_result_is_gone_and_is_discarded_once(
    store: AggregatingStore, database: AggregationEngine, pipelines: Pipelines
) -> None:
    ingest(store, [reading()])
    run = planned(store)
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
    store.read_standing(HOME_ACTIVITY)
    assert pipelines.read_oldest_commit(HOME_ACTIVITY) is None
    ingest(store, [reading()])
    assert pipelines.read_oldest_commit(HOME_ACTIVITY) == COMMITTED_AT
    run = planned(store)
    finish(database, "s", run.run_id, LATER)
    staged = store.read_staged(run.run_id)
    assert staged is not None
    assert committed(store, run, staged, LATER)
    assert pipelines.read_oldest_commit(HOME_ACTIVITY) is None
    ingest(store, [reading()], of="10")
    assert pipelines.read_oldest_commit(HOME_ACTIVITY) == COMMITTED_AT
