"""Names that are loaded when a module imports them, for modules that must stay light."""

from collections.abc import Callable, Collection, Iterable
from importlib import import_module


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
