"""`python -m core.store.ddl NAME`: print the tables of an aggregate, and the index of its source, for a new migration,
in both dialects.

With `--added`, it prints the tables of these levels only, and the statements that fill them from the stored windows of
the finer level: for an aggregate that has runs already.
"""

import argparse
import os
import sys

from core.errors import HubledgerError
from core.settings import DEFAULT_TRANSFORM
from core.store.ddl.aggregates import added_text, migration_text
from core.store.ddl.types import ENGINES, Engine
from core.transforms import import_transform
from core.transforms.aggregates import find_aggregate


def main(arguments: list[str] | None = None) -> int:
    """Print the tables of an aggregate; on a fault, print one line on stderr and return 1."""
    parser = argparse.ArgumentParser(prog="python -m core.store.ddl", description=__doc__)
    parser.add_argument("name", help="the name of an aggregate of the transform")
    parser.add_argument(
        "--transform",
        default=os.environ.get("TRANSFORM") or DEFAULT_TRANSFORM,
        metavar="NAME",
        help="default: the setting TRANSFORM, or %(default)s",
    )
    parser.add_argument("--engine", choices=ENGINES, help="default: both")
    parser.add_argument("--added", nargs="+", metavar="ROLLUP", help="rollups to add to an aggregate that has runs")
    given = parser.parse_args(arguments)
    engines: tuple[Engine, ...] = (given.engine,) if given.engine else ENGINES
    try:
        import_transform(given.transform)
        one = find_aggregate(given.name)
        texts = {
            each: added_text(one, each, given.added) if given.added else migration_text(one, each) for each in engines
        }
    except HubledgerError as error:
        print(f"ddl: {error}", file=sys.stderr)  # noqa: T201
        return 1
    for engine, text in texts.items():
        heading = "" if given.engine else f"-- {engine}\n\n"
        print(f"{heading}{text}", end="" if given.engine else "\n")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
