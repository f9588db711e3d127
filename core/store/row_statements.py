"""The statements of row classes, built from their fields: the one place in Python that holds SQL text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any, cast, get_args, get_type_hints

from core.rows import PlacedRow, Row, RowTable, row_table
from core.store.records import instant_text, instant_texts

LINEAGE = ("stream_id", "partition_id", "sequence_number", "ordinal", "commit_number")
STATE_LINEAGE = ("stream_id", "partition_id", "sequence_number", "commit_number")

Values = tuple[Any, ...]
ValuesOf = Callable[[Sequence[PlacedRow], int, str, int], list[Values]]


@dataclass(frozen=True, slots=True)
class RowStatement:
    """How SQLite takes rows of one class: the statement, and the values of placed rows in its order."""

    text: str
    values_of: ValuesOf


@cache
def sqlite_insert(row_class: type) -> RowStatement:
    """Append rows by position, or set states where the new one is newer than what stands."""
    table = row_table(row_class)
    lineage = STATE_LINEAGE if table.key else LINEAGE
    columns = (*lineage, *table.columns)
    text = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    values_of = _compiled_values(row_class, lineage)
    if table.key:
        return RowStatement(f"{text} {_newest_wins(table)}", _newest_of_each(table, values_of))
    return RowStatement(text, values_of)


@cache
def sqlite_select_states(row_class: type) -> str:
    """Select states by their keys, given as one JSON array of arrays of key values."""
    table = row_table(row_class)
    columns = ", ".join(f"t.{name}" for name in table.columns)
    matches = " AND ".join(f"t.{name} = k.value ->> {position}" for position, name in enumerate(table.key))
    return f"SELECT {columns} FROM json_each(?) AS k CROSS JOIN {table.name} AS t ON {matches}"


@cache
def row_reader(row_class: type) -> Callable[[Values], Row]:
    """Make a row of a class again from its columns."""
    readers = [_reader(hint) for hint in _hints(row_class)]

    def read(values: Values) -> Row:
        given = [value if value is None else reader(value) for reader, value in zip(readers, values, strict=True)]
        return cast(Row, row_class(*given))

    return read


def _newest_wins(table: RowTable) -> str:
    given = [*STATE_LINEAGE, *(name for name in table.columns if name not in table.key)]
    return (
        f"ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET "
        + ", ".join(f"{name} = excluded.{name}" for name in given)
        + f" WHERE {table.name}.stream_id <> excluded.stream_id OR {table.name}.partition_id <> excluded.partition_id"
        f" OR {table.name}.sequence_number < excluded.sequence_number"
    )


def _compiled_values(row_class: type, lineage: tuple[str, ...]) -> ValuesOf:
    """Written out and compiled, as dataclasses do it: docs/adr/0006 has the figures.

    Required instants are written a column at a time, `at_<field>`; optional ones one by one.
    """
    hints = dict(zip(row_table(row_class).columns, _hints(row_class), strict=True))
    columns = [name for name, hint in hints.items() if hint is datetime]
    values = ", ".join([*lineage, *(_value(name, hint) for name, hint in hints.items()), ""])
    placed = ", ".join(["(sequence_number, ordinal, row)", *(f"at_{name}" for name in columns)])
    texts = "".join(f", texts([placed[2].{name} for placed in rows])" for name in columns)
    source = f"lambda rows, stream_id, partition_id, commit_number: [({values}) for {placed} in zip(rows{texts})]"
    if not columns:
        source = source.replace("zip(rows)", "rows")
    return cast(ValuesOf, eval(source, {"text": _optional_instant, "texts": instant_texts}))


def _value(name: str, hint: Any) -> str:
    if hint is datetime:
        return f"at_{name}"
    return f"text(row.{name})" if datetime in _types(hint) else f"row.{name}"


def _newest_of_each(table: RowTable, values_of: ValuesOf) -> ValuesOf:
    def newest(rows: Sequence[PlacedRow], stream_id: int, partition_id: str, commit_number: int) -> list[Values]:
        last = {table.key_of(placed[2]): placed for placed in rows}  # rows come in order: the last one stays
        return values_of(list(last.values()), stream_id, partition_id, commit_number)

    return newest


def _optional_instant(moment: datetime | None) -> str | None:
    return None if moment is None else instant_text(moment)


def _hints(row_class: type) -> list[Any]:
    hints = get_type_hints(row_class)
    return [hints[name] for name in row_table(row_class).columns]


def _types(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) or (hint,)


def _reader(hint: Any) -> Callable[[Any], Any]:
    types = _types(hint)
    if datetime in types:
        return datetime.fromisoformat
    if date in types:
        return date.fromisoformat
    return bool if bool in types else lambda value: value
