"""The statements of row classes, built from their fields: the one place in Python that holds SQL text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, cast, get_args, get_type_hints

from core.errors import InvalidTransform
from core.model.rows import PlacedRow, Row, RowTable, row_table
from core.store.records import day_of, day_text, instant_of, instant_texts, server_instant_texts

LINEAGE = ("stream_id", "partition_id", "sequence_number", "ordinal", "commit_number")
STATE_LINEAGE = ("stream_id", "partition_id", "sequence_number", "commit_number")

Values = tuple[Any, ...]
ValuesOf = Callable[[Sequence[PlacedRow], int, str, int], list[Values]]

BY_CODE_POINT = "COLLATE Latin1_General_100_BIN2"
_SERVER_TYPES: dict[type, str] = {
    str: "nvarchar(4000)",
    int: "bigint",
    bool: "bit",
    float: "float",
    Decimal: "decimal(38, 10)",
    datetime: "datetime2(7)",
    date: "date",
}


@dataclass(frozen=True, slots=True)
class RowStatement:
    """How an engine takes rows of one class: the statement, and the values of placed rows in its order."""

    text: str
    values_of: ValuesOf


@cache
def sqlite_insert(row_class: type) -> RowStatement:
    """Append rows by position, or set states where the new one is newer than what stands."""
    table = row_table(row_class)
    lineage = STATE_LINEAGE if table.key else LINEAGE
    columns = (*lineage, *map(quoted, table.columns))
    text = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    values_of = compiled_values(row_class, lineage, instant_texts)
    if table.key:
        return RowStatement(f"{text} {_newest_wins(table)}", newest_of_each(table, values_of))
    return RowStatement(text, values_of)


@cache
def sqlite_select_states(row_class: type, before: str = "") -> str:
    """Select states by their keys, given as one JSON array of arrays of key values; `before` are columns."""
    table = row_table(row_class)
    columns = before + ", ".join(f"t.{quoted(name)}" for name in table.columns)
    matches = " AND ".join(f"t.{quoted(name)} = k.value ->> {position}" for position, name in enumerate(table.key))
    return f"SELECT {columns} FROM json_each(?) AS k CROSS JOIN {table.name} AS t ON {matches}"


@cache
def server_write(row_class: type, folded: bool = False) -> RowStatement:
    """T-SQL for all rows of a class, from the JSON in the variable `@rows_of_<table>`: arrays of position and columns.

    States are updated where they stand and are older, and inserted where none stands: MERGE has known races. Folded
    texts (core/store/server_json.py) are unfolded by `@folded` and `@plain`.
    """
    table = row_table(row_class)
    if table.key:
        values_of = compiled_values(row_class, ("sequence_number",), server_instant_texts)
        return RowStatement(_server_set_states(row_class, table, folded), newest_of_each(table, values_of))
    columns = ", ".join((*LINEAGE, *map(quoted, table.columns)))
    source = open_json(row_class, ("sequence_number", "ordinal"))
    given = ", ".join(received(f"r.{quoted(name)}", hint, folded) for name, hint in fields_of(row_class))
    text = (
        f"INSERT INTO hubledger.{table.name} ({columns})\n"
        f"SELECT @stream_id, @partition_id, r.sequence_number, r.ordinal, @commit_number, {given}\n  FROM {source};"
    )
    return RowStatement(text, compiled_values(row_class, ("sequence_number", "ordinal"), server_instant_texts))


@cache
def server_select_states(row_class: type, folded: bool = False, before: str = "") -> str:
    """T-SQL for states by their keys, from the JSON in `@keys`: an array of key values each. `before` are columns."""
    table, hints = row_table(row_class), dict(fields_of(row_class))
    columns = before + ", ".join(f"t.{quoted(name)}" for name in table.columns)
    typed = ", ".join(f"{quoted(name)} {_server_type(hints[name])} '$[{at}]'" for at, name in enumerate(table.key))
    matches = " AND ".join(equal(name, "k", hints[name], folded) for name in table.key)
    return (
        f"SELECT {columns}\n  FROM OPENJSON(@keys) WITH ({typed}) AS k\n"
        f" INNER JOIN hubledger.{table.name} AS t ON {matches};"
    )


@cache
def sqlite_select_placed(row_class: type) -> str:
    """Select the rows of one event: ordinal (NULL for a state), commit number and columns."""
    table = row_table(row_class)
    ordinal = "NULL" if table.key else "t.ordinal"
    columns = "".join(f", t.{name}" for name in table.columns)
    return f"SELECT {ordinal}, t.commit_number{columns} FROM {table.name} AS t WHERE {_PLACED.replace('@', ':')}"


@cache
def server_select_placed(row_class: type) -> str:
    """The same in T-SQL."""
    table = row_table(row_class)
    ordinal = "NULL" if table.key else "t.ordinal"
    columns = "".join(f", t.{name}" for name in table.columns)
    return f"SELECT {ordinal}, t.commit_number{columns}\n  FROM hubledger.{table.name} AS t WHERE {_PLACED};"


_PLACED = "t.stream_id = @stream_id AND t.partition_id = @partition_id AND t.sequence_number = @sequence_number"


@cache
def row_reader(row_class: type) -> Callable[[Values], Row]:
    """Make a row of a class again from its columns."""
    readers = [_reader(hint) for _, hint in fields_of(row_class)]

    def read(values: Values) -> Row:
        given = [value if value is None else reader(value) for reader, value in zip(readers, values, strict=True)]
        return cast(Row, row_class(*given))

    return read


def _newest_wins(table: RowTable) -> str:
    given = [*STATE_LINEAGE, *(quoted(name) for name in table.columns if name not in table.key)]
    return (
        f"ON CONFLICT ({', '.join(map(quoted, table.key))}) DO UPDATE SET "
        + ", ".join(f"{name} = excluded.{name}" for name in given)
        + f" WHERE {table.name}.stream_id <> excluded.stream_id OR {table.name}.partition_id <> excluded.partition_id"
        f" OR {table.name}.sequence_number < excluded.sequence_number"
    )


def _server_set_states(row_class: type, table: RowTable, folded: bool) -> str:
    source = open_json(row_class, ("sequence_number",))
    values = {name: received(f"r.{quoted(name)}", hint, folded) for name, hint in fields_of(row_class)}
    set_columns = "".join(f"{quoted(name)} = {values[name]}, " for name in table.columns if name not in table.key)
    matches = " AND ".join(equal(name, "r", hint, folded) for name, hint in fields_of(row_class) if name in table.key)
    return (
        f"UPDATE t SET {set_columns}stream_id = @stream_id, partition_id = @partition_id,"
        " sequence_number = r.sequence_number, commit_number = @commit_number\n"
        f"  FROM hubledger.{table.name} AS t INNER JOIN {source} ON {matches}\n"
        " WHERE t.stream_id <> @stream_id OR t.partition_id <> @partition_id"
        " OR t.sequence_number < r.sequence_number;\n"
        f"INSERT INTO hubledger.{table.name} ({', '.join(map(quoted, table.columns))}, {', '.join(STATE_LINEAGE)})\n"
        f"SELECT {', '.join(values.values())}, @stream_id, @partition_id, r.sequence_number, @commit_number\n"
        f"  FROM {source}\n"
        f" WHERE NOT EXISTS (SELECT 1 FROM hubledger.{table.name} AS t WHERE {matches});"
    )


def rows_variable(table: RowTable) -> str:
    """The variable that holds a table's rows, named so that it is never that of a parameter."""
    return f"rows_of_{table.name}"


def open_json(row_class: type, position: tuple[str, ...]) -> str:
    """The rows of a class as T-SQL reads them from their variable: the position, then the columns."""
    types = [(name, "bigint") for name in position]
    types += [(quoted(name), _server_type(hint)) for name, hint in fields_of(row_class)]
    columns = ", ".join(f"{name} {kind} '$[{place}]'" for place, (name, kind) in enumerate(types))
    return f"OPENJSON(@{rows_variable(row_table(row_class))}) WITH ({columns}) AS r"


def quoted(name: str) -> str:
    """A field may be named as a keyword is."""
    return f"[{name}]"


def received(column: str, hint: Any, folded: bool) -> str:
    """A value as it was before it was sent: unfolded where it is a text."""
    return f"TRANSLATE({column} {BY_CODE_POINT}, @folded, @plain)" if folded and str in types_of(hint) else column


def equal(name: str, source: str, hint: Any, folded: bool) -> str:
    """Texts from JSON carry the database's collation; ids compare by code point, as their columns do."""
    given = received(f"{source}.{quoted(name)}", hint, folded)
    return f"t.{quoted(name)} = {given}{f' {BY_CODE_POINT}' if str in types_of(hint) else ''}"


def _server_type(hint: Any) -> str:
    for kind in types_of(hint):
        if kind in _SERVER_TYPES:
            return _SERVER_TYPES[kind]
    raise InvalidTransform(
        f"{hint} is not a type that a column can hold: use one of {', '.join(map(str, _SERVER_TYPES))}"
    )


def compiled_values(row_class: type, lineage: tuple[str, ...], texts: Callable[..., list[str]]) -> ValuesOf:
    """Written out and compiled, as dataclasses do it: docs/adr/0006 has the figures.

    Required instants are written a column at a time, `at_<field>`; optional ones one by one.
    """
    fields = fields_of(row_class)
    columns = [name for name, hint in fields if hint is datetime]
    values = ", ".join([*lineage, *(_value(name, hint) for name, hint in fields), ""])
    placed = ", ".join(["(sequence_number, ordinal, row)", *(f"at_{name}" for name in columns)])
    written = "".join(f", texts([placed[2].{name} for placed in rows])" for name in columns)
    source = f"lambda rows, stream_id, partition_id, commit_number: [({values}) for {placed} in zip(rows{written})]"
    if not columns:
        source = source.replace("zip(rows)", "rows")
    names = {"texts": texts, "text": _optional(lambda moment: texts([moment])[0]), "day": _optional(day_text)}
    return cast(ValuesOf, eval(source, names))


def _value(name: str, hint: Any) -> str:
    types = types_of(hint)
    if hint is datetime:
        return f"at_{name}"
    if datetime in types:
        return f"text(row.{name})"
    return f"day(row.{name})" if date in types else f"row.{name}"


def _optional(write: Callable[[Any], str]) -> Callable[[Any], str | None]:
    return lambda value: None if value is None else write(value)


def newest_of_each(table: RowTable, values_of: ValuesOf) -> ValuesOf:
    """The values of states, of each key only the newest."""

    def newest(rows: Sequence[PlacedRow], stream_id: int, partition_id: str, commit_number: int) -> list[Values]:
        last = {table.key_of(placed[2]): placed for placed in rows}  # rows come in order: the last one stays
        return values_of(list(last.values()), stream_id, partition_id, commit_number)

    return newest


@cache
def fields_of(row_class: type) -> tuple[tuple[str, Any], ...]:
    """The columns of a row class in order, with their types."""
    hints = get_type_hints(row_class)
    return tuple((name, hints[name]) for name in row_table(row_class).columns)


def types_of(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the type itself."""
    return get_args(hint) or (hint,)


def _reader(hint: Any) -> Callable[[Any], Any]:
    types = types_of(hint)
    if datetime in types:
        return instant_of
    if date in types:
        return day_of
    if Decimal in types:
        return Decimal
    return bool if bool in types else lambda value: value
