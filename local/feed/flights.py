"""The story of flights: changes of one flight number at a time, the same for the same seed."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from random import Random
from typing import NamedTuple

from local.feed.planned_events import (
    FIRST_INSTANT,
    MINUTE,
    POISON,
    WRITTEN,
    ZONES,
    Fault,
    Minute,
    PlannedEvent,
    Zone,
    empty,
    extra_field,
    instant_text,
    not_an_object,
    story_of,
    truncated,
    walk,
    with_duplicates,
)

STATUSES = frozenset(("scheduled", "delayed", "boarding", "departed", "arrived", "cancelled", "diverted"))
_EARLIEST, _END = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000 for year in (2000, 2100))


class Change(NamedTuple):
    """A flight's new status. The date is ISO 8601, instants are in microseconds since 1970, UTC."""

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
    instants = (change.changed_us, change.departs_us, change.arrives_us)
    is_usable = (
        re.fullmatch("[A-Z0-9]{2,3}", change.carrier) is not None
        and 1 <= change.flight_number <= 9999
        and _is_date(change.departure_date)
        and change.status in STATUSES
        and (change.departure_gate is None or 1 <= len(change.departure_gate) <= 10)
        and all(instant is None or _EARLIEST <= instant < _END for instant in instants)
    )
    return ExpectedChange(WRITTEN, *change) if is_usable else EXPECT_POISON


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

Wrong = Callable[[Change], Change]


def not_utf8(body: str) -> bytes:
    return body.replace('"carrier":"', '"carrier":"\xfc', 1).encode("latin-1")


def not_a_number(body: str) -> bytes:
    """Write NaN, as some encoders do. JSON does not know it."""
    return re.sub(r'"flight_number":\d+', '"flight_number":NaN', body).encode()


def missing_field(body: str) -> bytes:
    """Leave out the carrier: the number alone stands for several flights."""
    return re.sub('"carrier":"[^"]*",', "", body).encode()


def wrong_type(body: str) -> bytes:
    return re.sub(r'"flight_number":(\d+)', r'"flight_number":"\1"', body).encode()


def without_zone(body: str) -> bytes:
    """Leave out the offset of the local time."""
    return re.sub(r'("changed_at":"[0-9-]+T[0-9:.]+)[^"]*"', r'\1"', body).encode()


MALFORMED: tuple[Fault, ...] = (
    truncated,
    not_utf8,
    empty,
    not_a_number,
    not_an_object,
    missing_field,
    extra_field,
    wrong_type,
    without_zone,
)
UNUSABLE: dict[str, Wrong] = {
    "a carrier in small letters": lambda change: change._replace(carrier=change.carrier.lower() + "x"),
    "a carrier too long": lambda change: change._replace(carrier=change.carrier.ljust(4, "X")),
    "no carrier": lambda change: change._replace(carrier=""),
    "a flight number below the first": lambda change: change._replace(flight_number=0),
    "a flight number above the last": lambda change: change._replace(flight_number=change.flight_number + 9999),
    "the thirtieth of February": lambda change: change._replace(departure_date=change.departure_date[:4] + "-02-30"),
    "a date of another form": lambda change: change._replace(departure_date="31.12." + change.departure_date[:4]),
    "an unknown status": lambda change: change._replace(status="landed"),
    "a status in capitals": lambda change: change._replace(status=change.status.upper()),
    "a gate too long": lambda change: change._replace(departure_gate="behind the terminal"),
    "a clock that was never set": lambda change: change._replace(changed_us=change.changed_us % 1_000_000),
}


def malformed(body: str, chance: Random) -> bytes:
    return chance.choice(MALFORMED)(body)


def unusable(change: Change, chance: Random) -> Change:
    return chance.choice(tuple(UNUSABLE.values()))(change)


NUMBERS = 9_999  # the number of flight numbers
DAYS = 3  # with flights at the same time
DAY = 24 * 60 * MINUTE

_CARRIERS = ("LH", "BA", "U2", "DLH", "9W", "AFR", "KL")
# The statuses that may follow a status, the likely ones several times. After a final status the flight of a later day
# is scheduled.
_NEXT = {
    "scheduled": (*("boarding",) * 6, *("delayed",) * 3, "cancelled"),
    "delayed": (*("boarding",) * 7, *("delayed",) * 2, "cancelled"),
    "boarding": (*("departed",) * 9, "delayed"),
    "departed": (*("arrived",) * 19, "diverted"),
}


@dataclass(frozen=True, slots=True)
class FlightShares:
    """The shares of the changes that go wrong."""

    malformed: float = 0.005
    unusable: float = 0.005
    duplicate: float = 0.005


@dataclass(frozen=True, slots=True)
class FlightScript:
    """The input of a story. `events` is None for a story without end. Instants are in microseconds since 1970."""

    numbers: int = 2_000
    events: int | None = None
    seed: int = 1
    first_instant: int = FIRST_INSTANT
    shares: FlightShares = field(default_factory=FlightShares)


def flight_minutes(script: FlightScript) -> Iterator[Minute[ExpectedChange]]:
    """Yield minutes with exactly `script.events` events, or without end.

    Each round of a minute visits all flight numbers. The partition key is the flight number alone, which several
    carriers share. The changes of a flight come in order, and a minute that is published twice leaves each flight in
    the same status.
    """
    return story_of(_Story(script).next_minute, script.events)


class _Flight:
    """The status of one carrier's flight on one day, and, after its final change, of its flight on a later day."""

    def __init__(self, carrier: str, number: int, day: int) -> None:
        self._carrier = carrier
        self._number = number
        self._day = day  # since 1970
        self._status = ""
        self._delay = 0  # minutes

    def change(self, changed_us: int, chance: Random) -> Change:
        if self._status and self._status not in _NEXT:
            self._day, self._status, self._delay = self._day + DAYS, "", 0
        self._status = chance.choice(_NEXT[self._status]) if self._status else "scheduled"
        self._delay += 15 if self._status == "delayed" else 0
        departs = self._day * DAY + (300 + self._number % 1_000 + self._delay) * MINUTE
        arrives = departs + (60 + self._number % 500) * MINUTE
        certain = self._status not in ("cancelled", "diverted")
        gate = None if self._status in ("scheduled", "cancelled") else f"{'ABCD'[self._number % 4]}{self._delay + 1}"
        day = datetime.fromtimestamp(self._day * DAY // 1_000_000, UTC).date().isoformat()
        return Change(
            self._carrier, self._number, day, self._status, gate, departs, arrives if certain else None, changed_us
        )


class _Story:
    def __init__(self, script: FlightScript) -> None:
        self._script = script
        self._chance = Random(script.seed)
        self._visit = 0
        self._flights: dict[int, list[_Flight]] = {}
        self._stride, self._start = walk(script.numbers, self._chance)

    def next_minute(self, left: float) -> Minute[ExpectedChange]:
        index = (self._start + self._visit * self._stride) % self._script.numbers
        number = 1 + index * 7_919 % NUMBERS  # another one for each index: the factor has no divisor in common with it
        self._visit += 1
        flights = self._flights.setdefault(number, self._of_number(number))
        count = int(min(1 + 3 * self._chance.random(), left))
        events = [self._event(self._chance.choice(flights), position) for position in range(count)]
        return Minute(str(number), with_duplicates(events, self._script.shares.duplicate, left, self._chance))

    def _of_number(self, number: int) -> list[_Flight]:
        today, carriers = self._script.first_instant // DAY, 2 + number % 2
        own = [_CARRIERS[(number + each) % len(_CARRIERS)] for each in range(carriers)]
        return [_Flight(carrier, number, today + day) for carrier in own for day in range(DAYS)]

    def _event(self, flight: _Flight, position: int) -> PlannedEvent[ExpectedChange]:
        chance, shares = self._chance, self._script.shares
        now = self._script.first_instant + self._visit * MINUTE // self._script.numbers
        change = flight.change(now + position * 10_000_000 + int(chance.random() * 9_000) * 1_000, chance)
        zone, wrong = chance.choice(ZONES), chance.random()
        if wrong < shares.malformed:
            return PlannedEvent(malformed(change_body(change, zone), chance), EXPECT_POISON)
        if wrong < shares.malformed + shares.unusable:
            change = unusable(change, chance)
        return PlannedEvent(change_body(change, zone).encode(), expect_change(change))


def change_body(change: Change, zone: Zone) -> str:
    """Return the body of a change, with instants on the clocks of a zone. An unknown value is null or is left out."""
    known = {"departure_gate": change.departure_gate}
    for name, instant in (("departs_at", change.departs_us), ("arrives_at", change.arrives_us)):
        known[name] = None if instant is None else instant_text(instant, zone)
    spoken = change.flight_number % 2 == 0
    more = "".join(f',"{name}":{json.dumps(value)}' for name, value in known.items() if value is not None or spoken)
    return (
        f'{{"carrier":"{change.carrier}","flight_number":{change.flight_number},'
        f'"departure_date":"{change.departure_date}","status":"{change.status}",'
        f'"changed_at":"{instant_text(change.changed_us, zone)}"{more}}}'
    )
