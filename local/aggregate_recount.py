"""The recount of an aggregate: its windows against the feed's record, added up a second time by plain Python."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

SHOWN = 20  # the limit of named windows
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Window = TypeVar("Window")
Sums = TypeVar("Sums")


@dataclass(frozen=True, slots=True)
class Recounted:
    """Both sides of the recount of the aggregate `name`: the windows by the record, and the windows in the store.

    A window is a named tuple with a form for people; its sums are a named tuple that begins with the number of rows.
    `coarser` has the recounts of its coarser levels.
    """

    name: str
    expected: Mapping[Any, Any]
    found: Mapping[Any, Any]
    coarser: tuple["Recounted", ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows that the aggregate has added up."""
        return sum(sums[0] for sums in self.found.values())

    @property
    def differences(self) -> list[str]:
        """The differing windows of each level: the first ones with their values, then the number of all others."""
        differing = sorted(
            one for one in {*self.expected, *self.found} if self.expected.get(one) != self.found.get(one)
        )
        shown = [f"{self.name}: {one}: {self._difference(one)}" for one in differing[:SHOWN]]
        more = len(differing) - len(shown)
        further = [f"{self.name}: and {more} more windows differ"] if more else []
        return [*shown, *further, *(text for one in self.coarser for text in one.differences)]

    def _difference(self, window: Any) -> str:
        expected, found = self.expected.get(window), self.found.get(window)
        if found is None or expected is None:
            return "it is missing" if found is None else "nothing was published for it"
        names = [name for name in expected._fields if getattr(found, name) != getattr(expected, name)]
        return ", ".join(f"{name} {getattr(found, name)} instead of {getattr(expected, name)}" for name in names)


def added_up(parts: Iterable[tuple[Window, Sums, int]], add: Callable[[Sums, Sums], Sums]) -> dict[Window, Sums]:
    """Return the sums of each window; a part is a window, the sums of one row, and the number of its copies."""
    sums: dict[Window, Sums] = {}
    for window, one, copies in parts:
        for _ in range(copies):
            standing = sums.get(window)
            sums[window] = one if standing is None else add(standing, one)
    return sums


def begins_at(start_us: int) -> datetime:
    """Return the instant of microseconds since 1970."""
    return EPOCH + timedelta(microseconds=start_us)
