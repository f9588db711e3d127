"""Keep a steady rate: sleep when ahead of it, and do not make up for more than a moment of standing still."""

from collections.abc import Callable

SHORTEST_SLEEP = 0.005  # seconds: shorter ones cost more than they are worth
LONGEST_DEBT = 2.0  # seconds of events that may be made up for at once


class Pace:
    """`rate` is in events a second, None for full speed; the clock counts seconds."""

    def __init__(self, rate: float | None, clock: Callable[[], float], sleep: Callable[[float], object]) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._due_at = clock()

    def wait(self, events: int) -> None:
        """Return when the next `events` may be published."""
        if self._rate is None:
            return
        now = self._clock()
        if self._due_at - now >= SHORTEST_SLEEP:
            self._sleep(self._due_at - now)
        self._due_at = max(self._due_at, now - LONGEST_DEBT) + events / self._rate
