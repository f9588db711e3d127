"""Reads the rows that the store wrote to a SQLite database, as the same values as from every engine."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast

from core.model.commits import PartitionState
from core.model.events import Event
from core.model.rows import Row, declared, row_table
from core.store.columns import fields_of, quoted, types_of
from tests.fakes.kept import (
    EMBEDDED,
    STAGED,
    KeptAttempt,
    KeptGap,
    KeptLetter,
    KeptRange,
    KeptRetracted,
    KeptRow,
    staged_values,
)

READERS: Mapping[type, Callable[[Any], object]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    Decimal: Decimal,
    bool: bool,
    float: float,
}
ORDER = "ORDER BY stream_id, LENGTH(partition_id), partition_id"


class SqliteEyes:
    """Reads and changes a database through separate statements, on a connection that its subclass opens."""

    dialect = EMBEDDED
    _connection: sqlite3.Connection

    def sql(self, statement: str, *values: object) -> list[Any]:
        """Run one statement, as an operator would by hand."""
        return self._connection.execute(statement, values).fetchall()

    def by_hand(self, statement: str) -> list[tuple[object, ...]]:
        return self.sql(statement)

    def sql_of_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Run one statement with the values of each row, in one transaction."""
        with self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(statement, rows)

    def rows(self, row_class: type) -> list[KeptRow]:
        table = row_table(row_class)
        columns, key = (", ".join(map(quoted, names)) for names in (table.columns, table.key))
        ordinal, order = ("NULL", key) if key else ("ordinal", "ordinal")
        found = self.sql(
            f"SELECT stream_id, partition_id, sequence_number, {ordinal}, commit_number, {columns}"
            f" FROM {table.name} {ORDER}, sequence_number, {order}"
        )
        return [_kept_row(row_class, one) for one in found]

    def letters(self) -> list[KeptLetter]:
        found = self.sql(
            "SELECT stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties,"
            " body, error_class, error_type, error, fingerprint, transform_version, status, attempts, due_at,"
            " failed_at, body_kept, lost_claims, claimed_by, claimed_until, began_at, settled_at, settled_why"
            f" FROM event_hub_dead_letter {ORDER}, sequence_number"
        )
        return [_letter(one) for one in found]

    def ledger(self) -> list[KeptRange]:
        return self._ranges("batch")

    def retries(self) -> list[KeptRange]:
        return self._ranges("retry")

    def replays(self) -> list[KeptRange]:
        return self._ranges("replay")

    def attempts(self) -> list[KeptAttempt]:
        found = self.sql(
            "SELECT stream_id, partition_id, sequence_number, attempt, touched_by, kind, status, error_class, error,"
            f" commit_number, done_by, why FROM dead_letter_attempt {ORDER}, sequence_number, attempt"
        )
        return [KeptAttempt(*one) for one in found]

    def retracted(self) -> list[KeptRetracted]:
        found = self.sql(
            "SELECT stream_id, partition_id, commit_number, table_name, sequence_number, ordinal, row_commit_number,"
            f" row FROM retracted_row {ORDER}, commit_number, table_name, sequence_number, ordinal"
        )
        return [kept_retracted(one) for one in found]

    def _ranges(self, kind: str) -> list[KeptRange]:
        found = self.sql(
            "SELECT stream_id, partition_id, commit_number, first_sequence_number, last_sequence_number, written,"
            " filtered, dead_lettered, absent, rows_written, transform_version, invocation_id, committed_at"
            f" FROM batch_ledger WHERE kind = ? {ORDER}, commit_number",
            kind,
        )
        return [_kept_range(*one) for one in found]

    def gaps(self) -> list[KeptGap]:
        found = self.sql(
            "SELECT stream_id, partition_id, first_sequence_number, last_sequence_number, found_at, status, attempts"
            f" FROM sequence_gap {ORDER}, first_sequence_number"
        )
        return [_kept_gap(*one) for one in found]

    def stage(self, state: PartitionState, events: Iterable[Event]) -> None:
        marks = ", ".join("?" * len(STAGED))
        text = f"INSERT INTO staged_event ({', '.join(STAGED)}) VALUES ({marks}) ON CONFLICT DO NOTHING"
        for event in events:
            self.sql(text, *staged_values(state, event))

    def staged(self) -> list[tuple[str, int]]:
        return self.sql("SELECT partition_id, sequence_number FROM staged_event ORDER BY partition_id, sequence_number")


def _row(row_class: type, values: tuple[Any, ...]) -> Row:
    typed = zip(fields_of(row_class), values, strict=True)
    return cast(Row, row_class(*(_value(hint, value) for (_, hint), value in typed)))


def _value(hint: Any, value: Any) -> Any:
    kind = next((one for one in types_of(hint) if one in READERS), None)
    return value if value is None or kind is None else READERS[kind](value)


def _kept_row(row_class: type, one: tuple[Any, ...]) -> KeptRow:
    values: list[Any] = [*one[:5], _row(row_class, one[5:])]
    return KeptRow(*values)


def kept_retracted(one: tuple[Any, ...]) -> KeptRetracted:
    """One row of retracted_row, its JSON read as a row again."""
    row_class = {row_table(each).name: each for each in declared()}[one[3]]
    columns = json.loads(one[7])
    values: list[Any] = [*one[:7], _row(row_class, tuple(columns[name] for name in row_table(row_class).columns))]
    return KeptRetracted(*values)


def _kept_range(*one: Any) -> KeptRange:
    values: list[Any] = [*one[:-1], datetime.fromisoformat(one[-1])]
    return KeptRange(*values)


def _kept_gap(*one: Any) -> KeptGap:
    values: list[Any] = [*one[:4], datetime.fromisoformat(one[4]), *one[5:]]
    return KeptGap(*values)


def _letter(one: tuple[Any, ...]) -> KeptLetter:
    values = list(one)
    values[6] = json.loads(values[6])
    for at in (4, 15, 16, 20, 21, 22):
        values[at] = None if values[at] is None else datetime.fromisoformat(values[at])
    values[17] = bool(values[17])
    return KeptLetter(*values)
