"""core/aggregation/lake_publication.py: the rows of a source, whose whole result is in the lake."""

from pathlib import Path

import pytest

from core.aggregation.lake_publication import commit_rows, tables_of
from core.aggregation.lake_tables import Mark, is_rows_job, lake_rows, rows_of_job
from core.aggregation.runs import HELD, AggregationRun, Staged
from core.errors import InvalidTransform, LakeUnreachable, StagingRefused
from core.transforms.loading import load_aggregates
from examples.home_security.transform import SensorReading
from tests.fakes.aggregation_engines import HOME_ACTIVITY, finish
from tests.fakes.builders import EPOCH
from tests.fakes.lake_jobs import LakeWorld, change, manifest, rows_in, written

JOB = "rows.sensor_reading"
REMOVED, ROWS = tables_of(JOB)


@pytest.fixture
def world(tmp_path: Path) -> LakeWorld:
    return LakeWorld(tmp_path, JOB)


def staged(world: LakeWorld, staging_id: str, removed: list[str] | None = None) -> tuple[AggregationRun, Staged]:
    """Have a job of the open run, or of the next one, write a row and a removed row, and finish."""
    run = world.store.read_standing(JOB).open_run or world.plan()
    changes = {
        REMOVED: change([written(world.folder, REMOVED, staging_id, [(f"gone-{staging_id}", run.number)])]),
        ROWS: change([written(world.folder, ROWS, staging_id, [(staging_id, run.number)])], removed or []),
    }
    manifest(world.folder, REMOVED, staging_id, changes)
    finish(world.database, staging_id, run.run_id, world.clock.now())
    found = world.store.read_staged(run.run_id)
    assert found is not None
    return run, found


def both(world: LakeWorld) -> tuple[list[str], list[str]]:
    return tuple([home for home, _ in rows_in(world.folder, table)] for table in (ROWS, REMOVED))  # type: ignore[return-value]


def test_a_run_is_committed_in_both_tables_and_closed(world: LakeWorld) -> None:
    run, result = staged(world, "a")
    assert commit_rows(world.store, world.lake, run, result, EPOCH) == "committed"
    assert both(world) == (["a"], ["gone-a"])
    closed = world.store.read_runs(JOB, 10, 1)[0]
    assert (closed.status, closed.windows, world.store.read_standing(JOB).cut) == ("committed", 0, run.cut_to)
    assert world.state().cut == run.cut_to


@pytest.mark.parametrize("tables", [0, 1, 2])
def test_a_tick_that_dies_after_any_step_is_continued_and_no_row_is_there_twice(world: LakeWorld, tables: int) -> None:
    run, result = staged(world, "a")
    assert world.store.mark_lake(run)
    for table in tables_of(JOB)[:tables]:
        added = written(world.folder, table, "a", [("a" if table == ROWS else "gone-a", run.number)])
        standing = world.lake.read_table(table, JOB)
        assert world.lake.commit(table, standing, change([added]), Mark(JOB, run.number, {}))
    (marked,) = world.store.read_runs(JOB, 10, 1)
    assert commit_rows(world.store, world.lake, marked, result, EPOCH) == "committed"
    assert both(world) == (["a"], ["gone-a"])


def test_a_run_that_may_be_in_the_lake_is_not_given_up(world: LakeWorld) -> None:
    run, _ = staged(world, "a")
    assert world.store.mark_lake(run)
    assert not world.store.mark_lake(run)  # a tick at the same time
    assert not world.store.fail_run(run, "why", EPOCH)
    assert world.store.read_standing(JOB).open_run is not None


def test_a_lake_that_is_away_leaves_the_run_marked_and_open(world: LakeWorld) -> None:
    run, result = staged(world, "a")
    away = world.folder.rename(world.folder.with_name("away"))
    world.folder.touch()  # a file where the folder has to be
    with pytest.raises(LakeUnreachable):
        commit_rows(world.store, world.lake, run, result, EPOCH)
    assert not world.store.fail_run(run, "why", EPOCH)
    world.folder.unlink()
    away.rename(world.folder)
    (marked,) = world.store.read_runs(JOB, 10, 1)
    assert commit_rows(world.store, world.lake, marked, result, EPOCH) == "committed"
    assert both(world) == (["a"], ["gone-a"])


def test_a_tick_that_comes_late_closes_nothing_twice(world: LakeWorld) -> None:
    run, result = staged(world, "a")
    assert commit_rows(world.store, world.lake, run, result, EPOCH) == "committed"
    assert commit_rows(world.store, world.lake, run, result, EPOCH) == HELD
    (closed,) = world.store.read_runs(JOB, 10, 1)
    assert commit_rows(world.store, world.lake, closed, result, EPOCH) == HELD
    assert both(world) == (["a"], ["gone-a"])


def test_a_result_that_rewrote_a_compacted_file_is_refused_and_the_next_attempt_is_committed(world: LakeWorld) -> None:
    for name in ("a", "b"):
        assert commit_rows(world.store, world.lake, *staged(world, name), EPOCH) == "committed"
    old = [one.path for one in world.state().files]
    run, result = staged(world, "c", removed=old)
    assert world.lake.maintain(ROWS)["compacted"] == 2
    with pytest.raises(StagingRefused, match=r"its files no longer fit silver/sensor_reading"):
        commit_rows(world.store, world.lake, run, result, EPOCH)
    assert both(world) == (["a", "b"], ["gone-a", "gone-b", "gone-c"])
    assert world.store.discard_staged(result)
    _, again = staged(world, "d", removed=[one.path for one in world.state().files])
    (marked,) = world.store.read_runs(JOB, 10, 1)
    assert commit_rows(world.store, world.lake, marked, again, EPOCH) == "committed"
    assert both(world) == (["d"], ["gone-a", "gone-b", "gone-c"])


def test_a_result_in_a_lake_that_is_no_longer_set_is_refused(world: LakeWorld) -> None:
    run, result = staged(world, "a")
    with pytest.raises(StagingRefused, match="LAKE is no longer set"):
        commit_rows(world.store, None, run, result, EPOCH)


def test_each_source_of_aggregates_has_one_job_and_an_event_date() -> None:
    aggregates = load_aggregates()
    assert {rows.job for rows in lake_rows(aggregates)} == {"rows.flight_change", JOB}
    rows = rows_of_job(JOB, aggregates)
    assert (rows.source, rows.at, rows.table, rows.removed) == (SensorReading, "observed_at", ROWS, REMOVED)
    assert (is_rows_job(JOB), is_rows_job(HOME_ACTIVITY)) == (True, False)
    with pytest.raises(InvalidTransform, match=r"no aggregate reads the rows of the job rows\.nothing"):
        rows_of_job("rows.nothing", aggregates)
