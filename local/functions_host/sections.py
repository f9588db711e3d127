"""Read the objects of a JSON file, whose names match in any case, and collect every fault."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Value = TypeVar("Value")


class Section:
    """One object of the file; a value that cannot be read becomes a fault, and its default is used."""

    def __init__(self, content: Any, path: str, faults: list[str]) -> None:
        self._content = {name.lower(): value for name, value in content.items()} if isinstance(content, dict) else {}
        self._path = path
        self._faults = faults

    def refuse_others(self, known: Iterable[str]) -> None:
        """Add a fault for each name that is not in `known`."""
        names = {name.lower() for name in known}
        others = (name for name in self._content if name not in names)
        self._faults.extend(f"{self._path}: {name}: is not emulated" for name in others)

    def section(self, name: str) -> "Section":
        """Return the object of a name, or an empty one."""
        return Section(self._content.get(name.lower(), {}), f"{self._path}: {name}", self._faults)

    def read(self, name: str, parse: Callable[[Any], Value], default: Value) -> Value:
        """Return the value of a name as `parse` reads it; turn ValueError and TypeError into a fault."""
        value = self._content.get(name.lower())
        if value is None:
            return default
        try:
            return parse(value)
        except (TypeError, ValueError) as error:
            self._faults.append(f"{self._path}: {name}: {error}")
            return default


def whole_number(value: Any) -> int:
    """Return a whole number of at least 1, given as number or text; raise ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).isdigit() or int(value) < 1:
        raise ValueError(f"must be a whole number of at least 1, not {value!r}")
    return int(value)
