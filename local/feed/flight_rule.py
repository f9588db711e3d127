"""The expected outcome of flight changes: the business rule written a second time, without the app, and its recount."""

import re
from datetime import UTC, date, datetime
from typing import NamedTuple

from local.feed.planned import POISON, WRITTEN

STATUSES = frozenset(("scheduled", "delayed", "boarding", "departed", "arrived", "cancelled", "diverted"))
_EARLIEST, _END = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000 for year in (2000, 2100))


class Change(NamedTuple):
    """A flight's new status; the date is ISO 8601, instants are in microseconds since 1970, UTC."""

    carrier: str
    flight_number: int
    departure_date: str
    status: str
    departure_gate: str | None
    departs_us: int | None
    arrives_us: int | None
    changed_us: int


class ExpectedChange(NamedTuple):
    """The outcome of one event, and the row of its change, which is the flight's status until the next change."""

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
    """Expect a row for a change with a valid flight, day, status and times, and a letter for any other."""
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


COLUMNS = (  # of the record; the fields of ExpectedChange after the outcome
    "carrier TEXT",
    "flight_number INTEGER",
    "departure_date TEXT",
    "status TEXT",
    "departure_gate TEXT",
    "departs_us INTEGER",  # microseconds since 1970, UTC
    "arrives_us INTEGER",
    "changed_us INTEGER",
)
ROW_TABLES = ("flight_change",)

# Compare two multisets: the record holds the limits of each count, the store holds the count.
_CHANGES = """
SELECT carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us,
    SUM(at_least), SUM(at_most), SUM(found)
FROM (
    SELECT carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us,
        at_least, at_most, 0 AS found
    FROM record.event WHERE outcome = 'written'
    UNION ALL
    SELECT carrier, flight_number, departure_date, status, departure_gate,
        instant(departs_at), instant(arrives_at), instant(changed_at), 0, 0, 1
    FROM flight_change
) GROUP BY carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us
HAVING SUM(found) NOT BETWEEN SUM(at_least) AND SUM(at_most)
"""
# The store holds the latest change of each flight and day, of equal ones the last published. One whose answer was lost
# may be there or not.
_STATUSES = """
SELECT carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us,
    SUM(expected), SUM(expected), SUM(found)
FROM (
    SELECT carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us,
        1 AS expected, 0 AS found
    FROM (
        SELECT *, ROW_NUMBER() OVER (
            PARTITION BY carrier, flight_number, departure_date ORDER BY changed_us DESC, number DESC
        ) AS place
        FROM record.event WHERE outcome = 'written'
    ) WHERE place = 1
    UNION ALL
    SELECT carrier, flight_number, departure_date, status, departure_gate,
        instant(departs_at), instant(arrives_at), instant(changed_at), 0, 1
    FROM flight_status
) GROUP BY carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us
HAVING SUM(found) <> SUM(expected) AND (carrier, flight_number, departure_date) NOT IN (
    SELECT carrier, flight_number, departure_date FROM record.event WHERE outcome = 'written' AND at_least = 0
)
"""
MULTISETS = {"flight_change": _CHANGES, "flight_status": _STATUSES}
