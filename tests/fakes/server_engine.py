"""The T-SQL server that MSSQL_CONNECTION names, as an engine of the contract suite."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from core.model.commits import PartitionState
from core.model.events import Event
from core.model.rows import declared, row_table
from core.store.columns import instant_of, quoted, row_reader
from core.store.sqlserver.connections import LongText, Session, connect
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.kept import (
    SERVER,
    STAGED,
    Dialect,
    KeptAttempt,
    KeptGap,
    KeptLetter,
    KeptRange,
    KeptRetracted,
    KeptRow,
    staged_values,
)
from tests.fakes.rooms import EXAMPLES, Rooms
from tests.fakes.server_schema import empty_schema, shared_schema
from tests.fakes.store import Store

ORDER = "ORDER BY t.stream_id, LEN(t.partition_id), t.partition_id"
PLACE = ("stream_id", "partition_id", "sequence_number")
LETTER = (
    *PLACE, "offset_token", "enqueued_at", "partition_key", "properties", "body", "error_class", "error_type", "error",
    "fingerprint", "transform_version", "status", "attempts", "due_at", "failed_at",
    "body_kept", "lost_claims", "claimed_by", "claimed_until", "began_at", "settled_at", "settled_why",
)  # fmt: skip
GAP = (
    "stream_id", "partition_id", "first_sequence_number", "last_sequence_number", "found_at", "status", "attempts",
)  # fmt: skip
RANGE = (
    "stream_id", "partition_id", "commit_number", "first_sequence_number", "last_sequence_number", "written",
    "filtered", "dead_lettered", "absent", "rows_written", "transform_version", "invocation_id", "committed_at",
)  # fmt: skip
ATTEMPT = (
    *PLACE, "attempt", "touched_by", "kind", "status", "error_class", "error", "commit_number", "done_by", "why",
)  # fmt: skip

RETRACTED = (
    "stream_id", "partition_id", "commit_number", "table_name", "sequence_number", "ordinal", "row_commit_number",
    "row",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SqlServerEngine:
    """The process's own schema, emptied; read through a separate connection."""

    connection_string: str
    schema: str
    session: Session

    @staticmethod
    def on(connection_string: str, rooms: Rooms = EXAMPLES) -> "SqlServerEngine":
        """Return the engine of this server."""
        schema = shared_schema(connection_string, rooms)
        session = _shared_session(connection_string)
        empty_schema(session, schema, rooms)
        return SqlServerEngine(connection_string, schema, session)

    @property
    def dialect(self) -> Dialect:
        return SERVER

    def open(self) -> Store:
        return Store(SqlServerDatabase(self.connection_string, schema=self.schema))

    def environment(self) -> dict[str, str]:
        return {"STORE_CONNECTION": self.connection_string, "STORE_SCHEMA": self.schema}

    def rows(self, row_class: type) -> list[KeptRow]:
        table, read = row_table(row_class), row_reader(row_class)
        ordinal = () if table.key else ("ordinal",)
        found = self._select(
            table.name,
            (*PLACE, *ordinal, "commit_number", *table.columns),
            ("sequence_number", *(table.key or ordinal)),
        )
        kept = []
        for one in found:
            lineage = one[:4] if table.key else one[:5]
            values: list[Any] = [*one[:3], None if table.key else one[3], lineage[-1], read(tuple(one[len(lineage) :]))]
            kept.append(KeptRow(*values))
        return kept

    def letters(self) -> list[KeptLetter]:
        return [_letter(list(one)) for one in self._select("event_hub_dead_letter", LETTER, ("sequence_number",))]

    def ledger(self) -> list[KeptRange]:
        return self._ranges("batch")

    def retries(self) -> list[KeptRange]:
        return self._ranges("retry")

    def attempts(self) -> list[KeptAttempt]:
        found = self._select("dead_letter_attempt", ATTEMPT, ("sequence_number", "attempt"))
        return [KeptAttempt(*one) for one in found]

    def replays(self) -> list[KeptRange]:
        return self._ranges("replay")

    def retracted(self) -> list[KeptRetracted]:
        order = ("commit_number", "table_name", "sequence_number", "ordinal")
        return [_retracted(tuple(one)) for one in self._select("retracted_row", RETRACTED, order)]

    def _ranges(self, kind: str) -> list[KeptRange]:
        found = self._select("batch_ledger", (*RANGE, "kind"), ("commit_number",))
        return [_range([*one[:-2], instant_of(one[-2])]) for one in found if one[-1] == kind]

    def gaps(self) -> list[KeptGap]:
        found = self._select("sequence_gap", GAP, ("first_sequence_number",))
        return [_gap([*one[:4], instant_of(one[4]), *one[5:]]) for one in found]

    def stage(self, state: PartitionState, events: Iterable[Event]) -> None:
        for event in events:
            values = list(staged_values(state, event))
            values[4] = str(values[4]).removesuffix("Z")
            marks = "?, ?, ?, ?, ?, ?, ?, CONVERT(varbinary(max), ?, 2)"
            text = f"SET NOCOUNT ON; INSERT INTO {self.schema}.staged_event ({', '.join(STAGED)}) VALUES ({marks});"
            self.session.run(text, [*values[:6], LongText(values[6]), LongText(event.body.hex())])

    def staged(self) -> list[tuple[str, int]]:
        found = self._select("staged_event", PLACE, ("sequence_number",))
        return [(one[1], one[2]) for one in found]

    def by_hand(self, statement: str) -> list[tuple[object, ...]]:
        placed = re.sub(r"\b(FROM|INTO|UPDATE) (\w+)", rf"\1 {self.schema}.\2", statement)
        without_zones = re.sub(r"(:\d\d\.\d{6})Z'", r"\1'", placed)
        results = self.session.run(f"SET NOCOUNT ON; {without_zones};")
        return results[-1] if results else []

    def _select(self, table: str, columns: tuple[str, ...], order: tuple[str, ...]) -> list[Any]:
        chosen = ", ".join(f"t.{quoted(name)}" for name in columns)
        ordered = "".join(f", t.{quoted(name)}" for name in order)
        return self.session.run(f"SET NOCOUNT ON; SELECT {chosen} FROM {self.schema}.{table} AS t {ORDER}{ordered};")[
            -1
        ]


_sessions: dict[str, Session] = {}


def _shared_session(connection_string: str) -> Session:
    if connection_string not in _sessions:
        _sessions[connection_string] = connect(connection_string)
    return _sessions[connection_string]


def _retracted(one: tuple[Any, ...]) -> KeptRetracted:
    row_class = {row_table(each).name: each for each in declared()}[one[3]]
    columns = json.loads(one[7])
    row = row_reader(row_class)(tuple(columns[name] for name in row_table(row_class).columns))
    values: list[Any] = [*one[:7], row]
    return KeptRetracted(*values)


def _gap(values: list[Any]) -> KeptGap:
    return KeptGap(*values)


def _range(values: list[Any]) -> KeptRange:
    return KeptRange(*values)


def _letter(values: list[Any]) -> KeptLetter:
    for at in (4, 15, 16, 20, 21, 22):
        values[at] = None if values[at] is None else instant_of(values[at])
    values[6], values[7] = json.loads(values[6]), bytes(values[7])
    return KeptLetter(*values)
