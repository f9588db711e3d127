"""Misfits: columns whose type rounds, cuts or folds values of a row class. Each is named when the store opens.

A database changes such values in silence: the audit then finds commits whose rows differ from what they wrote.
Without a table or a column of the app's transform the store does not open, because no commit could succeed.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.errors import SchemaMismatch
from core.model.rows import COLUMN_TYPES, RowTable, row_table, texts_of
from core.store.columns import fields_of, texts_json, types_of

log = logging.getLogger("hubledger.store")


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column as the database describes it; engines without precision and scale have 0.

    `needs_value`: the column takes no NULL and has no default, so an insert has to name it. `unique_in`: the numbers
    of the unique indexes that it is part of, with commas.
    """

    table: str
    name: str
    type: str
    precision: int
    scale: int
    collation: str | None
    needs_value: int = 0
    unique_in: str | None = None


_Columns = Mapping[tuple[str, str], StoredColumn]
Judge = Callable[[StoredColumn, type, bool], str | None]  # column, type of the values, is it part of a key: its fault


def tables_json(row_classes: Iterable[type]) -> str:
    """Return the names of the classes' tables in the form that both engines read."""
    return texts_json(row_table(each).name for each in row_classes)


def warn_of_misfits(found: Iterable[Sequence[Any]], row_classes: Iterable[type], judge: Judge) -> None:
    """Log the misfits of the tables that exist, all in one line."""
    columns = _by_name(found)
    misfits = [fault for each in row_classes for fault in _faults(each, columns, judge)]
    if misfits:
        facts = {"action": "check_columns", "columns": misfits}
        log.warning("columns change values that are sent to them; change their types", extra=facts)


def refuse_missing(found: Iterable[Sequence[Any]], row_classes: Iterable[type]) -> None:
    """Raise SchemaMismatch with every table and column that the rows of these classes need and the database lacks."""
    columns = _by_name(found)
    if faults := [fault for each in row_classes for fault in _missing(each, columns)]:
        raise SchemaMismatch(
            f"the tables do not fit the transform: {'; '.join(faults)}; add a migration (`bin/hubledger"
            " migrate-diff --transform NAME` writes it, docs/transforms.md), and run `python -m core.store.migrate`"
        )


def _by_name(found: Iterable[Sequence[Any]]) -> _Columns:
    """Return columns by table and name, as SQL compares names: in any case."""
    return {(one.table.lower(), one.name.lower()): one for one in (StoredColumn(*row) for row in found)}


def _missing(row_class: type, columns: _Columns) -> Iterable[str]:
    table = row_table(row_class)
    there = {name: one for (of, name), one in columns.items() if of == table.name.lower()}
    if not there:
        yield f"there is no table {table.name}, or the app has no right on it"
        return
    wanted = (*table.lineage, *table.columns)
    yield from (f"{table.name} has no column {name}" for name in wanted if name.lower() not in there)
    for name in sorted(there.keys() - {name.lower() for name in wanted}):
        if there[name].needs_value:
            yield f"{table.name}.{name} needs a value, and {row_class.__name__} has no such field"
    yield from _without_key(table, there)


def _without_key(table: RowTable, there: Mapping[str, StoredColumn]) -> Iterable[str]:
    """Yield a fault when a table has unique indexes, and none of them has exactly the columns that make a row unique.

    A table without any is not judged, because a view has none either.
    """
    unique: dict[str, set[str]] = defaultdict(set)
    for name, column in there.items():
        for number in filter(None, (column.unique_in or "").split(",")):
            unique[number].add(name)
    if unique and {name.lower() for name in table.unique_by} not in unique.values():
        yield f"{table.name} is not unique by {', '.join(table.unique_by)}"


def _faults(row_class: type, columns: _Columns, judge: Judge) -> Iterable[str]:
    table, texts = row_table(row_class), texts_of(row_class)
    for name, hint in fields_of(row_class):
        column, kind = columns.get((table.name.lower(), name.lower())), _kind_of(hint)
        if column and name in texts and texts[name].ascii and column.type == "varchar":
            column = replace(column, type="nvarchar")  # it holds every text that the store lets through
        fault = judge(column, kind, name in table.key) if column and kind else None
        if fault is not None:
            yield f"{table.name}.{name} {fault}"


def _kind_of(hint: Any) -> type | None:
    """Return the type of the values of a column; None for one that has no rule here."""
    return next((kind for kind in types_of(hint) if kind in COLUMN_TYPES), None)
