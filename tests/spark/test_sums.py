"""Sums are exact whatever their size: a window beyond 64 bits ends its run by name, and is never stored."""

from datetime import timedelta

import pytest

from core.aggregation.orders import Pipelines
from core.aggregation.runs import Days, Order, overflow_text
from core.model.aggregates import aggregate_table
from examples.home_security.aggregates.home_activity import HomeActivity
from examples.home_security.transform import SensorReading
from jobs.rebuild_aggregate import rebuild
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.spark.readings import NOON, gas, switch
from tests.spark.repairing import order
from tests.spark.world import World

OF = aggregate_table(HomeActivity)
HALF = 2**62 // 100  # parts per million: the measures hold hundredths
QUARTER = timedelta(minutes=15)


def overflow(level: str, begin: str = "2026-02-10T12:00:00Z", measure: str = "ppm_hundredths") -> str:
    return overflow_text(level, measure, begin)


def stopped(world: World) -> str:
    """Tick until the job is paused. Return the fault of its last run."""
    for _ in range(4):
        if "is paused" in world.tick().did:
            break
    standing = world.store.read_standing(HOME_ACTIVITY)
    assert standing.last_run is not None
    assert standing.pause is not None
    assert standing.last_run.status == "failed"
    assert standing.pause.reason == standing.last_run.failure
    return standing.pause.reason.partition(": change the measure")[0]


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        pytest.param([gas(ppm=HALF), gas(ppm=HALF), gas(ppm=HALF), gas("home-2")], overflow("home_activity"), id="sum"),
        pytest.param(
            [gas(ppm=HALF, at=NOON + quarter * QUARTER) for quarter in range(3)],
            overflow("home_activity_hour"),
            id="an hour whose quarters fit",
        ),
        pytest.param(
            [gas(ppm=2 * HALF + 1), gas(ppm=-2 * HALF - 1)],
            overflow("home_activity", measure="least_ppm_hundredths"),
            id="least value",
        ),
    ],
)
def test_a_measure_of_one_run_beyond_64_bits_ends_it_by_name_and_nothing_is_stored(
    world: World, rows: list[SensorReading], fault: str
) -> None:
    world.commit(rows)
    assert stopped(world) == fault
    assert world.activity() == []
    assert world.sqlite.sql("SELECT COUNT(*) FROM home_activity_staged") == [(0,)]


def test_windows_that_fit_alone_and_not_together_end_the_run_of_the_second_and_the_first_stands(world: World) -> None:
    world.commit([gas(ppm=HALF), gas("home-2")])
    world.settle()
    before = world.activity()
    world.prove_by_rebuild()
    world.commit([gas(ppm=HALF), gas(ppm=HALF), gas("home-2")])
    assert stopped(world) == overflow("home_activity")
    assert world.activity() == before


def test_values_that_leave_64_bits_on_the_way_and_come_back_are_summed_exactly(world: World) -> None:
    """All slices of a run together may be far beyond 64 bits."""
    world.commit([gas(f"home-{number}", ppm=2 * HALF) for number in range(300)])
    world.commit([gas("home-1", ppm=HALF), gas("home-1", ppm=-2 * HALF), gas("home-1", ppm=7)])
    world.settle()
    world.prove()


def test_a_replay_takes_rows_from_a_full_window_that_gains_others(world: World) -> None:
    first = world.commit([gas(ppm=HALF), gas(ppm=HALF - 7), switch()])
    world.settle()
    world.remove([first], "0")
    world.commit([gas(ppm=HALF), gas(ppm=5)])
    world.settle()
    world.prove_by_rebuild()


def test_a_job_goes_on_when_the_rows_are_gone_and_a_repair_is_ordered(world: World) -> None:
    """A measure that is gone leaves no such sum either. The failed run stored nothing that a repair must undo."""
    first = world.commit([gas(ppm=HALF), gas(ppm=HALF), gas(ppm=HALF)])
    stopped(world)
    world.remove([first], "0")
    resumed = Order(HOME_ACTIVITY, "resume", "somebody", "the rows are gone", world.clock.now())
    Pipelines(world.store.database).resume(resumed)
    world.clock.advance(3600)
    world.settle()
    world.prove_by_rebuild()
    order(world, "repair", Days(NOON.date(), NOON.date()))
    world.settle()
    world.prove()


def test_a_repair_beyond_64_bits_stops_its_job_too(world: World) -> None:
    world.commit([gas(ppm=HALF), gas(ppm=HALF)])
    world.settle()
    world.sqlite.sql("UPDATE sensor_reading SET ppm = ppm * 2")
    (found,) = rebuild(world.tables, OF).shown
    assert str(400 * HALF) in found
    order(world, "repair")
    assert stopped(world) == overflow("home_activity")
