"""In every world each event ends with one outcome, whatever fails. A world is its seed and the code, nothing else."""

import os
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from tests.fakes.engines import SqliteEngine
from tests.simulation import expected, oracle
from tests.simulation.runner import ENOUGH, missing, run_world, table
from tests.simulation.seeds import seeds
from tests.simulation.watch import WatchedStore, watched_image
from tests.simulation.world import World

ROOT = Path(__file__).parents[2]
TRACES = "from tests.simulation.test_worlds import trace; print([trace(seed) for seed in range(10)])"
FILES = """
import sys
from core.store.sqlite import database
from tests.simulation.runner import prepare, run_world
prepare()
opened = []
sys.addaudithook(lambda event, values: opened.append((event, values)) if event in ("open", "import") else None)
for seed in range(4):  # the last one has an erasure
    run_world(seed)
print(opened)
"""


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
    world = EmptiedWorld(seed, engine, engine.open()).run()
    assert [one.last for one in world.truths()].count(-1) == len(world.hub.log)


def in_a_process(script: str, hash_seed: int = 0) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def trace(seed: int) -> str:
    """Run a world. Return the digest of its statements, with their values, and of all that was drawn and answered."""
    engine = WatchedStore()
    digest, world = sha256(), World(seed, engine, engine.open())
    engine.note_statements(lambda statement: digest.update(statement.encode("utf-8", "surrogatepass")))
    world.run()
    digest.update(repr((world.chance.getstate(), world.clock.seconds, world.hub.asked, world.counts)).encode())
    return digest.hexdigest()


@pytest.mark.slow
def test_a_world_repeats_its_trace_at_any_time_in_processes_of_different_hash_seeds_and_opens_no_file() -> None:
    one, other = (in_a_process(TRACES, hash_seed=one) for one in (1, 2))
    assert one == other != "\n"
    assert in_a_process(FILES).split("\n")[0] == "[]"


def test_a_world_repeats_its_trace_in_one_process() -> None:
    assert trace(1) == trace(1) != trace(2)


def test_the_oracle_shares_no_code_with_the_product() -> None:
    texts = [Path(str(module.__file__)).read_text(encoding="utf-8") for module in (oracle, expected)]
    lines = [line.split()[1] for text in texts for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert {one for one in lines if one.split(".")[0] in ("core", "tests", "handlers", "local")} == {
        "tests.simulation.expected"
    }
