import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from local.feed.businesses import HOMES
from local.feed.planned_events import POISON, REFERENCE, Minute
from local.feed.record import FLUSH, ONCE, Copies, Record, RecordExists
from tests.local.feed.builders import story


def record(path: Path, minutes: list[Minute], copies: Copies = ONCE) -> Path:
    written = Record(path, HOMES, seed=1, senders=40)
    for each in minutes:
        written.add(each, copies)
    written.complete()
    written.close()
    return path


def rows(path: Path, query: str) -> list[tuple]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_it_holds_every_event_with_its_outcome_in_order_and_the_bodies_of_letters_alone(tmp_path: Path) -> None:
    minutes = story(events=3 * FLUSH + 7)
    path = record(tmp_path / "record.db", minutes)
    columns = "partition_key, outcome, kind, sensor_id, state, ppm, observed_us, alerts, time_zone, armed, body"
    found = rows(path, f"SELECT {columns} FROM event ORDER BY number")
    events = [(minute.partition_key, event) for minute in minutes for event in minute.events]
    kept = (POISON, REFERENCE)
    assert found == [
        (key, *event.expected, event.body if event.expected.outcome in kept else None) for key, event in events
    ]


def test_a_record_is_of_one_feed_and_a_later_one_adds_to_it_and_it_is_complete_when_that_ended_in_order(
    tmp_path: Path,
) -> None:
    path = tmp_path / "record.db"
    with pytest.raises(RecordExists, match="does not exist"):
        Record(path, HOMES, seed=1, senders=40, is_added_to=True)
    record(path, story(events=10))
    with pytest.raises(RecordExists, match="name a new file"):
        Record(path, HOMES, seed=1, senders=40)
    assert rows(path, "SELECT complete FROM feed") == [(1,)]
    added = Record(path, HOMES, seed=2, senders=40, is_added_to=True)
    assert rows(path, "SELECT complete FROM feed") == [(0,)]
    for each in story(events=5):
        added.add(each, ONCE)
    added.complete()
    added.close()
    assert rows(path, "SELECT COUNT(*), MAX(number) FROM event") == [(15, 15)]
    assert rows(path, "SELECT complete FROM feed") == [(1,)]
