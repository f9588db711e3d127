"""local/recount.py with flights: the app's tables agree with the record, and nothing can be changed in them unseen."""

from pathlib import Path

import pytest

from local.feed.domains import FLIGHTS
from local.feed.flight_rule import ExpectedChange
from local.feed.planned import Minute
from local.feed.record import ONCE, Copies
from tests.unit.local.feed.builders import flight_story
from tests.unit.local.stores import Files, first_row, ingest, only, write_record

LAST = (
    "(stream_id, partition_id, sequence_number) = (SELECT stream_id, partition_id, sequence_number"
    " FROM flight_status ORDER BY carrier, flight_number, departure_date LIMIT 1)"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return agreeing(tmp_path_factory.mktemp("made"), flight_story())


@pytest.fixture
def files(made: Files, tmp_path: Path) -> Files:
    return made.copied_to(tmp_path)


def agreeing(folder: Path, minutes: list[Minute]) -> Files:
    found = Files(folder)
    ingest(found.store, minutes, FLIGHTS)
    write_record(found.record, [(minute, ONCE) for minute in minutes], FLIGHTS)
    return found


def test_a_store_that_the_app_filled_agrees_with_the_record(files: Files) -> None:
    assert files.recount() == []


def test_a_missing_change_is_named(files: Files) -> None:
    differences = files.change(f"DELETE FROM flight_change WHERE {first_row('flight_change')}")
    only(differences, "flight_change")
    assert "missing: " in differences[0]


def test_a_doubled_change_is_named(files: Files) -> None:
    columns = "carrier, flight_number, departure_date, status, departure_gate, departs_at, arrives_at, changed_at"
    copy = f"SELECT stream_id, partition_id, sequence_number, 7, commit_number, {columns} FROM flight_change LIMIT 1"
    differences = files.change(f"INSERT INTO flight_change {copy}")
    only(differences, "flight_change")
    assert "too many: " in differences[0]


@pytest.mark.parametrize(
    "change",
    [
        "carrier = 'XX'",
        "flight_number = 10000",
        "departure_date = '1999-01-01'",
        "status = 'lost'",
        "departure_gate = 'Z99'",
        "departs_at = NULL",
        "arrives_at = '2026-01-01T00:00:00.000001Z'",
        "changed_at = 'yesterday'",
    ],
)
@pytest.mark.parametrize(("table", "row"), [("flight_change", first_row("flight_change")), ("flight_status", LAST)])
def test_a_changed_value_is_named_as_one_missing_and_one_too_many(
    files: Files, change: str, table: str, row: str
) -> None:
    differences = files.change(f"UPDATE {table} SET {change} WHERE {row}")
    only(differences, table)
    assert len(differences) == 2


def test_a_status_that_is_not_the_latest_is_named(files: Files) -> None:
    earlier = (
        "FROM flight_change AS c WHERE (c.carrier, c.flight_number, c.departure_date)"
        " = (s.carrier, s.flight_number, s.departure_date) AND c.sequence_number < s.sequence_number"
        " AND (c.status, c.changed_at) <> (s.status, s.changed_at) ORDER BY c.sequence_number DESC LIMIT 1"
    )
    key = "s.carrier, s.flight_number, s.departure_date"
    one = f"(SELECT {key} FROM flight_status AS s WHERE EXISTS (SELECT 1 {earlier}) LIMIT 1)"
    differences = files.change(
        f"UPDATE flight_status AS s SET (status, departure_gate, departs_at, arrives_at, changed_at)"
        f" = (SELECT c.status, c.departure_gate, c.departs_at, c.arrives_at, c.changed_at {earlier})"
        f" WHERE (carrier, flight_number, departure_date) = {one}"
    )
    only(differences, "flight_status")
    assert len(differences) == 2


def test_a_missing_status_is_named(files: Files) -> None:
    only(files.change(f"DELETE FROM flight_status WHERE {LAST}"), "flight_status")


def test_a_missing_letter_is_named(files: Files) -> None:
    only(files.change("DELETE FROM event_hub_dead_letter WHERE rowid = 1"), "letters")


def test_a_letter_that_wrote_a_change_as_well_is_named(files: Files) -> None:
    moved = (
        "(SELECT sequence_number FROM flight_change WHERE partition_id = event_hub_dead_letter.partition_id LIMIT 1)"
    )
    differences = files.change(f"UPDATE event_hub_dead_letter SET sequence_number = {moved} WHERE rowid = 1")
    only(differences, "letter")


def test_a_hole_in_the_ledger_is_named(files: Files) -> None:
    differences = files.change("DELETE FROM batch_ledger WHERE partition_id = '2' AND commit_number = 3")
    assert any(difference.startswith("ledger: hole in partition 2") for difference in differences)


@pytest.mark.parametrize("published", [1, 2])
def test_a_send_without_an_answer_may_be_there_once_or_twice(tmp_path: Path, published: int) -> None:
    minutes, files = flight_story(), Files(tmp_path)
    ingest(files.store, [minute for minute in minutes for _ in range(published)], FLIGHTS)
    write_record(files.record, [(minute, Copies(1, 2)) for minute in minutes], FLIGHTS)
    assert files.recount() == []


@pytest.mark.parametrize("published", [0, 1])
def test_a_last_change_that_was_given_up_may_stand_or_not(tmp_path: Path, published: int) -> None:
    minutes, files = flight_story(), Files(tmp_path)
    told: list[Minute[ExpectedChange]] = [*minutes[:-1], *minutes[-1:] * published]
    ingest(files.store, told, FLIGHTS)
    doubtful = [(minute, ONCE) for minute in minutes[:-1]]
    write_record(files.record, [*doubtful, (minutes[-1], Copies(0, 1))], FLIGHTS)
    assert files.recount() == []
