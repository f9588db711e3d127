"""The public face: the names that a room imports. docs/transforms.md is their reference.

A name is loaded when a module imports it: the command line is in this package too, and runs without the app's packages.
"""

from collections.abc import Callable, Collection, Iterable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.errors import MissingReference, PoisonEvent
    from core.model.aggregates import (
        Aggregate,
        Count,
        CountOf,
        Kept,
        Key,
        Least,
        Most,
        Sum,
        aggregate_of,
        aggregate_table,
    )
    from core.model.event_keys import kafka_header, kafka_key
    from core.model.events import Event
    from core.model.rows import ReferenceKey, References, Row, Text, appended_to, state_of
    from core.model.transforms import body_decoder, fault_of_body

__all__ = (
    "Aggregate",
    "Count",
    "CountOf",
    "Event",
    "Kept",
    "Key",
    "Least",
    "MissingReference",
    "Most",
    "PoisonEvent",
    "ReferenceKey",
    "References",
    "Row",
    "Sum",
    "Text",
    "aggregate_of",
    "aggregate_table",
    "appended_to",
    "body_decoder",
    "fault_of_body",
    "kafka_header",
    "kafka_key",
    "state_of",
)

_PLACES = ("errors", "model.rows", "model.aggregates", "model.events", "model.transforms", "model.event_keys")


def loader(face: str, names: Collection[str], places: Iterable[str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a module: it finds the names in the modules of `core` at these places, in order."""

    def load(name: str) -> object:
        if name in names:
            for place in places:
                module = import_module(f"core.{place}")
                if hasattr(module, name):
                    return getattr(module, name)
        raise AttributeError(f"module {face!r} has no attribute {name!r}")

    return load


if not TYPE_CHECKING:  # for a type checker a name that is not above is a fault
    __getattr__ = loader(__name__, __all__, _PLACES)
