"""The tables that declared classes want, in one form for the rows of both kinds and for the levels of aggregates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.model.aggregates import Aggregate, KeyColumn
from core.model.rows import Text, row_table, texts_of
from core.store.columns import fields_of, types_of
from hubledger.cli.ddl.rows import kind_of

_OF_LEVEL, _OF_STAGED = ("run_number", "slice"), ("staging_id", "slice", "run_id", "is_whole")


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """The column of a field: the type of its values beside None, and the length of a text."""

    name: str
    kind: type
    is_required: bool
    text: Text | None = None


@dataclass(frozen=True, slots=True)
class WantedTable:
    """A table of a class: the columns of its fields, those that the store fills, and the key.

    `of_rows`: a table of rows can get columns; the windows of an aggregate lack the values of a new one.
    """

    name: str
    who: str
    columns: tuple[WantedColumn, ...]
    of_store: tuple[str, ...]
    key: tuple[str, ...]
    of_rows: bool


def wanted_rows(row_class: type) -> WantedTable:
    """Return the table of a row class."""
    table, texts = row_table(row_class), texts_of(row_class)
    columns = tuple(
        WantedColumn(name, kind_of(hint), type(None) not in types_of(hint), texts.get(name))
        for name, hint in fields_of(row_class)
    )
    return WantedTable(table.name, row_class.__name__, columns, table.lineage, table.unique_by, of_rows=True)


def wanted_levels(one: Aggregate) -> Iterator[WantedTable]:
    """Yield the table of each level, and the one in which its windows are staged."""
    for level in one.levels:
        who, staged_key = level.of.__name__, ("staging_id", "slice", *level.key)
        columns = tuple(_column_of(each) for each in level.keys)
        values = tuple(WantedColumn(each.name, each.holds, not each.is_optional) for each in level.measures)
        staged = tuple(WantedColumn(each.name, each.holds, each.kind == "count") for each in level.measures)
        yield WantedTable(level.name, who, (*columns, *values), _OF_LEVEL, level.key, of_rows=False)
        yield WantedTable(level.staged, who, (*columns, *staged), _OF_STAGED, staged_key, of_rows=False)


def wanted_tables(row_classes: Sequence[type], aggregates: Sequence[Aggregate]) -> Mapping[str, WantedTable]:
    """Return all tables of a room by name, in lower case."""
    levels = [table for one in aggregates for table in wanted_levels(one)]
    return {table.name.lower(): table for table in (*map(wanted_rows, row_classes), *levels)}


def _column_of(each: KeyColumn) -> WantedColumn:
    text = Text(each.length, each.ascii) if each.kind is str else None
    return WantedColumn(each.name, each.kind, is_required=True, text=text)
