"""local/activity_recount.py: the right aggregate agrees with the record, and the recount names every change in it."""

from pathlib import Path

import pytest

from local.activity_recount import busiest_home, recount_activity
from local.aggregate_recount import SHOWN
from local.feed.record import ONCE, Copies
from tests.unit.local.feed.builders import story
from tests.unit.local.stores import Files, ingest, settle_letters, write_record

# By SQL, beside the plain Python that recounts it.
AGGREGATE = """
INSERT INTO {table}
SELECT home_id, strftime('%Y-%m-%dT%H:%M:%S.000000Z', unixepoch(observed_at) / {seconds} * {seconds}, 'unixepoch')
    AS begins, kind, COUNT(*), SUM(COALESCE(state, '') = 'active'), SUM(ppm) * 100, MIN(ppm) * 100, MAX(ppm) * 100,
    MIN(observed_at), MAX(observed_at), 1, NULL
FROM sensor_reading GROUP BY home_id, begins, kind
"""
LEVELS = {"home_activity": 900, "home_activity_hour": 3_600, "home_activity_day": 86_400}


class Aggregated(Files):
    """A store with its aggregate, and the record of its feed."""

    @staticmethod
    def made(folder: Path, copies: Copies = ONCE) -> "Aggregated":
        files = Aggregated(folder)
        minutes = story(homes=8, events=1200)
        ingest(files.store, minutes)
        settle_letters(files.store)
        write_record(files.record, [(minute, copies if at % 3 == 0 else ONCE) for at, minute in enumerate(minutes)])
        columns = [row[1] for row in files.change("PRAGMA table_info(home_activity)")]
        assert columns[:4] == ["home_id", "window_start", "kind", "readings"]
        files.change(*(AGGREGATE.format(table=table, seconds=seconds) for table, seconds in LEVELS.items()))
        return files

    @property
    def differences(self) -> list[str]:
        return recount_activity(self.store, self.record).differences


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Aggregated:
    return Aggregated.made(tmp_path_factory.mktemp("made"))


@pytest.fixture
def aggregated(made: Aggregated, tmp_path: Path) -> Aggregated:
    made.copied_to(tmp_path)
    return Aggregated(tmp_path)


def test_the_aggregate_of_all_rows_agrees_with_the_record(aggregated: Aggregated) -> None:
    found = recount_activity(aggregated.store, aggregated.record)
    assert found.differences == []
    readings = aggregated.change("SELECT COUNT(*), SUM(ppm) * 100 FROM sensor_reading")
    assert [
        (
            sum(sums.readings for sums in found.expected.values()),
            sum(sums.ppm_hundredths or 0 for sums in found.expected.values()),
        )
    ] == readings
    assert len({window.start_us for window in found.expected}) >= 3
    assert len(found.expected) > 100


def test_any_wrong_value_is_reported_with_its_window(made: Aggregated, tmp_path: Path) -> None:
    key = "home_id, window_start, kind"
    unreported = {}
    for number, (change, where, expected) in enumerate(
        (
            ("readings = readings + 1", "1", "readings "),
            ("active = active + 1", "kind = 'motion'", "active "),
            ("ppm_hundredths = ppm_hundredths + 1", "ppm_hundredths IS NOT NULL", "ppm_hundredths "),
            ("ppm_hundredths = NULL", "ppm_hundredths IS NOT NULL", "ppm_hundredths None instead of "),
            ("ppm_hundredths = 0", "ppm_hundredths IS NULL", "ppm_hundredths 0 instead of None"),
            ("least_ppm_hundredths = least_ppm_hundredths - 1", "ppm_hundredths IS NOT NULL", "least_ppm_hundredths "),
            ("most_ppm_hundredths = most_ppm_hundredths + 1", "ppm_hundredths IS NOT NULL", "most_ppm_hundredths "),
            ("first_observed_at = '2020-01-01T00:00:00.000001Z'", "1", "first_us "),
            ("last_observed_at = '2029-01-01T00:00:00.000000Z'", "1", "last_us "),
            ("home_id = home_id || 'x'", "1", "it is missing"),
            ("kind = 'smoke'", "1", "nothing was published for it"),
            ("window_start = '2020-01-01T00:00:00.000000Z'", "1", "it is missing"),
        )
    ):
        made.copied_to(tmp_path / str(number))
        copy = Aggregated(tmp_path / str(number))
        copy.change(
            f"UPDATE home_activity SET {change} WHERE ({key})"
            f" IN (SELECT {key} FROM home_activity WHERE {where} LIMIT 1)"
        )
        found = copy.differences
        if len(found) > 2 or not any(one.startswith("home_activity: home-") and expected in one for one in found):
            unreported[change] = found
    assert unreported == {}


@pytest.mark.parametrize("level", ["home_activity_hour", "home_activity_day"])
def test_a_wrong_and_a_missing_window_of_a_coarser_level_are_reported_with_its_name(
    aggregated: Aggregated, level: str
) -> None:
    first, last = (
        aggregated.change(
            f"SELECT home_id, kind, window_start FROM {level} ORDER BY home_id {order}, kind, window_start LIMIT 1"
        )[0]
        for order in ("", "DESC")
    )
    where = "(home_id, kind, window_start) ="
    aggregated.change(
        f"UPDATE {level} SET readings = readings + 1, active = active + 1 WHERE {where} {first}",
        f"DELETE FROM {level} WHERE {where} {last}",
    )
    wrong, missing = aggregated.differences
    assert wrong.startswith(f"{level}: {first[0]} {first[1]} {first[2][:10]} {first[2][11:16]}: readings ")
    assert missing == f"{level}: {last[0]} {last[1]} {last[2][:10]} {last[2][11:16]}: it is missing"


def test_a_missing_window_is_named_by_home_kind_and_time(aggregated: Aggregated) -> None:
    ((home_id, start, kind),) = aggregated.change("SELECT home_id, window_start, kind FROM home_activity LIMIT 1")
    aggregated.change(
        f"DELETE FROM home_activity WHERE (home_id, window_start, kind) = ('{home_id}', '{start}', '{kind}')"
    )
    assert aggregated.differences == [f"home_activity: {home_id} {kind} {start[:10]} {start[11:16]}: it is missing"]


def test_the_first_of_many_windows_are_named_and_the_rest_are_counted(aggregated: Aggregated) -> None:
    aggregated.change("UPDATE home_activity SET readings = readings + 1")
    ((windows,),) = aggregated.change("SELECT COUNT(*) FROM home_activity")
    assert len(aggregated.differences) == SHOWN + 1
    assert aggregated.differences[-1] == f"home_activity: and {windows - SHOWN} more windows differ"


def test_events_whose_answers_were_lost_count_as_often_as_they_are_stored(tmp_path: Path) -> None:
    aggregated = Aggregated.made(tmp_path, Copies(0, 2))
    assert aggregated.differences == []
    aggregated.change("UPDATE home_activity SET readings = readings + 1 WHERE kind = 'door'")
    assert aggregated.differences != []


def test_the_busiest_home_has_the_most_readings(aggregated: Aggregated) -> None:
    most = "SELECT home_id FROM home_activity GROUP BY home_id ORDER BY SUM(readings) DESC, home_id DESC LIMIT 1"
    ((home_id,),) = aggregated.change(most)
    found = recount_activity(aggregated.store, aggregated.record)
    assert busiest_home(found) == home_id
    assert [(found.rows,)] == aggregated.change("SELECT SUM(readings) FROM home_activity")


def test_an_empty_aggregate_has_no_busiest_home(aggregated: Aggregated) -> None:
    aggregated.change("DELETE FROM home_activity")
    assert busiest_home(recount_activity(aggregated.store, aggregated.record)) is None
