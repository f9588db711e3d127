"""The engines under the contract of the store, each with a reader of the rows that it wrote."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from core.settings import EMBEDDED
from core.store.sqlite.database import SqliteDatabase
from local.trials.memory import migrated
from tests.fakes.kept import Engine, PersistentEngine
from tests.fakes.rooms import EXAMPLES, migrate_examples
from tests.fakes.server_engine import SqlServerEngine
from tests.fakes.sqlite_eyes import SqliteEyes
from tests.fakes.store import Store


class SqliteEngine(SqliteEyes):
    """A migrated database in a file, read through a separate connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists():
            migrate_examples(path)
        else:
            path.write_bytes(migrated(EXAMPLES))
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def open(self) -> Store:
        return Store(SqliteDatabase(self.path))

    def environment(self) -> dict[str, str]:
        return {"STORE_CONNECTION": f"{EMBEDDED}{self.path}"}


PERSISTENT: dict[str, Callable[[Path], PersistentEngine]] = {"sqlite": lambda place: SqliteEngine(place / "store.db")}
if os.environ.get("MSSQL_CONNECTION"):
    PERSISTENT["sqlserver"] = lambda _: SqlServerEngine.on(os.environ["MSSQL_CONNECTION"])
ENGINES: dict[str, Callable[[Path], Engine]] = {**PERSISTENT}
