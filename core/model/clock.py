"""The clock: the time, new ids and chance, passed in so that the business stays pure."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Clock:
    """Gives the time (aware UTC), new ids, and chance (0 to 1) for backoff. By default every pause is the longest."""

    now: Callable[[], datetime]
    new_id: Callable[[], UUID]
    chance: Callable[[], float] = lambda: 1.0
