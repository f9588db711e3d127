"""Runs one world by its seed."""

import codecs
import traceback
from collections import Counter
from dataclasses import dataclass

from core.transforms.loading import load_aggregates
from tests.simulation.watch import WatchedStore, watched_image
from tests.simulation.world import World


@dataclass(frozen=True)
class Result:
    """The result of one world: the counts of its faults, and why it failed."""

    seed: int
    counts: Counter[str]
    fault: str | None = None

    @property
    def repeated_by(self) -> str:
        """The command that runs this world again."""
        return f"make simulate SEEDS=1 FIRST={self.seed}"


def prepare() -> None:
    """Load all that a world needs; a file that changes later changes no world."""
    watched_image()
    load_aggregates()
    codecs.lookup("utf-16-le")  # Python reads the file of a codec when it is used for the first time


def run_world(seed: int) -> Counter[str]:
    """Run a world in memory; return its counts. Its faults carry the seed and the command that repeats it."""
    engine = WatchedStore()
    try:
        return World(seed, engine, engine.open()).run().counts
    except BaseException as fault:
        fault.add_note(f"seed {seed}: {Result(seed, Counter()).repeated_by}")
        raise


def try_world(seed: int) -> Result:
    """Run a world, and return its fault as a text."""
    try:
        return Result(seed, run_world(seed))
    except BaseException:  # noqa: BLE001 - a death that leaves its world is a fault of this world, too
        return Result(seed, Counter(), traceback.format_exc())
