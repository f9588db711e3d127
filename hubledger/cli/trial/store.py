"""The store of a trial: a new SQLite database with the migrations of the rooms, removed after it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from core.model.rows import row_table
from core.store.sqlite.database import SqliteDatabase
from core.transforms.loading import rooms_of
from local.trials.replay_identity import migrated


@dataclass(frozen=True, slots=True)
class Trial:
    """A database in a temporary file, so that the rows of a large file need no memory."""

    path: Path
    row_classes: tuple[type, ...]
    database: SqliteDatabase

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each table."""
        tables = [row_table(each).name for each in self.row_classes]
        with closing(sqlite3.connect(self.path)) as connection:
            return {name: connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in tables}


@contextmanager
def trial_database(row_classes: tuple[type, ...]) -> Iterator[Trial]:
    """Open a new database. Raises SchemaMismatch when a row class has no table."""
    with TemporaryDirectory(prefix="hubledger-try-") as folder:
        path = Path(folder) / "trial.db"
        path.write_bytes(migrated(rooms_of(row_classes)))
        with closing(SqliteDatabase(path, connect=lambda: _connected(path), needed=row_classes)) as database:
            yield Trial(path, row_classes, database)


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = OFF")  # nobody needs it after a crash
    connection.execute("PRAGMA foreign_keys = ON")
    return connection
