"""local/punctuality_recount.py: the right aggregate agrees with the record, and each change in it is named."""

from pathlib import Path

import pytest

from local.feed.domains import FLIGHTS
from local.feed.record import ONCE, Copies
from local.punctuality_recount import recount_punctuality
from tests.unit.local.feed.builders import flight_story
from tests.unit.local.stores import Files, ingest, write_record

# By SQL, beside the plain Python that recounts it.
AGGREGATE = """
INSERT INTO flight_punctuality
SELECT carrier, departure_date || 'T00:00:00.000000Z' AS begins, COUNT(*), SUM(status = 'delayed'),
    SUM(status = 'cancelled'), SUM(status = 'diverted'), SUM(status = 'departed'), SUM(status = 'arrived'),
    MIN(changed_at), MAX(changed_at), 1, NULL
FROM flight_change GROUP BY carrier, begins
"""


class Aggregated(Files):
    """A store with its aggregate, and the record of its feed."""

    @staticmethod
    def made(folder: Path, copies: Copies = ONCE) -> "Aggregated":
        files = Aggregated(folder)
        minutes = flight_story(numbers=30, events=1200)
        ingest(files.store, minutes, FLIGHTS)
        write_record(
            files.record, [(minute, copies if at % 3 == 0 else ONCE) for at, minute in enumerate(minutes)], FLIGHTS
        )
        files.change(AGGREGATE)
        return files

    @property
    def differences(self) -> list[str]:
        return recount_punctuality(self.store, self.record).differences


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Aggregated:
    return Aggregated.made(tmp_path_factory.mktemp("made"))


@pytest.fixture
def aggregated(made: Aggregated, tmp_path: Path) -> Aggregated:
    made.copied_to(tmp_path)
    return Aggregated(tmp_path)


def test_the_aggregate_of_all_changes_agrees_with_the_record(aggregated: Aggregated) -> None:
    found = recount_punctuality(aggregated.store, aggregated.record)
    assert found.differences == []
    ((changes, delayed, cancelled),) = aggregated.change(
        "SELECT COUNT(*), SUM(status = 'delayed'), SUM(status = 'cancelled') FROM flight_change"
    )
    assert found.rows == changes > 900
    assert sum(sums.delayed for sums in found.expected.values()) == delayed > 0
    assert sum(sums.cancelled for sums in found.expected.values()) == cancelled > 0
    assert len({window.start_us for window in found.expected}) >= 3
    assert {window.carrier for window in found.expected} >= {"LH", "BA", "DLH"}


def test_any_wrong_value_is_reported_with_its_window(made: Aggregated, tmp_path: Path) -> None:
    key = "carrier, window_start"
    counts = ("changes", "delayed", "cancelled", "diverted", "departed", "arrived")
    unreported = {}
    for number, (change, expected) in enumerate(
        (
            *((f"{name} = {name} + 1", f"{name} ") for name in counts),
            ("first_changed_at = '2020-01-01T00:00:00.000001Z'", "first_us "),
            ("last_changed_at = '2029-01-01T00:00:00.000000Z'", "last_us "),
            ("carrier = 'XX'", "it is missing"),
            ("carrier = 'XX'", "nothing was published for it"),
            ("window_start = '2020-01-01T00:00:00.000000Z'", "it is missing"),
        )
    ):
        made.copied_to(tmp_path / str(number))
        copy = Aggregated(tmp_path / str(number))
        copy.change(
            f"UPDATE flight_punctuality SET {change} WHERE ({key}) IN (SELECT {key} FROM flight_punctuality LIMIT 1)"
        )
        found = copy.differences
        if len(found) > 2 or not any(one.startswith("flight_punctuality: ") and expected in one for one in found):
            unreported[change] = found
    assert unreported == {}


def test_a_missing_window_is_named_by_carrier_and_day(aggregated: Aggregated) -> None:
    ((carrier, start),) = aggregated.change("SELECT carrier, window_start FROM flight_punctuality LIMIT 1")
    aggregated.change(f"DELETE FROM flight_punctuality WHERE (carrier, window_start) = ('{carrier}', '{start}')")
    assert aggregated.differences == [f"flight_punctuality: {carrier} {start[:10]}: it is missing"]


def test_changes_whose_answers_were_lost_count_as_often_as_they_are_stored(tmp_path: Path) -> None:
    aggregated = Aggregated.made(tmp_path, Copies(0, 2))
    assert aggregated.differences == []
    aggregated.change("UPDATE flight_punctuality SET changes = changes + 1 WHERE carrier = 'LH'")
    assert aggregated.differences != []
