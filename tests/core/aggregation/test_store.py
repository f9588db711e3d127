import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from core.aggregation.orders import Pipelines
from core.aggregation.runs import NO_CUT, AggregationRun, Failure, Order, PartitionRows, overflow_text, quality_from
from core.aggregation.store import Aggregations
from core.aggregation.tick import COMMITTED, AggregationReport, TickStep, report_facts
from core.errors import StoreUnavailable
from core.model.aggregates import SLICES
from core.model.commits import ROWS_AT_ONCE
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite
from core.transforms.loading import rooms_of
from examples.flight_info.transform import FlightChange
from examples.home_security.aggregates.home_activity import HomeActivity
from examples.home_security.transform import SensorReading
from tests.fakes import aggregation_engines
from tests.fakes.aggregation_engines import (
    HOME_ACTIVITY,
    ROW_LOST,
    AggregatingStore,
    AggregationEngine,
    finish,
    ingest,
    stage,
)
from tests.fakes.builders import EPOCH, partition, reading
from tests.fakes.rollups import with_levels
from tests.fakes.runs import LATER, NOW, OF, close, last_run, opened_run, planned, staged_result, stored, window
from tests.fakes.store import homes_of

STAGING = ("home_activity_staged", "staged_slice", "staged_result")


def activity(store: Aggregations, home_id: str = "home-1") -> tuple[HomeActivity, ...]:
    return store.read_windows(HomeActivity, home_id, EPOCH, EPOCH + timedelta(days=1))


def test_only_the_staging_of_the_app_s_aggregates_is_cleared(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    migrate_sqlite(path, rooms_of((FlightChange,)))
    with closing(Aggregations(SqliteDatabase(path), (FlightChange,))) as runs:
        runs.clear_staging()
    with closing(Aggregations(SqliteDatabase(path), (SensorReading,))) as runs, pytest.raises(StoreUnavailable):
        runs.clear_staging()


def test_a_job_that_never_ran_stands_before_everything(store: AggregatingStore) -> None:
    standing = store.read_standing(HOME_ACTIVITY)
    assert (standing.cut, standing.number, standing.last_run, standing.reached) == (NO_CUT, 0, None, NO_CUT)
    assert store.read_standing(HOME_ACTIVITY) == standing
    for partition_id in ("2", "10", "2"):
        ingest(store, [reading()], of=partition_id)
    stream_id = cast(Any, store).read_partition(partition()).stream_id
    assert store.read_standing(HOME_ACTIVITY).reached == f'{{"{stream_id}/10":1,"{stream_id}/2":2}}'


def test_of_planners_at_the_same_time_one_opens_the_run_and_no_other_is_opened_beside_it(store: Aggregations) -> None:
    ingest(store, [reading()])
    run = planned(store)
    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(lambda at: store.open_run(replace(run, run_id=f"run-{at}")), range(4)))
    assert won.count(True) == 1
    assert not store.open_run(replace(run, run_id="other", number=2))
    assert len(store.read_runs(HOME_ACTIVITY, 10, 10)) == 1


def test_a_plan_from_a_cut_that_has_moved_opens_nothing(store: Aggregations, database: AggregationEngine) -> None:
    ingest(store, [reading()])
    stale = planned(store)
    close(store, database, opened_run(store), window())
    assert not store.open_run(stale)
    assert not store.open_run(replace(stale, number=2))


def test_a_submit_is_noted_once_for_its_own_attempt_and_of_two_who_decide_anew_one_does(store: Aggregations) -> None:
    run = opened_run(store)
    assert not store.note_submitted(replace(run, attempt=2), "job-1", LATER)
    assert store.note_submitted(run, "job-1", LATER)
    assert not store.note_submitted(run, "job-2", LATER)
    kept = replace(run, status="submitted", engine_job_id="job-1", submitted_at=LATER)
    assert store.read_standing(HOME_ACTIVITY).open_run == kept
    assert store.renew_intent(run, 2, LATER)
    assert not store.renew_intent(run, 2, LATER)
    renewed = store.read_standing(HOME_ACTIVITY).open_run
    assert renewed == replace(run, attempt=2, submits=2, intent_at=LATER)
    assert not store.note_submitted(run, "job-1", LATER)
    assert not store.fail_run(run, "why", LATER)


def test_a_commit_moves_the_cut_opens_and_adds_to_windows(store: Aggregations, database: AggregationEngine) -> None:
    without = window("home-3", ppm=None)  # without a measure it stays without one
    close(store, database, opened_run(store), window(), window("home-2", ppm=None), without)
    second = opened_run(store)
    early = replace(window(readings=3, ppm=200), first_observed_at=EPOCH - timedelta(seconds=1))
    close(store, database, second, early, window("home-2", ppm=300), window(minute=15), without)
    first_window, next_window = activity(store)
    assert (first_window.readings, first_window.active, first_window.ppm_hundredths) == (5, 2, 700)
    assert (first_window.least_ppm_hundredths, first_window.most_ppm_hundredths) == (200, 500)
    assert first_window.first_observed_at == early.first_observed_at
    assert first_window.last_observed_at == window().last_observed_at
    assert next_window == window(minute=15)
    (other,) = activity(store, "home-2")
    assert (other.ppm_hundredths, other.least_ppm_hundredths, other.most_ppm_hundredths) == (300, 300, 300)
    (unmeasured,) = activity(store, "home-3")
    assert (unmeasured.readings, unmeasured.ppm_hundredths, unmeasured.least_ppm_hundredths) == (4, None, None)
    standing = store.read_standing(HOME_ACTIVITY)
    assert (standing.cut, standing.open_run) == (second.cut_to, None)
    closed = standing.last_run
    assert closed is not None
    assert (closed.status, closed.readings, closed.windows, closed.closed_at) == ("committed", 9, 4, LATER)
    assert (closed.lake_path, closed.is_snapshot) == (f"/lake/{second.run_id}-s", False)


def test_what_a_task_staged_twice_counts_once(store: Aggregations, database: AggregationEngine) -> None:
    run = opened_run(store)
    stage(database, "half", run.run_id, [window(readings=100)])
    stage(database, "zombie", "long-closed", [window(readings=100)])
    finish(database, "of another run", "other", LATER)
    assert store.read_staged(run.run_id) is None
    stage(database, "second", run.run_id, [window(readings=100)])
    finish(database, "second", run.run_id, LATER + timedelta(seconds=1))
    stage(database, f"{run.run_id}-s", run.run_id, [window()])
    close(store, database, run, window(), window(minute=15))
    assert activity(store) == (window(), window(minute=15))
    assert store.read_runs(HOME_ACTIVITY, 10, 1)[0].readings == 4
    store.clear_staging()
    assert [database.count(table) for table in STAGING] == [0, 0, 0]


def test_a_commit_leaves_the_staging(store: Aggregations, database: AggregationEngine) -> None:
    run = opened_run(store)
    stage(database, "late", run.run_id, [window(f"home-{number}") for number in range(ROWS_AT_ONCE + 1)])
    finish(database, "late", run.run_id, LATER + timedelta(seconds=1))
    store.clear_staging()
    assert [database.count(table) for table in STAGING] == [ROWS_AT_ONCE + 1, SLICES, 1]
    close(store, database, run, window())
    assert [database.count(table) for table in STAGING] == [ROWS_AT_ONCE + 2, SLICES + 1, 2]
    store.clear_staging()
    assert [database.count(table) for table in STAGING] == [0, 0, 0]


def test_runs_are_listed_from_the_newest(store: Aggregations, database: AggregationEngine) -> None:
    close(store, database, opened_run(store), window())
    store.fail_run(opened_run(store), "why", LATER)
    again = planned(store)
    assert store.open_run(again)
    close(store, database, again, window())
    assert [run.number for run in store.read_runs(HOME_ACTIVITY, 10, 2)] == [3, 2]
    assert [run.number for run in store.read_runs(HOME_ACTIVITY, 2, 2)] == [1]
    assert [run.number for run in store.read_committed_runs(HOME_ACTIVITY, 0)] == [1, 3]
    assert [run.number for run in store.read_committed_runs(HOME_ACTIVITY, 1)] == [3]


def test_activity_is_that_of_one_home_in_a_span(store: AggregatingStore, database: AggregationEngine) -> None:
    others = window(minute=30), window("home-10", minute=60)
    close(store, database, opened_run(store), window(), window(minute=15), *others)
    since, until = EPOCH + timedelta(minutes=15), EPOCH + timedelta(minutes=30)
    assert store.read_windows(HomeActivity, "home-1", since, until) == (window(minute=15),)
    assert store.read_windows(HomeActivity, "home", EPOCH, LATER) == ()
    homes = homes_of(store.database)
    assert homes.read_last_window("home-1", until) == since
    assert homes.read_last_window("home-1", until + timedelta(microseconds=1)) == until
    assert homes.read_last_window("home-1", EPOCH) is None
    assert homes.read_last_window("home", LATER) is None


def test_windows_of_subjects_are_found_and_deleted_in_every_level_and_where_they_are_staged(
    store: AggregatingStore, database: AggregationEngine
) -> None:
    others = window("home-10", minute=60), window("Home-1")
    close(store, database, opened_run(store), *with_levels([window(), window(minute=3 * 1_440 + 15), *others]))
    stage(database, "open", opened_run(store).run_id, with_levels([window(), *others]))
    day = EPOCH.date()
    assert store.find_days(OF, ["home-1", "7"]) == (day, day + timedelta(days=3))
    assert store.find_days(OF, ["home", "home-1 "]) is None
    assert store.remove_subjects(OF, ["home", "home-1 "]) == 0
    assert store.remove_subjects(OF, ["home-1", "7"]) == 2 * len(OF.levels)
    assert store.find_days(OF, ["home-1"]) is None
    tables = [table for level in OF.levels for table in (level.name, level.staged)]
    found = [{home for (home,) in database.change(f"SELECT home_id FROM {{p}}{table}")} for table in tables]
    assert found == [{"home-10", "Home-1"}] * len(tables)


GREATEST, LEAST = 2**63 - 1, -(2**63)
FAULT = overflow_text(HOME_ACTIVITY, "ppm_hundredths", "2026-01-01T00:00:00Z")


def measured(home_id: str, ppm: int | None, minute: int = 0) -> HomeActivity:
    return replace(window(home_id, minute), ppm_hundredths=ppm)


@pytest.mark.parametrize(
    ("standing", "staged", "fits"),
    [
        (GREATEST - 5, 5, True),
        (GREATEST - 5, 6, False),
        (GREATEST, GREATEST, False),
        (LEAST + 5, -5, True),
        (LEAST + 5, -6, False),
        (LEAST, LEAST, False),
        (GREATEST, LEAST, True),
        (LEAST, GREATEST, True),
        (None, GREATEST, True),
        (GREATEST, None, True),
    ],
)
def test_a_sum_of_64_bits_is_added_and_one_beyond_is_found_before_any_window(
    store: AggregatingStore, database: AggregationEngine, standing: int | None, staged: int | None, fits: bool
) -> None:
    close(store, database, opened_run(store), measured("home-1", standing), measured("home-2", 1))
    windows = [measured("home-2", 1), measured("home-3", GREATEST), measured("home-1", staged)]
    if not fits:
        run = opened_run(store)
        assert store.find_overflow(run, staged_result(store, database, run, windows)) == FAULT
        assert stored(store) == [measured("home-1", standing), measured("home-2", 1)]
        return
    run = opened_run(store)
    result = staged_result(store, database, run, windows)
    assert store.find_overflow(run, result) is None
    assert aggregation_engines.committed(store, run, result, LATER)
    (added,) = stored(store, homes=["home-1"])
    whole = None if standing is None and staged is None else (standing or 0) + (staged or 0)
    assert added.ppm_hundredths == whole


def test_a_sum_of_a_coarser_level_and_a_count_are_found_too_and_a_window_that_replaces_adds_nothing(
    store: AggregatingStore, database: AggregationEngine
) -> None:
    full, counted = measured("home-1", GREATEST), replace(window("home-2", 15), readings=GREATEST - 10)
    close(store, database, opened_run(store), *with_levels([full, measured("home-1", -9, minute=15), counted]))
    run = opened_run(store)
    for name, windows, fault in (
        ("hour", with_levels([measured("home-1", 10, minute=30)]), ("home_activity_hour", "ppm_hundredths", 0)),
        ("count", [window("home-2", 15, readings=11)], (HOME_ACTIVITY, "readings", 15)),
    ):
        staged = staged_result(store, database, run, windows, name)
        table, measure, minute = fault
        assert store.find_overflow(run, staged) == overflow_text(table, measure, f"2026-01-01T00:{minute:02}:00Z")
        assert store.discard_staged(staged)
    stage(database, "whole", run.run_id, [full], whole=True)
    finish(database, "whole", run.run_id, LATER)
    whole = store.read_staged(run.run_id)
    assert whole is not None
    assert store.find_overflow(run, whole) is None
    database.change(f"UPDATE {{p}}staged_result SET overflow = '{FAULT}'")  # the job found it
    told = store.read_staged(run.run_id)
    assert told is not None
    assert store.find_overflow(run, told) == FAULT


def test_a_stop_closes_the_run(store: AggregatingStore, database: AggregationEngine) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, [window()])
    failure = Failure(run.run_id, run.submits, run.attempt, NOW, "what", reason=FAULT)
    pipelines = Pipelines(store.database)
    pipelines.pause(Order(HOME_ACTIVITY, "pause", "somebody", "a look", NOW))
    assert not store.stop_run(run, staged, FAULT, failure)  # somebody paused it first
    assert store.read_standing(HOME_ACTIVITY).open_run == run
    pipelines.resume(Order(HOME_ACTIVITY, "resume", "somebody", "it was nothing", NOW))
    assert store.stop_run(run, staged, FAULT, failure)
    assert not store.stop_run(run, staged, FAULT, failure)
    standing = store.read_standing(HOME_ACTIVITY)
    assert standing.pause is not None
    assert (standing.pause.who, standing.pause.reason, standing.pause.at) == ("the app", FAULT, NOW)
    assert (last_run(store).status, last_run(store).failure, standing.open_run) == ("failed", FAULT, None)
    assert pipelines.read_failures(run.run_id) == (failure,)
    pipelines.resume(Order(HOME_ACTIVITY, "resume", "somebody", "the measure is gone", LATER))
    assert opened_run(store).number == run.number + 1


def test_a_run_with_committed_slices_stays_open_without_the_result(
    store: AggregatingStore, database: AggregationEngine
) -> None:
    """The next run would count its slices again."""
    run = opened_run(store)
    staged = staged_result(store, database, run, [window()])
    database.change("UPDATE {p}aggregation_run SET committed_slices = 7")
    begun = last_run(store)
    assert store.find_overflow(begun, staged) is None
    assert store.stop_run(begun, staged, FAULT, Failure(run.run_id, 1, 1, NOW, "what"))
    standing = store.read_standing(HOME_ACTIVITY)
    assert (standing.open_run, standing.pause is not None) == (begun, True)
    assert store.read_staged(run.run_id) is None


RUN = AggregationRun("r", "home_activity", 4, NO_CUT, NO_CUT, "local", 1, 1, "committed", EPOCH, EPOCH)


def test_the_counts_of_a_job_are_read_back_and_in_the_log_line_of_the_tick_that_closed_its_run() -> None:
    found = quality_from(json.dumps(ROW_LOST))
    assert found is not None
    assert (found.rows_ledger, found.rows_difference, found.partitions) == (12, -1, (PartitionRows("1/3", 8, 7),))
    assert quality_from(None) is None
    following = replace(RUN, run_id="s", status="submitted")
    report = AggregationReport(
        (COMMITTED, TickStep("submitted")), following, closed=replace(RUN, quality=json.dumps(ROW_LOST))
    )
    facts = report_facts("home_activity", report)
    assert {name: value for name, value in facts.items() if name.startswith("quality_")} == {
        "quality_run_id": "r",
        **{f"quality_{name}": value for name, value in ROW_LOST.items() if name != "partitions"},
    }
    assert facts["run_id"] == "s"
    silent = (AggregationReport((TickStep("waits"),), following), replace(report, closed=RUN))
    assert not any(name.startswith("quality_") for one in silent for name in report_facts("home_activity", one))


SOUND, FAULTY = json.dumps({"fault": None}), json.dumps({"fault": "rows differ 👩" + "x" * 900, "rows": {}})


def committed_with(store: AggregatingStore, database: AggregationEngine, quality: str | None) -> None:
    run = opened_run(store)
    finish(database, f"{run.run_id}-a", run.run_id, NOW, quality)
    finish(database, f"{run.run_id}-b", run.run_id, LATER, None)
    staged = store.read_staged(run.run_id)
    assert staged is not None
    assert aggregation_engines.committed(store, run, staged, LATER)


def test_a_run_has_the_quality_of_the_result_that_was_committed_and_its_faults_are_counted(
    store: AggregatingStore, database: AggregationEngine
) -> None:
    pipelines = Pipelines(store.database)
    for quality in (None, SOUND):
        committed_with(store, database, quality)
    assert pipelines.count_quality_faults(NOW) == 0
    committed_with(store, database, FAULTY)
    assert [pipelines.count_quality_faults(at) for at in (LATER, LATER + timedelta(seconds=1))] == [1, 0]
    found = [run.quality for run in store.read_runs(HOME_ACTIVITY, 10, 10)]
    assert found == [FAULTY, SOUND, None]
    assert [run.quality for run in store.read_committed_runs(HOME_ACTIVITY, 0)] == found[::-1]
    newest = store.read_runs(HOME_ACTIVITY, 10, 1)[0]
    assert pipelines.find_run(HOME_ACTIVITY, newest.run_id) == newest
    assert store.read_standing(HOME_ACTIVITY).last_run == newest
