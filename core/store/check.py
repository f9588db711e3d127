"""`python -m core.store.check`: check a whole transform, and that the store has its tables. It writes nothing."""

import argparse
import logging
import os
import sys
from contextlib import closing

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
    handler, log = logging.StreamHandler(sys.stderr), logging.getLogger("hubledger.store")
    handler.setFormatter(logging.Formatter("check: %(message)s"))
    log.addHandler(handler)
    try:
        checked = _checked(name, given.store or os.environ.get("STORE_CONNECTION"))
    except InvalidTransform as error:
        print(f"check: {name} has faults", *error.faults, sep="\n", file=sys.stderr)  # noqa: T201
        return 1
    except (HubledgerError, OSError) as error:
        print(f"check: {error}", file=sys.stderr)  # noqa: T201
        return 1
    finally:
        log.removeHandler(handler)
    print(f"{name} has no fault: {checked}")  # noqa: T201
    return 0


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
