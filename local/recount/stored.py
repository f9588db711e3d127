"""The rows and letters of a store by their places, and the events of a hub, read from the emulator's file."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

from core.model.events import Event, SequenceNumber
from core.model.rows import Row, RowTable, row_table
from local.event_hubs.codec import decode
from local.event_hubs.sections import APPLICATION_PROPERTIES, DATA, MESSAGE_ANNOTATIONS, sections
from local.functions_host.event_hub_inputs import json_annotations, json_message_properties, json_properties
from local.recount.expected import Place
from local.stack.app_totals import reading

PARTITION_KEY = "x-opt-partition-key"
_MAPS = {MESSAGE_ANNOTATIONS: json_annotations, APPLICATION_PROPERTIES: json_properties}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EVENTS = """
SELECT partition_id, sequence_number, "offset", enqueued_at, payload FROM event ORDER BY partition_id, sequence_number
"""


def read_log(file: Path) -> Iterator[tuple[str, Event]]:
    """Yield the partition and the event of each event of the one hub, in order within a partition."""
    with reading(file) as connection:
        for partition_id, number, offset, enqueued_at, payload in connection.execute(_EVENTS):
            at = _EPOCH + timedelta(milliseconds=enqueued_at)
            yield partition_id, Event(SequenceNumber(number), str(offset), at, *_read(payload))


def _read(payload: bytes) -> tuple[str | None, dict[str, Any], bytes, dict[str, Any]]:
    """Return the partition key, properties, body and system properties of a message, as the host has them."""
    found: dict[int, dict[str, Any]] = {}
    data = []
    for code, _, at, end in sections(payload):
        if code in _MAPS:
            found[code] = _MAPS[code](payload[at:end])
        elif code == DATA:
            data.append(decode(payload, at)[0])
    system = found.get(MESSAGE_ANNOTATIONS, {})
    sent = system | json_message_properties(payload)
    return system.get(PARTITION_KEY), found.get(APPLICATION_PROPERTIES, {}), b"".join(data), sent


_LETTERS = """
SELECT partition_id, sequence_number, error_class, status, attempts, partition_key, body, error
FROM event_hub_dead_letter
"""

Columns = tuple[Any, ...]


class Letter(NamedTuple):
    """A letter as the store has it."""

    error_class: str
    status: str
    attempts: int
    partition_key: str | None
    body: bytes
    error: str


class Appended(NamedTuple):
    """A row of an event: its table, its number among the event's rows, and its columns."""

    table: str
    ordinal: int
    columns: Columns


class State(NamedTuple):
    """A state: the place of the event that wrote it, and its columns."""

    place: Place
    columns: Columns


@dataclass(frozen=True, slots=True)
class Stored:
    """All that a store has of the events: letters and appended rows by place, and states by table and key."""

    letters: Mapping[Place, Letter]
    appended: Mapping[Place, list[Appended]]
    states: Mapping[str, Mapping[Columns, State]]


def read_stored(connection: sqlite3.Connection, row_classes: Iterable[type]) -> Stored:
    """Read the tables of row classes. Keys of states are in the form of `comparable`."""
    appended: dict[Place, list[Appended]] = {}
    states: dict[str, dict[Columns, State]] = {}
    for row_class in row_classes:
        table = row_table(row_class)
        if table.key:
            states[table.name] = dict(_states(connection, row_class))
            continue
        for partition_id, number, ordinal, *columns in connection.execute(_selected(table, "ordinal, ")):
            appended.setdefault((partition_id, number), []).append(Appended(table.name, ordinal, tuple(columns)))
    letters = {(one[0], one[1]): Letter(*one[2:]) for one in connection.execute(_LETTERS)}
    return Stored(letters, appended, states)


def _states(connection: sqlite3.Connection, row_class: type) -> Iterator[tuple[Columns, State]]:
    table = row_table(row_class)
    places = [table.columns.index(name) for name in table.key]
    for partition_id, number, *columns in connection.execute(_selected(table)):
        yield tuple(columns[place] for place in places), State((partition_id, number), tuple(columns))


def _selected(table: RowTable, more: str = "") -> str:
    columns = ", ".join(f"[{name}]" for name in table.columns)
    return f"SELECT partition_id, sequence_number, {more}{columns} FROM {table.name} ORDER BY 1, 2"


def columns_of(row: Row) -> Columns:
    return tuple(getattr(row, name) for name in row_table(type(row)).columns)


def are_equal(expected: Columns, found: Columns) -> bool:
    return len(expected) == len(found) and all(map(_is_equal, expected, found))


def _is_equal(value: Any, column: Any) -> bool:
    try:
        if value is None or column is None:
            return value is column
        if isinstance(value, str):
            return value == str(column)  # a text in a column of numbers is stored as a number
        if isinstance(value, datetime):
            return instant_text(value) == column
        if isinstance(value, date):
            return value.isoformat() == str(column)
        if isinstance(value, float):
            return float(column) == value
        return Decimal(str(column)) == Decimal(value)
    except (ValueError, TypeError, InvalidOperation):
        return False


def instant_text(moment: datetime) -> str:
    """Return an instant as the store has it."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def key_of(row: Row) -> Columns:
    """Return the key of a state as its columns hold it."""
    return tuple(map(_column, row_table(type(row)).key_of(row)))


def _column(value: Any) -> Any:
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, date):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else value
