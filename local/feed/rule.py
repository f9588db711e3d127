"""What each published event must become: the business rule written a second time, knowing nothing of the app."""

from typing import NamedTuple

from local.feed.planned import FILTERED, POISON, REFERENCE, WRITTEN

ALARMING_PPM = 70


class Expected(NamedTuple):
    """The outcome of one event, and the row or rows behind it; instants in microseconds since 1970, UTC."""

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
    """What one sensor saw: `state` of a switch, or `ppm` of carbon monoxide; neither in a heartbeat."""

    sensor_id: str
    kind: str
    state: str | None
    ppm: int | None
    observed_us: int


EXPECT_FILTERED = Expected(FILTERED)
EXPECT_POISON = Expected(POISON)


def expect_registration(time_zone: str, armed: bool) -> Expected:
    """A registration becomes the row of its home."""
    return Expected(WRITTEN, "registration", time_zone=time_zone, armed=int(armed))


def expect_reading(reading: Reading, armed: bool) -> Expected:
    """A reading of a home that is registered, armed or not."""
    if reading.kind == "heartbeat":
        return EXPECT_FILTERED
    sensor_id, kind, state, ppm, observed_us = reading
    return Expected(WRITTEN, kind, sensor_id, state, ppm, observed_us, int(_alarming(reading, armed)))


def expect_early_reading(reading: Reading, armed: bool) -> Expected:
    """A reading before its home registers, once and armed or not: a letter, and the same rows when it is settled."""
    expected = expect_reading(reading, armed)
    return expected._replace(outcome=REFERENCE) if expected.outcome == WRITTEN else expected


def _alarming(reading: Reading, armed: bool) -> bool:
    if reading.kind == "carbon_monoxide":
        return reading.ppm is not None and reading.ppm >= ALARMING_PPM
    if reading.state != "active":
        return False
    return armed or reading.kind == "glass_break"
