"""The time of the store: one clock for all processes that share a database, so that their own clocks may differ."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.model.clock import Clock
from core.store.columns import instant_of
from core.store.database import Database

OF_BATCHES = timedelta(minutes=1)  # the greatest age of a reading: a batch pays nothing for it
OF_LETTERS = timedelta(seconds=1)  # processes that disagree take letters from each other, so they must not for long


def read_time(database: Database) -> datetime:
    """Return the time by the clock of the database."""
    return instant_of(database.ask("read_time")[0][0])


def store_clock(
    database: Database, own: Clock, age: timedelta = OF_BATCHES, monotonic: Callable[[], float] = time.monotonic
) -> Clock:
    """Return a clock that tells the time of the database, with the ids and the chance of `own`.

    It reads the time when its last reading is older than `age`, and adds the seconds since then by a clock that never
    goes back. `now` may raise StoreFault.
    """
    return replace(own, now=_Readings(lambda: read_time(database), age.total_seconds(), monotonic).now)


@dataclass(slots=True)
class _Readings:
    """The last reading: the time, and the seconds of this process between its request and its answer."""

    read: Callable[[], datetime]
    age: float
    monotonic: Callable[[], float]
    last: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        last, seconds = self.last, self.monotonic()
        if last is None or seconds - last[1] >= self.age:
            last = self.read(), (seconds + self.monotonic()) / 2
            self.last, seconds = last, self.monotonic()
        return last[0] + timedelta(seconds=seconds - last[1])
