"""`python -m bench`: measure the figures of docs/benchmarks.md. End with 1 when one misses its target or a part fails.

Each part runs in a process of its own. `--json` is for these processes: it measures one part, and writes its results.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench import (
    aggregation,
    api,
    decode,
    gaps,
    growth,
    imports,
    ingest,
    letters,
    local_run,
    redrives,
    replay,
    replayed,
    spark,
    sqlserver,
    telemetry,
)
from bench.figures import Result
from bench.peers import comparison, hosts
from bench.report.part import measure_part
from bench.report.results import LARGE, SERVER, ResultsRefused, text_of
from bench.report.suite import Orders, Suite, held, summary
from bench.size import scaling, size
from bench.way import part as way
from local.programs import Interrupted, Interruption
from local.stack.sql_server import Server, ServerRefused, add_store, prepared

PARTS: dict[str, Callable[[], Iterator[Result]]] = {
    "ingest": ingest.measure,
    "telemetry": telemetry.measure,
    "letters": letters.measure,
    "redrives": redrives.measure,
    "decode": decode.measure,
    "gaps": gaps.measure,
    "growth": growth.measure,
    "imports": imports.measure,
    "replay": replay.measure,
    "sqlserver": sqlserver.measure,
    "api": api.measure,
    "way": way.measure,
    "host": hosts.measure,
    "local": local_run.measure,
    "peers": comparison.measure,
    "aggregation": aggregation.measure,
    "spark": spark.measure,
    "replayed": replayed.measure,
    "size": size.measure,
    "scaling": scaling.measure,
}


LONG = ("sqlserver", "api", "aggregation", "spark", "replayed")  # which `make bench` leaves out
QUICK: Orders = {  # sizes for `make bench` where a part's own size takes minutes; all parts in 15 to 30
    "letters": {"BENCH_LETTERS": "50000"},
    "redrives": {"BENCH_LETTERS": "100000"},
    "local": {"BENCH_EVENTS": "600000"},
}
FULL: Orders = {  # sizes for `make bench-full` where they are larger than a part's own
    "size": {"BENCH_EVENTS": "20000000"},
    "scaling": {"BENCH_ROWS": "10000000"},
}


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when all targets are met, 1 when one is missed or a part failed, 128 + signal after a signal."""
    options = _options(arguments)
    if options.json:
        return _measure_here(options)
    interruption = Interruption()
    interruption.listen()
    try:
        return _measure_each(options, interruption)
    except ResultsRefused as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except Interrupted as stopped:
        print(f"bench: {stopped}; the results of the parts that ended are stored", file=sys.stderr)
        return 128 + stopped.signal_number


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; default: all")
    parser.add_argument("--results", type=Path, metavar="FILE", help="put the results of each part into FILE")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help=f"the sizes of some minutes, without {', '.join(LONG)}")
    size.add_argument("--full", action="store_true", help="the largest sizes")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="measure one part here, and write its results to FILE"
    )
    add_store(parser)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.parts if name not in PARTS]:
        parser.error(f"unknown part: {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    if options.json and len(options.parts) != 1:
        parser.error("--json needs one part")
    return options


def _measure_here(options: argparse.Namespace) -> int:
    (name,) = options.parts
    try:
        with prepared(options.store):
            result = measure_part(name, parts_on(options.store)[name])
    except ServerRefused as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    options.json.write_text(text_of([result]), encoding="utf-8")
    return 0


def _measure_each(options: argparse.Namespace, interruption: Interruption) -> int:
    with ExitStack() as stack:
        holds = [stack.enter_context(held(options.results))] if options.results else []
        store = {"STORE": options.store.connection} if options.store else {}
        size = SERVER if options.store else LARGE if options.full else ""
        suite = Suite(options.results, holds, {**os.environ, **store}, interruption.pause, size)
        results = list(suite.measure(_orders(options)))
    print(summary(results))
    return 1 if any(result.missed or result.fault for result in results) else 0


def _orders(options: argparse.Namespace) -> Orders:
    sizes = QUICK if options.quick else FULL if options.full else {}
    names = options.parts or [name for name in PARTS if not (options.quick and name in LONG)]
    return {name: sizes.get(name, {}) for name in names}


def parts_on(store: Server | None) -> Mapping[str, Callable[[], Iterator[Result]]]:
    """Return the parts. With a server, `sqlserver`, `local` and `peers` measure the store on it."""
    if store is None:
        return PARTS
    return {
        **PARTS,
        "sqlserver": partial(sqlserver.measure, store.connection),
        "local": partial(local_run.measure, store),
        "peers": partial(comparison.measure, store),
    }


if __name__ == "__main__":
    sys.exit(main())
