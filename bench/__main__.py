"""`python -m bench`: measure the figures of docs/benchmarks.md; end with 1 when one misses its target."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from bench import (
    aggregation,
    api,
    decode,
    durable,
    gaps,
    growth,
    history,
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
from bench.figures import Figure, Result
from bench.way import part as way
from local.server import Server, ServerRefused, add_store, prepared

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
    "durable": durable.measure,
    "api": api.measure,
    "way": way.measure,
    "local": local_run.measure,
    "aggregation": aggregation.measure,
    "spark": spark.measure,
    "history": history.measure,
    "replayed": replayed.measure,
}


def main() -> int:
    """Print each result as soon as it is measured."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; default: all")
    add_store(parser)
    options = parser.parse_args()
    names = options.parts or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"unknown part: {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    try:
        with prepared(options.store):
            return _measure(names, parts_on(options.store))
    except ServerRefused as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


def parts_on(store: Server | None) -> Mapping[str, Callable[[], Iterator[Result]]]:
    """Return the parts; with a server, `sqlserver` and `local` measure the store on it."""
    if store is None:
        return PARTS
    return {
        **PARTS,
        "sqlserver": partial(sqlserver.measure, store.connection),
        "local": partial(local_run.measure, store),
    }


def _measure(names: list[str], parts: Mapping[str, Callable[[], Iterator[Result]]]) -> int:
    missed = 0
    for name in names:
        for result in parts[name]():
            print(result, flush=True)
            missed += isinstance(result, Figure) and result.met is False
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
