"""The statements of row classes for replays: take rows away, set states anew, and count those that were left.

Beside core/store/row_statements.py the one place in Python that holds SQL text. In both dialects a row that is taken
away goes to `retracted_row` as a JSON object of its columns, instants in UTC with a Z.
"""

from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any

from core.model.rows import row_table
from core.store.records import instant_texts, server_instant_texts
from core.store.row_statements import (
    STATE_LINEAGE,
    RowStatement,
    compiled_values,
    equal,
    fields_of,
    newest_of_each,
    open_json,
    quoted,
    received,
    types_of,
)

STANDING = "t.stream_id, t.partition_id, t.sequence_number, "  # who wrote a state, before its columns
_RETRACTED = "stream_id, partition_id, commit_number, table_name, sequence_number, ordinal, row_commit_number, row"
_OF_PIECE = (
    " WHERE t.stream_id = {0}stream_id AND t.partition_id = {0}partition_id AND t.sequence_number IN (\n"
    "       SELECT {1})"
)
_SQLITE_NUMBERS = "n.value ->> 0 FROM json_each(:sequence_numbers) AS n"
_SERVER_NUMBERS = "n.sequence_number FROM OPENJSON(@sequence_numbers) WITH (sequence_number bigint '$[0]') AS n"


@dataclass(frozen=True, slots=True)
class Retraction:
    """How rows of one appended class are taken away: kept, then deleted, of the events in `sequence_numbers`."""

    keep: str
    delete: str


@cache
def sqlite_retraction(row_class: type) -> Retraction:
    """For rows of an appended class."""
    table, where = row_table(row_class), _OF_PIECE.format(":", _SQLITE_NUMBERS)
    keep = (
        f"INSERT INTO retracted_row ({_RETRACTED})\n"
        f"SELECT t.stream_id, t.partition_id, :commit_number, '{table.name}', t.sequence_number, t.ordinal,"
        f" t.commit_number, {_sqlite_document(row_class)}\n  FROM {table.name} AS t\n{where}"
    )
    return Retraction(keep, f"DELETE FROM {table.name} AS t{where}")


@cache
def sqlite_state_retraction(row_class: type) -> str:
    """Keep the states that give way, before they are set; `keys` is a JSON array of [sequence number, key…]."""
    table = row_table(row_class)
    matches = " AND ".join(f"t.{quoted(name)} = k.value ->> {place}" for place, name in enumerate(table.key, 1))
    return (
        f"INSERT INTO retracted_row ({_RETRACTED})\n"
        f"SELECT t.stream_id, t.partition_id, :commit_number, '{table.name}', t.sequence_number, {_ordinal(row_class)},"
        f" t.commit_number, {_sqlite_document(row_class)}\n"
        f"  FROM json_each(:keys) AS k CROSS JOIN {table.name} AS t ON {matches}\n"
        " WHERE t.stream_id = :stream_id AND t.partition_id = :partition_id AND t.sequence_number <= k.value ->> 0"
    )


@cache
def sqlite_set_states(row_class: type) -> RowStatement:
    """Set states where none stands, or one of this partition that is not newer."""
    table = row_table(row_class)
    columns = (*STATE_LINEAGE, *map(quoted, table.columns))
    given = [*STATE_LINEAGE, *(quoted(name) for name in table.columns if name not in table.key)]
    text = (
        f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        f" ON CONFLICT ({', '.join(map(quoted, table.key))}) DO UPDATE SET "
        + ", ".join(f"{name} = excluded.{name}" for name in given)
        + f" WHERE {table.name}.stream_id = excluded.stream_id AND {table.name}.partition_id = excluded.partition_id"
        f" AND {table.name}.sequence_number <= excluded.sequence_number"
    )
    return RowStatement(text, newest_of_each(table, compiled_values(row_class, STATE_LINEAGE, instant_texts)))


@cache
def state_keys(row_class: type) -> RowStatement:
    """The values of `keys`: the number and the key of each state that is to be set; it has no text of its own."""
    table = row_table(row_class)
    places = [table.columns.index(name) + 1 for name in table.key]
    values_of = newest_of_each(table, compiled_values(row_class, ("sequence_number",), instant_texts))

    def keys(*given: Any) -> list[tuple[Any, ...]]:
        return [(values[0], *(values[place] for place in places)) for values in values_of(*given)]

    return RowStatement("", keys)


@cache
def sqlite_count_states(row_class: type) -> str:
    """How many states of a range stand that were written before a commit."""
    return _count_states(row_table(row_class).name, ":")


@cache
def server_count_states(row_class: type) -> str:
    """The same in T-SQL."""
    return f"{_count_states(f'hubledger.{row_table(row_class).name}', '@')};"


@cache
def server_retraction(row_class: type) -> str:
    """T-SQL that takes the rows of an appended class away, of the events in @sequence_numbers."""
    table, where = row_table(row_class), _OF_PIECE.format("@", _SERVER_NUMBERS)
    return (
        f"INSERT INTO hubledger.retracted_row ({_RETRACTED})\n"
        f"SELECT t.stream_id, t.partition_id, @commit_number, '{table.name}', t.sequence_number, t.ordinal,"
        f" t.commit_number, {_server_document(row_class)}\n  FROM hubledger.{table.name} AS t\n{where};\n"
        "SET @rows_retracted = @rows_retracted + @@ROWCOUNT;\n"
        f"DELETE t FROM hubledger.{table.name} AS t{where};"
    )


@cache
def server_set_states(row_class: type, folded: bool = False) -> RowStatement:
    """T-SQL that keeps the states that give way, and sets those of `@rows_of_<table>` in their place."""
    table, source = row_table(row_class), open_json(row_class, ("sequence_number",))
    values = {name: received(f"r.{quoted(name)}", hint, folded) for name, hint in fields_of(row_class)}
    matches = " AND ".join(equal(name, "r", hint, folded) for name, hint in fields_of(row_class) if name in table.key)
    assigned = "".join(f"{quoted(name)} = {values[name]}, " for name in table.columns if name not in table.key)
    standing = (
        f"  FROM hubledger.{table.name} AS t INNER JOIN {source} ON {matches}\n"
        " WHERE t.stream_id = @stream_id AND t.partition_id = @partition_id"
        " AND t.sequence_number <= r.sequence_number;\n"
    )
    text = (
        f"INSERT INTO hubledger.retracted_row ({_RETRACTED})\n"
        f"SELECT t.stream_id, t.partition_id, @commit_number, '{table.name}', t.sequence_number, {_ordinal(row_class)},"
        f" t.commit_number, {_server_document(row_class)}\n{standing}"
        "SET @rows_retracted = @rows_retracted + @@ROWCOUNT;\n"
        f"UPDATE t SET {assigned}sequence_number = r.sequence_number, commit_number = @commit_number\n{standing}"
        f"INSERT INTO hubledger.{table.name} ({', '.join(map(quoted, table.columns))}, {', '.join(STATE_LINEAGE)})\n"
        f"SELECT {', '.join(values.values())}, @stream_id, @partition_id, r.sequence_number, @commit_number\n"
        f"  FROM {source}\n"
        f" WHERE NOT EXISTS (SELECT 1 FROM hubledger.{table.name} AS t WHERE {matches});"
    )
    values_of = compiled_values(row_class, ("sequence_number",), server_instant_texts)
    return RowStatement(text, newest_of_each(table, values_of))


def _count_states(table: str, mark: str) -> str:
    return (
        f"SELECT COUNT(*) AS states FROM {table} AS t"
        f" WHERE t.stream_id = {mark}stream_id AND t.partition_id = {mark}partition_id"
        f" AND t.commit_number < {mark}commit_number"
        f" AND t.sequence_number BETWEEN {mark}first_sequence_number AND {mark}last_sequence_number"
    )


def _ordinal(row_class: type) -> str:
    """A state has none of its own: those of one event are counted in the order of their keys."""
    order = ", ".join(f"t.{quoted(name)}" for name in row_table(row_class).key)
    return f"ROW_NUMBER() OVER (PARTITION BY t.sequence_number ORDER BY {order}) - 1"


def _sqlite_document(row_class: type) -> str:
    members = ", ".join(f"'{name}', t.{quoted(name)}" for name, _ in fields_of(row_class))
    return f"json_object({members})"


def _server_document(row_class: type) -> str:
    columns = ((f"t.{quoted(name)}", quoted(name), hint) for name, hint in fields_of(row_class))
    members = ", ".join(f"{_json_value(column, hint)} AS {name}" for column, name, hint in columns)
    return f"(SELECT {members} FOR JSON PATH, INCLUDE_NULL_VALUES, WITHOUT_ARRAY_WRAPPER)"


def _json_value(column: str, hint: Any) -> str:
    """Instants with the T and the Z of RFC 3339: cast to text they have neither."""
    types = types_of(hint)
    if datetime in types:
        return f"REPLACE(CAST({column} AS varchar(33)), ' ', 'T') + 'Z'"
    return f"CAST({column} AS varchar(10))" if date in types else column
