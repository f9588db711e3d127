"""What each flight change must become: the business rule written a second time, knowing nothing of the app."""

import re
from datetime import UTC, date, datetime
from typing import NamedTuple

from local.feed.planned import POISON, WRITTEN

STATUSES = frozenset(("scheduled", "delayed", "boarding", "departed", "arrived", "cancelled", "diverted"))
_EARLIEST, _END = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000 for year in (2000, 2100))


class Change(NamedTuple):
    """A flight's new status; the date as ISO 8601, instants in microseconds since 1970, UTC."""

    carrier: str
    flight_number: int
    departure_date: str
    status: str
    departure_gate: str | None
    departs_us: int | None
    arrives_us: int | None
    changed_us: int


class ExpectedChange(NamedTuple):
    """The outcome of one event, and the row of its change, which is the flight's status until the next one."""

    outcome: str
    carrier: str | None = None
    flight_number: int | None = None
    departure_date: str | None = None
    status: str | None = None
    departure_gate: str | None = None
    departs_us: int | None = None
    arrives_us: int | None = None
    changed_us: int | None = None


EXPECT_POISON = ExpectedChange(POISON)


def expect_change(change: Change) -> ExpectedChange:
    """A change that names a flight, a day, a status and sensible times is written; another is a letter."""
    return ExpectedChange(WRITTEN, *change) if _usable(change) else EXPECT_POISON


def _usable(change: Change) -> bool:
    instants = (change.changed_us, change.departs_us, change.arrives_us)
    return (
        re.fullmatch("[A-Z0-9]{2,3}", change.carrier) is not None
        and 1 <= change.flight_number <= 9999
        and _is_date(change.departure_date)
        and change.status in STATUSES
        and (change.departure_gate is None or 1 <= len(change.departure_gate) <= 10)
        and all(instant is None or _EARLIEST <= instant < _END for instant in instants)
    )


def _is_date(text: str) -> bool:
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
