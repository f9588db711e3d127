import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from core.aggregation.lake_publication import commit_rows, publish, tables_of
from core.aggregation.lake_tables import (
    MANIFEST,
    NO_TABLE,
    REMAKE,
    Mark,
    TableState,
    is_rows_job,
    lake_rows,
    rows_of_job,
)
from core.aggregation.lake_upkeep import maintain_job, remake_table
from core.aggregation.orders import Pipelines
from core.aggregation.runs import HELD, AggregationRun, RunLimits, Staged
from core.aggregation.tick import Aggregation, aggregate, report_facts
from core.errors import InvalidTransform, LakeDamaged, LakeUnreachable, StagingRefused
from core.remote.spark.delta import DeltaLake
from core.remote.spark.lake_storage import FolderStorage
from core.transforms.loading import load_aggregates
from examples.home_security.transform import SensorReading
from tests.fakes.aggregation_engines import HOME_ACTIVITY, finish, ingest
from tests.fakes.builders import EPOCH, reading
from tests.fakes.lake_jobs import COLUMNS, DAY, ONE_LEVEL, LakeWorld, change, manifest, rows_in, written
from tests.fakes.ticks import FakeEngine

TABLE = f"gold/{ONE_LEVEL}"
JOB = "rows.sensor_reading"
REMOVED, ROWS = tables_of(JOB)


@pytest.fixture
def world(tmp_path: Path) -> LakeWorld:
    return LakeWorld(tmp_path)


@pytest.fixture
def rows(tmp_path: Path) -> LakeWorld:
    """The lake of the rows of a source."""
    return LakeWorld(tmp_path, JOB)


def published(world: LakeWorld, *homes: str) -> None:
    for home in homes:
        world.run(home)
        assert world.publish()


def result(
    world: LakeWorld, run: AggregationRun, name: str, *homes: tuple[str, int], removed: tuple[str, ...] = ()
) -> None:
    added = [written(world.folder, TABLE, name, homes)] if homes else []
    world.close(run, manifest(world.folder, TABLE, name, {TABLE: change(added, removed)}))


def test_a_closed_run_is_committed_once_however_often_it_is_published(world: LakeWorld) -> None:
    first = world.run("home-1")
    assert world.publish()
    assert (world.rows(), world.version()) == ([("home-1", 1)], 0)
    assert world.publish()  # a tick that died after the commit publishes again
    published(world, "home-2")
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


def test_an_order_to_make_a_table_anew_stays_in_the_lake_and_names_no_value_of_its_rows(world: LakeWorld) -> None:
    published(world, "home-1")
    own = Aggregation(world.store, FakeEngine(), world.lake, world.clock.now, jobs=(ONE_LEVEL,))
    remake_table(own, Pipelines(world.store.database), TABLE, False, ("somebody", world.clock.now()))
    order = world.lake.read_text(f"{TABLE}/{REMAKE}")
    assert order is not None
    assert (DAY in order, "home-1" in order) == (True, False)


def test_a_commit_for_a_version_that_has_passed_is_refused(world: LakeWorld) -> None:
    before = world.lake.read_table(TABLE, ONE_LEVEL)
    assert before == NO_TABLE
    late = change([written(world.folder, TABLE, "late", [("home-9", 9)])])
    for homes in (["home-1"], ["home-1", "home-2"]):
        published(world, homes[-1])
        assert not world.lake.commit(TABLE, before, late, Mark(ONE_LEVEL, 9, {}))
        assert [home for home, _ in world.rows()] == homes
        before = world.lake.read_table(TABLE, ONE_LEVEL)


def test_a_job_gets_the_files_of_its_table_and_its_run_replaces_those_that_it_wrote_again(world: LakeWorld) -> None:
    run = world.plan()
    assert world.state() == TableState("{}", {}, ())
    added = written(world.folder, TABLE, "one", [("home-1", 1), ("home-2", 1)])
    world.close(run, manifest(world.folder, TABLE, "one", {TABLE: change([added])}))
    assert world.publish()
    again = world.plan()
    state = world.state()
    assert (state.cut, dict(state.columns)) == (run.cut_to, COLUMNS)
    (file,) = state.files
    assert (file.path, file.size, file.rows) == (added.path, added.size, 2)
    assert (file.partition, file.least, file.most) == (added.partition, {"home_id": "home-1"}, {"home_id": "home-2"})
    result(world, again, "two", ("home-1", 2), removed=(file.path,))
    assert world.publish()
    assert world.rows() == [("home-1", 2)]
    empty = world.plan()
    result(world, empty, "none")  # a run without windows moves the table to its cut
    assert world.publish()
    assert (world.state().cut, world.rows()) == (empty.cut_to, [("home-1", 2)])


def test_a_file_that_somebody_compacted_in_the_meantime_is_not_doubled(world: LakeWorld) -> None:
    published(world, "home-1", "home-2")
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
    published(world, "home-1")
    world.close(world.plan(), None)  # the lake was away
    run = world.plan()
    changes = {TABLE: change([written(world.folder, TABLE, "three", [("home-3", 3)])])}
    world.close(run, manifest(world.folder, TABLE, "three", changes), is_whole=True)  # of a different level of it
    assert not world.publish()
    assert world.rows() == [("home-1", 1)]


def test_a_table_that_was_deleted_is_written_whole(world: LakeWorld) -> None:
    published(world, "home-1")
    (world.folder / TABLE).rename(world.folder / "elsewhere")
    assert not world.publish()  # the files of its run are gone too
    assert not (world.folder / TABLE / "_delta_log").exists()
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
    (said,) = publish(world.store, world.lake, ONE_LEVEL).values()
    assert re.match(r"LAKE: gold/\w+ is a table that this app did not make: move it", said or "")
    assert pl.read_delta(str(world.folder / TABLE)).rows() == [(1,)]


def test_a_table_with_the_columns_of_an_older_declaration_gets_the_new_ones_with_the_next_whole_run(
    world: LakeWorld,
) -> None:
    published(world, "home-1")
    for name, is_whole in (("new", False), ("whole", True)):
        run = world.plan()
        added = written(world.folder, TABLE, name, [(name, 2)])
        wanted = replace(change([added], is_whole=is_whole), columns={**COLUMNS, "active": "bigint"})
        world.close(run, manifest(world.folder, TABLE, name, {TABLE: wanted}), is_whole=is_whole)
        assert world.publish() is is_whole
    assert pl.read_delta(str(world.folder / TABLE)).select("home_id", "active").rows() == [("whole", None)]


def test_a_lake_that_is_ahead_of_a_restored_database_is_written_whole(world: LakeWorld, tmp_path: Path) -> None:
    published(world, "home-1", "home-2", "home-3")
    (tmp_path / "restored").mkdir()
    restored = LakeWorld(tmp_path / "restored")
    restored.folder, restored.lake = world.folder, world.lake
    run = restored.plan()
    assert restored.state().cut is None
    changes = {TABLE: change([written(world.folder, TABLE, "restored", [("home-7", 1)])], is_whole=True)}
    restored.close(run, manifest(world.folder, TABLE, "restored", changes), is_whole=True)
    assert restored.publish()
    assert (restored.rows(), restored.state().cut) == ([("home-7", 1)], run.cut_to)


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


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def blanked(path: Path) -> None:
    path.write_bytes(b"\n")


def without_action(path: Path) -> None:
    path.write_bytes(b"{}\n")


def garbled(path: Path) -> None:
    path.write_bytes(b"\xff\x00 garbage")


def entry(number: int) -> str:
    return f"_delta_log/{number:020}.json"


@pytest.mark.parametrize(
    ("harm", "place"),
    [
        (garbled, entry(0)),
        (garbled, entry(1)),
        (garbled, entry(2)),
        (emptied, entry(0)),
        (emptied, entry(1)),
        (blanked, entry(1)),
        (without_action, entry(1)),
    ],
)
def test_a_damaged_log_stops_no_run_its_job_is_told_of_no_such_table_and_the_table_is_stale_since_then(
    world: LakeWorld, harm: Callable[[Path], None], place: str
) -> None:
    engine, orders = FakeEngine(), Pipelines(world.store.database)
    own = Aggregation(world.store, engine, world.lake, world.clock.now, RunLimits())
    published(world, "home-1", "home-2", "home-3")
    assert (aggregate(own, ONE_LEVEL).fault, orders.read_stale()) == (None, {})
    harm(world.folder / TABLE / place)
    began = world.clock.now()
    for number in (4, 5):
        ingest(world.store, [reading()])
        report = aggregate(own, ONE_LEVEL)
        assert report.run is not None
        assert (report.did[-1], report.run.number, report.published) == ("submitted", number, False)
        assert (report.fault or "").endswith("`python -m handlers.commands remake-table` makes it anew")
        assert orders.read_stale() == {TABLE: began}
        world.finish(report.run)
        world.clock.advance(600)
    (_, lake, _, state) = engine.requests[-1].arguments[-4:]
    told = (Path(lake) / state).read_text()
    assert told == "{}" or (place == entry(1) and harm is not garbled)  # of the latter a reader notices nothing
    aggregate(own, ONE_LEVEL)
    assert world.store.read_standing(ONE_LEVEL).cut == '{"1/0":5}'
    with pytest.raises(LakeDamaged, match="remake-table"):  # a checkpoint would hide the damage
        maintain_job(own, ONE_LEVEL)


def test_damage_that_leaves_the_log_whole_is_found_each_night_and_a_garbled_manifest_is_no_manifest(
    world: LakeWorld,
) -> None:
    own = Aggregation(world.store, FakeEngine(), world.lake, world.clock.now, RunLimits())
    orders = Pipelines(world.store.database)
    published(world, "home-1", "home-2")
    (first, _) = world.state().files
    content = (world.folder / TABLE / first.path).read_bytes()
    garbled(world.folder / TABLE / first.path)
    began = world.clock.now()
    for _ in range(2):
        with pytest.raises(LakeDamaged, match=rf"{TABLE}: files are gone or changed: .* remake-table"):
            maintain_job(own, ONE_LEVEL)
        assert orders.read_stale() == {f"{TABLE} (files)": began}
        aggregate(own, ONE_LEVEL)
        world.clock.advance(86_400)
    (world.folder / TABLE / first.path).write_bytes(content)
    assert "2 compacted" in maintain_job(own, ONE_LEVEL)
    assert orders.read_stale() == {}
    run = world.run("home-3")
    (place,) = (world.folder / TABLE / run.run_id / MANIFEST).glob("*.txt")
    garbled(place)
    ingest(world.store, [reading()])
    report = aggregate(own, ONE_LEVEL)
    assert (report.did, report.published, report.fault) == (("submitted",), False, None)
    assert list(orders.read_stale()) == [TABLE]


def staged(rows: LakeWorld, staging_id: str, removed: list[str] | None = None) -> tuple[AggregationRun, Staged]:
    run = rows.store.read_standing(JOB).open_run or rows.plan()
    changes = {
        REMOVED: change([written(rows.folder, REMOVED, staging_id, [(f"gone-{staging_id}", run.number)])]),
        ROWS: change([written(rows.folder, ROWS, staging_id, [(staging_id, run.number)])], removed or []),
    }
    manifest(rows.folder, REMOVED, staging_id, changes)
    finish(rows.database, staging_id, run.run_id, rows.clock.now())
    found = rows.store.read_staged(run.run_id)
    assert found is not None
    return run, found


def last_run(rows: LakeWorld) -> AggregationRun:
    return rows.store.read_runs(JOB, 10, 1)[0]


def both(rows: LakeWorld) -> tuple[list[str], list[str]]:
    return tuple([home for home, _ in rows_in(rows.folder, table)] for table in (ROWS, REMOVED))  # type: ignore[return-value]


def test_a_run_of_rows_is_committed_in_both_tables_and_closed_once(rows: LakeWorld) -> None:
    run, given = staged(rows, "a")
    with pytest.raises(StagingRefused, match="LAKE is no longer set"):
        commit_rows(rows.store, None, run, given, EPOCH)
    assert commit_rows(rows.store, rows.lake, run, given, EPOCH) == "committed"
    closed = last_run(rows)
    assert (closed.status, closed.windows, rows.store.read_standing(JOB).cut) == ("committed", 0, run.cut_to)
    assert rows.state().cut == run.cut_to
    for late in (run, closed):  # a tick that comes late
        assert commit_rows(rows.store, rows.lake, late, given, EPOCH) == HELD
    assert both(rows) == (["a"], ["gone-a"])


@pytest.mark.parametrize("tables", [0, 1, 2])
def test_a_tick_that_dies_after_any_step_is_continued_and_no_row_is_there_twice(rows: LakeWorld, tables: int) -> None:
    run, given = staged(rows, "a")
    assert rows.store.mark_lake(run)
    assert not rows.store.mark_lake(run)  # a tick at the same time
    for table in tables_of(JOB)[:tables]:
        added = written(rows.folder, table, "a", [("a" if table == ROWS else "gone-a", run.number)])
        standing = rows.lake.read_table(table, JOB)
        assert rows.lake.commit(table, standing, change([added]), Mark(JOB, run.number, {}))
    assert not rows.store.fail_run(run, "why", EPOCH)  # it may be in the lake
    assert rows.store.read_standing(JOB).open_run is not None
    assert commit_rows(rows.store, rows.lake, last_run(rows), given, EPOCH) == "committed"
    assert both(rows) == (["a"], ["gone-a"])


def test_a_lake_that_is_away_leaves_the_run_marked_and_open(rows: LakeWorld) -> None:
    run, given = staged(rows, "a")
    away = rows.folder.rename(rows.folder.with_name("away"))
    rows.folder.touch()  # a file where the folder has to be
    with pytest.raises(LakeUnreachable):
        commit_rows(rows.store, rows.lake, run, given, EPOCH)
    assert not rows.store.fail_run(run, "why", EPOCH)
    rows.folder.unlink()
    away.rename(rows.folder)
    assert commit_rows(rows.store, rows.lake, last_run(rows), given, EPOCH) == "committed"
    assert both(rows) == (["a"], ["gone-a"])


def test_a_result_that_rewrote_a_compacted_file_is_refused_and_the_next_attempt_is_committed(rows: LakeWorld) -> None:
    for name in ("a", "b"):
        assert commit_rows(rows.store, rows.lake, *staged(rows, name), EPOCH) == "committed"
    run, given = staged(rows, "c", removed=[one.path for one in rows.state().files])
    assert rows.lake.maintain(ROWS)["compacted"] == 2
    with pytest.raises(StagingRefused, match=r"its files no longer fit silver/sensor_reading"):
        commit_rows(rows.store, rows.lake, run, given, EPOCH)
    assert both(rows) == (["a", "b"], ["gone-a", "gone-b", "gone-c"])
    assert rows.store.discard_staged(given)
    _, again = staged(rows, "d", removed=[one.path for one in rows.state().files])
    assert commit_rows(rows.store, rows.lake, last_run(rows), again, EPOCH) == "committed"
    assert both(rows) == (["d"], ["gone-a", "gone-b", "gone-c"])


def test_each_source_of_aggregates_has_one_job_and_an_event_date() -> None:
    aggregates = load_aggregates()
    assert {rows.job for rows in lake_rows(aggregates)} == {"rows.flight_change", JOB}
    rows = rows_of_job(JOB, aggregates)
    assert (rows.source, rows.at, rows.table, rows.removed) == (SensorReading, "observed_at", ROWS, REMOVED)
    assert (is_rows_job(JOB), is_rows_job(HOME_ACTIVITY)) == (True, False)
    with pytest.raises(InvalidTransform, match=r"no aggregate reads the rows of the job rows\.nothing"):
        rows_of_job("rows.nothing", aggregates)
