"""local/recount/aggregates.py: the aggregates of both examples agree with their rows, and each change is named."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from core.model.aggregates import Aggregate
from local.feed.businesses import FLIGHTS, HOMES
from local.recount.aggregates import SHOWN, recount_aggregate
from tests.local.aggregated import FLIGHT_PUNCTUALITY, HOME_ACTIVITY, LEVELS, aggregated
from tests.local.stores import Files

MEASURED = "ppm_hundredths IS NOT NULL"
ACTIVITY = (
    ("readings = readings + 1", "1", "readings "),
    ("active = active + 1", "kind = 'motion'", "active "),
    ("ppm_hundredths = ppm_hundredths + 1", MEASURED, "ppm_hundredths "),
    ("ppm_hundredths = NULL", MEASURED, "ppm_hundredths None instead of "),
    ("ppm_hundredths = 0", "ppm_hundredths IS NULL", "ppm_hundredths 0 instead of None"),
    ("least_ppm_hundredths = least_ppm_hundredths - 1", MEASURED, "least_ppm_hundredths "),
    ("most_ppm_hundredths = most_ppm_hundredths + 1", MEASURED, "most_ppm_hundredths "),
    ("first_observed_at = '2020-01-01T00:00:00.000001Z'", "1", "first_observed_at "),
    ("last_observed_at = '2029-01-01T00:00:00.000000Z'", "1", "last_observed_at "),
    ("home_id = home_id || 'x'", "1", "it is missing"),
    ("kind = 'other'", "1", "no row belongs to it"),
    ("window_start = '2020-01-01T00:00:00.000000Z'", "1", "it is missing"),
)
COUNTS = ("changes", "delayed", "cancelled", "diverted", "departed", "arrived")
PUNCTUALITY = (
    *((f"{name} = {name} + 1", "1", f"{name} ") for name in COUNTS),
    ("first_changed_at = '2020-01-01T00:00:00.000001Z'", "1", "first_changed_at "),
    ("last_changed_at = '2029-01-01T00:00:00.000000Z'", "1", "last_changed_at "),
    ("carrier = 'XX'", "1", "it is missing"),
    ("carrier = 'XX'", "1", "no row belongs to it"),
    ("window_start = '2020-01-01T00:00:00.000000Z'", "1", "it is missing"),
)


@pytest.fixture(scope="module")
def made_homes(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return aggregated(tmp_path_factory.mktemp("homes"), HOMES)


@pytest.fixture(scope="module")
def made_flights(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return aggregated(tmp_path_factory.mktemp("flights"), FLIGHTS)


@pytest.fixture
def homes(made_homes: Files, tmp_path: Path) -> Files:
    return made_homes.copied_to(tmp_path)


def differences(files: Files, of: Aggregate = HOME_ACTIVITY) -> list[str]:
    return recount_aggregate(of, files.store).differences


def unnamed(of: Aggregate, changes: Iterable[tuple[str, str, str]], made: Files, folder: Path) -> dict[str, list[str]]:
    """Make each change in a window of a copy; return the changes that the recount does not name, with its words."""
    key, found = ", ".join(of.key), {}
    for number, (change, where, expected) in enumerate(changes):
        copy = made.copied_to(folder / str(number))
        window = f"SELECT {key} FROM {of.name} WHERE {where} LIMIT 1"
        copy.change(f"UPDATE {of.name} SET {change} WHERE ({key}) IN ({window})")
        said = differences(copy, HOME_ACTIVITY if of in HOME_ACTIVITY.levels else of)
        is_of_level = 1 <= len(said) <= 2 and all(one.startswith(f"{of.name}: ") for one in said)
        if not is_of_level or not any(expected in one for one in said):
            found[change] = said
    return found


def test_every_level_of_the_activity_of_homes_agrees_with_the_rows(made_homes: Files) -> None:
    found = recount_aggregate(HOME_ACTIVITY, made_homes.store)
    assert found.differences == []
    assert [found.name, *(one.name for one in found.coarser)] == list(LEVELS)
    ((rows, ppm),) = made_homes.change("SELECT COUNT(*), SUM(ppm) * 100 FROM sensor_reading")
    assert found.rows == rows > 500
    for one in (found, *found.coarser):
        assert sum(sums.readings for sums in one.expected.values()) == rows, one.name
        assert sum(sums.ppm_hundredths or 0 for sums in one.expected.values()) == ppm, one.name
    starts = {start for _, start, _ in found.expected}
    assert len(starts) >= 3 and len(found.expected) > 100


def test_the_punctuality_of_flights_agrees_with_the_rows(made_flights: Files) -> None:
    found = recount_aggregate(FLIGHT_PUNCTUALITY, made_flights.store)
    assert (found.differences, found.coarser) == ([], ())
    ((changes, delayed, cancelled),) = made_flights.change(
        "SELECT COUNT(*), SUM(status = 'delayed'), SUM(status = 'cancelled') FROM flight_change"
    )
    assert found.rows == changes > 900
    assert sum(sums.delayed for sums in found.expected.values()) == delayed > 0
    assert sum(sums.cancelled for sums in found.expected.values()) == cancelled > 0
    assert len({start for _, start in found.expected}) >= 3
    assert {carrier for carrier, _ in found.expected} >= {"LH", "BA", "DLH"}


@pytest.mark.parametrize("level", HOME_ACTIVITY.levels, ids=lambda level: level.name)
def test_any_wrong_value_of_a_home_is_named_with_its_level(level: Aggregate, made_homes: Files, tmp_path: Path) -> None:
    assert unnamed(level, ACTIVITY, made_homes, tmp_path) == {}


def test_any_wrong_value_of_a_carrier_is_named(made_flights: Files, tmp_path: Path) -> None:
    assert unnamed(FLIGHT_PUNCTUALITY, PUNCTUALITY, made_flights, tmp_path) == {}


@pytest.mark.parametrize("level", LEVELS)
def test_a_missing_window_is_named_by_its_key(homes: Files, level: str) -> None:
    key = "home_id, window_start, kind"
    (window,) = homes.change(f"SELECT {key} FROM {level} LIMIT 1")
    homes.change(f"DELETE FROM {level} WHERE ({key}) = {window}")
    assert differences(homes) == [f"{level}: {' '.join(window)}: it is missing"]


def test_the_first_of_many_windows_are_named_and_the_rest_are_counted(homes: Files) -> None:
    homes.change("UPDATE home_activity SET readings = readings + 1")
    ((windows,),) = homes.change("SELECT COUNT(*) FROM home_activity")
    found = differences(homes)
    assert len(found) == SHOWN + 1
    assert found[-1] == f"home_activity: and {windows - SHOWN} more windows differ"


def test_each_stored_row_counts_once(homes: Files) -> None:
    columns = [row[1] for row in homes.change("PRAGMA table_info(sensor_reading)")]
    again = ", ".join("ordinal + 100" if name == "ordinal" else name for name in columns)
    homes.change(f"INSERT INTO sensor_reading SELECT {again} FROM sensor_reading WHERE kind = 'door' LIMIT 1")
    found = differences(homes)
    assert [one.partition(":")[0] for one in found] == list(LEVELS)
    assert all("readings " in one for one in found)
