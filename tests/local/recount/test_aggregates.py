from pathlib import Path

import pytest

from core.model.aggregates import Aggregate
from local.demo.aggregation import aggregate_of_demo
from local.feed.businesses import FLIGHTS, HOMES
from local.recount.aggregates import SHOWN, recount_aggregate
from tests.local.feed.builders import flight_story, story
from tests.local.stores import AGGREGATED, LEVELS, Files

HOME_ACTIVITY: Aggregate = aggregate_of_demo(HOMES)
FLIGHT_PUNCTUALITY: Aggregate = aggregate_of_demo(FLIGHTS)
MEASURED = "ppm_hundredths IS NOT NULL"
ACTIVITY = (  # the change of a window, where it is made, and what names it
    ("readings = readings + 1", "1", "readings "),
    ("active = active + 1", "kind = 'motion'", "active "),
    ("ppm_hundredths = NULL", MEASURED, "ppm_hundredths None instead of "),
    ("ppm_hundredths = 0", "ppm_hundredths IS NULL", "ppm_hundredths 0 instead of None"),
    ("least_ppm_hundredths = least_ppm_hundredths - 1", MEASURED, "least_ppm_hundredths "),
    ("last_observed_at = '2029-01-01T00:00:00.000000Z'", "1", "last_observed_at "),
    ("home_id = home_id || 'x'", "1", "it is missing"),
    ("kind = 'other'", "1", "no row belongs to it"),
)


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Files:
    files = Files.agreeing(tmp_path_factory.mktemp("homes"), story(homes=8, events=1200), settled=True)
    files.change(*AGGREGATED[HOMES.name])
    return files


def test_every_level_of_the_activity_of_homes_agrees_with_the_rows(homes: Files) -> None:
    found = recount_aggregate(HOME_ACTIVITY, homes.store)
    assert found.differences == []
    assert [found.name, *(one.name for one in found.coarser)] == list(LEVELS)
    ((rows, ppm),) = homes.change("SELECT COUNT(*), SUM(ppm) * 100 FROM sensor_reading")
    assert found.rows == rows > 500
    for one in (found, *found.coarser):
        assert sum(sums.readings for sums in one.expected.values()) == rows, one.name
        assert sum(sums.ppm_hundredths or 0 for sums in one.expected.values()) == ppm, one.name
    assert len({start for _, start, _ in found.expected}) >= 3 and len(found.expected) > 100


def test_the_punctuality_of_flights_agrees_with_the_rows_and_a_wrong_value_is_named(tmp_path: Path) -> None:
    flights = Files.agreeing(tmp_path, flight_story(numbers=30, events=1200), FLIGHTS)
    flights.change(*AGGREGATED[FLIGHTS.name])
    found = recount_aggregate(FLIGHT_PUNCTUALITY, flights.store)
    assert (found.differences, found.coarser) == ([], ())
    ((changes, delayed),) = flights.change("SELECT COUNT(*), SUM(status = 'delayed') FROM flight_change")
    assert found.rows == changes > 900
    assert sum(sums.delayed for sums in found.expected.values()) == delayed > 0
    window = "(carrier, window_start) = (SELECT carrier, window_start FROM flight_punctuality LIMIT 1)"
    for change in ("cancelled = cancelled + 1", "first_changed_at = '2020-01-01T00:00:00.000001Z'"):
        flights.change(f"UPDATE flight_punctuality SET {change} WHERE {window}")
        (said,) = recount_aggregate(FLIGHT_PUNCTUALITY, flights.store).differences
        assert said.startswith("flight_punctuality: ") and f"{change.split()[0]} " in said


def test_any_wrong_value_is_named_with_its_level_and_the_first_of_many(homes: Files, tmp_path: Path) -> None:
    levels = zip(ACTIVITY, [*HOME_ACTIVITY.levels] * len(ACTIVITY), strict=False)
    for number, ((change, where, expected), level) in enumerate(levels):
        copy, key = homes.copied_to(tmp_path / str(number)), ", ".join(level.key)
        window = f"SELECT {key} FROM {level.name} WHERE {where} LIMIT 1"
        copy.change(f"UPDATE {level.name} SET {change} WHERE ({key}) IN ({window})")
        said = recount_aggregate(HOME_ACTIVITY, copy.store).differences
        assert 1 <= len(said) <= 2 and all(one.startswith(f"{level.name}: ") for one in said), change
        assert any(expected in one for one in said), (change, said)
    copy = homes.copied_to(tmp_path / "many")
    copy.change("UPDATE home_activity SET readings = readings + 1")
    ((windows,),) = copy.change("SELECT COUNT(*) FROM home_activity")
    found = recount_aggregate(HOME_ACTIVITY, copy.store).differences
    assert len(found) == SHOWN + 1
    assert found[-1] == f"home_activity: and {windows - SHOWN} more windows differ"
