"""The expected outcome of homes' events: the business rule written a second time, without the app, and its recount."""

from typing import NamedTuple

from local.feed.planned import FILTERED, POISON, REFERENCE, WRITTEN

ALARMING_PPM = 70


class Expected(NamedTuple):
    """The outcome of one event, and the content of its rows; instants are in microseconds since 1970, UTC."""

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
    """A reading of one sensor: `state` of a switch, or `ppm` of carbon monoxide; a heartbeat has neither."""

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
    return Expected(WRITTEN, kind, sensor_id, state, ppm, observed_us, int(_alarming(reading, armed)))


def expect_early_reading(reading: Reading, armed: bool) -> Expected:
    """Expect a letter for a reading before its home registers, and the rows that its retry writes.

    `armed` is the flag of the home's one registration.
    """
    expected = expect_reading(reading, armed)
    return expected._replace(outcome=REFERENCE) if expected.outcome == WRITTEN else expected


def _alarming(reading: Reading, armed: bool) -> bool:
    if reading.kind == "carbon_monoxide":
        return reading.ppm is not None and reading.ppm >= ALARMING_PPM
    if reading.state != "active":
        return False
    return armed or reading.kind == "glass_break"


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
