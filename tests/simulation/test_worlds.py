"""In every small world each event ends with one outcome: repeat one with `pytest -k seed17`."""

from pathlib import Path

import pytest

from tests.fakes.builders import partition
from tests.fakes.engines import SqliteEngine
from tests.fakes.kept import Engine
from tests.fakes.memory_store import MemoryStore
from tests.fakes.one_pass import assert_equals_one_pass
from tests.simulation.seeds import seeds
from tests.simulation.world import World


def run(seed: int, engine: Engine) -> None:
    store = engine.open()
    world = World(seed, store)
    world.run()
    absent = absent_numbers(engine, world)
    assert all(absent[id] <= world.lost[id] for id in world.logs), "only what the hub lost may be absent"
    left = {id: [each for each in log if each.sequence_number not in absent[id]] for id, log in world.logs.items()}
    assert_equals_one_pass(engine, left, absent)
    books = store.read_ledgers()
    assert [one.partition.partition_id for one in books] == list(world.logs)
    assert all(one.balanced for one in books)
    assert [one.first for one in books] == list(world.begins.values())
    assert [one.accounted for one in books] == [len(log) for log in world.logs.values()]
    for id in world.logs:
        store.close_gaps(partition(id))
    assert not [gap for gap in engine.gaps() if gap.status == "open"]
    store.close()


def absent_numbers(engine: Engine, world: World) -> dict[str, set[int]]:
    return {id: set(numbers_of(engine, id, "absent")) for id in world.logs}


def numbers_of(engine: Engine, id: str, status: str) -> list[int]:
    rows = [gap for gap in engine.gaps() if gap.partition_id == id and gap.status == status]
    return [number for gap in rows for number in range(gap.first, gap.last + 1)]


@pytest.mark.parametrize("seed", seeds(range(200), 15), ids="seed{}".format)
def test_a_world_in_memory_ends_as_if_nothing_had_failed(seed: int) -> None:
    run(seed, MemoryStore())


@pytest.mark.parametrize("seed", seeds(range(1_000, 1_030), 5), ids="seed{}".format)
def test_a_world_over_a_database_ends_as_if_nothing_had_failed(seed: int, tmp_path: Path) -> None:
    run(seed, SqliteEngine(tmp_path / "store.db"))


def test_the_same_seed_is_the_same_world() -> None:
    engines = [MemoryStore(), MemoryStore()]
    for engine in engines:
        World(7, engine.open()).run()
    assert engines[0].ledger() == engines[1].ledger() != []


@pytest.mark.slow
def test_the_worlds_do_meet_trouble() -> None:
    redelivered = healed = absent = tails = 0
    for seed in range(60):
        engine = MemoryStore()
        world = World(seed, engine.open())
        world.run()
        redelivered += sum(kept.commit_number > 1 for kept in engine.ledger())
        healed += sum(len(numbers_of(engine, id, "healed")) for id in world.logs)
        absent += sum(map(len, absent_numbers(engine, world).values()))
        tails += sum(kept.invocation_id == "timer" for kept in engine.ledger())
    assert redelivered > 300
    assert healed > 300
    assert absent > 30
    assert tails > 10
