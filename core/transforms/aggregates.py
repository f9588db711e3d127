"""The aggregates of the row classes that are declared: each lies in the room of the rows that it adds up."""

from collections.abc import Sequence
from importlib import import_module

from core.errors import InvalidTransform
from core.model.aggregates import Aggregate, aggregate_named, declared_aggregates
from core.model.rows import declared
from core.transforms.rooms import rooms_of


def load_aggregates(row_classes: Sequence[type] | None = None) -> tuple[Aggregate, ...]:
    """Return the aggregates of these row classes, or of all that are declared, by name.

    Raises InvalidTransform with the line at which a module of theirs cannot be imported.
    """
    modules = aggregate_modules(declared() if row_classes is None else row_classes)
    for name in modules:
        import_aggregates(name)
    here = (one for one in declared_aggregates() if one.of.__module__ in modules)
    return tuple(one for one in here if row_classes is None or one.source in row_classes)


def import_aggregates(name: str) -> None:
    """Import a module that declares aggregates. Raises InvalidTransform with the line at which it fails."""
    from core.transforms.contract.places import importing  # needed to load, not to index the app

    with importing(name):
        import_module(name)


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
