"""local/books.py"""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.store.sqlite.schema import migrate_sqlite
from local.books import Books, BooksUnavailable, count_accounted, count_gaps, read_books
from tests.unit.local.feed.builders import story
from tests.unit.local.stores import ingest

STATUS = {
    "accounted": 9,
    "written": 6,
    "filtered": 2,
    "dead_lettered": 1,
    "ledger_balanced": True,
    "partitions": [{"hub_end": "7"}, {"hub_end": "-1"}, {"hub_end": "3"}],
}

Serve = Callable[[int, bytes], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers that have one answer to everything, and returns their address."""
    servers: list[http.server.ThreadingHTTPServer] = []

    def start(status: int, body: bytes) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_books_are_those_of_all_partitions(serve: Serve) -> None:
    books = read_books(serve(200, json.dumps(STATUS).encode()))
    assert books == Books(in_hub=12, accounted=9, written=6, filtered=2, dead_lettered=1, balanced=True)
    assert books.lag == 3


def test_while_the_hub_cannot_be_asked_there_is_no_lag(serve: Serve) -> None:
    unknown = {**STATUS, "partitions": [{"hub_end": None}]}
    books = read_books(serve(200, json.dumps(unknown).encode()))
    assert (books.in_hub, books.lag) == (None, None)


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (503, b'{"detail": "settings refused: TRANSFORM"}', "answers 503: settings refused: TRANSFORM"),
        (500, b"Traceback\nlong", "answers 500: Traceback$"),
        (200, b"{}", "partitions"),
        (200, b"no JSON", "Expecting value"),
    ],
)
def test_an_answer_without_books_says_why_in_one_line(serve: Serve, status: int, body: bytes, why: str) -> None:
    with pytest.raises(BooksUnavailable, match=why):
        read_books(serve(status, body))


def test_a_host_that_is_not_there_has_no_books() -> None:
    with pytest.raises(BooksUnavailable, match="refused"):
        read_books("http://127.0.0.1:1")


def test_what_is_accounted_for_can_be_read_from_the_store(tmp_path: Path) -> None:
    migrate_sqlite(tmp_path / "store.db")
    assert count_accounted(tmp_path / "store.db") == 0
    ingest(tmp_path / "store.db", story(events=300))
    assert count_accounted(tmp_path / "store.db") == 300


def test_a_store_without_gaps_counts_none(tmp_path: Path) -> None:
    migrate_sqlite(tmp_path / "store.db")
    assert count_gaps(tmp_path / "store.db") == {}
