"""local/recount/recount.py: the app's tables agree with the record, and the recount names every change in them."""

import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from local.feed.businesses import FLIGHTS, HOMES, Domain
from local.feed.planned_events import Minute
from local.feed.record import ONCE, Copies
from local.recount.recount import SHOWN
from tests.local.feed.builders import flight_story, registration, story
from tests.local.stores import Fault, Files, fault, first_row, ingest, unnamed, write_record

EVENTS = 800

RESOLVED = (
    "(stream_id, partition_id, sequence_number) IN (SELECT stream_id, partition_id, sequence_number"
    " FROM event_hub_dead_letter WHERE rowid = (SELECT l.rowid FROM event_hub_dead_letter AS l JOIN {table} AS r"
    " USING (stream_id, partition_id, sequence_number) LIMIT 1))"
)
SETTLED_FAULTS = [
    *(
        fault(f"DELETE FROM {table} WHERE {RESOLVED.format(table=table)}", kinds=table)
        for table in ("sensor_reading", "home_alert")
    ),
    fault("UPDATE event_hub_dead_letter SET status = 'waiting' WHERE error_class = 'poison'", kinds="letters"),
]


def missing_row(table: str) -> Fault:
    statement = f"DELETE FROM {table} WHERE {first_row(table)}"
    return fault(statement, kinds=table, says=("missing: 0 instead of 1",))


def doubled_row(table: str, values: str) -> Fault:
    copy = f"SELECT stream_id, partition_id, sequence_number, 7, commit_number, {values} FROM {table} LIMIT 1"
    return fault(f"INSERT INTO {table} {copy}", kinds=table, says=("too many: ",))


def changed_row(table: str, change: str, row: str | None = None) -> Fault:
    return fault(f"UPDATE {table} SET {change} WHERE {row or first_row(table)}", kinds=table, count=2)


FAULTS = [
    fault(
        "UPDATE event_hub_dead_letter SET status = 'resolved' WHERE error_class = 'reference'",
        says=("ledger: 0 letters were resolved by retries", "sensor_reading: missing"),
    ),
    missing_row("sensor_reading"),
    missing_row("home_alert"),
    doubled_row("sensor_reading", "home_id, sensor_id, kind, state, ppm, observed_at"),
    doubled_row("home_alert", "home_id, sensor_id, kind, ppm, observed_at"),
    changed_row("sensor_reading", "observed_at = '2026-01-01T00:00:00.000001Z'"),
    changed_row("sensor_reading", "sensor_id = 'other'"),
    changed_row("sensor_reading", "home_id = 'home-999999'"),
    changed_row("sensor_reading", "state = NULL, ppm = 5000"),
    changed_row("sensor_reading", "observed_at = 'yesterday'"),
    changed_row("home_alert", "kind = 'other'"),
    *(
        fault(f"UPDATE home SET {change} WHERE home_id = (SELECT MIN(home_id) FROM home)", kinds="home")
        for change in ("armed = 1 - armed", "time_zone = 'Europe/Berlin'", "home_id = 'home-999999'")
    ),
    fault("DELETE FROM home WHERE home_id = (SELECT MIN(home_id) FROM home)", kinds="home"),
    fault("DELETE FROM event_hub_dead_letter WHERE rowid = 1", kinds="letters"),
    *(
        fault(f"UPDATE event_hub_dead_letter SET {change} WHERE rowid = 1", kinds="letters")
        for change in (
            "body = x'00'",
            "partition_key = 'home-999999'",
            "error_class = CASE error_class WHEN 'poison' THEN 'unknown' ELSE 'poison' END",
        )
    ),
    fault(  # a letter at the place of a row
        "INSERT INTO event_hub_dead_letter SELECT l.stream_id, r.partition_id, r.sequence_number, l.offset_token,"
        " l.enqueued_at, l.partition_key, l.properties, l.body, 1, l.error_class, l.error_type, l.error, NULL,"
        " l.fingerprint, l.cause,"
        " l.transform_version, l.status, l.attempts, l.due_at, l.claimed_by, l.claimed_until, 0, NULL, l.held_behind,"
        " l.failed_at, l.settled_at, l.settled_why, NULL"
        " FROM event_hub_dead_letter AS l, sensor_reading AS r WHERE l.rowid = 1 LIMIT 1",
        "DELETE FROM event_hub_dead_letter WHERE rowid = 1",
        kinds="letter",
    ),
    fault(
        "DELETE FROM batch_ledger WHERE partition_id = '2' AND commit_number = 3",
        says=("ledger: hole in partition 2: 74 is wanted", "events are accounted for"),
    ),
    fault(
        "DELETE FROM batch_ledger WHERE partition_id = '1' AND commit_number = 1",
        says=("ledger: hole in partition 1: 0 is wanted",),
    ),
    fault(
        "UPDATE batch_ledger SET first_sequence_number = first_sequence_number - 1, held = held + 1"
        " WHERE partition_id = '0' AND commit_number = 2",
        says=("ledger: overlap in partition 0: 37 is wanted", "outcomes: too many: "),
    ),
    fault(
        "DELETE FROM batch_ledger WHERE partition_id = '3'"
        " AND commit_number = (SELECT MAX(commit_number) FROM batch_ledger WHERE partition_id = '3')",
        says=("checkpoint: partition 3 is at",),
    ),
    fault(
        "UPDATE batch_ledger SET written = written - 1, filtered = filtered + 1 WHERE commit_number = 1",
        kinds="outcomes",
    ),
    fault("UPDATE batch_ledger SET stream_id = 2 WHERE partition_id = '0'", kinds="ledger checkpoint"),
    fault("DELETE FROM sensor_reading", says=("more differences like these",), count=SHOWN + 1),
]

LAST = (
    "(stream_id, partition_id, sequence_number) = (SELECT stream_id, partition_id, sequence_number"
    " FROM flight_status ORDER BY carrier, flight_number, departure_date LIMIT 1)"
)
EARLIER = (
    "FROM flight_change AS c WHERE (c.carrier, c.flight_number, c.departure_date)"
    " = (s.carrier, s.flight_number, s.departure_date) AND c.sequence_number < s.sequence_number"
    " AND (c.status, c.changed_at) <> (s.status, s.changed_at) ORDER BY c.sequence_number DESC LIMIT 1"
)
FLIGHT_FAULTS = [
    fault(f"DELETE FROM flight_change WHERE {first_row('flight_change')}", kinds="flight_change", says=("missing: ",)),
    doubled_row(
        "flight_change",
        "carrier, flight_number, departure_date, status, departure_gate, departs_at, arrives_at, changed_at",
    ),
    *(
        changed_row(table, change, row)
        for table, row in (("flight_change", None), ("flight_status", LAST))
        for change in (
            "carrier = 'XX'",
            "flight_number = 10000",
            "departure_date = '1999-01-01'",
            "status = 'lost'",
            "departure_gate = 'Z99'",
            "departs_at = NULL",
            "arrives_at = '2026-01-01T00:00:00.000001Z'",
            "changed_at = 'yesterday'",
        )
    ),
    fault(  # a status that is not the latest
        "UPDATE flight_status AS s SET (status, departure_gate, departs_at, arrives_at, changed_at)"
        f" = (SELECT c.status, c.departure_gate, c.departs_at, c.arrives_at, c.changed_at {EARLIER})"
        " WHERE (carrier, flight_number, departure_date) = (SELECT s.carrier, s.flight_number, s.departure_date"
        f" FROM flight_status AS s WHERE EXISTS (SELECT 1 {EARLIER}) LIMIT 1)",
        kinds="flight_status",
        count=2,
    ),
    fault(f"DELETE FROM flight_status WHERE {LAST}", kinds="flight_status"),
    fault("DELETE FROM event_hub_dead_letter WHERE rowid = 1", kinds="letters"),
    fault(  # a letter at the place of a row
        "UPDATE event_hub_dead_letter SET sequence_number = (SELECT sequence_number FROM flight_change"
        " WHERE partition_id = event_hub_dead_letter.partition_id LIMIT 1) WHERE rowid = 1",
        kinds="letter",
    ),
    fault(
        "DELETE FROM batch_ledger WHERE partition_id = '2' AND commit_number = 3",
        says=("ledger: hole in partition 2",),
    ),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files.agreeing(tmp_path_factory.mktemp("made"), story(events=EVENTS))


@pytest.mark.slow
def test_the_store_of_the_app_agrees_with_the_record_and_every_planted_fault_is_named(
    made: Files, tmp_path: Path
) -> None:
    assert made.recount() == []
    assert unnamed(FAULTS, made, tmp_path) == {}


def test_a_store_with_settled_letters_agrees_too_and_every_planted_fault_is_named(tmp_path: Path) -> None:
    (tmp_path / "settled").mkdir()
    settled = Files.agreeing(tmp_path / "settled", story(events=EVENTS), settled=True)
    assert settled.recount() == []
    assert settled.change("SELECT COUNT(*) > 0 FROM event_hub_dead_letter WHERE status = 'resolved'") == [(1,)]
    assert unnamed(SETTLED_FAULTS, settled, tmp_path) == {}


def test_a_flight_is_its_latest_change_although_an_earlier_one_was_published_last(tmp_path: Path) -> None:
    backwards = Files.agreeing(tmp_path, flight_story(events=EVENTS)[::-1], FLIGHTS)
    assert backwards.recount() == []
    ((older,),) = backwards.change(
        "SELECT COUNT(*) FROM flight_status AS s WHERE EXISTS (SELECT 1 FROM flight_change AS c"
        " WHERE (c.carrier, c.flight_number, c.departure_date) = (s.carrier, s.flight_number, s.departure_date)"
        " AND c.sequence_number > s.sequence_number AND c.changed_at < s.changed_at)"
    )
    assert older > 0


@pytest.mark.slow
def test_a_store_of_flights_agrees_too_and_every_planted_fault_is_named(tmp_path: Path) -> None:
    (tmp_path / "flights").mkdir()
    flights = Files.agreeing(tmp_path / "flights", flight_story(events=EVENTS), FLIGHTS)
    assert flights.recount() == []
    assert unnamed(FLIGHT_FAULTS, flights, tmp_path) == {}


def test_a_record_that_is_not_complete_proves_nothing(made: Files, tmp_path: Path) -> None:
    copy = made.copied_to(tmp_path)
    with closing(sqlite3.connect(copy.record, isolation_level=None)) as connection:
        connection.execute("UPDATE feed SET complete = 0")
    assert copy.recount() == ["record: it is not complete, because the feed did not end in order"]


def test_an_event_that_was_never_ingested_is_named(tmp_path: Path) -> None:
    write_record(tmp_path / "record.db", [(minute, ONCE) for minute in story(events=EVENTS)])
    differences = recounted(tmp_path, "less", story(events=EVENTS)[:-1])
    assert any("were published" in difference for difference in differences)


def test_a_send_without_an_answer_may_be_there_once_or_twice_and_not_less_or_more(tmp_path: Path) -> None:
    answers = [(minute, Copies(1, 2) if at % 3 == 0 else ONCE) for at, minute in zip(count(), story(events=EVENTS))]
    write_record(tmp_path / "record.db", answers)
    agrees = {}
    for published in range(4):
        sent = [each for each, copies in answers for _ in range(published if copies != ONCE else 1)]
        agrees[published] = recounted(tmp_path, str(published), sent) == []
    assert agrees == {0: False, 1: True, 2: True, 3: False}


def test_a_last_registration_that_was_given_up_may_be_stored_or_not(tmp_path: Path) -> None:
    body = b'{"home_id":"home-000001","kind":"registration","time_zone":"Etc/UTC","armed":%s}'
    first, last = (
        each._replace(events=[each.events[0]._replace(body=body % flag)])
        for each, flag in (
            (registration("home-000001", armed=False), b"false"),
            (registration("home-000001", armed=True), b"true"),
        )
    )
    write_record(tmp_path / "record.db", [(first, ONCE), (last, Copies(0, 1))])
    for published in (0, 1):
        assert recounted(tmp_path, str(published), [first, *[last] * published]) == []


def test_flights_without_an_answer_may_be_stored_once_or_twice_and_a_given_up_change_or_not(tmp_path: Path) -> None:
    minutes = flight_story(events=300)
    write_record(tmp_path / "record.db", [(minute, Copies(1, 2)) for minute in minutes], FLIGHTS)
    for published in (1, 2):
        sent = [minute for minute in minutes for _ in range(published)]
        assert recounted(tmp_path, f"answers-{published}", sent, FLIGHTS) == []
    (tmp_path / "record.db").unlink()
    answers = [(minute, ONCE) for minute in minutes[:-1]]
    write_record(tmp_path / "record.db", [*answers, (minutes[-1], Copies(0, 1))], FLIGHTS)
    for published in (0, 1):
        assert recounted(tmp_path, f"last-{published}", [*minutes[:-1], *minutes[-1:] * published], FLIGHTS) == []


def recounted(folder: Path, name: str, minutes: list[Minute], domain: Domain = HOMES) -> list[str]:
    """Ingest minutes into a separate store, and recount it against the record of the folder."""
    files = Files(folder / name)
    (folder / name).mkdir()
    ingest(files.store, minutes, domain)
    files.record = folder / "record.db"
    return files.recount()
