"""The types in Spark of the columns of a row class."""

from datetime import date, datetime
from typing import Any, get_args, get_type_hints

from core.aggregation.lake_tables import LINEAGE
from core.model.rows import row_table

_KINDS: dict[Any, str] = {
    bool: "boolean",
    int: "bigint",
    float: "double",
    datetime: "timestamp",
    date: "date",
}
LINEAGE_KINDS = {name: "string" if name == "partition_id" else "bigint" for name in LINEAGE}


def row_kinds(row_class: type) -> dict[str, str]:
    """Return the columns of a row class with their types; whatever is no number, no time and no boolean is a text."""
    hints = get_type_hints(row_class)
    return {name: kind_of(hints[name]) for name in row_table(row_class).columns}


def kind_of(hint: Any) -> str:
    """Return the Spark type of a column that has this annotation."""
    found = [_KINDS[one] for one in (get_args(hint) or (hint,)) if one in _KINDS]
    return found[0] if found else "string"
