"""`python -m core.store.check`: check a whole transform, and that the store has its tables. It writes nothing."""

import argparse
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

from core.errors import HubledgerError, InvalidTransform
from core.model.policies import EMBEDDED, read_store_connection
from core.model.release import DEFAULT_TRANSFORM
from core.store.connect import open_database
from core.transforms.loading import check_transform, load_transform


def main(arguments: list[str] | None = None) -> int:
    """Print one line and return 0. On faults, print each on a line of stderr and return 1.

    A warning of the store is a line of stderr too, and no fault.
    """
    parser = argparse.ArgumentParser(prog="python -m core.store.check", description=__doc__)
    parser.add_argument("--transform", metavar="MODULE", help="default: the setting TRANSFORM")
    parser.add_argument(
        "--store",
        help=f"the store's connection, {EMBEDDED}PATH or an ODBC string; default: the setting STORE_CONNECTION; without"
        " both, the tables are not checked",
    )
    given = parser.parse_args(arguments)
    name = given.transform or os.environ.get("TRANSFORM") or DEFAULT_TRANSFORM
    try:
        with _warnings():
            checked = _checked(name, given.store or os.environ.get("STORE_CONNECTION"))
    except InvalidTransform as error:
        print(f"check: {name} has faults", *error.faults, sep="\n", file=sys.stderr)  # noqa: T201
        return 1
    except (HubledgerError, OSError) as error:
        print(f"check: {error}", file=sys.stderr)  # noqa: T201
        return 1
    print(f"{name} has no fault: {checked}")  # noqa: T201
    return 0


class _Line(logging.Formatter):
    """Formats a warning of the store as a line of the check, with the columns that it names."""

    def format(self, record: logging.LogRecord) -> str:
        columns: list[str] = vars(record).get("columns", [])
        return f"check: {record.getMessage()}" + (f": {'; '.join(columns)}" if columns else "")


@contextmanager
def _warnings() -> Iterator[None]:
    """Print the warnings of the store on stderr."""
    handler, log = logging.StreamHandler(sys.stderr), logging.getLogger("hubledger.store")
    handler.setFormatter(_Line())
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _checked(name: str, store: str | None) -> str:
    rows, aggregates = check_transform(name)
    if store is None:
        return f"row classes {rows}, aggregates {aggregates}; the tables were not checked, because no store is named"
    connection = read_store_connection({"STORE_CONNECTION": store})
    with closing(open_database(connection, load_transform(name).row_classes)) as database:
        database.ask("read_migrations")
    return f"row classes {rows}, aggregates {aggregates}; the store has their tables"


if __name__ == "__main__":
    sys.exit(main())
