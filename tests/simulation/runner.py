"""Runs worlds by their seeds: one, or many in a process for each core, and the trouble that enough worlds must meet."""

import codecs
import faulthandler
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context

from core.transforms.loading import load_aggregates
from tests.simulation.trouble import FROZEN, HUB_FAULTS, OF_SCRIPTS, OUTAGE, SLOW
from tests.simulation.watch import WatchedStore, watched_image
from tests.simulation.world import World

PATIENCE = 300.0  # seconds for one world; most worlds take a tenth of a second
CHUNK = 8
ENOUGH = 300  # seeds over which every kind of trouble occurs, or a check has gone blind
OF_OTHERS = {
    "death": "event kills its process, killed from outside",
    "hub": "recreated, recreated and empty, swapped, swapped for an empty one, swapped amid a call, given back,"
    " retention, retention took unread events",
    "host": "batch lost before the app saw it, failed batch lost, failed batch retried,"
    " failed batch passed after its retries, shut down between retries, stands at an event, checkpoint lifted,"
    " events redelivered, owner changed, two owners at once",
    "keeper": "chunks purged, chunk run again",
    "clock": "jump",
    "operator": "requeue, discard, replay, replay by key, dry run, pause, resume, cancel, next incarnation, erasure",
    "event": "poison, bug, refused row, missing reference, kills its process",
}
FAULTS = (
    *(OUTAGE, SLOW, FROZEN, *HUB_FAULTS, "deployment"),
    *("deployment: a wrong erasure key", "deployment: the next erasure key"),
    *(fault.kind for fault in OF_SCRIPTS),
    *(f"{who}: {act}" for who, acts in OF_OTHERS.items() for act in acts.split(", ")),
)
ANSWERS = (
    "batches",
    "redelivered events dropped",
    "healed events",
    "absent numbers",
    "events isolated as crash",
    "gaps at the end healed",
    "batches held by the fuse",
    "batches stopped at a different hub",
    "tasks held at a different hub",
    "reads refused at a different hub",
    "events found",
    "events gone",
    *(f"letters {one}" for one in ("resolved", "waiting", "exhausted", "released", "lost")),
    "events held",
    "held letters freed",
    "batches stopped by too many held letters",
    "pieces replayed",
    "erasures",
    "erasures refused for the key",
    "erasures refused beside a task",
    "erasures that wait for a run",
    "answers searched for erased subjects",
    "batches stopped for the key of erased subjects",
)


@dataclass(frozen=True)
class Result:
    """The result of one world: the counts of its faults, and why it failed."""

    seed: int
    counts: Counter[str]
    fault: str | None = None

    @property
    def repeated_by(self) -> str:
        return f"make simulate SEEDS=1 FIRST={self.seed}"


def prepare() -> None:
    """Load all that a world needs. A file that changes later changes no world."""
    watched_image()
    load_aggregates()
    for codec in ("utf-16-le", "utf-8-sig"):
        codecs.lookup(codec)  # Python reads the file of a codec when it is used for the first time
    next(
        seed for seed in range(ENOUGH) if try_world(seed).counts["answers searched for erased subjects"]
    )  # loads the API


def run_world(seed: int) -> Counter[str]:
    """Run a world in memory. Return its counts. Its faults carry the seed and the command that repeats it."""
    engine = WatchedStore()
    try:
        return World(seed, engine, engine.open()).run().counts
    except BaseException as fault:
        fault.add_note(f"seed {seed}: {Result(seed, Counter()).repeated_by}")
        raise


def try_world(seed: int) -> Result:
    """Run a world, and return its fault as a text. A world that hangs prints its stack and ends its process."""
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    try:
        return Result(seed, run_world(seed))
    except BaseException:  # noqa: BLE001 - a death that leaves its world is a fault of this world, too
        return Result(seed, Counter(), traceback.format_exc())
    finally:
        faulthandler.cancel_dump_traceback_later()


def run_all(seeds: range) -> Iterator[Result]:
    """Yield the result of each seed in order. A process that dies fails the first seed without a result, and ends."""
    following = seeds.start
    with ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=prepare) as pool:
        try:
            for result in pool.map(try_world, seeds, chunksize=CHUNK):
                following = result.seed + 1
                yield result
        except BrokenProcessPool:
            yield Result(following, Counter(), f"a process died or hung in this world or one of the next {CHUNK}")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def missing(counts: Counter[str]) -> list[str]:
    return [kind for kind in (*FAULTS, *ANSWERS) if not counts[kind]]


def table(counts: Counter[str]) -> str:
    """Return the counts of all kinds, one a line. A kind that is in no list is a fault of this module."""
    unknown = set(counts) - {*FAULTS, *ANSWERS}
    assert not unknown, f"kinds that no list has: {unknown}"
    lines = [f"  {counts[kind]:>10,}  {kind}" for kind in FAULTS]
    return "\n".join(["injected:", *lines, "answered:", *(f"  {counts[kind]:>10,}  {kind}" for kind in ANSWERS)])
