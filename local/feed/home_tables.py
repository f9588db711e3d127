"""What the record says of homes' events, and how the app's tables of homes are counted against it."""

COLUMNS = (
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

# A multiset against another: the record says how many there may be, the store how many there are.
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
# The last registration of each home stands; one whose answer was lost may stand or not.
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
