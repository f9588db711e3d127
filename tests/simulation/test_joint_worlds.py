"""In every small world in which all of it goes on at once the books hold at every step: repeat one with `-k seed17`."""

from collections import Counter
from pathlib import Path

import pytest

from tests.fakes.engines import SqliteEngine
from tests.fakes.kept import Engine
from tests.fakes.memory_store import MemoryStore
from tests.simulation.joint_world import JointWorld
from tests.simulation.seeds import BLOCK, seeds
from tests.simulation.test_replays import (
    assert_nothing_is_lost_of_what_was_written,
    assert_one_pass,
    assert_replays_add_up,
)


def run(seed: int, engine: Engine) -> JointWorld:
    store = engine.open()
    world = JointWorld(seed, store)
    world.books.watch(engine)
    try:
        world.run()
        assert_one_pass(world, engine)
        assert_nothing_is_lost_of_what_was_written(world, engine)
        assert_replays_add_up(world, engine)
        assert_commits_count_on(world, engine)
        assert world.told <= {
            (one.partition_id, one.sequence_number) for one in engine.attempts() if one.kind == "discard"
        }
        assert not [gap for gap in engine.gaps() if gap.status == "open"]
    except BaseException as fault:
        fault.add_note(f"the seed of this world is {seed}")
        raise
    finally:
        store.close()
    return world


def assert_commits_count_on(world: JointWorld, engine: Engine) -> None:
    """Batches, retries and replays of a partition share one count without a hole, and all of its log is accounted."""
    kinds = [*engine.ledger(), *engine.retries(), *engine.replays()]
    books = world.record.read_ledgers()
    assert [one.accounted for one in books] == [len(log) for log in world.logs.values()]
    assert [one.first for one in books] == list(world.begins.values())
    for id in world.logs:
        numbers = sorted(one.commit_number for one in kinds if one.partition_id == id)
        assert numbers == list(range(1, len(numbers) + 1))
        assert all(one.first <= one.last for one in kinds)
    retried = sum(one.written + one.filtered for one in engine.retries())
    assert retried == sum(one.kind == "retry" and one.status == "resolved" for one in engine.attempts())


@pytest.mark.parametrize("first", seeds(range(0, 200, BLOCK), 0), ids="seeds from {}".format)
def test_a_joint_world_in_memory_keeps_its_books(first: int) -> None:
    for seed in range(first, first + BLOCK):
        run(seed, MemoryStore())


@pytest.mark.parametrize("seed", seeds(range(3_000, 3_010), 2), ids="seed{}".format)
def test_a_joint_world_over_a_database_keeps_its_books(seed: int, tmp_path: Path) -> None:
    run(seed, SqliteEngine(tmp_path / "store.db"))


@pytest.mark.slow
def test_the_joint_worlds_do_meet_trouble() -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        engine = MemoryStore()
        world = run(seed, engine)
        seen.update(world.seen)
        seen["retried"] += world.retried
        seen["absent"] += sum(kept.absent for kept in engine.ledger())
        seen["replays"] += len(engine.replays())
    for trouble in ("healed", "silent", "deaths", "lost claims", "retried", "absent", "replays"):
        assert seen[trouble] > 20, (trouble, seen)
