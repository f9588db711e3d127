"""`python -m core.store.migrate`: create the database that STORE_CONNECTION names, or upgrade it."""

import argparse
import os
import sys

from core.errors import HubledgerError
from core.settings import EMBEDDED, embedded_path, read_store_connection
from core.store.sqlite.schema import migrate_sqlite


def main(arguments: list[str] | None = None) -> int:
    """Apply the missing migrations and print their progress; on a fault, print one line on stderr and return 1."""
    parser = argparse.ArgumentParser(prog="python -m core.store.migrate", description=__doc__)
    parser.add_argument(
        "--store",
        help=f"the store's connection, {EMBEDDED}PATH or an ODBC string; default: the setting STORE_CONNECTION",
    )
    given = parser.parse_args(arguments)
    try:
        connection = read_store_connection({"STORE_CONNECTION": given.store} if given.store else os.environ)
        _migrate(connection)
    except (HubledgerError, OSError) as error:
        print(f"migrate: {error}", file=sys.stderr)  # noqa: T201
        return 1
    _tell("the store is up to date")
    return 0


def _migrate(connection: str) -> None:
    path = embedded_path(connection)
    if path is not None:
        for migration in migrate_sqlite(path):
            _tell(f"applied {migration.title}")
        return
    from core.store.sqlserver.schema import migrate_server

    migrate_server(connection, tell=_tell)


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
