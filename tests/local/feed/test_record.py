"""local/feed/record.py"""

import sqlite3
from pathlib import Path

import pytest

from local.feed.businesses import HOMES
from local.feed.planned_events import POISON, REFERENCE, Minute
from local.feed.record import FLUSH, ONCE, Copies, Record, RecordExists, published_copies
from tests.local.feed.builders import minute, story


def record(path: Path, minutes: list[Minute], copies: Copies = ONCE) -> Path:
    written = Record(path, HOMES, seed=1, senders=40)
    for each in minutes:
        written.add(each, copies)
    written.complete()
    written.close()
    return path


def rows(path: Path, query: str) -> list[tuple]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_it_holds_every_event_with_its_expected_outcome_in_the_order_of_publishing(tmp_path: Path) -> None:
    minutes = story(events=3 * FLUSH + 7)
    path = record(tmp_path / "record.db", minutes)
    found = rows(
        path,
        "SELECT partition_key, outcome, kind, sensor_id, state, ppm, observed_us, alerts, time_zone, armed FROM event"
        " ORDER BY number",
    )
    assert found == [(minute.partition_key, *event.expected) for minute in minutes for event in minute.events]


def test_it_stores_the_bodies_of_letters_and_no_others(tmp_path: Path) -> None:
    minutes = story()
    path = record(tmp_path / "record.db", minutes)
    stored = rows(path, "SELECT body FROM event WHERE body IS NOT NULL ORDER BY number")
    letters = [event for minute in minutes for event in minute.events if event.expected.outcome in (POISON, REFERENCE)]
    assert [body for (body,) in stored] == [event.body for event in letters]


def test_it_is_complete_only_when_the_feed_ended_in_order(tmp_path: Path) -> None:
    broken = Record(tmp_path / "broken.db", HOMES, seed=1, senders=40)
    broken.add(minute(), ONCE)
    broken.close()
    assert rows(tmp_path / "broken.db", "SELECT complete FROM feed") == [(0,)]
    assert rows(record(tmp_path / "whole.db", [minute()]), "SELECT complete FROM feed") == [(1,)]


def test_a_lost_answer_leaves_a_range_of_copies_and_an_empty_record_has_none(tmp_path: Path) -> None:
    assert published_copies(record(tmp_path / "record.db", [minute(events=3)], Copies(1, 2))) == Copies(3, 6)
    assert published_copies(record(tmp_path / "empty.db", [])) == Copies(0, 0)


def test_two_feeds_do_not_share_a_record_and_only_one_that_exists_is_added_to(tmp_path: Path) -> None:
    with pytest.raises(RecordExists, match="does not exist"):
        Record(tmp_path / "record.db", HOMES, seed=1, senders=40, is_added_to=True)
    path = record(tmp_path / "record.db", [minute()])
    with pytest.raises(RecordExists, match="name a new file"):
        Record(path, HOMES, seed=1, senders=40)


def test_a_later_feed_adds_to_the_record_of_an_earlier_one(tmp_path: Path) -> None:
    path = record(tmp_path / "record.db", story(events=10))
    added = Record(path, HOMES, seed=2, senders=40, is_added_to=True)
    assert rows(path, "SELECT complete FROM feed") == [(0,)]
    for each in story(events=5):
        added.add(each, ONCE)
    added.complete()
    added.close()
    assert rows(path, "SELECT COUNT(*), MAX(number) FROM event") == [(15, 15)]
    assert rows(path, "SELECT complete FROM feed") == [(1,)]
