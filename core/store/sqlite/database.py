"""The embedded database: stdlib sqlite3, WAL, one writer at a time, and one connection per thread and durability."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from core.errors import CommitOutcomeUnknown, DataRefused, StoreUnavailable
from core.store.columns import instant_text
from core.store.migrations import check_columns
from core.store.queries import load_queries
from core.store.script import Named, Outcome, Script, Step
from core.store.sqlite.schema import misfit, open_checked
from core.store.sqlite.statements import EXACT_FLOAT, ROWS_HASH, many_values, rows_hash, rows_text
from core.transforms.loading import rooms_of

NOT_DURABLE = (  # of a connection: no commit waits, and the 16 MB hold a portion of a run, which is then written once
    "PRAGMA synchronous = NORMAL",
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA cache_size = -16000",
)
PAUSE = 0.0005  # seconds
STORE_TIME = "store_time"  # the function that tells the time in SQL
CHECKPOINT_AFTER = 32_000  # rows that such commits changed: a checkpoint waits for the disk; the log grows until then

sqlite3.register_adapter(Decimal, lambda number: f"{number:f}")  # exact, as text

Kept = dict[str, int]


class _RolledBack(Exception):
    """Ends a rehearsal."""


class SqliteDatabase:
    """A Database in one file. `busy_timeout` is the longest wait, in seconds, for another process that writes. `now` is
    the clock of the machine, which all processes share as they share the file.

    It does not open unless the rows of the `needed` classes have their tables, and their rooms their migrations.
    """

    def __init__(
        self,
        path: Path,
        busy_timeout: float = 5.0,
        connect: Callable[[], sqlite3.Connection] | None = None,
        needed: tuple[type, ...] = (),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._path = path
        self._now = now
        self._connect = connect or (lambda: open_checked(path, busy_timeout, rooms_of(needed)))
        self._needed = needed
        self._queries = load_queries("sqlite")
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._writing = threading.Lock()  # fair between threads; SQLite's own waiting polls
        self._unchecked = 0  # rows that transactions have changed since the last checkpoint and that are not durable

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        with _named_faults():
            return self._connection().execute(self._text(statement, values), values).fetchall()

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        kept: Kept = {step.counts: 0 for step in script.steps if step.counts}
        rows: list[tuple[Any, ...]] = []
        with suppress(_RolledBack), self._writing, _named_faults(), self._transaction(script) as connection:
            before = connection.total_changes
            for step in script.steps:
                found = self._do(connection, step, kept)
                rows = found if step.answers else rows
            if rehearse:
                raise _RolledBack
        if not script.durable:
            self._let_others_write(connection.total_changes - before)
        return Outcome(kept, rows)

    def close(self) -> None:
        with self._writing:
            while self._connections:
                self._connections.pop().close()
            self._local = threading.local()

    def _do(self, connection: sqlite3.Connection, step: Step, kept: Kept) -> list[tuple[Any, ...]]:
        values = {**step.values, **kept}
        text = self._text(step.statement, values)
        if step.many is None:
            cursor = connection.execute(text, values)
        else:
            cursor = connection.executemany(text, many_values(step, values))
        rows = cursor.fetchall()
        touched = len(rows) if cursor.description else cursor.rowcount
        if step.expect is not None and touched != step.expect and step.otherwise is not None:
            raise step.otherwise()
        if step.keeps:
            kept[step.keeps] = rows[0][0]
        if step.counts:
            kept[step.counts] += max(0, touched)
        return rows

    def _text(self, statement: Named, values: Mapping[str, Any]) -> str:
        if not isinstance(statement, str):
            return rows_text(statement)
        query = self._queries[statement]
        missing = {name for name in query.optional if values[name] is None}
        return query.text_without(missing) if missing else query.text

    @contextmanager
    def _transaction(self, script: Script) -> Iterator[sqlite3.Connection]:
        connection = self._connection(script.durable)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._connections.remove(self._opened().pop(script.durable))
            connection.close()
            fault = StoreUnavailable if script.may_repeat else CommitOutcomeUnknown
            raise fault(f"{script.subject}: the commit was not answered: {error}") from error

    def _let_others_write(self, changed: int) -> None:
        """Pause, or copy the log into the file, before the next of such transactions: neither keeps a writer waiting.

        A reader or a full disk only delays the copy.
        """
        self._unchecked += changed
        if self._unchecked < CHECKPOINT_AFTER:
            time.sleep(PAUSE)
            return
        self._unchecked = 0
        with suppress(sqlite3.Error):
            self._connection(durable=False).execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _connection(self, durable: bool = True) -> sqlite3.Connection:
        found = self._opened().get(durable)
        return self._open(durable) if found is None else found

    def _open(self, durable: bool) -> sqlite3.Connection:
        connection = self._connect()
        connection.create_function(EXACT_FLOAT, 1, _exact_float, deterministic=True)
        connection.create_function(ROWS_HASH, 1, rows_hash, deterministic=True)
        now = self._now  # and not self: the collector of garbage sees no cycle through a function of SQLite
        connection.create_function(STORE_TIME, 0, lambda: instant_text(now()))
        for pragma in () if durable else NOT_DURABLE:
            connection.execute(pragma)
        if not self._connections:  # once in a process, as a rule
            try:
                read = self._queries["read_row_columns"].text
                check_columns(lambda tables: connection.execute(read, {"tables": tables}), self._needed, misfit)
            except BaseException:
                connection.close()
                raise
        self._connections.append(connection)
        self._opened()[durable] = connection
        return connection

    def _opened(self) -> dict[bool, sqlite3.Connection]:
        """Return the connections of this thread, by durability."""
        opened: dict[bool, sqlite3.Connection] = self._local.__dict__.setdefault("opened", {})
        return opened


def _exact_float(value: float | None) -> str | None:
    """Return the shortest text that reads back as the same number: SQLite's own JSON has fewer digits."""
    return None if value is None else repr(float(value))


@contextmanager
def _named_faults() -> Iterator[None]:
    """Name the faults of SQLite: a fault of a value or a constraint is DataRefused, any other is StoreUnavailable."""
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError, OverflowError, ValueError) as error:
        raise DataRefused(f"the database refuses the data: {error}") from error
    except sqlite3.ProgrammingError as error:
        if "binding" in str(error):
            raise DataRefused(f"the database refuses the data: {error}") from error
        raise StoreUnavailable(f"the embedded store is not usable: {error}") from error
    except sqlite3.Error as error:
        raise StoreUnavailable(f"the embedded store is not usable: {error}") from error
