"""`python -m tests.mutants`: plant known bugs one after the other, and see that the tests kill each of them.

Exit 1 when a mutant survives, when one no longer applies, and when one breaks the code so that any test would see it.
A mutant whose tests do not end in time counts as killed, and the table says so.
"""

import argparse
import os
import queue
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.tables import MUTANTS
from tests.mutants.trees import copy_trees
from tests.mutants.trial import GOOD, Runner, Trial


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the chosen mutants, print the table, and return the exit code."""
    given = _parse(arguments)
    chosen = [one for one in MUTANTS if not given.only or any(part in one.name for part in given.only)]
    if not chosen:
        print(f"mutants: no name has {' or '.join(map(repr, given.only))}; --list prints all names", file=sys.stderr)
        return 1
    if given.list:
        for one in chosen:
            print(f"{one.subject}: {one.name}")
        return 0
    runner = Runner(given.deadline)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="hubledger-mutants-") as folder:
        try:
            return _try_all(chosen, runner, copy_trees(Path(folder), given.jobs))
        finally:
            runner.stop()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print the names, and try none")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="part of a name; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants tried side by side (all cores)")
    parser.add_argument("--deadline", type=float, default=60.0, help="seconds for the tests of one mutant (60)")
    return parser.parse_args(arguments)


def _try_all(mutants: Sequence[Mutant], runner: Runner, trees: Sequence[Path]) -> int:
    began = time.monotonic()
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for tree in trees:
        free.put(tree)
    with ThreadPoolExecutor(len(trees)) as pool:
        try:
            red = "".join(pool.map(lambda part: _output_of_red(part, runner, free), _parts(mutants, len(trees))))
            if red:
                print(f"{red}\nmutants: the tests are red without any mutant; nothing was tried", file=sys.stderr)
                return 1
            print(f"the tests are green without any mutant ({time.monotonic() - began:.0f} s)", flush=True)
            trials = list(_progress([pool.submit(_try, one, runner, free) for one in mutants]))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            runner.stop()
            raise
    return _report(sorted(trials, key=lambda one: mutants.index(one.mutant)), time.monotonic() - began)


def _parts(mutants: Iterable[Mutant], count: int) -> list[list[str]]:
    """Return the tests of all mutants, each once, in as many parts as there are jobs."""
    whole = list(dict.fromkeys(test for one in mutants for test in one.tests))
    return [part for place in range(count) if (part := whole[place::count])]


def _output_of_red(tests: Sequence[str], runner: Runner, free: "queue.SimpleQueue[Path]") -> str:
    tree = free.get()
    try:
        code, output = runner.run(tests, tree)
        return output if code else ""
    finally:
        free.put(tree)


def _try(mutant: Mutant, runner: Runner, free: "queue.SimpleQueue[Path]") -> Trial:
    tree = free.get()
    try:
        return runner.try_mutant(mutant, tree)
    finally:
        free.put(tree)


def _progress(futures: Sequence[Future[Trial]]) -> Iterable[Trial]:
    """Yield the trials as they end, with a line for each."""
    for place, future in enumerate(as_completed(futures), 1):
        trial = future.result()
        print(f"{place:4}/{len(futures)} {trial.verdict:8} {trial.seconds:5.1f} s  {trial.mutant.name}", flush=True)
        yield trial


def _report(trials: Sequence[Trial], seconds: float) -> int:
    """Print the table and the sum; return 0 when every mutant was killed."""
    print("\nmutant | tests | verdict | by | seconds")
    for one in trials:
        tests = " ".join(one.mutant.tests)
        print(f"{one.mutant.name} | {tests} | {one.verdict} | {one.by} | {one.seconds:.1f}")
    bad = [one for one in trials if one.verdict not in GOOD]
    late = sum(one.verdict == "timeout" for one in trials)
    print(
        f"\n{len(trials)} mutants: {len(trials) - len(bad)} killed ({late} by timeout), {len(bad)} not, {seconds:.0f} s"
    )
    for one in bad:
        print(f"{one.verdict}: {one.mutant.name} ({one.mutant.path}) {one.by}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
