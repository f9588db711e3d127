"""The kinds of runs, the days of a run, and a person's order for one.

An increment adds the commits after the cut. A repair replaces the windows of some days at the cut. A backfill begins an
aggregate at a later cut, so that its increments begin there.
"""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

RunKind = Literal["increment", "repair", "backfill"]
OrderedKind = Literal["repair", "backfill"]
Move = Literal["pause", "resume", "cancel", "discard_run", "discard_result", "repair", "backfill", "withdraw"]
RowsFrom = Literal["sql", "lake"]  # the place from which a job reads the rows of a repair or a backfill


@dataclass(frozen=True, slots=True)
class Days:
    """Days of event time in UTC, from `since` to `until`, both included; None is no end."""

    since: date | None = None
    until: date | None = None

    def __str__(self) -> str:
        if self.since is None and self.until is None:
            return "all days"
        return f"{self.since or 'the first day'} to {self.until or 'the last day'}"

    @property
    def is_sound(self) -> bool:
        """The days are in order."""
        return self.since is None or self.until is None or self.since <= self.until


ALL_DAYS = Days()


def overflow_text(level: str, measure: str, begin: str) -> str:
    """Return the fault of a window with a value that no column holds. Its key can name a person, so it is left out."""
    return f"{measure} of a window of {level} that begins at {begin} is beyond 64 bits"


@dataclass(frozen=True, slots=True)
class RunOrder:
    """A person's order of a repair or a backfill, which waits for its run."""

    kind: OrderedKind
    days: Days
    at: datetime
    who: str
    reason: str


@dataclass(frozen=True, slots=True)
class Order:
    """An order about a job, or about one of its runs, with its author and reason. The client makes the id;
    an order of the app has none."""

    job: str
    move: Move
    who: str
    reason: str
    at: datetime
    run_id: str | None = None
    order_id: str = ""
