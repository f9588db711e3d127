"""The clock: the time, new ids and chance, passed in so that the business stays pure; and times as texts."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Clock:
    """Gives the time (aware UTC), new ids, and chance (0 to 1) for backoff. By default every pause is the longest."""

    now: Callable[[], datetime]
    new_id: Callable[[], UUID]
    chance: Callable[[], float] = lambda: 1.0


def parse_instant(text: str) -> datetime:
    """Return the time that a text in RFC 3339 names, in UTC; ValueError for one without a zone or outside of UTC."""
    moment = datetime.fromisoformat(text)
    return in_utc(moment)


def utc_text(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC with six digits. ValueError as `in_utc` raises it."""
    return f"{in_utc(moment).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def in_utc(moment: datetime) -> datetime:
    """Return a time in UTC. ValueError for one without a zone, or outside of the years 1 to 9999 there."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{moment.isoformat()} is not in the years 1 to 9999 of UTC") from error
