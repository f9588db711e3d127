"""A driver of the form of pyodbc before a server whose databases are SQLite files."""

import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


class Error(Exception):
    """As pyodbc raises it."""


@dataclass
class FileServer:
    """The databases by name, those that are marked, those that are locked, and the faults of the next calls."""

    folder: Path
    databases: dict[str, Path] = field(default_factory=dict)
    marked: dict[str, str] = field(default_factory=dict)
    locks: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    edition: int = 3
    others: int = 0
    denies: str = ""
    Error: type[Exception] = Error

    def connect(self, connection_string: str, /, **options: Any) -> "Line":
        self._fail()
        self.strings.append(connection_string)
        name = re.findall(r"DATABASE=\{?(\w+)", connection_string)[-1]
        if name != "master" and name not in self.databases:
            raise Error(f'[42000] Cannot open database "{name}" requested by the login. (4060)')
        return Line(self, name)

    def create(self, name: str) -> Path:
        self.databases[name] = self.folder / f"{name}.db"
        return self.databases[name]

    def _fail(self) -> None:
        if self.faults:
            raise Error(self.faults.pop(0))


class Line:
    """A connection, which is its own cursor."""

    def __init__(self, server: FileServer, database: str) -> None:
        self._server, self._database = server, database
        self._rows: Any = None
        self._files = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.autocommit, self.timeout = True, 0
        if database in server.databases:
            self._files.execute("ATTACH ? AS hubledger", (str(server.databases[database]),))

    def cursor(self) -> "Line":
        return self

    def execute(self, text: str, *values: Any) -> Any:
        self._server._fail()
        if self._server.denies:
            raise Error("42000", self._server.denies)
        self._server.texts.append(text)
        if "sp_addextendedproperty" in text:
            self._server.marked[self._database] = text.split("'")[1]
            return Rows([])
        for part, answer in SYSTEM.items():
            if part in text:
                return Rows(answer(self, text))
        if " WITH (TABLOCKX, HOLDLOCK)" in text:
            self._files.execute("BEGIN IMMEDIATE")
            text = text.replace(" WITH (TABLOCKX, HOLDLOCK)", "")
        return Instants(self._files.execute(text, values))

    def rollback(self) -> None:
        self._files.execute("ROLLBACK")

    def close(self) -> None:
        if self._server.locks.get(self._database) == id(self):
            del self._server.locks[self._database]
        self._files.close()

    def _lock(self, text: str) -> list[tuple[Any, ...]]:
        holder = self._server.locks.setdefault(self._database, id(self))
        return [(0 if holder == id(self) else -1,)]

    def _tables(self, text: str) -> list[tuple[Any, ...]]:
        found = self._files.execute("SELECT name FROM hubledger.sqlite_master WHERE type = 'table' ORDER BY name")
        return [row for row in found if not row[0].startswith("sqlite_")]

    def _create(self, text: str) -> list[tuple[Any, ...]]:
        self._server.create(text.split("[")[1].split("]")[0])
        return []


SYSTEM: dict[str, Callable[[Line, str], list[tuple[Any, ...]]]] = {
    "sp_getapplock": Line._lock,
    "sys.dm_exec_sessions": lambda line, _: [(line._server.others,)],
    "is_ms_shipped": lambda line, text: [(len(line._tables(text)),)],
    "sys.extended_properties": lambda line, _: [
        (use,) for name, use in line._server.marked.items() if name == line._database
    ],
    "sys.tables": Line._tables,
    "sys.foreign_keys": lambda line, _: [("replay_progress", "fk_replay_progress_job")],
    "DROP CONSTRAINT": lambda line, _: [],
    "EngineEdition": lambda line, _: [(line._server.edition,)],
    "CREATE DATABASE": Line._create,
    "ALTER DATABASE": lambda line, _: [],
}


class Rows:
    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows

    def fetchone(self) -> tuple[Any, ...]:
        return self._rows[0]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows


class Instants:
    """A cursor whose instants are datetimes without a zone, as those of datetime2."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor

    @property
    def description(self) -> Any:
        return self._cursor.description

    def fetchall(self) -> list[tuple[Any, ...]]:
        return [tuple(map(_given, row)) for row in self._cursor.fetchall()]

    def fetchmany(self, most: int) -> list[tuple[Any, ...]]:
        return [tuple(map(_given, row)) for row in self._cursor.fetchmany(most)]

    def close(self) -> None:
        self._cursor.close()


def _given(value: Any) -> Any:
    return datetime.fromisoformat(value[:-1]) if isinstance(value, str) and INSTANT.fullmatch(value) else value
