"""The story of homes: minutes of one home at a time, the same for the same seed."""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from local.feed.planned_events import (
    FILTERED,
    FIRST_INSTANT,
    MALFORMED,
    MALFORMED_WHEN_REGISTERED,
    MINUTE,
    POISON,
    REFERENCE,
    WRITTEN,
    ZONES,
    Minute,
    PlannedEvent,
    Zone,
    instant_text,
    malformed,
    story_of,
    unknown_kind,
    walk,
    with_duplicates,
)

ALARMING_PPM = 70


class Expected(NamedTuple):
    """The outcome of one event, and the content of its rows. Instants are in microseconds since 1970, UTC."""

    outcome: str
    kind: str | None = None
    sensor_id: str | None = None
    state: str | None = None
    ppm: int | None = None
    observed_us: int | None = None
    alerts: int = 0
    time_zone: str | None = None
    armed: int | None = None


class Reading(NamedTuple):
    """A reading of one sensor: `state` of a switch, or `ppm` of carbon monoxide. A heartbeat has neither."""

    sensor_id: str
    kind: str
    state: str | None
    ppm: int | None
    observed_us: int


EXPECT_FILTERED = Expected(FILTERED)
EXPECT_POISON = Expected(POISON)


def expect_registration(time_zone: str, armed: bool) -> Expected:
    """Expect the row of the home that registers."""
    return Expected(WRITTEN, "registration", time_zone=time_zone, armed=int(armed))


def expect_reading(reading: Reading, armed: bool) -> Expected:
    """Expect the outcome of a reading of a registered home, armed or not."""
    if reading.kind == "heartbeat":
        return EXPECT_FILTERED
    sensor_id, kind, state, ppm, observed_us = reading
    if kind == "carbon_monoxide":
        alarms = ppm is not None and ppm >= ALARMING_PPM
    else:
        alarms = state == "active" and (armed or kind == "glass_break")
    return Expected(WRITTEN, kind, sensor_id, state, ppm, observed_us, int(alarms))


def expect_early_reading(reading: Reading, armed: bool) -> Expected:
    """Expect a letter for a reading before its home registers, and the rows that its retry writes.

    `armed` is the flag of the home's one registration.
    """
    expected = expect_reading(reading, armed)
    return expected._replace(outcome=REFERENCE) if expected.outcome == WRITTEN else expected


COLUMNS = (  # of the record; the fields of Expected after the outcome
    "kind TEXT",
    "sensor_id TEXT",
    "state TEXT",
    "ppm INTEGER",
    "observed_us INTEGER",  # microseconds since 1970, UTC
    "alerts INTEGER NOT NULL",
    "time_zone TEXT",
    "armed INTEGER",
)
ROW_TABLES = ("sensor_reading", "home_alert")

# Compare two multisets: the record holds the limits of each count, the store holds the count.
_READINGS = """
SELECT home_id, sensor_id, kind, state, ppm, observed_us, SUM(at_least), SUM(at_most), SUM(found) FROM (
    SELECT partition_key AS home_id, sensor_id, kind, state, ppm, observed_us, surely AS at_least, at_most, 0 AS found
    FROM expected WHERE kind <> 'registration'
    UNION ALL
    SELECT home_id, sensor_id, kind, state, ppm, instant(observed_at), 0, 0, 1 FROM sensor_reading
) GROUP BY home_id, sensor_id, kind, state, ppm, observed_us
HAVING SUM(found) NOT BETWEEN SUM(at_least) AND SUM(at_most)
"""
_ALERTS = """
SELECT home_id, sensor_id, kind, ppm, observed_us, SUM(at_least), SUM(at_most), SUM(found) FROM (
    SELECT partition_key AS home_id, sensor_id, kind, ppm, observed_us, surely * alerts AS at_least,
        at_most * alerts AS at_most, 0 AS found
    FROM expected WHERE alerts > 0
    UNION ALL
    SELECT home_id, sensor_id, kind, ppm, instant(observed_at), 0, 0, 1 FROM home_alert
) GROUP BY home_id, sensor_id, kind, ppm, observed_us
HAVING SUM(found) NOT BETWEEN SUM(at_least) AND SUM(at_most)
"""
# The store holds the last registration of each home; one whose answer was lost may be there or not.
_HOMES = """
SELECT home_id, time_zone, armed, SUM(expected), SUM(expected), SUM(found) FROM (
    SELECT partition_key AS home_id, time_zone, armed, 1 AS expected, 0 AS found FROM record.event
    WHERE number IN (SELECT MAX(number) FROM record.event WHERE kind = 'registration' GROUP BY partition_key)
    UNION ALL
    SELECT home_id, time_zone, armed, 0, 1 FROM home
) GROUP BY home_id, time_zone, armed
HAVING SUM(found) <> SUM(expected) AND home_id NOT IN (
    SELECT partition_key FROM record.event WHERE kind = 'registration' AND at_least = 0
)
"""
MULTISETS = {"sensor_reading": _READINGS, "home_alert": _ALERTS, "home": _HOMES}

_UNREGISTERED, _DISARMED, _ARMED = 0, 1, 2
_IN_TIME, _LATE_DISARMED, _LATE_ARMED = 1, 2, 3


def home_id(number: int) -> str:
    """Return the name of a home, which is its partition key."""
    return f"home-{number:06}"


def zone_of(number: int) -> Zone:
    return ZONES[number % len(ZONES)]


class Homes:
    """The state of every home, in two bytes each, so that a million homes need only a few megabytes."""

    def __init__(self, count: int) -> None:
        self._states = bytearray(count)
        self._visited = bytearray(count)

    def first_visit(self, number: int) -> bool:
        """Return True at the first call for a home, and False from then on."""
        seen = self._visited[number]
        self._visited[number] = seen or _IN_TIME
        return not seen

    def be_late(self, number: int, armed: bool) -> None:
        """Note that the home will register once, armed or not, after it has published readings."""
        self._visited[number] = _LATE_ARMED if armed else _LATE_DISARMED

    def late(self, number: int) -> bool | None:
        """Return the flag with which a late home registers, or None for a home that is not late."""
        visited = self._visited[number]
        return visited == _LATE_ARMED if visited in (_LATE_DISARMED, _LATE_ARMED) else None

    def armed(self, number: int) -> bool | None:
        """Return the flag of the home's latest registration, or None when it has published none."""
        state = self._states[number]
        return None if state == _UNREGISTERED else state == _ARMED

    def register(self, number: int, armed: bool) -> None:
        """Note that the home has published a registration."""
        self._states[number] = _ARMED if armed else _DISARMED


def reading_body(home_id: str, reading: Reading, zone: Zone) -> str:
    """Return the body of a reading or a heartbeat: JSON by hand, because it is a third of the feed's own work."""
    sensor_id, kind, state, ppm, observed_us = reading
    value = f'"state":"{state}",' if state is not None else f'"ppm":{ppm},' if ppm is not None else ""
    at = instant_text(observed_us, zone)
    return f'{{"home_id":"{home_id}","sensor_id":"{sensor_id}","kind":"{kind}",{value}"observed_at":"{at}"}}'


def registration_body(home_id: str, zone: Zone, armed: bool, observed_us: int | None) -> str:
    at = "" if observed_us is None else f',"observed_at":"{instant_text(observed_us, zone)}"'
    flag = "true" if armed else "false"
    return f'{{"home_id":"{home_id}","kind":"registration","time_zone":"{zone.name}","armed":{flag}{at}}}'


LATE = (0.05, 0.35)  # a late registration follows its home's first readings by this part of a round

# The mix of readings by kind and sensor: half of them are heartbeats and motion.
_SENSORS = (
    *(("heartbeat", "hub-1"),) * 4,
    *(("motion", f"motion-{number}") for number in (1, 1, 2, 2, 3, 3)),
    *(("door", f"door-{number}") for number in (1, 1, 2, 2)),
    *(("window", f"window-{number}") for number in (1, 2, 3)),
    ("glass_break", "glass-1"),
    *(("carbon_monoxide", f"co-{number}") for number in (1, 2)),
)


@dataclass(frozen=True, slots=True)
class HomeShares:
    """The shares of the story that go wrong: of the readings, but `late` of the homes and `rearmed` of the visits."""

    malformed: float = 0.005
    unknown_kind: float = 0.002
    duplicate: float = 0.005
    late: float = 0.02
    rearmed: float = 0.02


@dataclass(frozen=True, slots=True)
class HomeScript:
    """The input of a story. `events` is None for a story without end. Instants are in microseconds since 1970."""

    homes: int = 100_000
    events: int | None = None
    seed: int = 1
    first_instant: int = FIRST_INSTANT
    shares: HomeShares = field(default_factory=HomeShares)


def home_minutes(script: HomeScript) -> Iterator[Minute[Expected]]:
    """Yield minutes with exactly `script.events` events, or without end. Each round of a minute visits all homes.

    A registration is the first event of its minute, so that a minute that is published twice leads to the same rows
    and letters. Every late registration comes before the end and is its home's only one, so that the outcome of its
    first readings is certain.
    """
    return story_of(_Story(script).next_minute, script.events)


class _Story:
    def __init__(self, script: HomeScript) -> None:
        self._script = script
        self._chance = Random(script.seed)
        self._homes = Homes(script.homes)
        self._visit = 0
        self._late: list[tuple[int, int]] = []  # a heap: the visit before which it is due, and the home
        self._stride, self._start = walk(script.homes, self._chance)

    def next_minute(self, left: float) -> Minute[Expected]:
        if self._late and (self._late[0][0] <= self._visit or left <= len(self._late)):
            late = heapq.heappop(self._late)[1]
            return Minute(home_id(late), [self._registration(late, self._homes.late(late) is True)])
        number = (self._start + self._visit * self._stride) % self._script.homes
        self._visit += 1
        return self._visited(number, left - len(self._late))

    def _visited(self, number: int, room: float) -> Minute[Expected]:
        chance, events = self._chance, list[PlannedEvent[Expected]]()
        if self._homes.first_visit(number):
            if room > 1 and chance.random() < self._script.shares.late:
                delay = math.ceil(self._script.homes * (LATE[0] + (LATE[1] - LATE[0]) * chance.random()))
                heapq.heappush(self._late, (self._visit + delay, number))
                self._homes.be_late(number, chance.random() < 0.5)
                room -= 1
            else:
                events.append(self._registration(number, chance.random() < 0.5))
        elif self._homes.late(number) is None and chance.random() < self._script.shares.rearmed:
            events.append(self._registration(number, not self._homes.armed(number)))
        count = int(min(3.7 + 2 * chance.random(), room))  # 4.2 on average: 100,000 homes make 7,000 events a second
        for position in range(count - len(events)):
            events.append(self._reading(number, position))
        return Minute(home_id(number), with_duplicates(events, self._script.shares.duplicate, room, chance))

    def _now(self) -> int:
        return self._script.first_instant + self._visit * MINUTE // self._script.homes

    def _registration(self, number: int, armed: bool) -> PlannedEvent[Expected]:
        self._homes.register(number, armed)
        zone, at = zone_of(number), self._now() if self._chance.random() < 0.5 else None
        return PlannedEvent(
            registration_body(home_id(number), zone, armed, at).encode(), expect_registration(zone.name, armed)
        )

    def _reading(self, number: int, position: int) -> PlannedEvent[Expected]:
        chance = self._chance.random
        kind, sensor_id = _SENSORS[int(chance() * len(_SENSORS))]
        at = self._now() + position * 10_000_000 + int(chance() * 9_000) * 1_000
        reading = _measured(kind, sensor_id, at, chance())
        body = reading_body(home_id(number), reading, zone_of(number))
        armed, shares = self._homes.armed(number), self._script.shares
        faulty = shares.malformed + shares.unknown_kind
        if kind != "heartbeat" and chance() < faulty:
            if chance() * faulty < shares.unknown_kind:
                return PlannedEvent(unknown_kind(body, self._chance), EXPECT_POISON)
            faults = MALFORMED if armed is None else MALFORMED_WHEN_REGISTERED
            return PlannedEvent(malformed(body, faults, self._chance), EXPECT_POISON)
        if armed is None:
            return PlannedEvent(body.encode(), expect_early_reading(reading, self._homes.late(number) is True))
        return PlannedEvent(body.encode(), expect_reading(reading, armed))


def _measured(kind: str, sensor_id: str, at: int, level: float) -> Reading:
    """Return a reading for a level from 0 to 1: a high level is alarming."""
    if kind == "heartbeat":
        return Reading(sensor_id, kind, None, None, at)
    if kind == "carbon_monoxide":
        # mostly of clean air, sometimes near the alarm's threshold of 70, seldom far above it
        ppm = 1 + int(40 * level) if level < 0.9 else 400 if level > 0.98 else 65 + int(125 * (level - 0.9))
        return Reading(sensor_id, kind, None, ppm, at)
    return Reading(sensor_id, kind, "active" if level > 0.9 else "idle", None, at)
