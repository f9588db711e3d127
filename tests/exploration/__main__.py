"""`python -m tests.exploration`: search every configuration to its end, and print the counts of each search.

With `--stories`, plant one bug after the other, and print the shortest schedule that shows it.
"""

import argparse
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.exploration.configurations import CONFIGURATIONS
from tests.exploration.explorer import Search, Violation
from tests.exploration.plants import PLANTS, story

HEAD = (
    f"{'configuration':52} {'faults':>6} {'states':>9} {'turns':>9} {'tables':>6}"
    f" {'longest':>7} {'schedules':>11} {'s':>5}"
)


def explored(name: str, faults: int) -> tuple[str, bool]:
    """Search a configuration, and return its line of the table, or the story of its fault."""
    one, began = CONFIGURATIONS[name], time.monotonic()
    world = one.prepare()
    search = Search(world.database, one.actors(world), world.promise, faults)
    try:
        found = search.run()
    except Violation as violation:
        return f"{name}, {faults} faults: the promise is broken\n{violation}", False
    seconds = time.monotonic() - began
    counts = f"{found.states:9,} {found.turns:9,} {found.tables:6,} {found.longest:7} {found.schedules:11.2g}"
    return f"{name:52} {faults:6} {counts} {seconds:5.0f}", True


def told(name: str) -> tuple[str, bool]:
    """Plant a bug, and return its story."""
    violation = story(name)
    return f"{name}\n{violation or 'IT IS NOT FOUND'}\n", violation is not None


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.exploration", description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of the configurations, or of the bugs")
    parser.add_argument("--faults", type=int, help="faults in one schedule, instead of those of the configuration")
    parser.add_argument("--stories", action="store_true", help="plant bugs, and print the shortest story of each")
    given = parser.parse_args(None if arguments is None else list(arguments))
    names = [name for name in (PLANTS if given.stories else CONFIGURATIONS) if given.only in name]
    if not names:
        parser.error(f"no name has {given.only!r}")
    if given.faults is not None and given.faults < 0:
        parser.error("--faults is a number of faults, so at least 0")
    if given.stories and given.faults is not None:
        parser.error("each planted bug has its own --faults")
    began = time.monotonic()
    if not given.stories:
        print(HEAD, flush=True)
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        if given.stories:
            waited = {name: pool.submit(told, name) for name in names}
        else:
            faults = {name: CONFIGURATIONS[name].faults if given.faults is None else given.faults for name in names}
            longest_first = sorted(names, key=lambda name: -len(CONFIGURATIONS[name].acts))
            waited = {name: pool.submit(explored, name, faults[name]) for name in longest_first}
        bad = 0
        for name in names:
            text, is_good = waited[name].result()
            bad += not is_good
            print(text, flush=True)
    print(f"{len(names) - bad} of {len(names)} as they should be, {time.monotonic() - began:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
