"""The windows of a subject go with its rows, whatever happened to the rows before."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest
from deltalake import write_deltalake

from core.aggregation.orders import Pipelines
from core.aggregation.runs import AggregationRun, Days, Order, planned_run
from core.aggregation.tick import Aggregation, aggregate
from core.erasure.erasure import erased_by
from core.erasure.task import ErasedRows, erase_rows, erase_windows
from core.errors import ErasureWaits
from core.model.events import Event
from core.model.rows import References, Row
from core.remote.spark.delta import DeltaLake
from core.remote.spark.lake_storage import FolderStorage
from core.tasks.run import work_on
from core.tasks.statuses import TaskMove
from core.tasks.task import Task
from core.transforms.loading import find_aggregate
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.aggregation_engines import HOME_ACTIVITY, SqliteAggregation, finish, stage
from tests.fakes.builders import EPOCH
from tests.fakes.engines import SqliteEngine
from tests.fakes.erasing import ErasingWorld, events_of
from tests.fakes.plain_transform import transform
from tests.fakes.replaying import changed
from tests.fakes.rollups import with_levels
from tests.fakes.runs import FAR, OF, window
from tests.fakes.ticks import FakeEngine

GONE, STAYS, DAY, FIRST = "home-7", "home-70", timedelta(days=1), date(2026, 1, 1)
OF_ALL = replace(OF, keys=tuple(one for one in OF.keys if one.name != "home_id"))  # its windows add up all homes


@dataclass
class Aggregated(ErasingWorld):
    """A world with windows, whose engine stages by hand. Without `has_engine`, the app has SPARK_ENGINE=none."""

    database: SqliteAggregation = None  # type: ignore[assignment]
    has_engine: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.aggregation = Aggregation(self.store, FakeEngine(), None, self.clock.now, jobs=(HOME_ACTIVITY,))  # type: ignore[arg-type]

    def _erase_lake(self, erased: ErasedRows) -> tuple[str, ...]:
        self.asked_of_lake.append(erased)
        if self.has_engine:
            return erase_rows(erased, self.aggregation, Pipelines(self.store.database))
        return erase_windows(erased, self.aggregates, self.aggregation.store, self.aggregation.lake)

    def run(self, *windows: HomeActivity, whole: bool = False) -> AggregationRun:
        """Tick until a run is committed whose job stages these windows. Return the run."""
        self.clock.advance(60)
        aggregate(self.aggregation, HOME_ACTIVITY)
        run = self.aggregation.store.read_standing(HOME_ACTIVITY).last_run
        assert run is not None
        stage(self.database, run.run_id, run.run_id, with_levels(windows), whole)
        finish(self.database, run.run_id, run.run_id, self.clock.now())
        aggregate(self.aggregation, HOME_ACTIVITY)
        return run

    def windows(self, home: str) -> list[object]:
        levels: list[type[HomeActivity]] = [one.of for one in OF.levels]
        found = (self.aggregation.store.read_windows(of, home, EPOCH - DAY, FAR) for of in levels)
        return [each for level in found for each in level]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Aggregated]:
    database = SqliteAggregation(SqliteEngine(tmp_path / "store.db"))
    logs = {"0": events_of(f"reading {GONE}", f"reading {STAYS}")}
    made = Aggregated(database.open(), logs, database=database)
    yield made
    made.store.close()


def on(day: int, home: str = GONE, readings: int = 2) -> HomeActivity:
    return window(home, 24 * 60 * day, readings)


def a_day_later(event: Event, references: References) -> Iterator[Row]:
    for row in transform(event, references):
        yield replace(row, observed_at=row.observed_at + DAY)  # type: ignore[attr-defined]


def test_the_days_of_a_repair_are_all_on_which_the_subject_has_windows_or_had_rows_before_a_replay(
    world: Aggregated,
) -> None:
    """The replay moved the rows to the next day, and a window of a former one stayed on the fourth day."""
    world.run(on(0), on(4), on(0, STAYS), on(6, STAYS))
    world.transform = changed(a_day_later)
    world.replay()
    with pytest.raises(ErasureWaits, match="home_activity"):
        task = world.erase(GONE)
    assert world.asked_of_lake[0].days == {HOME_ACTIVITY: (FIRST, FIRST + DAY)}
    run = world.run(on(0, readings=0), on(4, readings=0), on(0, STAYS, 1), whole=True)
    assert (run.kind, run.days) == ("repair", Days(FIRST, FIRST + 4 * DAY))
    (task,) = world.erasing.tasks.read(1, 1, kind="erasure")
    task = world.drive(task)
    assert (task.status, world.windows(GONE), len(world.windows(STAYS))) == ("done", [], 2 * len(OF.levels))
    assert "home_activity: the windows of 2026-01-01 to 2026-01-05 were computed again" in erased_by(task).notes


def test_an_erasure_orders_its_repair_while_the_next_run_is_open_as_it_always_is_under_traffic(
    world: Aggregated,
) -> None:
    world.run(on(0))
    world.replay()  # so there is a further commit
    standing, later = world.aggregation.store.read_standing(HOME_ACTIVITY), world.clock.now() + timedelta(hours=1)
    run = planned_run(HOME_ACTIVITY, standing, "fake", later)
    assert run is not None and world.aggregation.store.open_run(run)
    with pytest.raises(ErasureWaits, match="computed again: home_activity"):
        world.erase(GONE)
    standing = world.aggregation.store.read_standing(HOME_ACTIVITY)
    assert standing.open_run == run
    assert standing.order is not None and standing.order.kind == "repair"


def test_an_erasure_waits_for_the_stale_tables_of_the_lake(world: Aggregated) -> None:
    world.run(on(0))
    note_stale = world.aggregation.store.note_stale
    note_stale(HOME_ACTIVITY, {"gold/home_activity": "2026-01-01T00:00:00.000000Z"})
    with pytest.raises(ErasureWaits, match="computed again: home_activity"):  # which may heal the table
        world.erase(GONE)
    assert world.run(on(0, readings=0), whole=True).kind == "repair"
    (task,) = world.erasing.tasks.read(1, 1, kind="erasure")
    with pytest.raises(ErasureWaits, match="tables of the lake are stale: gold/home_activity"):
        world.drive(task)
    note_stale(HOME_ACTIVITY, {})
    assert world.drive(task).status == "done"


def cancelled(world: Aggregated, *subjects: str) -> Task:
    """Erase the first piece of some subjects, and no more."""
    task, world.numbers = world.ask_erasure(*subjects), 1
    work_on(task.task_id, None, world.erasing, world.clock.now() - timedelta(seconds=1))
    world.erasing.tasks.move(TaskMove(task.task_id, "cancel", "officer", "a mistake", world.own.now()))
    world.erasing.over(task.task_id)
    world.numbers = 4
    world.clock.advance(60)
    return world.task(task)


def test_what_an_erasure_that_was_cancelled_had_erased_is_repaired_by_the_next_one(world: Aggregated) -> None:
    """The days are those of the subject's windows, or of the first erasure where windows add up several subjects."""
    world.run(on(0))
    world.aggregates = (OF_ALL,)
    assert erased_by(cancelled(world, GONE)).row_count == 1
    with pytest.raises(ErasureWaits):
        world.erase(GONE)
    assert world.asked_of_lake[0].days == {HOME_ACTIVITY: (FIRST, FIRST)}
    world.aggregates = (find_aggregate(HOME_ACTIVITY),)
    run = world.run(on(0, readings=0), whole=True)
    assert (run.kind, run.days) == ("repair", Days(FIRST, FIRST))
    (task,) = world.erasing.tasks.read(1, 1, kind="erasure")
    assert (world.drive(task).status, world.windows(GONE)) == ("done", [])
    world.aggregates = (OF_ALL,)
    assert world.erase("nobody").status == "done"
    assert world.asked_of_lake[-1].days == {}


ROWS, GOLD = "silver/sensor_reading", "gold/home_activity"


def homes_in(lake: DeltaLake, table: str) -> list[str]:
    return sorted(pl.read_delta(f"{lake.location}/{table}")["home_id"])


def test_without_an_engine_windows_and_rows_of_the_subject_are_deleted_and_the_report_tells_what_stays(
    world: Aggregated, tmp_path: Path
) -> None:
    """No job keeps the rows in the lake any more."""
    world.run(on(0), on(3), on(0, STAYS))
    lake = DeltaLake(FolderStorage(tmp_path / "lake"))
    homes = {"home_id": [GONE, STAYS], "stream_id": [1, 1], "partition_id": ["0", "0"], "sequence_number": [0, 1]}
    for table in (ROWS, GOLD):
        write_deltalake(f"{lake.location}/{table}", pl.DataFrame(homes))
    world.aggregation = replace(world.aggregation, lake=lake)
    stays, world.has_engine = world.windows(STAYS), False
    world.replay()  # so there is a further commit, and an open run whose job has staged windows
    run = planned_run(HOME_ACTIVITY, world.aggregation.store.read_standing(HOME_ACTIVITY), "fake", world.clock.now())
    assert run is not None
    assert world.aggregation.store.open_run(run)
    stage(world.database, "open", run.run_id, with_levels([on(5), on(5, STAYS)]))
    task = world.ask_erasure(GONE)
    with pytest.raises(ErasureWaits, match=f"run {run.run_id} of home_activity began before it: set SPARK_ENGINE, or"):
        world.drive(task)
    discard = Order(HOME_ACTIVITY, "discard_run", "somebody", "no engine", world.clock.now(), run.run_id)
    Pipelines(world.store.database).discard_run(discard, run, None)
    task = world.drive(task)
    assert (task.status, world.windows(GONE), world.windows(STAYS)) == ("done", [], stays)
    assert world.database.change("SELECT DISTINCT home_id FROM home_activity_staged") == [(STAYS,)]
    told = "\n".join(erased_by(task).notes)
    assert f"home_activity: {2 * len(OF.levels)} windows were deleted" in told
    assert (homes_in(lake, ROWS), f"lake: 1 rows were deleted from {ROWS}" in told) == ([STAYS], True)
    assert (homes_in(lake, GOLD), f"lake: 1 rows were deleted from {GOLD}" in told) == ([STAYS], True)
    world.aggregates, world.aggregation = (OF_ALL,), replace(world.aggregation, lake=None)
    told = "\n".join(erased_by(world.erase(STAYS)).notes)
    assert "home_activity: windows of 2026-01-01 to 2026-01-01 may count the subjects until a repair" in told
    assert "to do: if home_activity is also kept in a lake" in told
    world.aggregation = replace(world.aggregation, lake=lake)
    world.has_engine = True
    for table in (ROWS, GOLD):
        write_deltalake(f"{lake.location}/{table}", pl.DataFrame(homes), mode="overwrite")
    assert world.erase(GONE).status == "done"
    assert (homes_in(lake, ROWS), homes_in(lake, GOLD)) == ([STAYS], [STAYS])
