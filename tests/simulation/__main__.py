"""`python -m tests.simulation --seeds 20000`: run so many worlds on all cores, and print the faults that they met."""

import argparse
import sys
import time
from collections import Counter

from local.feed.options import none_or_more, positive
from tests.simulation.runner import ENOUGH, Result, missing, run_all, table

MOST_FAULTS = 5  # failed worlds after which the run ends
PROGRESS_SECONDS = 5.0


def main() -> int:
    """Return 1 when a world fails, or when a kind of trouble never occurred."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seeds", type=positive, default=20_000)
    parser.add_argument("--first", type=none_or_more, default=0)
    wanted = parser.parse_args()
    counts, failed, took = _run(range(wanted.first, wanted.first + wanted.seeds))
    print(table(counts))
    for one in failed:
        print(f"\nseed {one.seed} failed; repeat it with `{one.repeated_by}`\n{one.fault}", file=sys.stderr)
    silent = missing(counts) if wanted.seeds >= ENOUGH and not failed else []
    if silent:
        print(f"\nno world met: {', '.join(silent)}", file=sys.stderr)
    print(f"{wanted.seeds:,} worlds, {len(failed)} failed, {took:.0f} s")
    return 1 if failed or silent else 0


def _run(seeds: range) -> tuple[Counter[str], list[Result], float]:
    counts: Counter[str] = Counter()
    failed: list[Result] = []
    began = shown = time.monotonic()
    for number, result in enumerate(run_all(seeds), 1):
        counts.update(result.counts)
        failed += [result] if result.fault else []
        if (now := time.monotonic()) - shown >= PROGRESS_SECONDS:
            shown = now
            print(f"{number:,} of {len(seeds):,} worlds, {1000 * (now - began) / number:.0f} ms each", flush=True)
        if len(failed) >= MOST_FAULTS:
            break
    return counts, failed, time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
