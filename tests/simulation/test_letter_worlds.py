"""In every world letters come back once, whatever dies; a failure says its seed, and `run(seed, ...)` repeats it."""

from collections import Counter
from pathlib import Path

import pytest

from tests.fakes.engines import SqliteEngine
from tests.fakes.kept import Engine
from tests.fakes.memory_store import MemoryStore
from tests.simulation.letter_books import assert_at_rest
from tests.simulation.letter_world import LetterWorld
from tests.simulation.seeds import BLOCK, seeds


def run(seed: int, engine: Engine) -> LetterWorld:
    store = engine.open()
    world = LetterWorld(seed, store)
    try:
        world.run()
        assert_at_rest(world, engine, store)
    except BaseException as fault:
        fault.add_note(f"the seed of this world is {seed}")
        raise
    finally:
        store.close()
    return world


@pytest.mark.parametrize("first", seeds(range(0, 500, BLOCK), 0), ids="seeds from {}".format)
def test_letters_of_a_world_in_memory_are_settled_exactly_once(first: int) -> None:
    for seed in range(first, first + BLOCK):
        run(seed, MemoryStore())


@pytest.mark.parametrize("seed", seeds(range(2_000, 2_015), 3), ids="seed{}".format)
def test_letters_of_a_world_over_a_database_are_settled_exactly_once(seed: int, tmp_path: Path) -> None:
    run(seed, SqliteEngine(tmp_path / "store.db"))


def test_the_same_seed_is_the_same_world_of_letters() -> None:
    engines = [MemoryStore(), MemoryStore()]
    for engine in engines:
        run(11, engine)
    assert engines[0].attempts() == engines[1].attempts() != []


@pytest.mark.slow
def test_the_worlds_of_letters_do_meet_trouble() -> None:
    seen: Counter[str] = Counter()
    for seed in range(40):
        seen.update(run(seed, MemoryStore()).seen)
    for trouble in ("resolved", "waiting", "exhausted", "released", "lost", "keeper died", "keeper held"):
        assert seen[trouble] > 10, trouble
