"""`python -m core.store.migrate`: create the database that STORE_CONNECTION names, or upgrade it.

Our migrations come first, then those of the rooms of the transform that TRANSFORM names, or of all that are given. With
`--check`, each transform is checked whole, and whether the store has its tables, and nothing is written.
"""

import argparse
import logging
import os
import sys
from contextlib import closing

from core.errors import HubledgerError, InvalidTransform
from core.model.policies import EMBEDDED, embedded_path, read_store_connection
from core.model.release import DEFAULT_TRANSFORM
from core.store.connect import open_database
from core.store.sqlite.schema import migrate_sqlite
from core.transforms.loading import check_transform, load_transform, rooms_of


def main(arguments: list[str] | None = None) -> int:
    """Migrate or check, and print the progress. On a fault, print it on stderr and return 1.

    A warning of the store is a line of stderr too, and no fault.
    """
    parser = argparse.ArgumentParser(prog="python -m core.store.migrate", description=__doc__)
    parser.add_argument(
        "--store",
        help=f"the store's connection, {EMBEDDED}PATH or an ODBC string; default: the setting STORE_CONNECTION",
    )
    parser.add_argument(
        "--transform",
        action="append",
        metavar="MODULE",
        help="repeat it if apps with different transforms share the store; default: the setting TRANSFORM",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; without a store, check no tables")
    given = parser.parse_args(arguments)
    names = given.transform or [os.environ.get("TRANSFORM") or DEFAULT_TRANSFORM]
    store, action = given.store or os.environ.get("STORE_CONNECTION"), "check" if given.check else "migrate"
    handler, log = logging.StreamHandler(sys.stderr), logging.getLogger("hubledger.store")
    handler.setFormatter(logging.Formatter(f"{action}: %(message)s"))
    log.addHandler(handler)
    try:
        if given.check:
            for name in names:
                _tell(f"{name} has no fault: {_checked(name, store)}")
        else:
            connection = read_store_connection({"STORE_CONNECTION": store or ""})
            rooms = rooms_of(one for name in names for one in load_transform(name).row_classes)
            path = embedded_path(connection)
            if path is not None:
                migrate_sqlite(path, rooms, _tell)
            else:
                from core.store.sqlserver.schema import MigrationRun, migrate_server

                migrate_server(connection, run=MigrationRun(_tell), rooms=rooms)
            _tell("the store is up to date")
    except (HubledgerError, OSError) as error:
        faults = error.faults if given.check and isinstance(error, InvalidTransform) else ()
        print(f"{action}: {name} has faults" if faults else f"{action}: {error}", *faults, sep="\n", file=sys.stderr)  # noqa: T201
        return 1
    finally:
        log.removeHandler(handler)
    return 0


def _checked(name: str, store: str | None) -> str:
    rows, aggregates = check_transform(name)
    if store is None:
        return f"row classes {rows}, aggregates {aggregates}; the tables were not checked, because no store is named"
    connection = read_store_connection({"STORE_CONNECTION": store})
    with closing(open_database(connection, load_transform(name).row_classes)) as database:
        database.ask("read_migrations")
    return f"row classes {rows}, aggregates {aggregates}; the store has their tables"


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
