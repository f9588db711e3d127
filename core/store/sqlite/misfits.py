"""The types of SQLite's columns that hold every value of a type as it was sent.

A column has an affinity by its declared type (https://www.sqlite.org/datatype3.html, 3.1): that of numbers makes 7 of
the text '007', and that of texts makes '7' of the number 7.
"""

from collections.abc import Mapping
from decimal import Decimal

from core.store.misfits import StoredColumn

_TEXT, _NONE, _ROUNDED = ("CHAR", "CLOB", "TEXT"), ("BLOB", "ANY"), ("REAL", "FLOA", "DOUB")


_TYPES: Mapping[type, str] = {str: "TEXT", Decimal: "TEXT", int: "INTEGER", bool: "INTEGER", float: "REAL"}


def misfit(column: StoredColumn, kind: type, is_key: bool) -> str | None:
    """Return the fault of a column; None for one that stores every value of its type, as each does with an instant."""
    affinity, wanted = _affinity(column.type.upper()), _TYPES.get(kind)
    if wanted in (None, affinity) or affinity == "NONE" or (affinity in ("INTEGER", "NUMERIC") and wanted != "TEXT"):
        return None
    return f"is {column.type}: {wanted} holds every value"


def _affinity(declared: str) -> str:
    if "INT" in declared:
        return "INTEGER"
    if any(word in declared for word in _TEXT):
        return "TEXT"
    if not declared or any(word in declared for word in _NONE):
        return "NONE"
    return "REAL" if any(word in declared for word in _ROUNDED) else "NUMERIC"
