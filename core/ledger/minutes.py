"""The minutes of a stream: once a minute, the watch stores the lag and the count of accounted numbers, for a day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Minute:
    """The lag of a stream, in events, and the count of its accounted numbers at one time."""

    at: datetime
    lag: int
    accounted: int


def rates(minutes: Sequence[Minute]) -> list[float | None]:
    """Return the numbers accounted for per second since the minute before, for each minute; None for the first."""
    return [None, *(_rate(before, after) for before, after in pairwise(minutes))][: len(minutes)]


def _rate(before: Minute, after: Minute) -> float:
    seconds = (after.at - before.at).total_seconds()
    return round(max(0, after.accounted - before.accounted) / max(1.0, seconds), 3)
