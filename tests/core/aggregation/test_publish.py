"""core/aggregation/lake_publication.py: aggregates in Delta tables, whoever dies, races or meddles."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from core.aggregation.lake_publication import publish
from core.aggregation.lake_tables import NO_TABLE, Mark, TableState
from core.aggregation.runs import RunLimits
from core.aggregation.tick import Aggregation, aggregate, report_facts
from core.errors import LakeUnreachable
from core.remote.spark.delta import DeltaLake
from core.remote.spark.lake_storage import FolderStorage
from tests.fakes.aggregation_engines import ingest
from tests.fakes.builders import reading
from tests.fakes.lake_jobs import COLUMNS, ONE_LEVEL, LakeWorld, change, manifest, written
from tests.fakes.ticks import FakeEngine

TABLE = f"gold/{ONE_LEVEL}"


@pytest.fixture
def world(tmp_path: Path) -> LakeWorld:
    return LakeWorld(tmp_path)


def test_a_closed_run_is_committed_once_however_often_it_is_published(world: LakeWorld) -> None:
    first = world.run("home-1")
    assert world.publish()
    assert (world.rows(), world.version()) == ([("home-1", 1)], 0)
    assert world.publish()  # a tick that died after the commit publishes again
    world.run("home-2")
    assert world.publish()
    assert world.publish()
    assert (world.rows(), world.version()) == ([("home-1", 1), ("home-2", 2)], 1)
    facts = DeltaTable(str(world.folder / TABLE)).history(1)[0]
    assert (facts["run_id"] == first.run_id, facts["cut"]) == (False, '{"1/0":2}')


def test_ticks_that_publish_at_the_same_time_commit_each_run_once(world: LakeWorld) -> None:
    for number in range(3):
        world.run(f"home-{number}")
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: publish(world.store, DeltaLake(FolderStorage(world.folder)), ONE_LEVEL), range(6)))
    assert world.publish()
    assert (len(world.rows()), world.version()) == (3, 2)


def test_a_commit_for_a_version_that_has_passed_is_refused(world: LakeWorld) -> None:
    world.run("home-1")
    before = world.lake.read_table(TABLE, ONE_LEVEL)
    assert before == NO_TABLE
    assert world.publish()
    late = change([written(world.folder, TABLE, "late", [("home-9", 9)])])
    assert not world.lake.commit(TABLE, before, late, Mark(ONE_LEVEL, 9, {}))
    standing = world.lake.read_table(TABLE, ONE_LEVEL)
    world.run("home-2")
    assert world.publish()
    assert not world.lake.commit(TABLE, standing, late, Mark(ONE_LEVEL, 9, {}))
    assert [home for home, _ in world.rows()] == ["home-1", "home-2"]


def test_a_job_gets_the_files_of_its_table_with_their_partitions_and_ranges(world: LakeWorld) -> None:
    run = world.plan()
    assert world.state() == TableState("{}", {}, ())
    added = written(world.folder, TABLE, "one", [("home-1", 1), ("home-2", 1)])
    world.close(run, manifest(world.folder, TABLE, "one", {TABLE: change([added])}))
    assert world.publish()
    world.plan()
    state = world.state()
    assert (state.cut, dict(state.columns)) == (run.cut_to, COLUMNS)
    (file,) = state.files
    assert (file.path, file.size, file.rows) == (added.path, added.size, 2)
    assert (file.partition, file.least, file.most) == (added.partition, {"home_id": "home-1"}, {"home_id": "home-2"})


def test_a_run_replaces_the_files_that_it_wrote_again(world: LakeWorld) -> None:
    world.run("home-1")
    assert world.publish()
    run = world.plan()
    (old,) = world.state().files
    changes = {TABLE: change([written(world.folder, TABLE, "two", [("home-1", 2)])], [old.path])}
    world.close(run, manifest(world.folder, TABLE, "two", changes))
    assert world.publish()
    assert world.rows() == [("home-1", 2)]


def test_a_run_without_windows_moves_the_table_to_its_cut(world: LakeWorld) -> None:
    world.run("home-1")
    assert world.publish()
    run = world.plan()
    world.close(run, manifest(world.folder, TABLE, "none", {TABLE: change([])}))
    assert world.publish()
    assert world.state().cut == run.cut_to
    assert world.rows() == [("home-1", 1)]


def test_a_file_that_somebody_compacted_in_the_meantime_is_not_doubled_and_the_next_run_writes_everything(
    world: LakeWorld,
) -> None:
    for home in ("home-1", "home-2"):
        world.run(home)
        assert world.publish()
    run = world.plan()
    (old, *_) = world.state().files
    standing = world.lake.read_table(TABLE, ONE_LEVEL)
    wanted = change([written(world.folder, TABLE, "again", [("home-1", 3)])], [old.path])
    world.close(run, manifest(world.folder, TABLE, "again", {TABLE: wanted}))
    assert world.lake.maintain(TABLE)["compacted"] == 2
    assert not world.lake.commit(TABLE, standing, wanted, Mark(ONE_LEVEL, 3, {}))
    assert not world.publish()
    assert world.rows() == [("home-1", 1), ("home-2", 2)]
    assert world.state().cut != run.cut_to  # so that the job of the next run writes the whole table
    world.run("home-5", is_whole=True)
    assert world.publish()
    assert world.rows() == [("home-5", 4)]


def test_a_run_that_adds_to_a_cut_which_the_table_lacks_is_not_published(world: LakeWorld) -> None:
    world.run("home-1")
    assert world.publish()
    world.close(world.plan(), None)  # the lake was away
    run = world.plan()
    changes = {TABLE: change([written(world.folder, TABLE, "three", [("home-3", 3)])])}
    world.close(run, manifest(world.folder, TABLE, "three", changes), is_whole=True)  # of a different level of it
    assert not world.publish()
    assert world.rows() == [("home-1", 1)]


def test_a_table_that_was_deleted_is_written_whole(world: LakeWorld) -> None:
    world.run("home-1")
    assert world.publish()
    (world.folder / TABLE).rename(world.folder / "elsewhere")
    assert not world.publish()  # the files of its run are gone too
    world.run("home-2")
    assert not world.publish()
    assert world.state() == TableState("{}", {}, ())
    world.run("home-3", is_whole=True)
    assert world.publish()
    assert world.rows() == [("home-3", 3)]


def test_files_that_are_gone_are_not_committed(world: LakeWorld) -> None:
    run = world.run("home-1")
    (place,) = (world.folder / TABLE / run.run_id).rglob("*.parquet")
    place.unlink()
    assert not world.publish()
    assert not (world.folder / TABLE / "_delta_log").exists()


def test_a_table_of_somebody_else_is_left_alone_and_named(world: LakeWorld) -> None:
    pl.DataFrame({"mine": [1]}).write_delta(str(world.folder / TABLE))
    world.run("home-1", is_whole=True)
    with pytest.raises(LakeUnreachable, match=r"^LAKE: gold/\w+ is a table that this app did not make: move it"):
        world.publish()
    assert pl.read_delta(str(world.folder / TABLE)).rows() == [(1,)]


def test_a_table_with_the_columns_of_an_older_declaration_gets_the_new_ones_with_the_next_whole_run(
    world: LakeWorld,
) -> None:
    world.run("home-1")
    assert world.publish()
    run = world.plan()
    added = written(world.folder, TABLE, "new", [("home-2", 2)])
    wanted = replace(change([added]), columns={**COLUMNS, "active": "bigint"})
    world.close(run, manifest(world.folder, TABLE, "new", {TABLE: wanted}))
    assert not world.publish()
    run = world.plan()
    added = written(world.folder, TABLE, "whole", [("home-3", 3)])
    wanted = replace(change([added], is_whole=True), columns={**COLUMNS, "active": "bigint"})
    world.close(run, manifest(world.folder, TABLE, "whole", {TABLE: wanted}), is_whole=True)
    assert world.publish()
    assert pl.read_delta(str(world.folder / TABLE)).select("home_id", "active").rows() == [("home-3", None)]


def test_a_lake_that_is_ahead_of_a_restored_database_is_written_whole(world: LakeWorld, tmp_path: Path) -> None:
    for home in ("home-1", "home-2", "home-3"):
        world.run(home)
        assert world.publish()
    (tmp_path / "restored").mkdir()
    restored = LakeWorld(tmp_path / "restored")
    restored.folder, restored.lake = world.folder, world.lake
    restored.plan()
    assert restored.state().cut is None
    (run,) = restored.store.read_runs(ONE_LEVEL, 10, 1)
    changes = {TABLE: change([written(world.folder, TABLE, "restored", [("home-7", 1)])], is_whole=True)}
    restored.close(run, manifest(world.folder, TABLE, "restored", changes), is_whole=True)
    assert restored.publish()
    assert restored.rows() == [("home-7", 1)]
    assert restored.state().cut == run.cut_to


def test_a_lake_that_does_not_answer_stops_no_run_and_its_job_is_told_of_no_lake(world: LakeWorld) -> None:
    world.folder.touch()  # a file where the folder has to be
    engine = FakeEngine()
    own = Aggregation(world.store, engine, world.lake, world.clock.now, RunLimits())
    ingest(world.store, [reading()])
    assert aggregate(own, ONE_LEVEL).did == ("submitted",)
    assert "--lake" not in engine.requests[0].arguments
    run = world.store.read_standing(ONE_LEVEL).open_run
    assert run is not None
    world.finish(run)
    ingest(world.store, [reading()])
    report = aggregate(own, ONE_LEVEL)
    assert (report.did, report.published) == (("committed", "submitted"), False)
    assert (report.fault or "").startswith("LAKE: ")
    assert report_facts(ONE_LEVEL, report)["fault"] == report.fault
    world.folder.unlink()
    world.close(world.store.read_runs(ONE_LEVEL, 10, 1)[0], None)
    ingest(world.store, [reading()])
    assert aggregate(own, ONE_LEVEL).fault is None
    assert engine.requests[2].arguments[4:6] == ("--lake", str(world.folder))
    assert world.state().cut == "{}"  # and its run begins later: the job writes the whole table
