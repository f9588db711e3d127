"""Every store has at most one open run of a job, and changes a run only by compare and set."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from core.aggregation.runs import NO_CUT, AggregationRun, Cut, Staged
from core.aggregation.store import Aggregations
from core.errors import StoreUnavailable
from core.model.aggregates import SLICES
from core.model.commits import ROWS_AT_ONCE
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite
from core.transforms.loading import rooms_of
from examples.flight_info.transform import FlightChange
from examples.home_security.aggregates.home_activity import HomeActivity
from examples.home_security.transform import SensorReading
from tests.fakes.aggregation_engines import (
    HOME_ACTIVITY,
    AggregationEngine,
    committed,
    finish,
    ingest,
    levels_of,
    stage,
)
from tests.fakes.builders import EPOCH, partition, reading
from tests.fakes.runs import LATER, NOW, close, opened_run, planned, window

STAGING = ("home_activity_staged", "staged_slice", "staged_result")


def result(name: str, run: AggregationRun, windows: int = 1) -> Staged:
    return Staged(name, run.run_id, 1, LATER, {**levels_of([]), HOME_ACTIVITY: windows})


def activity(store: Aggregations, home_id: str = "home-1") -> tuple[HomeActivity, ...]:
    return store.read_windows(HomeActivity, home_id, EPOCH, EPOCH + timedelta(days=1))


def test_only_the_staging_of_the_app_s_aggregates_is_cleared(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    migrate_sqlite(path, rooms_of((FlightChange,)))
    with closing(Aggregations(SqliteDatabase(path), (FlightChange,))) as runs:
        runs.clear_staging()
    with closing(Aggregations(SqliteDatabase(path), (SensorReading,))) as runs, pytest.raises(StoreUnavailable):
        runs.clear_staging()


def test_a_job_that_never_ran_stands_before_everything(store: Aggregations) -> None:
    standing = store.read_standing(HOME_ACTIVITY)
    assert (standing.cut, standing.number, standing.last_run, standing.reached) == (NO_CUT, 0, None, NO_CUT)
    assert store.read_standing(HOME_ACTIVITY) == standing


def test_the_cut_that_is_reached_names_every_partition_in_one_form(store: Aggregations) -> None:
    for partition_id in ("2", "10", "2"):
        ingest(store, [reading()], of=partition_id)
    stream_id = cast(Any, store).read_partition(partition()).stream_id
    assert store.read_standing(HOME_ACTIVITY).reached == f'{{"{stream_id}/10":1,"{stream_id}/2":2}}'


def test_there_is_one_open_run_at_a_time(store: Aggregations) -> None:
    run = opened_run(store)
    assert not store.open_run(run)
    assert not store.open_run(replace(run, run_id="other", number=2))
    assert store.read_runs(HOME_ACTIVITY, 10, 10) == (run,)


def test_of_planners_at_the_same_time_one_opens_the_run(store: Aggregations) -> None:
    ingest(store, [reading()])
    run = planned(store)
    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(lambda at: store.open_run(replace(run, run_id=f"run-{at}")), range(4)))
    assert won.count(True) == 1
    assert len(store.read_runs(HOME_ACTIVITY, 10, 10)) == 1


def test_a_plan_from_a_cut_that_has_moved_opens_nothing(store: Aggregations, database: AggregationEngine) -> None:
    ingest(store, [reading()])
    stale = planned(store)
    close(store, database, opened_run(store), window())
    assert not store.open_run(stale)
    assert not store.open_run(replace(stale, number=2))


def test_a_submit_is_noted_once_and_for_its_own_attempt_only(store: Aggregations) -> None:
    run = opened_run(store)
    assert not store.note_submitted(replace(run, attempt=2), "job-1", LATER)
    assert store.note_submitted(run, "job-1", LATER)
    assert not store.note_submitted(run, "job-2", LATER)
    kept = replace(run, status="submitted", engine_job_id="job-1", submitted_at=LATER)
    assert store.read_standing(HOME_ACTIVITY).open_run == kept


def test_of_two_who_decide_on_another_submit_one_does(store: Aggregations) -> None:
    run = opened_run(store)
    store.note_submitted(run, "job-1", NOW)
    assert store.renew_intent(run, 2, LATER)
    assert not store.renew_intent(run, 2, LATER)
    renewed = store.read_standing(HOME_ACTIVITY).open_run
    assert renewed == replace(run, attempt=2, submits=2, intent_at=LATER)
    assert not store.note_submitted(run, "job-1", LATER)
    assert not store.fail_run(run, "why", LATER)


def test_a_run_that_failed_leaves_the_cut_and_the_next_one_begins_there(store: Aggregations) -> None:
    run = opened_run(store)
    assert store.fail_run(run, "why " + "👩" * 2_000, LATER)
    assert not store.fail_run(run, "again", LATER)
    assert not committed(store, run, result("s", run, 0), LATER)
    again = planned(store)
    assert (again.cut_from, again.number, again.run_id == run.run_id) == (run.cut_from, 2, False)
    assert store.open_run(again)
    failed = store.read_runs(HOME_ACTIVITY, 2, 10)[0]
    assert (failed.status, failed.closed_at, failed.failure) == ("failed", LATER, "why " + "👩" * 998)


def test_a_commit_moves_the_cut_opens_and_adds_to_windows_and_closes_the_run(
    store: Aggregations, database: AggregationEngine
) -> None:
    close(store, database, opened_run(store), window(), window("home-2", ppm=None))
    second = opened_run(store)
    early = replace(window(readings=3, ppm=200), first_observed_at=EPOCH - timedelta(seconds=1))
    close(store, database, second, early, window("home-2", ppm=300), window(minute=15))
    first_window, next_window = activity(store)
    assert (first_window.readings, first_window.active, first_window.ppm_hundredths) == (5, 2, 700)
    assert (first_window.least_ppm_hundredths, first_window.most_ppm_hundredths) == (200, 500)
    assert first_window.first_observed_at == early.first_observed_at
    assert first_window.last_observed_at == window().last_observed_at
    assert next_window == window(minute=15)
    (other,) = activity(store, "home-2")
    assert (other.ppm_hundredths, other.least_ppm_hundredths, other.most_ppm_hundredths) == (300, 300, 300)
    standing = store.read_standing(HOME_ACTIVITY)
    assert (standing.cut, standing.open_run) == (second.cut_to, None)
    closed = standing.last_run
    assert closed is not None
    assert (closed.status, closed.readings, closed.windows, closed.closed_at) == ("committed", 7, 3, LATER)
    assert (closed.lake_path, closed.is_snapshot) == (f"/lake/{second.run_id}-s", False)


def test_a_window_without_a_measure_stays_without_one(store: Aggregations, database: AggregationEngine) -> None:
    close(store, database, opened_run(store), window(ppm=None))
    close(store, database, opened_run(store), window(ppm=None))
    (found,) = activity(store)
    assert (found.readings, found.ppm_hundredths, found.least_ppm_hundredths) == (4, None, None)


def test_rows_that_a_task_staged_twice_count_once(store: Aggregations, database: AggregationEngine) -> None:
    run = opened_run(store)
    stage(database, f"{run.run_id}-s", run.run_id, [window()])
    close(store, database, run, window(), window(minute=15))
    assert activity(store) == (window(), window(minute=15))
    assert store.read_runs(HOME_ACTIVITY, 10, 1)[0].readings == 4


def test_what_another_execution_staged_is_neither_counted_nor_left(
    store: Aggregations, database: AggregationEngine
) -> None:
    run = opened_run(store)
    stage(database, "half", run.run_id, [window(readings=100)])
    stage(database, "zombie", "long-closed", [window(readings=100)])
    stage(database, "second", run.run_id, [window(readings=100)])
    finish(database, "second", run.run_id, LATER + timedelta(seconds=1))
    close(store, database, run, window())
    assert activity(store) == (window(),)
    store.clear_staging()
    assert [database.count(table) for table in STAGING] == [0, 0, 0]


def test_a_commit_leaves_the_staging_which_is_cleared_in_small_parts_once_the_run_is_closed(
    store: Aggregations, database: AggregationEngine
) -> None:
    run = opened_run(store)
    stage(database, "late", run.run_id, [window(f"home-{number}") for number in range(ROWS_AT_ONCE + 1)])
    finish(database, "late", run.run_id, LATER + timedelta(seconds=1))
    store.clear_staging()
    assert [database.count(table) for table in STAGING] == [ROWS_AT_ONCE + 1, SLICES, 1]
    close(store, database, run, window())
    assert [database.count(table) for table in STAGING] == [ROWS_AT_ONCE + 2, SLICES + 1, 2]
    store.clear_staging()
    assert [database.count(table) for table in STAGING] == [0, 0, 0]


def test_a_run_from_another_cut_than_the_standing_one_moves_no_cut_and_stays_open(
    store: Aggregations, database: AggregationEngine
) -> None:
    run = opened_run(store)
    stage(database, "s", run.run_id, [window()])
    finish(database, "s", run.run_id, LATER)
    elsewhere = replace(run, cut_from=Cut('{"1/0":7}'))
    assert not committed(store, elsewhere, result("s", run), LATER)
    standing = store.read_standing(HOME_ACTIVITY)
    assert (standing.cut, standing.number) == (NO_CUT, 1)
    assert standing.open_run == replace(run, committed_slices=SLICES)


def test_of_commits_at_the_same_time_one_counts(store: Aggregations, database: AggregationEngine) -> None:
    run = opened_run(store)
    for staging_id in ("a", "b"):
        stage(database, staging_id, run.run_id, [window()])
        finish(database, staging_id, run.run_id, LATER)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda name: committed(store, run, result(name, run), LATER), "abab"))
    assert done.count(True) == 1
    assert activity(store) == (window(),)


def test_a_whole_window_replaces_what_stands_and_an_empty_one_removes_it(
    store: Aggregations, database: AggregationEngine
) -> None:
    close(store, database, opened_run(store), window(readings=9), window(minute=15), window(minute=30))
    run = opened_run(store)
    stage(database, f"{run.run_id}-s", run.run_id, [window(readings=4), window(readings=0, minute=15)], whole=True)
    close(store, database, run, window(minute=30))
    kept, added = activity(store)
    assert (kept.readings, kept.window_start) == (4, EPOCH)
    assert (added.readings, added.window_start) == (4, EPOCH + timedelta(minutes=30))


def test_an_unfinished_result_is_not_found(store: Aggregations, database: AggregationEngine) -> None:
    run = opened_run(store)
    stage(database, "half", run.run_id, [window()])
    finish(database, "of another run", "other", LATER)
    assert store.read_staged(run.run_id) is None


def test_runs_are_listed_from_the_newest_and_committed_ones_from_the_oldest(
    store: Aggregations, database: AggregationEngine
) -> None:
    close(store, database, opened_run(store), window())
    store.fail_run(opened_run(store), "why", LATER)
    again = planned(store)
    assert store.open_run(again)
    close(store, database, again, window())
    assert [run.number for run in store.read_runs(HOME_ACTIVITY, 10, 2)] == [3, 2]
    assert [run.number for run in store.read_runs(HOME_ACTIVITY, 2, 2)] == [1]
    assert [run.number for run in store.read_committed_runs(HOME_ACTIVITY, 0)] == [1, 3]
    assert [run.number for run in store.read_committed_runs(HOME_ACTIVITY, 1)] == [3]


def test_activity_is_that_of_one_home_in_a_span(store: Aggregations, database: AggregationEngine) -> None:
    close(store, database, opened_run(store), window(), window(minute=15), window(minute=30), window("home-10"))
    since, until = EPOCH + timedelta(minutes=15), EPOCH + timedelta(minutes=30)
    assert store.read_windows(HomeActivity, "home-1", since, until) == (window(minute=15),)
    assert store.read_windows(HomeActivity, "home", EPOCH, LATER) == ()


def test_the_last_window_of_a_home_is_the_last_that_begins_before_an_instant(
    store: Aggregations, database: AggregationEngine
) -> None:
    from tests.fakes.store import homes_of

    close(
        store, database, opened_run(store), window(), window(minute=30), window(minute=15), window("home-10", minute=60)
    )
    homes = homes_of(cast(Any, store).database)
    half_past = EPOCH + timedelta(minutes=30)
    assert homes.read_last_window("home-1", half_past) == EPOCH + timedelta(minutes=15)
    assert homes.read_last_window("home-1", half_past + timedelta(microseconds=1)) == half_past
    assert homes.read_last_window("home-1", EPOCH) is None
    assert homes.read_last_window("home", LATER) is None
