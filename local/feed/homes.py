"""The story of homes: minutes of one home at a time, the same for the same seed."""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from local.feed.faults import MALFORMED, MALFORMED_WHEN_REGISTERED, malformed, unknown_kind
from local.feed.home_rule import (
    EXPECT_POISON,
    Expected,
    Reading,
    expect_early_reading,
    expect_reading,
    expect_registration,
)
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

_UNREGISTERED, _DISARMED, _ARMED = 0, 1, 2
_IN_TIME, _LATE_DISARMED, _LATE_ARMED = 1, 2, 3


def home_id(number: int) -> str:
    """Return the name of a home, which is its partition key."""
    return f"home-{number:06}"


def zone_of(number: int) -> Zone:
    """Return the time zone of a home."""
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
        """Return the flag with which a late home registers; None for a home that is not late."""
        visited = self._visited[number]
        return visited == _LATE_ARMED if visited in (_LATE_DISARMED, _LATE_ARMED) else None

    def armed(self, number: int) -> bool | None:
        """Return the flag of the home's latest registration; None when it has published none."""
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
    """Return the body of a registration, with or without its time."""
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
class Shares:
    """The shares of the story that go wrong: of the readings, but `late` of the homes and `rearmed` of the visits."""

    malformed: float = 0.005
    unknown_kind: float = 0.002
    duplicate: float = 0.005
    late: float = 0.02
    rearmed: float = 0.02


@dataclass(frozen=True, slots=True)
class Script:
    """The input of a story. `events` is None for a story without end; instants are in microseconds since 1970."""

    homes: int = 100_000
    events: int | None = None
    seed: int = 1
    first_instant: int = FIRST_INSTANT
    shares: Shares = field(default_factory=Shares)


def home_minutes(script: Script) -> Iterator[Minute[Expected]]:
    """Yield minutes with exactly `script.events` events, or without end. Each round of a minute visits all homes.

    A registration is the first event of its minute, so that a minute that is published twice leads to the same rows
    and letters. Every late registration comes before the end and is its home's only one, so that the outcome of its
    first readings is certain.
    """
    return story_of(_Story(script).next_minute, script.events)


class _Story:
    def __init__(self, script: Script) -> None:
        self._script = script
        self._chance = Random(script.seed)
        self._homes = Homes(script.homes)
        self._visit = 0
        self._late: list[tuple[int, int]] = []  # a heap: the visit before which it is due, and the home
        self._stride, self._start = walk(script.homes, self._chance)

    def next_minute(self, left: float) -> Minute[Expected]:
        """Return the next minute to publish, when `left` events may still be published."""
        if self._late and (self._late[0][0] <= self._visit or left <= len(self._late)):
            return self._register_late(heapq.heappop(self._late)[1])
        number = (self._start + self._visit * self._stride) % self._script.homes
        self._visit += 1
        return self._visited(number, left - len(self._late))

    def _register_late(self, number: int) -> Minute[Expected]:
        return Minute(home_id(number), [self._registration(number, self._homes.late(number) is True)])

    def _visited(self, number: int, room: float) -> Minute[Expected]:
        chance, events = self._chance, list[PlannedEvent[Expected]]()
        if self._homes.first_visit(number):
            if room > 1 and chance.random() < self._script.shares.late:
                heapq.heappush(self._late, (self._visit + self._delay(), number))
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

    def _delay(self) -> int:
        earliest, latest = LATE
        return math.ceil(self._script.homes * (earliest + (latest - earliest) * self._chance.random()))

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
        if kind != "heartbeat" and chance() < self._faulty:
            return PlannedEvent(self._spoilt(number, body), EXPECT_POISON)
        return PlannedEvent(body.encode(), self._expected(number, reading))

    def _expected(self, number: int, reading: Reading) -> Expected:
        armed = self._homes.armed(number)
        if armed is None:
            return expect_early_reading(reading, self._homes.late(number) is True)
        return expect_reading(reading, armed)

    @property
    def _faulty(self) -> float:
        return self._script.shares.malformed + self._script.shares.unknown_kind

    def _spoilt(self, number: int, body: str) -> bytes:
        if self._chance.random() * self._faulty < self._script.shares.unknown_kind:
            return unknown_kind(body, self._chance)
        faults = MALFORMED if self._homes.armed(number) is None else MALFORMED_WHEN_REGISTERED
        return malformed(body, faults, self._chance)


def _measured(kind: str, sensor_id: str, at: int, level: float) -> Reading:
    """Return a reading for a level from 0 to 1: a high level is alarming."""
    if kind == "heartbeat":
        return Reading(sensor_id, kind, None, None, at)
    if kind == "carbon_monoxide":
        return Reading(sensor_id, kind, None, _ppm(level), at)
    return Reading(sensor_id, kind, "active" if level > 0.9 else "idle", None, at)


def _ppm(level: float) -> int:
    """Return a concentration: mostly of clean air, sometimes near the alarm's threshold of 70, seldom far above it."""
    if level < 0.9:
        return 1 + int(40 * level)
    return 400 if level > 0.98 else 65 + int(125 * (level - 0.9))
