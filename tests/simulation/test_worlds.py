"""In every small world each event ends with one outcome: repeat one with `pytest -k seed17`."""

from pathlib import Path

import pytest

from tests.fakes.engines import MemoryEngine, SqliteEngine
from tests.fakes.kept import Engine
from tests.fakes.one_pass import assert_equals_one_pass
from tests.simulation.world import World


def run(seed: int, engine: Engine) -> None:
    store = engine.open()
    world = World(seed, store)
    world.run()
    assert_equals_one_pass(engine, world.logs)
    books = store.read_ledgers()
    assert [one.partition.partition_id for one in books] == list(world.logs)
    assert all(one.balanced for one in books)
    assert [one.accounted for one in books] == [len(log) for log in world.logs.values()]
    store.close()


@pytest.mark.parametrize("seed", range(200), ids="seed{}".format)
def test_a_world_in_memory_ends_as_if_nothing_had_failed(seed: int) -> None:
    run(seed, MemoryEngine())


@pytest.mark.parametrize("seed", range(1_000, 1_030), ids="seed{}".format)
def test_a_world_over_a_database_ends_as_if_nothing_had_failed(seed: int, tmp_path: Path) -> None:
    run(seed, SqliteEngine(tmp_path / "store.db"))


def test_the_same_seed_is_the_same_world() -> None:
    engines = [MemoryEngine(), MemoryEngine()]
    for engine in engines:
        World(7, engine.open()).run()
    assert engines[0].ledger() == engines[1].ledger() != []


def test_the_worlds_do_meet_trouble() -> None:
    redelivered = 0
    for seed in range(20):
        engine = MemoryEngine()
        world = World(seed, engine.open())
        world.run()
        redelivered += sum(kept.commit_number > 1 for kept in engine.ledger())
    assert redelivered > 100
