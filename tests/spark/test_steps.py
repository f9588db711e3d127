"""A history that is walked in steps: it is read later than it was written, and its sums are those of a rebuild."""

from dataclasses import replace

from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.spark.stream import Stream, as_they_are, gas_event, motion_event, moved, refusing, registered
from tests.spark.world import Fate, World


def test_a_history_that_was_retried_and_replayed_before_its_first_run_ends_with_the_rebuild(world: World) -> None:
    stream = Stream(world)
    stream.deploy(refusing, "test/1")
    stream.take(registered("home-1"), *(gas_event("home-1", ppm) for ppm in (5, 60, 7)), motion_event("home-1"))
    stream.take(registered("home-2"), *(gas_event("home-2", ppm) for ppm in (8, 9)), of="1")
    stream.deploy(as_they_are, "test/2")
    stream.retry()
    stream.take(gas_event("home-1", 30), gas_event("home-1", 31))
    stream.deploy(moved, "test/3")
    stream.replay()
    stream.take(gas_event("home-2", 32), of="1")
    world.own = replace(world.own, limits=replace(world.own.limits, rows=2))
    world.engine.fates = [Fate.WELL, Fate.KILLED_DURING]
    world.settle()
    runs = world.store.read_runs(HOME_ACTIVITY, 100, 100)
    assert len(runs) > 3
    assert {run.status for run in runs} == {"committed"}
    world.prove_by_rebuild()
