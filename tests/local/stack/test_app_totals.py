"""local/stack/app_totals.py"""

import threading
from pathlib import Path

import pytest

from local.stack.app_totals import Books, BooksUnavailable, Watch, count_accounted, count_gaps, read_books
from tests.fakes.engines import SqliteEngine
from tests.local.conftest import Host
from tests.local.feed.builders import story
from tests.local.stores import ingest
from tests.patience import allowed

TOTALS = {"accounted": 9, "written": 6, "filtered": 2, "dead_lettered": 1, "ledger_balanced": True, "incarnation": 2}
PARTITIONS = [
    {"hub_end": "7", "stops": [{"reason": "outage"}]},
    {"hub_end": "-1", "stops": [{"reason": "outage"}, {"reason": "held"}]},
    {"hub_end": "3", "stops": []},
]
BOOKS = Books(in_hub=3, accounted=3, written=3, filtered=0, dead_lettered=0, balanced=True)


def test_the_books_are_those_of_all_partitions_without_the_hub_when_it_does_not_answer(host: Host) -> None:
    silent = [PARTITIONS[2], {"hub_end": None, "stops": []}]
    host.status = [{**TOTALS, "partitions": PARTITIONS}, {**TOTALS, "partitions": silent}]
    stopped = "  2 partitions stopped: outage  1 partition stopped: held"
    assert read_books(host.address) == Books(12, 9, 6, 2, 1, balanced=True, incarnation=2, stopped=stopped)
    assert read_books(host.address).in_hub is None


def test_an_answer_without_books_is_refused_with_its_reason_in_one_line(host: Host) -> None:
    for status, body, why in (
        (503, b'{"detail": "settings refused: TRANSFORM"}', "answers 503: settings refused: TRANSFORM"),
        (500, b"Traceback\nlong", "answers 500: Traceback$"),
        (200, b"{}", "partitions"),
        (200, b"no JSON", "Expecting value"),
    ):
        host.status = [(status, body)]
        with pytest.raises(BooksUnavailable, match=why):
            read_books(host.address)
    with pytest.raises(BooksUnavailable, match="refused"):
        read_books("http://127.0.0.1:1")


def test_accounted_events_and_gaps_are_counted_in_the_store(tmp_path: Path) -> None:
    store = SqliteEngine(tmp_path / "store.db").path
    assert (count_accounted(store), count_gaps(store)) == (0, {})
    ingest(store, story(events=300))
    assert count_accounted(store) == 300


def test_the_latest_answer_stays_when_the_app_falls_silent() -> None:
    answers, finished = [None, BOOKS], threading.Event()

    def read(address: str) -> Books:
        if not answers:
            finished.set()
        if not answers or (answer := answers.pop(0)) is None:
            raise BooksUnavailable("not yet, or no longer")
        return answer

    with Watch("http://one", read, every=0.001) as watch:
        assert finished.wait(allowed(10))
        assert watch.books == BOOKS


def test_a_different_address_is_read_from_and_the_books_of_the_first_are_forgotten() -> None:
    requested, answered = threading.Event(), threading.Event()

    def read(address: str) -> Books:
        if address == "http://two":
            requested.set()
            raise BooksUnavailable("not yet")
        answered.set()
        return BOOKS

    with Watch("http://one", read, every=0.001) as watch:
        assert answered.wait(allowed(10))
        watch.move("http://two")
        assert requested.wait(allowed(10))
        assert watch.books is None
