"""`python -m tests.mutants`: plant known bugs one after the other, and see that the tests kill each of them.

Exit 1 when a mutant survives, when one no longer applies, and when one breaks the code so that any test would see it.
A mutant whose tests do not end in time counts as killed.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

from tests.checkout import copy_checkout
from tests.mutants.tables import MUTANTS, Mutant
from tests.mutants.trial import GOOD, Runner

COMPILED = ("core", "handlers", "jobs", "local", "tests", "function_app.py")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the names, and try none")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="part of a name; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants tried side by side (all cores)")
    parser.add_argument("--deadline", type=float, default=60.0, help="seconds for the tests of one mutant (60)")
    given = parser.parse_args(arguments)
    chosen = [one for one in MUTANTS if not given.only or any(part in one.name for part in given.only)]
    if given.list:
        print("\n".join(f"{one.subject}: {one.name}" for one in chosen))
        return 0
    if not chosen:
        print(f"mutants: no name has {' or '.join(map(repr, given.only))}; --list prints all names", file=sys.stderr)
        return 1
    runner = Runner(given.deadline)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="hubledger-mutants-") as folder, ThreadPoolExecutor(given.jobs) as pool:
        try:
            return _try_all(chosen, runner, _trees(Path(folder), given.jobs), pool)
        finally:
            runner.stop()
            pool.shutdown(wait=False, cancel_futures=True)


def _trees(folder: Path, copies: int) -> Sequence[Path]:
    """Copy the files of the checkout once for each job, so that no mutant is ever planted in the checkout itself.

    They are compiled with hashes of the sources: a time stamp of one second would hide a mutant of equal length.
    """
    first = copy_checkout(folder / "0")
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", *COMPILED]
    subprocess.run(command, cwd=first, check=True)
    return [first, *(Path(shutil.copytree(first, folder / str(place))) for place in range(1, copies))]


def _try_all(mutants: Sequence[Mutant], runner: Runner, trees: Sequence[Path], pool: ThreadPoolExecutor) -> int:
    began, free = time.monotonic(), SimpleQueue[Path]()
    for tree in trees:
        free.put(tree)

    def run(tests: Sequence[str]) -> str:
        tree = free.get()
        code, output = runner.run(tests, tree)
        free.put(tree)
        return output if code else ""

    def attempt(mutant: Mutant) -> str:
        tree, start = free.get(), time.monotonic()
        verdict, by = runner.try_mutant(mutant, tree)
        free.put(tree)
        print(f"{verdict:8} {time.monotonic() - start:5.1f} s  {mutant.name}  {by}", flush=True)
        return verdict

    tests = list(dict.fromkeys(test for one in mutants for test in one.tests))
    if red := "".join(pool.map(run, filter(None, (tests[place :: len(trees)] for place in range(len(trees)))))):
        print(f"{red}\nmutants: the tests are red without any mutant; nothing was tried", file=sys.stderr)
        return 1
    print(f"the tests are green without any mutant ({time.monotonic() - began:.0f} s)", flush=True)
    tried = {pool.submit(attempt, one): one for one in mutants}
    bad = [f"{each.result()}: {tried[each]}" for each in as_completed(tried) if each.result() not in GOOD]
    seconds = time.monotonic() - began
    print("\n".join([f"\n{len(mutants)} mutants: {len(mutants) - len(bad)} killed, {seconds:.0f} s", *sorted(bad)]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
