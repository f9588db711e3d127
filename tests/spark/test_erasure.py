"""An erasure takes a home out of the rows in the lake, and has the windows of its days computed again."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import polars as pl

from core.aggregation.orders import Pipelines
from core.erasure.erasure import erased_by
from core.erasure.store import Erasures
from core.erasure.task import ErasedRows, ErasureKind, ErasureShape, erase_rows
from core.errors import ErasureWaits
from core.store.database import OneStream, read_time
from core.tasks.run import open_parts, open_task, work_on
from core.tasks.statuses import TaskMove
from core.tasks.task import Task, TaskOrder
from core.transforms.loading import find_aggregate
from examples.home_security.transform import SensorReading
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.fakes.builders import STREAM, stamps
from tests.fakes.erasing import KEY
from tests.fakes.plain_transform import ROW_CLASSES
from tests.spark.readings import NOON
from tests.spark.stream import Stream, as_they_are, fewer, gas_event, moved, registered
from tests.spark.world import World

WITH_LAKE = True

JOB = "rows.sensor_reading"
GONE = "home-to-forget"


def settle(world: World) -> None:
    for job in (JOB, HOME_ACTIVITY):
        world.settle(job=job)


def opened(world: World, *subjects: str) -> tuple[Task, ErasureKind]:
    """Open an erasure."""
    database, clock = world.store.database, stamps(int(world.clock.now().timestamp()), world.clock)
    stream = OneStream(database, STREAM)
    store = Erasures(stream, ROW_CLASSES, (find_aggregate(HOME_ACTIVITY),))

    def in_lake(erased: ErasedRows) -> tuple[str, ...]:
        return erase_rows(erased, world.own, Pipelines(database))

    kind = ErasureKind(STREAM, store, KEY, in_lake, clock, lambda: read_time(database))
    asked = ErasureShape(subjects=list(subjects), reason="a request came", dry_run=False)
    request = kind.request(TaskOrder(clock.new_id(), 1, "officer", asked.reason, clock.now()), asked)
    return open_task(request, kind.tasks, kind.opening(request)), kind


def erase(world: World, *subjects: str) -> Task:
    """Erase subjects, while the pipeline goes on."""
    task, kind = opened(world, *subjects)
    for _ in range(100):
        if not open_parts(task.task_id, kind):
            break
        try:
            work_on(task.task_id, None, kind, world.clock.now() + timedelta(hours=9))
        except ErasureWaits:
            for job in (JOB, HOME_ACTIVITY):
                world.tick(job=job)
    found = kind.tasks.find(task.task_id)
    assert found is not None
    return found


def of_home(folder: Path, home: str) -> Iterator[str]:
    """Give the tables of the lake that have rows of a home, as polars reads them."""
    for log in sorted(folder.rglob("_delta_log")):
        found = pl.read_delta(str(log.parent))
        if "home_id" in found.columns and found.filter(pl.col("home_id") == home).height:
            yield log.parent.relative_to(folder).as_posix()


def test_a_home_is_gone_from_the_lake_and_from_the_aggregate_also_where_the_pipeline_has_not_come_yet(
    world: World, folder: Path
) -> None:
    world.own = replace(world.own, jobs=(HOME_ACTIVITY, JOB))
    stream = Stream(world)
    stream.deploy(as_they_are, "test/1")
    stream.take(registered(GONE), *(gas_event(GONE, ppm) for ppm in (5, 60, 7)))
    stream.take(registered("home-1"), *(gas_event("home-1", ppm) for ppm in (40, 80)), of="1")
    settle(world)
    stream.deploy(fewer, "test/2")
    stream.replay()
    settle(world)
    stream.deploy(moved, "test/3")
    stream.replay()
    stream.take(gas_event(GONE, 50), of="1")
    assert "silver/sensor_reading" in set(of_home(folder, GONE))
    assert any(name.startswith("gold/") for name in of_home(folder, GONE))
    task = erase(world, GONE)
    assert (task.status, task.fault) == ("done", None)
    assert any("home_activity: the windows of" in one for one in erased_by(task).notes)
    settle(world)
    assert list(of_home(folder, GONE)) == []
    assert {one.home_id for one in world.activity()} == {"home-1"}
    world.prove()
    stream.replay()
    settle(world)
    world.prove()


def a_day_later(reading: SensorReading) -> Iterable[SensorReading]:
    yield replace(reading, observed_at=reading.observed_at + timedelta(days=1))


def test_windows_of_a_row_that_moved_to_another_day_and_of_an_erasure_that_was_cancelled_go_too(
    world: World, folder: Path
) -> None:
    world.own = replace(world.own, jobs=(HOME_ACTIVITY, JOB))
    stream = Stream(world)
    stream.deploy(as_they_are, "test/1")
    stream.take(registered(GONE), registered("home-1"), gas_event(GONE, 60, NOON - timedelta(days=5)))
    stream.take(gas_event(GONE, 50), gas_event("home-1", 80), of="1")
    settle(world)
    task, kind = opened(world, GONE)
    work_on(task.task_id, "0", kind, world.clock.now() - timedelta(seconds=1))  # one piece
    kind.tasks.move(TaskMove(task.task_id, "cancel", "officer", "a mistake", world.clock.now()))
    kind.over(task.task_id)
    world.clock.advance(60)
    stream.deploy(a_day_later, "test/2")
    stream.replay()
    task = erase(world, GONE)
    assert (task.status, task.fault) == ("done", None)
    settle(world)
    assert list(of_home(folder, GONE)) == []
    assert {one.home_id for one in world.activity()} == {"home-1"}
    world.prove()
