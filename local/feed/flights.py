"""The story of flights: changes of one flight number at a time, the same for the same seed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from local.feed.flight_faults import malformed, unusable
from local.feed.flight_rule import EXPECT_POISON, Change, ExpectedChange, expect_change
from local.feed.planned import (
    FIRST_INSTANT,
    MINUTE,
    ZONES,
    Minute,
    PlannedEvent,
    Zone,
    instant_text,
    story_of,
    walk,
    with_duplicates,
)

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
    """The input of a story. `events` is None for a story without end; instants are in microseconds since 1970."""

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
        """Return its next change."""
        self._advance(chance)
        departs = self._day * DAY + (300 + self._number % 1_000 + self._delay) * MINUTE
        arrives = departs + (60 + self._number % 500) * MINUTE
        certain = self._status not in ("cancelled", "diverted")
        gate = None if self._status in ("scheduled", "cancelled") else f"{'ABCD'[self._number % 4]}{self._delay + 1}"
        day = datetime.fromtimestamp(self._day * DAY // 1_000_000, UTC).date().isoformat()
        return Change(
            self._carrier, self._number, day, self._status, gate, departs, arrives if certain else None, changed_us
        )

    def _advance(self, chance: Random) -> None:
        if self._status and self._status not in _NEXT:
            self._day, self._status, self._delay = self._day + DAYS, "", 0
        self._status = chance.choice(_NEXT[self._status]) if self._status else "scheduled"
        self._delay += 15 if self._status == "delayed" else 0


class _Story:
    def __init__(self, script: FlightScript) -> None:
        self._script = script
        self._chance = Random(script.seed)
        self._visit = 0
        self._flights: dict[int, list[_Flight]] = {}
        self._stride, self._start = walk(script.numbers, self._chance)

    def next_minute(self, left: float) -> Minute[ExpectedChange]:
        """Return the next minute to publish, when `left` events may still be published."""
        number = _flight_number((self._start + self._visit * self._stride) % self._script.numbers)
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
    more = "".join(f',"{name}":{_text(value)}' for name, value in known.items() if value is not None or spoken)
    return (
        f'{{"carrier":"{change.carrier}","flight_number":{change.flight_number},'
        f'"departure_date":"{change.departure_date}","status":"{change.status}",'
        f'"changed_at":"{instant_text(change.changed_us, zone)}"{more}}}'
    )


def _text(value: str | None) -> str:
    return "null" if value is None else f'"{value}"'


def _flight_number(index: int) -> int:
    """Return a different number for each index below 9999: the stride has no divisor in common with it."""
    return 1 + index * 7_919 % NUMBERS
