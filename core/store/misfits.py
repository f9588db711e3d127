"""Misfits: columns whose type rounds, cuts or folds values of a row class. Each is named when the store opens.

A database changes such values in silence: the audit then finds commits whose rows differ from what they wrote.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from core.model.rows import row_table
from core.store.columns import fields_of, texts_json, types_of

log = logging.getLogger("hubledger.store")
_KINDS = (str, int, bool, float, Decimal, datetime, date)


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the database describes it; engines without precision and scale have 0."""

    table: str
    name: str
    type: str
    precision: int
    scale: int
    collation: str | None


Judge = Callable[[Column, type, bool], str | None]  # column, type of the values, is it part of a key: its fault


def tables_json(row_classes: Iterable[type]) -> str:
    """Return the names of the classes' tables in the form that both engines read."""
    return texts_json(row_table(each).name for each in row_classes)


def warn_of_misfits(found: Iterable[Sequence[Any]], row_classes: Iterable[type], judge: Judge) -> None:
    """Log the misfits of the tables that exist, all in one line."""
    columns = {(one.table, one.name): one for one in (Column(*row) for row in found)}
    misfits = [fault for each in row_classes for fault in _faults(each, columns, judge)]
    if misfits:
        facts = {"action": "check_columns", "columns": misfits}
        log.warning("columns change values that are sent to them; change their types", extra=facts)


def _faults(row_class: type, columns: dict[tuple[str, str], Column], judge: Judge) -> Iterable[str]:
    table = row_table(row_class)
    for name, hint in fields_of(row_class):
        column, kind = columns.get((table.name, name)), _kind_of(hint)
        fault = judge(column, kind, name in table.key) if column and kind else None
        if fault is not None:
            yield f"{table.name}.{name} {fault}"


def _kind_of(hint: Any) -> type | None:
    """Return the type of the values of a column; None for one that has no rule here."""
    return next((kind for kind in types_of(hint) if kind in _KINDS), None)
