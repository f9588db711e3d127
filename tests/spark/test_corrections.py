"""Rows that come to old positions: letters that are resolved, and replays that take rows away."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.fakes.replaying import order
from tests.spark.readings import NOON, gas, switch
from tests.spark.stream import Stream, as_they_are, fewer, gas_event, motion_event, moved, refusing, registered, twice
from tests.spark.world import Fate, World


def test_letters_count_once_in_the_run_of_their_batch_or_in_the_next_one_if_that_run_is_open(world: World) -> None:
    for at in (0, 2):
        world.commit([switch()], letters=1)
        world.correct("retry", {at + 1: gas()}, (0, at + 1))
    world.commit([switch()], letters=1)
    world.engine.fates = [Fate.KILLED_BEFORE]
    world.tick()
    world.correct("retry", {5: gas()}, (5, 5))
    world.settle()
    second, first = world.store.read_runs(HOME_ACTIVITY, 10, 2)
    assert (first.readings, second.readings) == (5, 1)
    world.prove()


@pytest.fixture
def stream(world: World) -> Stream:
    made = Stream(world)
    made.take(registered("home-1"), registered("home-9"), *(gas_event("home-1", ppm) for ppm in (900, 100, 30)))
    made.take(motion_event("home-1"), motion_event("home-9", NOON - timedelta(days=8)), gas_event("home-9", 7))
    made.take(registered("home-3"), gas_event("home-3", 60), motion_event("home-3"), of="4")
    return made


def test_letters_that_the_keeper_resolves_after_their_window_was_aggregated_are_added_to_it(stream: Stream) -> None:
    """The retry has a range with a reading of a different home, which counts already."""
    world, late = stream.world, gas_event("home-2", 80, NOON - timedelta(days=9))
    stream.take(gas_event("home-2", 5), motion_event("home-3"), late, of="4")
    world.settle()
    stream.take(registered("home-2"), gas_event("home-2", 6), of="4")
    world.settle()
    assert sum(one.resolved for one in stream.retry()) == 2
    world.settle()
    assert [(one.readings, one.ppm_hundredths) for one in world.activity() if one.home_id == "home-2"] == [
        (1, 8_000),
        (2, 1_100),
    ]
    assert world.store.read_runs(HOME_ACTIVITY, 10, 1)[0].readings == 2
    world.prove()


def test_a_replay_that_changes_rows_recomputes_the_windows_that_won_and_lost_them(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = stream.world
    world.settle()
    for number, mended in enumerate((moved, fewer, twice, refusing)):
        before = world.activity()
        stream.deploy(mended, f"mended/{number}")
        assert stream.replay().counts.rows_retracted > 0
        stream.take(gas_event("home-1", 950), motion_event("home-9"))
        world.engine.fates = [Fate.KILLED_DURING, Fate.WELL] if mended is moved else []
        monkeypatch.setattr("jobs.retraction.SEEKS", 1 if mended is fewer else 100_000)  # too many to seek
        world.settle()
        assert world.engine.fates == []
        assert world.activity() != before
        world.prove()


def test_a_dry_run_of_a_replay_is_nothing_new_and_a_window_that_lost_its_last_reading_is_gone(stream: Stream) -> None:
    world = stream.world
    world.settle()
    stream.deploy(moved, "mended/1")
    assert stream.replay(order(dry_run=True)).counts.events_changed > 0
    assert world.tick().did == ("has nothing new",)
    world.prove()
    stream.deploy(lambda reading: [], "mended/2")
    stream.replay(order(["4"]))
    world.settle()
    assert "home-3" not in {one.home_id for one in world.activity()}
    world.prove()


def test_a_replay_of_readings_that_no_run_has_seen_yet_counts_them_once(stream: Stream) -> None:
    stream.deploy(twice, "mended/4")
    stream.replay()
    stream.world.settle()
    stream.world.prove()


def test_what_a_replay_made_a_letter_and_a_retry_made_a_row_again_counts_once(stream: Stream) -> None:
    world = stream.world
    world.settle()
    stream.deploy(refusing, "mended/6")
    assert stream.replay().counts.letters_added == 6
    world.settle()
    stream.deploy(moved, "mended/7")
    assert sum(one.resolved for one in stream.retry()) == 3
    world.settle()
    world.prove()
    stream.deploy(as_they_are, "mended/8")
    assert stream.replay().counts.letters_resolved == 3
    world.settle()
    assert len(world.activity()) == 6
    world.prove()


def test_a_history_that_was_retried_and_replayed_before_its_first_run_ends_with_the_rebuild(world: World) -> None:
    """The slices of the history are walked in steps, and read later than they were written."""
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


@pytest.mark.parametrize("seed", [1, 2])
def test_any_order_of_batches_retries_replays_and_fates_of_jobs_ends_with_the_rebuild(world: World, seed: int) -> None:
    print(f"seed {seed}")
    chance, stream = random.Random(seed), Stream(world)
    for partition in "04":  # a replay of a partition without events is refused
        stream.take(registered("home-0"), of=partition)
    meanwhile: list[Callable[[], object]] = [stream.replay, stream.retry, lambda: stream.replay(order(["0"]))]
    for turn in range(6):
        homes = [f"home-{chance.randrange(5)}" for _ in range(10)]
        at = NOON + timedelta(minutes=chance.choice([0, 0, 15, chance.randrange(-400, 400)]))
        parts = [0, 5, 60] if turn % 2 else range(100)  # few values, so that many tie
        bodies = [gas_event(home, chance.choice(parts), at) for home in homes[:6]] + list(map(motion_event, homes[6:]))
        stream.take(*bodies, *([registered(homes[0])] if turn % 3 == 0 else []), of=chance.choice("04"))
        stream.deploy(chance.choice([as_they_are, moved, fewer, twice, refusing]), f"mended/{turn}")
        if chance.random() < 0.4:
            stream.retry()
        if chance.random() < 0.5:
            stream.replay()
        if chance.random() < 0.6:
            world.engine.meanwhile = chance.choice(meanwhile)
        world.engine.fates = [chance.choice(list(Fate))]
        for _ in range(chance.randrange(3)):
            world.tick(timedelta(minutes=chance.choice([1, 11])))
    world.settle()
    world.prove_by_rebuild()
