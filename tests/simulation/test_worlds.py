"""In every world each event ends with one outcome, whatever fails; a failure names its seed and how to repeat it."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.fakes.engines import SqliteEngine
from tests.simulation import expected, oracle, tables
from tests.simulation.kinds import ENOUGH, missing, table
from tests.simulation.runner import run_world
from tests.simulation.seeds import seeds
from tests.simulation.watch import WatchedStore, watched_image
from tests.simulation.world import World


@pytest.mark.parametrize("seed", range(6), ids="seed{}".format)
def test_a_world_ends_as_the_oracle_says(seed: int) -> None:
    run_world(seed)


@pytest.mark.slow
def test_all_worlds_end_as_the_oracle_says_and_meet_every_trouble() -> None:
    counts: Counter[str] = Counter()
    for seed in range(ENOUGH):
        counts.update(run_world(seed))
    assert missing(counts) == [], table(counts)


@pytest.mark.parametrize("seed", [7, *(pytest.param(one, marks=pytest.mark.slow) for one in range(10, 20))])
def test_a_world_over_a_file_ends_as_the_oracle_says(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(watched_image())
    engine = SqliteEngine(path)
    store = engine.open()
    World(seed, engine, store).run()
    store.close()


class EmptiedWorld(World):
    """A world whose hub is replaced by an empty one at the end of all trouble."""

    def _heal(self) -> None:
        self.hub.replace(most=0)
        self.host.lose_places()
        super()._heal()


@pytest.mark.parametrize("seed", seeds(range(10), 3), ids="seed{}".format)
def test_a_world_whose_last_hub_is_empty_has_books_of_that_hub(seed: int) -> None:
    engine = WatchedStore()
    world = EmptiedWorld(seed, engine, engine.open())
    world.run()
    assert [one.last for one in world.truths()].count(-1) == len(world.hub.log)


def test_the_oracle_shares_no_code_with_the_product() -> None:
    def imported(module: object) -> set[str]:
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))  # type: ignore[attr-defined]
        nodes = list(ast.walk(tree))
        names = {one.module or "" for one in nodes if isinstance(one, ast.ImportFrom)}
        return names | {alias.name for one in nodes if isinstance(one, ast.Import) for alias in one.names}

    own = {"tests.simulation.expected", "tests.simulation.tables"}
    found = {name for module in (oracle, tables, expected) for name in imported(module)} - own
    assert {name for name in found if name.split(".")[0] in ("core", "tests", "handlers", "local")} == set()
