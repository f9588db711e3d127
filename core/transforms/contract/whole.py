"""The whole check of a transform: its form, and the aggregates of its rows."""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from core.errors import InvalidTransform
from core.model.aggregates import ADDED, declared_aggregates
from core.model.rows import declared, row_table
from core.transforms import import_transform
from core.transforms.aggregates import aggregate_modules, import_aggregates, load_aggregates
from core.transforms.contract.form import faults_of_form, row_classes_of
from core.transforms.contract.names import fault_of_column, fault_of_table
from core.transforms.contract.places import Fault, ModulePart, placed

MIGRATIONS = Path(__file__).parents[3] / "sql" / "sqlite" / "migrations"  # of Hubledger, and of no room
_CREATES = re.compile(r"CREATE TABLE (\w+)")


def check_transform(module_name: str) -> tuple[int, int]:
    """Check a transform whole; return the numbers of its row classes and of the aggregates of their rows.

    Raises InvalidTransform with every fault, each with its file and line.
    """
    module = import_transform(module_name)
    row_classes = row_classes_of(module)
    if faults := [*placed(faults_of_form(module)), *_faults_of_aggregates(row_classes)]:
        raise InvalidTransform(*dict.fromkeys(faults), module=module_name)
    return len(row_classes), len(load_aggregates(row_classes))


def _faults_of_aggregates(row_classes: tuple[type, ...]) -> Iterator[str]:
    for name in aggregate_modules(row_classes):
        try:
            import_aggregates(name)
        except InvalidTransform as fault:
            yield from fault.faults
    yield from placed(_faults_of_tables(row_classes))


def _faults_of_tables(row_classes: tuple[type, ...]) -> Iterator[Fault]:
    """Yield the tables that belong to others, and the faults in the names of the columns of aggregates."""
    ours = {name for file in MIGRATIONS.glob("*.sql") for name in _CREATES.findall(file.read_text(encoding="utf-8"))}
    for each in row_classes:
        if (name := row_table(each).name).lower() in ours:
            part = ModulePart(sys.modules[each.__module__], (each.__name__,))
            yield part, f"{each.__name__}: the table {name} belongs to Hubledger: use a different one"
    rows = dict.fromkeys(ours, "Hubledger") | {row_table(each).name.lower(): each.__name__ for each in declared()}
    for one in (level for each in declared_aggregates() for level in each.levels):
        part, who = ModulePart(sys.modules[one.of.__module__], (one.of.__name__,)), one.of.__name__
        if (fault := fault_of_table(one.name) or fault_of_table(one.staged)) is not None:
            yield part, f"{who}: {fault}"
        for name in (one.name, one.staged):
            if (other := rows.setdefault(name.lower(), who)) != who:
                yield part, f"{who} and {other} have one table, {name}: name the aggregate differently"
    for one in declared_aggregates():
        taken = Counter(map(str.lower, (*one.columns, *ADDED)))
        for name in one.columns:
            part, who = ModulePart(sys.modules[one.of.__module__], (one.of.__name__, name)), one.of.__name__
            if (fault := fault_of_column(name)) is not None:
                yield part, f"{who}.{name}: {fault}"
            if name.lower() in ADDED:
                yield part, f"{who}.{name}: the store and the lake add a column of this name to {one.name}"
            elif taken[name.lower()] > 1:
                yield part, f"{who}.{name}: a second field differs only in case, and SQL has one column for both"
