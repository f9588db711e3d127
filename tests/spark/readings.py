"""Readings for the tests: by hand, and by chance from a seed."""

from datetime import datetime, timedelta

from examples.home_security.transform import SensorReading
from tests.fakes.builders import EPOCH

NOON = EPOCH + timedelta(days=40, hours=12)


def switch(home_id: str = "home-1", at: datetime = NOON, kind: str = "motion", state: str = "active") -> SensorReading:
    return SensorReading(home_id, f"{home_id}-{kind}", kind, state, None, at)


def gas(home_id: str = "home-1", at: datetime = NOON, ppm: int = 5) -> SensorReading:
    return SensorReading(home_id, f"{home_id}-co", "carbon_monoxide", None, ppm, at)
