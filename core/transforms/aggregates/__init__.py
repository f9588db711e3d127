"""The aggregates of the business: each module here declares one, beside the transform whose rows it adds up."""

import pkgutil
from collections.abc import Sequence
from importlib import import_module

from core.errors import InvalidTransform
from core.model.aggregates import Aggregate, aggregate_named, declared_aggregates


def load_aggregates(row_classes: Sequence[type] | None = None) -> tuple[Aggregate, ...]:
    """Return the aggregates of all modules here, by name; of these row classes, if they are given."""
    for name in aggregate_modules():
        import_module(name)
    here = (one for one in declared_aggregates() if one.of.__module__.startswith(f"{__name__}."))
    return tuple(one for one in here if row_classes is None or one.source in row_classes)


def aggregate_modules() -> tuple[str, ...]:
    """Return the names of the modules here."""
    return tuple(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))


def find_aggregate(name: str) -> Aggregate:
    """Return the aggregate of a name, from the modules here if none that is imported declares it."""
    try:
        return aggregate_named(name)
    except InvalidTransform:
        load_aggregates()
        return aggregate_named(name)
