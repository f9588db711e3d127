"""Read the objects of a JSON file and its .NET durations, and collect every fault."""

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, TypeVar

Value = TypeVar("Value")


class JsonSection:
    """One object of the file. A value that cannot be read becomes a fault, and its default is used."""

    def __init__(self, content: Any, path: str, faults: list[str]) -> None:
        self._content = {name.lower(): value for name, value in content.items()} if isinstance(content, dict) else {}
        self._path = path
        self._faults = faults

    def refuse_others(self, known: Iterable[str]) -> None:
        """Add a fault for each name that is not in `known`."""
        names = {name.lower() for name in known}
        others = (name for name in self._content if name not in names)
        self._faults.extend(f"{self._path}: {name}: is not emulated" for name in others)

    def section(self, name: str) -> "JsonSection":
        """Return the object of a name, or an empty one."""
        return JsonSection(self._content.get(name.lower(), {}), f"{self._path}: {name}", self._faults)

    def read(self, name: str, parse: Callable[[Any], Value], default: Value) -> Value:
        """Return the value of a name as `parse` reads it. Turn ValueError and TypeError into a fault."""
        value = self._content.get(name.lower())
        if value is None:
            return default
        try:
            return parse(value)
        except (TypeError, ValueError) as error:
            self.refuse(name, error)
            return default

    def refuse(self, name: str, why: object) -> None:
        """Add a fault of a value."""
        self._faults.append(f"{self._path}: {name}: {why}")


def whole_number(value: Any) -> int:
    """Return a whole number of at least 1, given as number or text. Raises ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).isdigit() or int(value) < 1:
        raise ValueError(f"must be a whole number of at least 1, not {value!r}")
    return int(value)


TIME_SPAN = re.compile(r"(?:(?P<days>\d+)\.)?(?P<hours>\d{1,2}):(?P<minutes>\d{2})(?::(?P<seconds>\d{2}(?:\.\d+)?))?")


def parse_time_span(text: str) -> timedelta:
    """Return the duration. Raises ValueError for anything that .NET's TimeSpan.Parse refuses or that is negative."""
    found = TIME_SPAN.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a duration of the form [d.]hh:mm:ss")
    parts = {name: float(value) for name, value in found.groupdict().items() if value is not None}
    if parts["hours"] > 23 or parts["minutes"] > 59 or parts.get("seconds", 0) >= 60:
        raise ValueError(f"{text!r} has hours over 23, or minutes or seconds over 59")
    return timedelta(**parts)
