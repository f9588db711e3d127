"""`python -m core.store.migrate`: create the database that STORE_CONNECTION names, or upgrade it.

Our migrations come first, then those of the rooms of the transform that TRANSFORM names, or of all that are given.
"""

import argparse
import os
import sys

from core.errors import HubledgerError
from core.model.policies import EMBEDDED, embedded_path, read_store_connection
from core.model.release import DEFAULT_TRANSFORM
from core.store.sqlite.schema import migrate_sqlite
from core.transforms.loading import load_transform, rooms_of


def main(arguments: list[str] | None = None) -> int:
    """Apply the missing migrations and print their progress. On a fault, print one line on stderr and return 1."""
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
    given = parser.parse_args(arguments)
    names = given.transform or [os.environ.get("TRANSFORM") or DEFAULT_TRANSFORM]
    try:
        connection = read_store_connection({"STORE_CONNECTION": given.store} if given.store else os.environ)
        rooms = rooms_of(one for name in names for one in load_transform(name).row_classes)
        path = embedded_path(connection)
        if path is not None:
            migrate_sqlite(path, rooms, _tell)
        else:
            from core.store.sqlserver.schema import MigrationRun, migrate_server

            migrate_server(connection, run=MigrationRun(_tell), rooms=rooms)
    except (HubledgerError, OSError) as error:
        print(f"migrate: {error}", file=sys.stderr)  # noqa: T201
        return 1
    _tell("the store is up to date")
    return 0


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
