"""The aggregates of the row classes that are declared: each lies in the room of the rows that it adds up."""

from collections.abc import Sequence
from importlib import import_module

from core.errors import InvalidTransform
from core.model.aggregates import Aggregate, aggregate_named, declared_aggregates
from core.model.rows import declared
from core.transforms.rooms import rooms_of


def load_aggregates(row_classes: Sequence[type] | None = None) -> tuple[Aggregate, ...]:
    """Return the aggregates of these row classes, or of all that are declared, by name."""
    modules = aggregate_modules(declared() if row_classes is None else row_classes)
    for name in modules:
        import_module(name)
    here = (one for one in declared_aggregates() if one.of.__module__ in modules)
    return tuple(one for one in here if row_classes is None or one.source in row_classes)


def aggregate_modules(row_classes: Sequence[type]) -> tuple[str, ...]:
    """Return the names of the modules that declare aggregates in the rooms of these row classes."""
    return tuple(name for room in rooms_of(row_classes) for name in room.aggregate_modules)


def find_aggregate(name: str) -> Aggregate:
    """Return the aggregate of a name, from the rooms of the declared row classes if no imported module declares it."""
    try:
        return aggregate_named(name)
    except InvalidTransform:
        load_aggregates()
        return aggregate_named(name)
