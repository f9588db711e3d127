"""Readings for the tests: by hand, and by chance from a seed."""

import random
from datetime import datetime, timedelta

from examples.home_security.transform import SensorReading
from tests.fakes.builders import EPOCH

NOON = EPOCH + timedelta(days=40, hours=12)


def switch(home_id: str = "home-1", at: datetime = NOON, kind: str = "motion", state: str = "active") -> SensorReading:
    return SensorReading(home_id, f"{home_id}-{kind}", kind, state, None, at)


def gas(home_id: str = "home-1", at: datetime = NOON, ppm: int = 5) -> SensorReading:
    return SensorReading(home_id, f"{home_id}-co", "carbon_monoxide", None, ppm, at)


def by_chance(chance: random.Random, count: int, now: datetime) -> list[SensorReading]:
    """Return random readings: most of now, some late by minutes, a few by days; some exactly at a window's border."""
    found = []
    for _ in range(count):
        late = chance.choice([0, 0, 0, chance.expovariate(1 / 1800), chance.uniform(0, 9 * 86_400)])
        at = now - timedelta(seconds=late)
        if chance.random() < 0.1:
            at = at.replace(minute=chance.choice([0, 15, 30, 45]), second=0, microsecond=chance.choice([0, 0, 1]))
        home = f"home-{chance.randrange(4)}"
        if chance.random() < 0.3:
            found.append(gas(home, at, chance.choice([0, 7, 70, 1_000_000])))
        else:
            kind, state = chance.choice(["motion", "door"]), chance.choice(["active", "idle"])
            found.append(switch(home, at, kind, state))
    return found
