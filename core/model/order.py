"""The order of the events of one partition key: the keys whose later events may have to wait."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from core.model.events import Event

OrderPolicy = Literal["none", "hold_key"]


@dataclass(frozen=True, slots=True)
class OpenKeys:
    """The partition keys that may have an open letter: no other key of the partition has one. None: all may."""

    keys: frozenset[str] | None

    def among(self, wanted: Iterable[str | None]) -> frozenset[str]:
        """Return those of these keys that may have an open letter."""
        asked = frozenset([key for key in wanted if key is not None])
        return asked if self.keys is None else self.keys & asked

    def plus(self, opened: Iterable[str | None]) -> "OpenKeys":
        """Return the keys with those of new letters."""
        new = frozenset([key for key in opened if key is not None])
        return self if self.keys is None or new <= self.keys else OpenKeys(self.keys | new)

    def minus(self, closed: frozenset[str]) -> "OpenKeys":
        """Return the keys without those that were found to have no open letter."""
        return self if self.keys is None or not closed else OpenKeys(self.keys - closed)


def order_key(event: Event) -> str | None:
    """Return the partition key of an event as the store has it, or None: an event without one is never held."""
    key = event.partition_key
    return key if key is None or key.isascii() else key.encode("utf-8", "replace").decode("utf-8")
