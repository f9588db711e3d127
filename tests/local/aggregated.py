"""Stores of homes and flights with their aggregates, which SQL adds up, beside the plain Python that recounts them."""

from pathlib import Path

from core.model.aggregates import Aggregate
from local.demo.aggregation import aggregate_of_demo
from local.feed.businesses import FLIGHTS, HOMES, Domain
from tests.local.feed.builders import flight_story, story
from tests.local.stores import Files

LEVELS = {"home_activity": 900, "home_activity_hour": 3_600, "home_activity_day": 86_400}
_ACTIVITY = """
INSERT INTO {table}
SELECT home_id, strftime('%Y-%m-%dT%H:%M:%S.000000Z', unixepoch(observed_at) / {seconds} * {seconds}, 'unixepoch')
    AS begins, kind, COUNT(*), SUM(COALESCE(state, '') = 'active'), SUM(ppm) * 100, MIN(ppm) * 100, MAX(ppm) * 100,
    MIN(observed_at), MAX(observed_at), 1, 0
FROM sensor_reading GROUP BY home_id, begins, kind
"""
_PUNCTUALITY = """
INSERT INTO flight_punctuality
SELECT carrier, departure_date || 'T00:00:00.000000Z' AS begins, COUNT(*), SUM(status = 'delayed'),
    SUM(status = 'cancelled'), SUM(status = 'diverted'), SUM(status = 'departed'), SUM(status = 'arrived'),
    MIN(changed_at), MAX(changed_at), 1, 0
FROM flight_change GROUP BY carrier, begins
"""
AGGREGATED = {
    HOMES.name: tuple(_ACTIVITY.format(table=table, seconds=seconds) for table, seconds in LEVELS.items()),
    FLIGHTS.name: (_PUNCTUALITY,),
}
HOME_ACTIVITY: Aggregate = aggregate_of_demo(HOMES)
FLIGHT_PUNCTUALITY: Aggregate = aggregate_of_demo(FLIGHTS)


def aggregated(folder: Path, domain: Domain) -> Files:
    """Make a store of a business with its aggregate."""
    folder.mkdir(exist_ok=True)
    minutes = story(homes=8, events=1200) if domain is HOMES else flight_story(numbers=30, events=1200)
    files = Files.agreeing(folder, minutes, domain, settled=domain is HOMES)
    files.change(*AGGREGATED[domain.name])
    return files
