import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from local.feed.businesses import FLIGHTS
from local.feed.planned_events import Minute
from local.feed.record import ONCE, Copies
from local.recount.recount import SHOWN, recount_others
from tests.local.feed.builders import flight_story, registration, story
from tests.local.stores import Fault, Files, first_row, ingest, unnamed, write_record

EVENTS = 800
LETTER = "UPDATE event_hub_dead_letter SET {} WHERE rowid = 1"
READING = "home_id, sensor_id, kind, state, ppm, observed_at"
CHANGE = "carrier, flight_number, departure_date, status, departure_gate, departs_at, arrives_at, changed_at"


def row_faults(table: str, columns: str, change: str) -> list[Fault]:
    doubled = f"SELECT stream_id, partition_id, sequence_number, 7, commit_number, {columns} FROM {table} LIMIT 1"
    return [
        (f"DELETE FROM {table} WHERE {first_row(table)}", table, "missing: 0 instead of 1"),
        (f"INSERT INTO {table} {doubled}", table, "too many: "),
        (f"UPDATE {table} SET {change} WHERE {first_row(table)}", table, ""),
    ]


FAULTS: list[Fault] = [
    *row_faults("sensor_reading", READING, "observed_at = '2026-01-01T00:00:00.000001Z'"),
    (f"UPDATE home_alert SET kind = 'other' WHERE {first_row('home_alert')}", "home_alert", ""),
    ("UPDATE home SET armed = 1 - armed WHERE home_id = (SELECT MIN(home_id) FROM home)", "home", ""),
    ("DELETE FROM event_hub_dead_letter WHERE rowid = 1", "letters", ""),
    (LETTER.format("body = x'00'"), "letters", ""),
    (LETTER.format("error_class = iif(error_class = 'poison', 'unknown', 'poison')"), "letters", ""),
    (
        "UPDATE event_hub_dead_letter SET status = 'resolved' WHERE error_class = 'reference'",
        "ledger sensor_reading home_alert",
        "ledger: 0 letters were resolved by retries",
    ),
    (
        "DELETE FROM batch_ledger WHERE partition_id = '2' AND commit_number = 3",
        "ledger outcomes",
        "ledger: hole in partition 2: 74 is wanted",
    ),
    (
        "UPDATE batch_ledger SET first_sequence_number = first_sequence_number - 1, held = held + 1"
        " WHERE partition_id = '0' AND commit_number = 2",
        "ledger outcomes",
        "ledger: overlap in partition 0: 37 is wanted",
    ),
    (
        "DELETE FROM batch_ledger WHERE partition_id = '3'"
        " AND commit_number = (SELECT MAX(commit_number) FROM batch_ledger WHERE partition_id = '3')",
        "checkpoint ledger outcomes",
        "checkpoint: partition 3 is at",
    ),
    ("UPDATE batch_ledger SET written = written - 1, filtered = filtered + 1 WHERE commit_number = 1", "outcomes", ""),
]
EARLIER = (
    "FROM flight_change AS c WHERE (c.carrier, c.flight_number, c.departure_date)"
    " = (s.carrier, s.flight_number, s.departure_date) AND c.sequence_number < s.sequence_number"
    " AND (c.status, c.changed_at) <> (s.status, s.changed_at) ORDER BY c.sequence_number DESC LIMIT 1"
)
FLIGHT_FAULTS: list[Fault] = [
    *row_faults("flight_change", CHANGE, "departure_gate = 'Z99'"),
    (  # a status that is not the latest
        "UPDATE flight_status AS s SET (status, departure_gate, departs_at, arrives_at, changed_at)"
        f" = (SELECT c.status, c.departure_gate, c.departs_at, c.arrives_at, c.changed_at {EARLIER})"
        " WHERE (carrier, flight_number, departure_date) = (SELECT s.carrier, s.flight_number, s.departure_date"
        f" FROM flight_status AS s WHERE EXISTS (SELECT 1 {EARLIER}) LIMIT 1)",
        "flight_status",
        "",
    ),
]
RESOLVED = (
    "(stream_id, partition_id, sequence_number) IN (SELECT stream_id, partition_id, sequence_number"
    " FROM event_hub_dead_letter WHERE rowid = (SELECT l.rowid FROM event_hub_dead_letter AS l JOIN sensor_reading AS r"
    " USING (stream_id, partition_id, sequence_number) LIMIT 1))"
)
SETTLED_FAULTS: list[Fault] = [
    (f"DELETE FROM sensor_reading WHERE {RESOLVED}", "sensor_reading", ""),
    ("UPDATE event_hub_dead_letter SET status = 'waiting' WHERE error_class = 'poison'", "letters", ""),
]


@pytest.mark.slow
def test_the_store_of_the_app_agrees_with_the_record_and_every_planted_fault_is_named(tmp_path: Path) -> None:
    made = Files.agreeing(tmp_path / "made", story(events=EVENTS))
    assert made.recount() == []
    assert unnamed(FAULTS, made, tmp_path) == {}
    many = made.copied_to(tmp_path / "many")
    many.change("DELETE FROM sensor_reading")
    *_, last = said = many.recount()
    assert (len(said), "more differences like these" in last) == (SHOWN + 1, True)
    with closing(sqlite3.connect(made.record, isolation_level=None)) as connection:
        connection.execute("UPDATE feed SET complete = 0")
    assert made.recount() == ["record: it is not complete, because the feed did not end in order"]


def test_a_store_with_settled_letters_agrees_too_and_every_planted_fault_is_named(tmp_path: Path) -> None:
    settled = Files.agreeing(tmp_path / "settled", story(events=EVENTS), settled=True)
    assert settled.recount() == []
    assert settled.change("SELECT COUNT(*) > 0 FROM event_hub_dead_letter WHERE status = 'resolved'") == [(1,)]
    assert unnamed(SETTLED_FAULTS, settled, tmp_path) == {}
    ((home,),) = settled.change("SELECT home_id FROM sensor_reading JOIN home USING (home_id) LIMIT 1")

    def kinds() -> set[str]:
        return {one.partition(": ")[0] for one in recount_others(settled.store, settled.record, home)}

    assert {"sensor_reading", "home"} <= kinds(), "the rows of an erased home"
    for table in ("sensor_reading", "home_alert", "home"):
        settled.change(f"DELETE FROM {table} WHERE home_id = '{home}'")
    blanked = "partition_key = NULL, body = x'', fingerprint = 'erased'"
    settled.change(f"UPDATE event_hub_dead_letter SET {blanked} WHERE partition_key = '{home}'")
    assert kinds() == set()
    settled.change("DELETE FROM home WHERE home_id = (SELECT MIN(home_id) FROM home)")
    assert kinds() == {"home"}


@pytest.mark.slow
def test_a_store_of_flights_agrees_too_in_any_order_and_every_planted_fault_is_named(tmp_path: Path) -> None:
    flights = Files.agreeing(tmp_path / "flights", flight_story(events=EVENTS), FLIGHTS)
    assert flights.recount() == []
    assert unnamed(FLIGHT_FAULTS, flights, tmp_path) == {}
    assert Files.agreeing(tmp_path / "reversed", flight_story(events=EVENTS)[::-1], FLIGHTS).recount() == []


def recounted(folder: Path, name: str, minutes: list[Minute]) -> list[str]:
    files = Files(folder / name)
    ingest(files.store, minutes)
    files.record = folder / "record.db"
    return files.recount()


def test_a_send_without_an_answer_may_be_there_once_or_twice_and_a_last_one_may_not_be_there(tmp_path: Path) -> None:
    answers = [(minute, Copies(1, 2) if at % 3 == 0 else ONCE) for at, minute in zip(count(), story(events=EVENTS))]
    write_record(tmp_path / "record.db", answers)
    found = {}
    for published in range(4):
        sent = [each for each, copies in answers for _ in range(published if copies != ONCE else 1)]
        found[published] = recounted(tmp_path, str(published), sent)
    assert {published: said == [] for published, said in found.items()} == {0: False, 1: True, 2: True, 3: False}
    assert any("events are accounted for" in one and "were published" in one for one in found[0])
    body = b'{"home_id":"home-000001","kind":"registration","time_zone":"Etc/UTC","armed":%s}'
    first, last = registration(armed=False), registration(armed=True)  # the state of the home may be either
    minutes = [
        first._replace(events=[first.events[0]._replace(body=body % b"false")]),
        last._replace(events=[last.events[0]._replace(body=body % b"true")]),
    ]
    given_up = tmp_path / "given-up"
    given_up.mkdir()
    write_record(given_up / "record.db", [(minutes[0], ONCE), (minutes[1], Copies(0, 1))])
    for published in (1, 2):
        assert recounted(given_up, str(published), minutes[:published]) == []
