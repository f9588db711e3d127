"""The form of a transform module: VERSION, its functions, and the row classes that it names."""

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from core.model.rows import declared, is_row_class
from core.transforms.contract.places import Fault, ModulePart
from core.transforms.contract.rows import faults_of_rows

VERSION_LENGTH = 100  # UTF-16 units, as the columns of SQL Server count: it would refuse every commit of a longer one


def row_classes_of(module: ModuleType) -> tuple[type, ...]:
    """Return the row classes in the namespace of a module, each once."""
    return tuple(dict.fromkeys(value for value in vars(module).values() if is_row_class(value)))


def faults_of_form(module: ModuleType) -> Iterator[Fault]:
    """Yield every fault of a module that shows without its source."""
    yield from _faults_of_version(module)
    yield from _faults_of_function(module, "transform", "transform(event, references)", 2)
    if getattr(module, "references", None) is not None:
        yield from _faults_of_function(module, "references", "references(event)", 1)
    own = (each for each in declared() if each.__module__ == module.__name__)
    yield from faults_of_rows(module, tuple(dict.fromkeys((*row_classes_of(module), *own))))


def _faults_of_version(module: ModuleType) -> Iterator[Fault]:
    part, version = ModulePart(module, ("VERSION",)), getattr(module, "VERSION", None)
    if not isinstance(version, str) or not version:
        yield part, "the module needs VERSION, a text that the ledger and letters name"
        return
    if len(version.encode("utf-16-le", "surrogatepass")) > 2 * VERSION_LENGTH:
        yield part, f"VERSION is longer than {VERSION_LENGTH} characters"
    if any("\ud800" <= letter <= "\udfff" for letter in version):
        yield part, "VERSION has half of a surrogate pair, which no column can hold"


def _faults_of_function(module: ModuleType, name: str, form: str, arguments: int) -> Iterator[Fault]:
    part, function = ModulePart(module, (name,)), getattr(module, name, None)
    if not callable(function):
        yield part, f"the module needs a function {form}"
    elif inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        yield part, f"{name}() is async: write it with def, because it may not wait for anything"
    elif not _takes(function, arguments):
        yield part, f"{name}() is called as {form}, but has a different signature"


def _takes(function: Callable[..., Any], arguments: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except TypeError:
        return False
    except ValueError:  # a function of C may have no signature
        return True
    return True
