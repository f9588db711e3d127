"""The T-SQL server that MSSQL_CONNECTION names, as an engine of the contract suite."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from core.model.commits import PartitionState
from core.model.events import Event
from core.store.sqlserver.connections import LongText, Session, connect
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.eyes import Eyes
from tests.fakes.kept import SERVER, STAGED, Dialect, staged_values
from tests.fakes.rooms import EXAMPLES, Rooms
from tests.fakes.server_schema import empty_schema, shared_schema
from tests.fakes.store import Store


@dataclass(frozen=True, slots=True)
class SqlServerEngine(Eyes):
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

    def read_in_order(self, text: str, order: str) -> list[Any]:
        place = "ORDER BY t.stream_id, LEN(t.partition_id), t.partition_id"
        read = f"SET NOCOUNT ON; {text.format(p=f'{self.schema}.')} {place}, {order};"
        return self.session.run(read)[-1]

    def stage(self, state: PartitionState, events: Iterable[Event]) -> None:
        for event in events:
            values = list(staged_values(state, event))
            values[4] = str(values[4]).removesuffix("Z")
            marks = "?, ?, ?, ?, ?, ?, ?, CONVERT(varbinary(max), ?, 2)"
            text = f"SET NOCOUNT ON; INSERT INTO {self.schema}.staged_event ({', '.join(STAGED)}) VALUES ({marks});"
            self.session.run(text, [*values[:6], LongText(values[6]), LongText(event.body.hex())])

    def by_hand(self, statement: str) -> list[tuple[object, ...]]:
        placed = re.sub(r"\b(FROM|INTO|UPDATE) (\w+)", rf"\1 {self.schema}.\2", statement)
        without_zones = re.sub(r"(:\d\d\.\d{6})Z'", r"\1'", placed)
        results = self.session.run(f"SET NOCOUNT ON; {without_zones};")
        return results[-1] if results else []


_sessions: dict[str, Session] = {}


def _shared_session(connection_string: str) -> Session:
    if connection_string not in _sessions:
        _sessions[connection_string] = connect(connection_string)
    return _sessions[connection_string]
