"""A store on SQL Server for a local run, and Microsoft's ODBC driver where it is installed.

No code of the app reads or copies here, so that the recount stays independent of it. Only the loading of the driver is
shared.
"""

import argparse
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import date, datetime
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import UUID

from core.errors import StoreMisconfigured
from core.store.sqlserver.connections import Driver, load_driver
from local.stack.processes import Pause

MISSING = (
    "no Microsoft ODBC driver here: install msodbcsql18, or pip install mssql-python-odbc and apt-get install unixodbc"
)


def microsoft_driver() -> str | None:
    """Return the newest driver's name in a connection string, or None where it or the ODBC manager is missing."""
    try:
        known = load_driver()
    except StoreMisconfigured:
        return None
    if installed := [name for name in known.drivers() if "SQL Server" in name]:  # type: ignore[attr-defined]
        return str(max(installed))
    packaged = find_spec("mssql_python_odbc")
    if packaged is None or packaged.origin is None:
        return None
    found = sorted(Path(packaged.origin).parent.glob("libs/linux/debian*/x86_64/lib/libmsodbcsql-*"))
    return str(found[-1]) if found else None


SCHEMA = "hubledger"
MARK = "hubledger_local_run"  # an extended property of the databases of local runs; its value is one of these
DEMOS, RUNS = "demos and benchmarks, which empty it", "make run, which keeps it"
STARTS_IN, PATIENCE, AGAIN = 90.0, 30.0, 1.0  # seconds: of a container that starts, of one read, between two tries
SIGN_IN, ANSWER = 10, 30  # seconds: the driver hears of no Ctrl-C meanwhile
AZURE = 5  # the engine edition of Azure SQL Database, where a database costs money
PAGE = 10_000  # rows
ENDED_IN = 5.0  # seconds
NO_DRIVER = ("IM002", "01000")  # SQLSTATE of the driver manager: waiting helps nothing
SYSTEM = ("master", "model", "msdb", "tempdb")
_NO_DATABASE = re.compile(r"\(4060\)")
_WORD = re.compile(r"([^=;]+)=\s*(\{(?:[^}]|\}\})*\}|[^;]*)")
_FROM = re.compile(r"\bFROM (?=[a-z_]+\b)")
_TABLES = "SELECT t.name FROM sys.tables AS t WHERE t.schema_id = SCHEMA_ID(?) ORDER BY t.name"
_ANY_TABLES = "SELECT COUNT(*) FROM sys.tables AS t WHERE t.is_ms_shipped = 0"
_FOREIGN_KEYS = """
SELECT OBJECT_NAME(f.parent_object_id), f.name FROM sys.foreign_keys AS f WHERE f.schema_id = SCHEMA_ID(?)
"""
_OTHERS = """
SELECT COUNT(*) FROM sys.dm_exec_sessions AS s
 WHERE s.database_id = DB_ID() AND s.program_name = APP_NAME() AND s.session_id <> @@SPID
"""
_MARKED = "SELECT CONVERT(nvarchar(100), p.value) FROM sys.extended_properties AS p WHERE p.class = 0 AND p.name = ?"


class ServerRefused(Exception):
    """The server cannot hold the store of a local run. The message says why, and what to do."""


class Server:
    """A database on a server, which only one local run uses at a time. Several threads may read."""

    def __init__(self, connection: str, driver: Callable[[], Driver] = load_driver, pause: Pause = time.sleep) -> None:
        words = _words(connection)
        self.server, self.database = words.get("server", ""), words.get("database", "")
        if not self.server or not self.database:
            raise ServerRefused("the store is no ODBC string with SERVER= and DATABASE=: docs/run.md shows one")
        if self.database.lower() in SYSTEM:
            raise ServerRefused(f"{self} belongs to the server itself: name a missing or an empty database")
        self.connection = _with_driver(connection)
        self._driver = driver()
        self._pause = pause
        self._reading = Lock()
        self._open: Any = None
        self._kept: Any = None

    def __str__(self) -> str:
        return f"database {self.database} on {self.server}"

    def prepare(self, use: str = DEMOS, pause: Pause | None = None) -> None:
        """Wait for the server, create the database if it is missing, and take it for this run.

        From now on every wait calls `pause`, which may raise Interrupted. Raise ServerRefused when the database holds
        tables that no local run made, when it is marked for a different use, or when a different run uses it.
        """
        self._pause = pause or self._pause
        self._kept = self._reach()
        with self._refusing("cannot be taken for a local run"):
            self._take(self._kept.cursor(), use)

    def _take(self, cursor: Any, use: str) -> None:
        taken = "SET NOCOUNT ON; DECLARE @r int; EXEC @r = sp_getapplock @Resource = ?, @LockMode = 'Exclusive',"
        (code,) = cursor.execute(f"{taken} @LockOwner = 'Session', @LockTimeout = 0; SELECT @r;", MARK).fetchone()
        if code < 0:
            raise ServerRefused(f"a different local run uses {self}: end that one first")
        self._refuse_left_over(cursor)
        for (marked,) in cursor.execute(_MARKED, MARK).fetchall():
            if marked != use:
                raise ServerRefused(f"{self} is for {marked}: name a different one for {use}")
            return
        if cursor.execute(_ANY_TABLES).fetchone()[0]:
            raise ServerRefused(f"{self} holds tables that no local run made: name a missing or an empty database")
        cursor.execute(f"EXEC sys.sp_addextendedproperty @name = ?, @value = N'{use}';", MARK)

    def _refuse_left_over(self, cursor: Any) -> None:
        """Refuse a database that processes of a killed run still write to. Those that end just now get some time."""
        deadline = time.monotonic() + ENDED_IN
        while count := cursor.execute(_OTHERS).fetchone()[0]:
            if time.monotonic() > deadline:
                raise ServerRefused(
                    f"{count} other sessions of this program use {self}: end what a killed run has left"
                )
            self._pause(AGAIN)

    def empty(self) -> None:
        """Drop the tables of the runs before. `prepare` has shown that they are of local runs."""
        with self._refusing("cannot be emptied"):
            cursor = self._kept.cursor()
            for table, key in cursor.execute(_FOREIGN_KEYS, SCHEMA).fetchall():
                cursor.execute(f"ALTER TABLE {SCHEMA}.{_quoted(table)} DROP CONSTRAINT {_quoted(key)};")
            for (table,) in cursor.execute(_TABLES, SCHEMA).fetchall():
                cursor.execute(f"DROP TABLE {SCHEMA}.{_quoted(table)};")

    def select(self, query: str, most: int | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of a query without schemas, or the first of them. Wait while the server is away."""
        text, deadline = _FROM.sub(f"FROM {SCHEMA}.", query), time.monotonic() + PATIENCE
        while True:
            try:
                with self._reading:
                    return self._read(text, most)
            except self._driver.Error as error:
                if time.monotonic() > deadline:
                    raise ServerRefused(f"{self} does not answer: {_text(error)}") from error
            self._pause(AGAIN)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the checkpoints inside the block, so that every commit waits."""
        with self._refusing("cannot be locked"), closing(self._connect(self.connection)) as connection:
            connection.autocommit = False
            connection.execute(
                f"SELECT COUNT(*) FROM {SCHEMA}.event_hub_checkpoint WITH (TABLOCKX, HOLDLOCK)"
            ).fetchall()
            yield
            connection.rollback()

    def copy(self, file: Path) -> Path:
        """Copy every table into a new SQLite file, in the form of the embedded store, and return the file."""
        with (
            self._refusing("cannot be copied"),
            closing(self._connect(self.connection)) as source,
            closing(sqlite3.connect(file)) as target,
        ):
            for (table,) in source.execute(_TABLES, SCHEMA).fetchall():
                _copy_table(source.execute(f"SELECT * FROM {SCHEMA}.{_quoted(table)}"), target, table)
            target.commit()
        return file

    def close(self) -> None:
        """Close the connections, which gives the database free for a different run."""
        for connection in (self._open, self._kept):
            if connection is not None:
                with suppress(self._driver.Error):
                    connection.close()

    def _read(self, text: str, most: int | None) -> list[tuple[Any, ...]]:
        try:
            if self._open is None:
                self._open = self._connect(self.connection)
                self._open.timeout = ANSWER
            with closing(self._open.execute(text)) as found:
                return [tuple(row) for row in (found.fetchall() if most is None else found.fetchmany(most))]
        except self._driver.Error:
            opened, self._open = self._open, None
            if opened is not None:
                with suppress(self._driver.Error):
                    opened.close()
            raise

    def _reach(self) -> Any:
        deadline, told = time.monotonic() + STARTS_IN, ""
        while True:
            try:
                return self._connect(self.connection)
            except self._driver.Error as error:
                text = _text(error)
                if time.monotonic() > deadline or error.args[0] in NO_DRIVER:
                    hint = ": leave DRIVER= out, and the newest one here is used" if error.args[0] in NO_DRIVER else ""
                    raise ServerRefused(f"{self} cannot be reached: {text}{hint}") from error
                if _NO_DATABASE.search(text):
                    self._create()
                elif text != told:
                    print(f"waiting for {self}: {text}", flush=True)
                    told = text
            self._pause(AGAIN)

    def _create(self) -> None:
        """Create the database as Azure SQL would make it."""
        name = _quoted(self.database)
        master = _WORD.sub(_to_master, self.connection)
        with self._refusing("is missing and cannot be created"), closing(self._connect(master)) as connection:
            (edition,) = connection.execute("SELECT CONVERT(int, SERVERPROPERTY('EngineEdition'))").fetchone()
            if edition == AZURE:
                raise ServerRefused(f"{self} is missing, and one in Azure SQL costs money: create it first")
            connection.execute(f"CREATE DATABASE {name};")
            connection.execute(f"ALTER DATABASE {name} SET READ_COMMITTED_SNAPSHOT ON;")

    @contextmanager
    def _refusing(self, why: str) -> Iterator[None]:
        """Turn an error of the driver in the block into ServerRefused, which is one line."""
        try:
            yield
        except self._driver.Error as error:
            raise ServerRefused(f"{self} {why}: {_text(error)}") from error

    def _connect(self, connection: str) -> Any:
        return self._driver.connect(connection, autocommit=True, timeout=SIGN_IN)


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the option for a store on a server. Its default is the environment variable STORE."""
    parser.add_argument(
        "--store",
        type=_server,
        default=os.environ.get("STORE") or None,
        metavar="ODBC",
        help="the connection string of a database on SQL Server, instead of an embedded store; default: $STORE",
    )


def _server(text: str) -> Server:
    try:
        return Server(text)
    except (ServerRefused, StoreMisconfigured) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


@contextmanager
def prepared(server: Server | None, use: str = DEMOS, pause: Pause | None = None) -> Iterator[None]:
    """Have a server, where there is one, ready for this run until the end of the block."""
    try:
        if server is not None:
            server.prepare(use, pause)
        yield
    finally:
        if server is not None:
            server.close()


def _with_driver(connection: str) -> str:
    if not _words(connection).keys().isdisjoint(("driver", "dsn")):
        return connection
    name = microsoft_driver()
    if name is None:
        raise ServerRefused(MISSING)
    return f"DRIVER={{{name}}};{connection}"


def _words(connection: str) -> dict[str, str]:
    """Return the values of an ODBC string by their names. In braces, a value may hold any character."""
    words: dict[str, str] = {}
    for name, value in _WORD.findall(connection):
        plain = value.strip()
        if plain.startswith("{") and plain.endswith("}"):
            plain = plain[1:-1].replace("}}", "}")
        words.setdefault(name.strip().lower(), plain)
    return words


def _to_master(word: re.Match[str]) -> str:
    return f"{word[1]}=master" if word[1].strip().lower() == "database" else word[0]


def _text(error: Exception) -> str:
    return (str(error.args[-1] if error.args else error).splitlines() or [""])[0]


def _quoted(name: str) -> str:
    return f"[{name.replace(']', ']]')}]"


def _copy_table(rows: Any, target: sqlite3.Connection, table: str) -> None:
    names = [_quoted(column[0]) for column in rows.description]
    target.execute(f"CREATE TABLE {_quoted(table)} ({', '.join(names)})")
    markers = ", ".join("?" * len(names))
    while page := rows.fetchmany(PAGE):
        target.executemany(
            f"INSERT INTO {_quoted(table)} VALUES ({markers})", [tuple(map(_embedded, row)) for row in page]
        )


def _embedded(value: Any) -> Any:
    """Return a value as the embedded store has it."""
    if isinstance(value, datetime):
        return f"{value.isoformat(timespec='microseconds')}Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value)
    return int(value) if isinstance(value, bool) else value
