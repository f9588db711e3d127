"""local/recount.py: a store that the app filled agrees with the record, and nothing can be changed in it unseen."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from local.feed.planned import Minute
from local.feed.record import ONCE, Copies
from local.recount import SHOWN
from tests.unit.local.feed.builders import registration, story
from tests.unit.local.stores import Files, first_row, ingest, only, settle_letters, write_record


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Files:
    minutes, found = story(), Files(tmp_path_factory.mktemp("made"))
    ingest(found.store, minutes)
    write_record(found.record, [(minute, ONCE) for minute in minutes])
    return found


@pytest.fixture
def files(made: Files, tmp_path: Path) -> Files:
    return made.copied_to(tmp_path)


def test_a_store_that_the_app_filled_agrees_with_the_record(files: Files) -> None:
    assert files.recount() == []


@pytest.fixture
def settled(files: Files) -> Files:
    settle_letters(files.store)
    return files


def test_a_store_whose_letters_are_settled_agrees_with_the_record(settled: Files) -> None:
    assert settled.recount() == []
    with closing(sqlite3.connect(settled.store)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM event_hub_dead_letter WHERE status = 'resolved'").fetchone()[0]


@pytest.mark.parametrize("table", ["sensor_reading", "home_alert"])
def test_a_row_that_a_retry_should_have_written_is_named(settled: Files, table: str) -> None:
    resolved = (
        f"(SELECT l.rowid FROM event_hub_dead_letter AS l JOIN {table} AS r"
        " USING (stream_id, partition_id, sequence_number) LIMIT 1)"
    )
    differences = settled.change(
        f"DELETE FROM {table} WHERE (stream_id, partition_id, sequence_number) IN (SELECT stream_id, partition_id,"
        f" sequence_number FROM event_hub_dead_letter WHERE rowid = {resolved})"
    )
    only(differences, table)


def test_a_letter_that_was_resolved_without_a_retry_is_named(files: Files) -> None:
    differences = files.change("UPDATE event_hub_dead_letter SET status = 'resolved' WHERE error_class = 'reference'")
    assert any(one.startswith("ledger: 0 letters were resolved by retries") for one in differences)
    assert any(one.startswith("sensor_reading: missing") for one in differences)


def test_a_letter_that_is_settled_against_its_class_is_named(settled: Files) -> None:
    only(settled.change("UPDATE event_hub_dead_letter SET status = 'waiting' WHERE error_class = 'poison'"), "letters")


@pytest.mark.parametrize("table", ["sensor_reading", "home_alert"])
def test_a_missing_row_is_named(files: Files, table: str) -> None:
    differences = files.change(f"DELETE FROM {table} WHERE {first_row(table)}")
    only(differences, table)
    assert "missing: 0 instead of 1" in differences[0]


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("sensor_reading", "home_id, sensor_id, kind, state, ppm, observed_at"),
        ("home_alert", "home_id, sensor_id, kind, ppm, observed_at"),
    ],
)
def test_a_doubled_row_is_named(files: Files, table: str, values: str) -> None:
    copy = f"SELECT stream_id, partition_id, sequence_number, 7, commit_number, {values} FROM {table} LIMIT 1"
    differences = files.change(f"INSERT INTO {table} {copy}")
    only(differences, table)
    assert "too many: " in differences[0]


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("sensor_reading", "observed_at = '2026-01-01T00:00:00.000001Z'"),
        ("sensor_reading", "sensor_id = 'other'"),
        ("sensor_reading", "home_id = 'home-999999'"),
        ("sensor_reading", "state = NULL, ppm = 5000"),
        ("sensor_reading", "observed_at = 'yesterday'"),
        ("home_alert", "kind = 'other'"),
    ],
)
def test_a_changed_value_is_named_as_one_missing_and_one_too_many(files: Files, table: str, change: str) -> None:
    differences = files.change(f"UPDATE {table} SET {change} WHERE {first_row(table)}")
    only(differences, table)
    assert len(differences) == 2


@pytest.mark.parametrize("change", ["armed = 1 - armed", "time_zone = 'Europe/Berlin'", "home_id = 'home-999999'"])
def test_a_changed_home_is_named(files: Files, change: str) -> None:
    only(files.change(f"UPDATE home SET {change} WHERE home_id = (SELECT MIN(home_id) FROM home)"), "home")


def test_a_missing_home_is_named(files: Files) -> None:
    only(files.change("DELETE FROM home WHERE home_id = (SELECT MIN(home_id) FROM home)"), "home")


def test_a_missing_letter_is_named(files: Files) -> None:
    only(files.change("DELETE FROM event_hub_dead_letter WHERE rowid = 1"), "letters")


@pytest.mark.parametrize(
    "change",
    [
        "body = x'00'",
        "partition_key = 'home-999999'",
        "error_class = CASE error_class WHEN 'poison' THEN 'unknown' ELSE 'poison' END",
    ],
)
def test_a_changed_letter_is_named(files: Files, change: str) -> None:
    only(files.change(f"UPDATE event_hub_dead_letter SET {change} WHERE rowid = 1"), "letters")


def test_a_letter_that_wrote_a_row_as_well_is_named(files: Files) -> None:
    copy = (
        "INSERT INTO event_hub_dead_letter SELECT l.stream_id, r.partition_id, r.sequence_number, l.offset_token,"
        " l.enqueued_at, l.partition_key, l.properties, l.body, l.error_class, l.error_type, l.error, l.fingerprint,"
        " l.transform_version, l.status, l.attempts, l.due_at, l.claimed_by, l.claimed_until, l.held_behind,"
        " l.failed_at, l.settled_at, l.settled_why, 1, 0, NULL, NULL"
        " FROM event_hub_dead_letter AS l, sensor_reading AS r"
        " WHERE l.rowid = 1 LIMIT 1"
    )
    differences = files.change(copy, "DELETE FROM event_hub_dead_letter WHERE rowid = 1")
    only(differences, "letter")


def test_a_hole_in_the_ledger_is_named(files: Files) -> None:
    differences = files.change("DELETE FROM batch_ledger WHERE partition_id = '2' AND commit_number = 3")
    assert any(difference.startswith("ledger: hole in partition 2: 74 is wanted") for difference in differences)
    assert any("events are accounted for" in difference for difference in differences)


def test_a_ledger_that_does_not_begin_at_the_beginning_is_named(files: Files) -> None:
    differences = files.change("DELETE FROM batch_ledger WHERE partition_id = '1' AND commit_number = 1")
    assert any(difference.startswith("ledger: hole in partition 1: 0 is wanted") for difference in differences)


def test_ranges_that_overlap_are_named(files: Files) -> None:
    widened = "first_sequence_number = first_sequence_number - 1, held = held + 1"
    differences = files.change(f"UPDATE batch_ledger SET {widened} WHERE partition_id = '0' AND commit_number = 2")
    assert any(difference.startswith("ledger: overlap in partition 0: 37 is wanted") for difference in differences)
    assert any(difference.startswith("outcomes: too many") and "'held'" in difference for difference in differences)


def test_a_range_lost_at_the_end_is_named(files: Files) -> None:
    last = "SELECT MAX(commit_number) FROM batch_ledger WHERE partition_id = '3'"
    differences = files.change(f"DELETE FROM batch_ledger WHERE partition_id = '3' AND commit_number = ({last})")
    assert any(difference.startswith("checkpoint: partition 3 stands at") for difference in differences)


def test_outcomes_that_were_exchanged_are_named(files: Files) -> None:
    exchanged = "written = written - 1, filtered = filtered + 1"
    only(files.change(f"UPDATE batch_ledger SET {exchanged} WHERE commit_number = 1"), "outcomes")


def test_a_second_stream_is_named(files: Files) -> None:
    only(files.change("UPDATE batch_ledger SET stream_id = 2 WHERE partition_id = '0'"), "ledger", "checkpoint")


def test_many_differences_are_counted_and_a_few_are_shown(files: Files) -> None:
    differences = files.change("DELETE FROM sensor_reading")
    assert len(differences) == SHOWN + 1
    assert "more differences like these" in differences[-1]


def test_a_record_that_is_not_complete_proves_nothing(files: Files) -> None:
    with closing(sqlite3.connect(files.record, isolation_level=None)) as connection:
        connection.execute("UPDATE feed SET complete = 0")
    only(files.recount(), "record")


def test_an_event_that_was_never_ingested_is_named(tmp_path: Path) -> None:
    minutes, files = story(), Files(tmp_path)
    ingest(files.store, minutes[:-1])
    write_record(files.record, [(minute, ONCE) for minute in minutes])
    assert any("were published" in difference for difference in files.recount())


def doubtful() -> Iterator[tuple[Minute, Copies]]:
    """Every third minute's answer was lost."""
    for number, minute in zip(count(), story(), strict=False):
        yield minute, Copies(1, 2) if number % 3 == 0 else ONCE


@pytest.mark.parametrize("published", [1, 2])
def test_a_send_without_an_answer_may_be_there_once_or_twice(tmp_path: Path, published: int) -> None:
    told, files = list(doubtful()), Files(tmp_path)
    ingest(files.store, [minute for minute, copies in told for _ in range(min(published, copies.at_most))])
    write_record(files.record, told)
    assert files.recount() == []


@pytest.mark.parametrize("published", [0, 3])
def test_a_send_without_an_answer_may_not_be_missing_or_there_three_times(tmp_path: Path, published: int) -> None:
    told, files = list(doubtful()), Files(tmp_path)
    copied = [minute for minute, copies in told for _ in range(published if copies.at_most == 2 else 1)]
    ingest(files.store, copied)
    write_record(files.record, told)
    assert files.recount()


@pytest.mark.parametrize("published", [0, 1])
def test_a_last_registration_that_was_given_up_may_stand_or_not(tmp_path: Path, published: int) -> None:
    last = registration("home-000001", armed=True)
    body = b'{"home_id":"home-000001","kind":"registration","time_zone":"Etc/UTC","armed":%s}'
    first, last = (
        each._replace(events=[each.events[0]._replace(body=body % flag)])
        for each, flag in ((registration("home-000001", armed=False), b"false"), (last, b"true"))
    )
    files = Files(tmp_path)
    ingest(files.store, [first, *[last] * published])
    write_record(files.record, [(first, ONCE), (last, Copies(0, 1))])
    assert files.recount() == []
