"""The whole check of a transform: its form, its purity, and the aggregates of its rows."""

import ast
import sys
from collections.abc import Iterator
from importlib.util import resolve_name
from types import ModuleType

from core.errors import InvalidTransform
from core.model.aggregates import declared_aggregates
from core.model.rows import declared, row_table
from core.transforms import import_transform
from core.transforms.aggregates import aggregate_modules, import_aggregates, load_aggregates
from core.transforms.contract.form import faults_of_form, row_classes_of
from core.transforms.contract.names import fault_of_table
from core.transforms.contract.places import Fault, Lines, ModulePart, placed
from core.transforms.contract.purity import findings


def check_transform(module_name: str) -> tuple[int, int]:
    """Check a transform whole; return the numbers of its row classes and of the aggregates of their rows.

    Raises InvalidTransform with every fault, each with its file and line.
    """
    module = import_transform(module_name)
    faults = [
        *placed(faults_of_form(module)),
        *faults_of_purity(module),
        *_faults_of_aggregates(row_classes_of(module)),
    ]
    if faults:
        raise InvalidTransform(*dict.fromkeys(faults), module=module_name)
    row_classes = row_classes_of(module)
    return len(row_classes), len(load_aggregates(row_classes))


def faults_of_purity(module: ModuleType) -> Iterator[str]:
    """Yield the findings of a module, and of the modules of its package from which it imports."""
    for each in (module, *_neighbours(module)):
        lines = Lines(each)
        yield from (f"{lines.file}:{line}: {fault}" for line, fault in findings(lines.text, lines.tree))


def _neighbours(module: ModuleType) -> list[ModuleType]:
    """Return the modules of the same package that a module imports, and those that these import."""
    found: dict[str, ModuleType] = {module.__name__: module}
    waiting = [module]
    while waiting and module.__package__:
        for name in _imported_names(waiting.pop()):
            one = sys.modules.get(name)
            if one is not None and _is_within(module.__package__, one) and name not in found:
                found[name] = one
                waiting.append(one)
    return list(found.values())[1:]


def _is_within(package: str, module: ModuleType) -> bool:
    return f"{module.__package__}.".startswith(f"{package}.")


def _imported_names(module: ModuleType) -> Iterator[str]:
    for node in ast.walk(Lines(module).tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), module.__package__)
            yield source
            yield from (f"{source}.{alias.name}" for alias in node.names)


def _faults_of_aggregates(row_classes: tuple[type, ...]) -> Iterator[str]:
    for name in aggregate_modules(row_classes):
        try:
            import_aggregates(name)
        except InvalidTransform as fault:
            yield from fault.faults
    yield from placed(_faults_of_tables())


def _faults_of_tables() -> Iterator[Fault]:
    """Yield the faults in the names of the tables of aggregates."""
    rows = {row_table(each).name.lower(): each.__name__ for each in declared()}
    for one in (level for each in declared_aggregates() for level in each.levels):
        part, who = ModulePart(sys.modules[one.of.__module__], (one.of.__name__,)), one.of.__name__
        if (fault := fault_of_table(one.name) or fault_of_table(one.staged)) is not None:
            yield part, f"{who}: {fault}"
        for name in (one.name, one.staged):
            if (other := rows.setdefault(name.lower(), who)) != who:
                yield part, f"{who} and {other} have one table, {name}: name the aggregate differently"
