"""A world is its seed and the code, nothing else: no clock, no chance, no file, no order of a set."""

import gc
import logging
import os
import random
import subprocess
import sys
import time
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from types import FrameType

import pytest

from core.store.sqlite import database
from tests.simulation.runner import prepare, run_world
from tests.simulation.watch import WatchedStore
from tests.simulation.world import World

ROOT = Path(__file__).parents[2]
PURE = ("fromisoformat", "fromtimestamp", "strptime", "combine", "fromordinal")
CLOCKS_AND_CHANCE = (time, datetime, vars(random)["_inst"])
FILES = """
import sys
from core.store.sqlite import database
from tests.simulation.runner import prepare, run_world
prepare()
opened = []
sys.addaudithook(lambda event, values: opened.append((event, values)) if event in ("open", "import") else None)
for seed in range(3):
    run_world(seed)
print(opened)
"""


def in_a_process(*arguments: str, hash_seed: int = 0) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.split("\n")


def trace(seed: int) -> str:
    """Run a world; return the digest of its statements, with their values, and of all that was drawn and answered."""
    engine = WatchedStore()
    digest, world = sha256(), World(seed, engine, engine.open())
    engine.note_statements(lambda statement: digest.update(statement.encode("utf-8", "surrogatepass")))
    world.run()
    digest.update(repr((world.chance.getstate(), world.clock.seconds, world.hub.asked, world.counts)).encode())
    return digest.hexdigest()


TRACES = "from tests.simulation.test_repeatable import trace; print([trace(seed) for seed in range(10)])"


@pytest.mark.slow
def test_a_world_repeats_its_trace_in_two_processes_of_different_hash_seeds() -> None:
    one, other = (in_a_process("-c", TRACES, hash_seed=one) for one in (1, 2))
    assert one == other != [""]


def test_a_world_repeats_its_trace_in_one_process() -> None:
    assert trace(1) == trace(1) != trace(2)


@pytest.mark.slow
def test_a_world_reads_no_clock_and_draws_no_chance_of_the_machine() -> None:
    called: set[str] = set()

    def note(frame: FrameType, event: str, of: object) -> None:
        is_pause = of is time.sleep and Path(frame.f_code.co_filename) == Path(database.__file__)  # of a writer
        if event == "c_call" and (of is os.urandom or is_of_the_machine(of)) and not is_pause:
            called.add(f"{of} by {frame.f_code.co_filename}:{frame.f_lineno}")

    prepare()
    logging.disable()  # a line has the time of the machine, and changes no world
    gc.disable()  # hypothesis times the collector
    sys.setprofile(note)
    try:
        trace(0)
        next(seed for seed in range(100) if run_world(seed)["operator: next incarnation"])
    finally:
        sys.setprofile(None)
        logging.disable(logging.NOTSET)
        gc.enable()
    assert called == set()


def is_of_the_machine(of: object) -> bool:
    """Return True for the functions of `time`, for those of `datetime` that know the present, and for common chance."""
    owner = getattr(of, "__self__", None)
    return any(owner is one for one in CLOCKS_AND_CHANCE) and getattr(of, "__name__", "") not in PURE


@pytest.mark.slow
def test_a_world_opens_no_file_once_it_is_prepared() -> None:
    assert in_a_process("-c", FILES)[0] == "[]"
