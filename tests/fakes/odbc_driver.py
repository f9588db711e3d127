"""A driver of the form of pyodbc, before a server that knows streams and checkpoints and fails on demand.

It keeps the promises that the store relies on: a batch needs a value for each marker, a batch's error may show only at
`nextset()`, a lost or closed connection answers nothing, and a commit is guarded by the checkpoint it expects.
"""

import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Any

from core.model.transforms import NONE_UNKNOWN
from core.store.migrations import OURS, load_migrations

DECLARED = re.compile(r"@(\w+) [a-z0-9]+(?:\([^)]*\))? = (?:CONVERT\([^?]*)?\?")
COMMIT = "SELECT @commit_number AS commit_number"  # how a batch ends that commits rows
NOTED = "SELECT @noted AS noted"  # how a batch ends that notes a gap
KEPT = re.compile(r"@\w+ AS (\w+)(?=[,;])")


class Error(Exception):
    """As pyodbc raises it: the SQLSTATE, and the text with the server's number."""


def fault(state: str, number: int, text: str = "something happened", call: str = "SQLExecDirectW") -> Error:
    return Error(state, f"[{state}] [Microsoft][ODBC Driver 18 for SQL Server][SQL Server]{text} ({number}) ({call})")


def lost() -> Error:
    source = "[08S01] [Microsoft][ODBC Driver 18 for SQL Server]"
    return Error("08S01", f"{source}TCP Provider: Error code 0x68 (104) (SQLExecDirectW); {source}link failure (104)")


class When(Enum):
    """The point of a batch at which its fault shows."""

    AT_ONCE = auto()  # execute() raises, and nothing was done
    LATE = auto()  # execute() returns, nextset() raises, and nothing was done
    AFTER = auto()  # everything was done, and the answer is lost


@dataclass
class Server:
    """The shared state of all connections. `faults` has one entry for each next commit. `refused` is part of a text."""

    schema: str = "hubledger"
    version: int = load_migrations("sqlserver")[-1].version
    recorded: list[tuple[str, int, str, str]] = field(default_factory=list)  # migrations beyond those up to the version
    edition: int = 3  # Enterprise
    now: Callable[[], datetime] = lambda: datetime(2026, 1, 1)  # noqa: DTZ001 - as the server tells it
    stream_id: int | None = None
    checkpoints: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    anchors: dict[str, int] = field(default_factory=dict)
    faults: list[tuple[When, Error] | None] = field(default_factory=list)
    refused: tuple[str, Error] | None = None
    executed: list[tuple[str, Sequence[Any]]] = field(default_factory=list)
    answers: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)  # rows by a part of the text
    held: set[int] = field(default_factory=set)  # letters that the claim of the next retry holds

    @property
    def commits(self) -> list[tuple[str, Sequence[Any]]]:
        return [one for one in self.executed if COMMIT in one[0]]

    def answer(self, text: str, values: dict[str, Any]) -> list[list[tuple[Any, ...]]]:
        results = [self._selected(text, values)]
        if COMMIT in text:
            number = self._commit(text, values)
            results.append([(number, *(0 for _ in KEPT.findall(text.rpartition("SELECT ")[2])[1:]))])
        if NOTED in text:
            results.append([(1,)])
        return [rows for rows in results if rows]

    def _selected(self, text: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        if self.refused is not None and self.refused[0] in text:
            raise self.refused[1]
        if f"m.name, m.text_hash FROM {self.schema}.schema_migration" in text:
            return self._recorded()
        if "SERVERPROPERTY('EngineEdition')" in text:
            return [(self.edition,)]
        if "SYSUTCDATETIME(), 126) AS now_at" in text:
            return [(self.now().isoformat(),)]
        if "SELECT TOP (1) e.stream_id" in text:
            return [] if self.stream_id is None else [(self.stream_id,)]
        if f"INSERT INTO {self.schema}.event_stream" in text:
            self.stream_id = 1
        if "CONVERT(varchar(36), c.commit_id)" in text:
            kept = self.checkpoints.get(values["partition_id"])
            return [] if kept is None else [(*kept, None, 0)]
        if "SELECT a.sequence_number, e.anchored_at" in text:
            return [(self.anchors.get(values["partition_id"]), datetime(2026, 1, 1), None, 0)]  # noqa: DTZ001 - as pyodbc gives it
        if f"INSERT INTO {self.schema}.partition_anchor" in text and values:  # a migration has none
            self.anchors.setdefault(values["partition_id"], values["sequence_number"])
        return next((rows for part, rows in self.answers.items() if part in text), [])

    def _recorded(self) -> list[tuple[Any, ...]]:
        ours = [(OURS, one.version, one.name, one.text_hash) for one in load_migrations("sqlserver")[: self.version]]
        return [*ours, *self.recorded]

    def _commit(self, text: str, values: dict[str, Any]) -> int:
        kept = self.checkpoints.get(values["partition_id"])
        number = int(kept[3]) + 1 if kept else 1
        if "commit_id" in values:
            if (kept[0] if kept else None) != values.get("expected"):
                raise unmet(text, "_checkpoint")
            place = (values["sequence_number"], values["offset_token"], values["enqueued_at"])
            self.checkpoints[values["partition_id"]] = (*place, number, values["commit_id"], NONE_UNKNOWN)
            return number
        if kept is None:
            raise unmet(text, "count_")
        if "claimed_by" in values:
            numbers = {number for (number,) in json.loads(values["sequence_numbers"])}
            if not numbers <= self.held:
                raise unmet(text, "settle_letters")
            self.held -= numbers
        self.checkpoints[values["partition_id"]] = (*kept[:3], number, *kept[4:])
        return number


def unmet(text: str, statement: str) -> Error:
    found = re.search(rf"THROW (\d+), '(\w*{statement}\w*) ", text)
    assert found, statement
    return fault("42000", int(found[1]), f"{found[2]} touched a different number of rows than expected")


class FakeDriver:
    """Stands in for pyodbc. `refusals` are raised by the next sign-ins."""

    Error: type[Exception] = Error

    def __init__(self, server: Server | None = None) -> None:
        self.server = server or Server()
        self.refusals: list[Exception] = []
        self.connections: list[FakeConnection] = []
        self.options: list[dict[str, Any]] = []

    def connect(self, connection_string: str, /, **options: Any) -> Any:
        self.options.append({"string": connection_string, **options})
        if self.refusals:
            raise self.refusals.pop(0)
        self.connections.append(FakeConnection(self.server))
        return self.connections[-1]

    @property
    def open(self) -> list["FakeConnection"]:
        return [connection for connection in self.connections if not connection.closed]


class FakeConnection:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.closed = False
        self.lost = False
        self.timeout = self.maxwrite = 0
        self.thread = threading.get_ident()
        self.cursors: list[FakeCursor] = []

    def cursor(self) -> "FakeCursor":
        self.demand_life()
        if any(not cursor.closed for cursor in self.cursors):
            raise Error("HY000", "[HY000] [Microsoft]Connection is busy with results for another command (0) (SQLExec)")
        self.cursors.append(FakeCursor(self))
        return self.cursors[-1]

    def close(self) -> None:
        self.demand_life()
        self.closed = True

    def demand_life(self) -> None:
        if self.closed or self.lost:
            self.closed = True
            raise Error("08S01", "[08S01] [Microsoft]Communication link failure (0) (SQLExecDirectW)")


class FakeCursor:
    """One batch: its rows come after the empty results that the server sent before them."""

    def __init__(self, connection: FakeConnection) -> None:
        self._connection = connection
        self._results: list[list[tuple[Any, ...]]] = []
        self._late: Error | None = None
        self.closed = False
        self.sizes: list[tuple[int, int, int] | None] = []

    def setinputsizes(self, sizes: list[tuple[int, int, int] | None]) -> None:
        self.sizes = sizes

    def execute(self, text: str, given: Sequence[Any] = ()) -> None:
        self._connection.demand_life()
        assert self._connection.thread == threading.get_ident(), "a connection was used by another thread"
        names = DECLARED.findall(text)
        assert len(names) == len(given) == text.count("?"), (names, given)
        assert None not in given, "the driver asks the server for the type of None"
        for value, size in zip(given, self.sizes, strict=True):
            assert size or isinstance(value, bytes), (
                "the driver declares a value by its size, and the server makes a plan for each"
            )
            assert not isinstance(value, str) or size is None or size[1] == 0 or len(value) <= size[1], (
                "the driver refuses the text"
            )
        server = self._connection.server
        server.executed.append((text, given))
        planned = server.faults.pop(0) if server.faults and COMMIT in text else None
        if planned is not None and planned[0] is not When.AFTER:
            self._fail(*planned)
            return
        self._results = server.answer(text, dict(zip(names, given, strict=True)))
        if planned is not None:
            self._fail(When.AT_ONCE, planned[1])

    def _fail(self, when: When, error: Error) -> None:
        self._connection.lost = error.args[0].startswith("08")
        if when is When.AT_ONCE:
            raise error
        self._late, self._results = error, [[(0,)]]

    @property
    def description(self) -> list[tuple[str]] | None:
        return [("column",)] if self._results else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._results[0]

    def nextset(self) -> bool:
        if self._late is not None:
            raise self._late
        self._results = self._results[1:]
        return bool(self._results)

    def close(self) -> None:
        self.closed = True
