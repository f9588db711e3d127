"""Every operation of the API by name. The modules are imported with the first request."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from handlers.operation import Operation

MODULES = (
    "status", "ledger", "audit", "letters", "letter_orders", "replays", "aggregations", "homes", "health",
    "description",
)  # fmt: skip


@cache
def operations() -> Mapping[str, Operation]:
    """All of them, in the order in which the description lists them."""
    modules = [import_module(f"{__name__}.{name}") for name in MODULES]
    return {operation.name: operation for module in modules for operation in module.OPERATIONS}


def find_operation(name: str) -> Operation:
    """The operation of a function; KeyError when none is named so."""
    return operations()[name]
