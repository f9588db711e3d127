"""The lead of a partition's publishers over its owners, and the outcomes that wait until it is short again.

An owner is a reader with an epoch, as an event processor has. Readers without one only look, so no publisher waits for
them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

DEFAULT_LEAD = 1_000  # events in a partition: twice as many as a reader of the app prefetches
LONGEST_WAIT = 10_000  # milliseconds: a third of the shortest time in which a client of ours gives a send up
STANDSTILL = 30_000  # milliseconds after which publishers no longer wait for an owner that takes nothing
NEIGHBOUR = 5_000  # the same while an owner of a different group has nothing left to take


class Log(Protocol):
    """The events of a partition, by their sequence numbers."""

    first_sequence: int
    next_sequence: int


class Owner(Protocol):
    """A reader that publishers wait for."""

    @property
    def next_sequence(self) -> int:
        """The number of the event that it takes next."""


@dataclass(slots=True)
class _Seen:
    """The place of an owner when it was last looked at, and the time since when it has been there."""

    sequence: int = -1
    since: int = 0
    stands: bool = False


class Lead:
    """The lead over the slowest owner that moves. It is never too long without such an owner or without a limit."""

    def __init__(self, log: Log, limit: int | None) -> None:
        self._log, self._limit = log, limit
        self._owners: dict[Owner, _Seen] = {}
        self._waiting: dict[Callable[[], None], int | None] = {}  # the time since when each waits, once it is known
        self._was_too_long = False

    @property
    def is_too_long(self) -> bool:
        """True while a moving owner has more events to take than the limit."""
        if self._limit is None or not self._owners:
            return False
        first, bound = self._log.first_sequence, self._log.next_sequence - self._limit
        return any(max(owner.next_sequence, first) < bound for owner, seen in self._owners.items() if not seen.stands)

    def join(self, owner: Owner) -> None:
        """Let publishers wait for an owner."""
        self._owners[owner] = _Seen()

    def leave(self, owner: Owner) -> None:
        """Let publishers no longer wait for an owner. A reader that did not join changes nothing."""
        self._owners.pop(owner, None)
        self._look()

    def move(self, owner: Owner) -> None:
        """Take notice of an owner that has taken events."""
        if (seen := self._owners.get(owner)) is not None:
            seen.stands = False
            self._look()

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once, when the lead is no longer too long, or after the longest wait."""
        if not self._was_too_long:
            self._was_too_long = True
            for seen in self._owners.values():
                seen.sequence = -1
        self._waiting[resume] = None

    def let_time_pass(self, now: int) -> None:
        """End the waits that are over. `now` is in milliseconds."""
        if not self._was_too_long:
            return
        someone_starves = any(owner.next_sequence >= self._log.next_sequence for owner in self._owners)
        patience = NEIGHBOUR if someone_starves else STANDSTILL
        for owner, seen in self._owners.items():
            if seen.sequence != owner.next_sequence:
                seen.sequence, seen.since = owner.next_sequence, now
            seen.stands = seen.stands or now - seen.since >= patience
        for resume, since in list(self._waiting.items()):
            if since is None:
                self._waiting[resume] = now
            elif now - since >= LONGEST_WAIT:
                del self._waiting[resume]
                resume()
        self._look()

    def _look(self) -> None:
        if self._was_too_long and not self.is_too_long:
            self._was_too_long = False
            waiting, self._waiting = self._waiting, {}
            for resume in waiting:
                resume()
