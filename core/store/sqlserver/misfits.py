"""The types of SQL Server's columns that hold every value of a type as it was sent, or refuse it with an error."""

from datetime import date, datetime
from decimal import Decimal

from core.store.misfits import StoredColumn
from core.store.sqlserver.json import PLACES

_HOLDS = {
    str: "nvarchar", int: "bigint", bool: "bit", float: "float", Decimal: f"decimal(38, {PLACES})",
    datetime: "datetime2(7)", date: "date",
}  # fmt: skip
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_EXACT = ("decimal", "numeric")
_UTF_8, _BINARY = "_UTF8", ("_BIN", "_BIN2", "_BIN2_UTF8")


def misfit(column: StoredColumn, kind: type, is_key: bool) -> str | None:
    """Return the fault of a column; None for one that stores or refuses every value of its type."""
    if not _holds(column, kind):
        return f"is {_written(column)}: {_HOLDS[kind]} holds every value"
    if kind is str and is_key and not (column.collation or "").endswith(_BINARY):
        return f"has the collation {column.collation}: Latin1_General_100_BIN2 tells every two keys apart"
    return None


def _holds(column: StoredColumn, kind: type) -> bool:
    """Return False for a type that changes values. A number that is too large is refused, so it needs no rule."""
    if kind is str:
        return column.type == "nvarchar" or (column.type == "varchar" and _UTF_8 in (column.collation or ""))
    if kind is int:
        return column.type in (*_WHOLE, *_EXACT)
    if kind is bool:
        return column.type in ("bit", *_WHOLE)
    if kind is Decimal:
        return column.type in _EXACT and column.scale >= PLACES
    if kind is datetime:
        return column.type == "datetime2" and column.scale >= len("123456")
    return column.type == ("float" if kind is float else "date")


def _written(column: StoredColumn) -> str:
    if column.type in _EXACT:
        return f"{column.type}({column.precision}, {column.scale})"
    return f"{column.type}({column.scale})" if column.type == "datetime2" else column.type
