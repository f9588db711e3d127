"""The columns of a row class as types of Spark, and rows as texts that compare on any engine."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import date, datetime
from functools import cache
from typing import Any, cast, get_args, get_type_hints

from core.aggregation.lake_tables import LINEAGE
from core.model.ports import parse_instant, utc_text
from core.model.rows import Row, row_table

_KINDS: dict[Any, str] = {
    bool: "boolean",
    int: "bigint",
    float: "double",
    datetime: "timestamp",
    date: "date",
}
LINEAGE_KINDS = {name: "string" if name == "partition_id" else "bigint" for name in LINEAGE}


def row_kinds(row_class: type) -> dict[str, str]:
    """Return the columns of a row class with their types: number, time, boolean, or else text."""
    hints = get_type_hints(row_class)
    return {name: kind_of(hints[name]) for name in row_table(row_class).columns}


def kind_of(hint: Any) -> str:
    """Return the Spark type of a column that has this annotation."""
    found = [_KINDS[one] for one in (get_args(hint) or (hint,)) if one in _KINDS]
    return found[0] if found else "string"


def arrow_schema(pa: Any, schema: str) -> Any:
    """Return a schema of Spark as one of Arrow."""
    kinds = {
        "string": pa.string(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "date": pa.date32(),
        "binary": pa.binary(),
        "array<string>": pa.list_(pa.string()),
    }
    columns = (column.split() for column in schema.split(", "))
    return pa.schema([(name.strip("`"), kinds[kind]) for name, kind in columns])


def texts_of(row: Row) -> list[str | None]:
    """Return a row's values as texts, in the order of its columns. Half of a surrogate pair becomes its escape."""
    return [_text(getattr(row, name)) for name in row_table(type(row)).columns]


def row_of(row_class: type, texts: Sequence[str | None]) -> Row:
    """Return the row that these texts came from."""
    kinds = kinds_of(row_class).values()
    return cast(Row, row_class(*(_value(kind, text) for kind, text in zip(kinds, texts, strict=True))))


@cache
def kinds_of(row_class: type) -> dict[str, type]:
    """Return the type of each column, without None."""
    hints = get_type_hints(row_class)
    return {field.name: _kind(hints[field.name]) for field in fields(cast(Any, row_class))}


def _kind(hint: Any) -> type:
    return next((kind for kind in get_args(hint) if kind is not type(None)), hint) if get_args(hint) else hint


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, datetime):
        with suppress(ValueError):  # SQL refuses a time without a zone or outside of its years
            return utc_text(value)
    text = value.isoformat() if isinstance(value, date) else str(value)
    return text.encode("utf-8", "backslashreplace").decode()


def _value(kind: type, text: str | None) -> Any:
    if text is None:
        return None
    if kind is bool:
        return text == "1"
    if kind is datetime:
        return parse_instant(text)
    return date.fromisoformat(text) if kind is date else kind(text)
