"""The types and names of columns in both dialects."""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from core.model.rows import Text
from core.store.columns import quoted
from core.transforms.contract import is_plain

Engine = Literal["sqlite", "sqlserver"]
ENGINES: tuple[Engine, ...] = ("sqlite", "sqlserver")
BY_CODE_POINT = "COLLATE Latin1_General_100_BIN2"
PREFIX: Mapping[Engine, str] = {"sqlite": "", "sqlserver": "hubledger."}
KINDS: Mapping[Engine, Mapping[type, str]] = {
    "sqlite": {
        str: "TEXT", int: "INTEGER", bool: "INTEGER", float: "REAL", Decimal: "TEXT", datetime: "TEXT", date: "TEXT",
    },
    "sqlserver": {
        int: "bigint", bool: "bit", float: "float", Decimal: "decimal(38, 10)", datetime: "datetime2(7)", date: "date",
    },
}  # fmt: skip


def type_of(kind: type, engine: Engine, text: Text | None = None) -> str:
    """Return the type of a column; a text without a length has no limit, and no index can hold it."""
    if engine == "sqlite" or kind is not str:
        return KINDS[engine][kind]
    letters = "varchar" if text is not None and text.ascii else "nvarchar"
    return f"{letters}({'max' if text is None else text.length}) {BY_CODE_POINT}"


def named(name: str) -> str:
    """Return the name of a column as a table declares it: in brackets where it is a word of SQL."""
    return name if is_plain(name) else quoted(name)


def listed(names: tuple[str, ...]) -> str:
    """Return the names of columns in round brackets."""
    return f"({', '.join(map(named, names))})"
