"""The app's books: its status over HTTP, counts from the store, and a watch in the background."""

import http.client
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from local.stack.sql_server import Server

TIMEOUT = 15.0  # seconds; the app stops waiting for the hub earlier
READ_EVERY = 2.0  # seconds from one answer to the next request; the app asks the hub no more often

OPEN = ("waiting", "retrying", "held")  # the statuses of open letters
_LETTERS = "SELECT status, COUNT(*) FROM event_hub_dead_letter GROUP BY status"
_OPEN_LETTERS = f"""
SELECT COUNT(*), COALESCE(SUM(attempts), 0) FROM event_hub_dead_letter WHERE status IN {OPEN}
"""
_GAPS = "SELECT status, SUM(last_sequence_number - first_sequence_number + 1) FROM sequence_gap GROUP BY status"
_ACCOUNTED = """
SELECT COALESCE(SUM(last_sequence_number - first_sequence_number + 1), 0) FROM batch_ledger WHERE kind = 'batch'
"""

_STOPS = "SELECT COUNT(*), MIN(detail) FROM partition_stop"
_LETTERS_BY_CAUSE = """
SELECT error_class, status, COUNT(*), MIN(error_type), MIN(error) FROM event_hub_dead_letter
GROUP BY error_class, status ORDER BY error_class, status
"""
SETTLED = ("resolved", "discarded")
_SURVIVED = {
    "crashes_isolated": """
        SELECT COUNT(*) FROM event_hub_dead_letter WHERE error_class = 'crash' AND fingerprint <> 'held'
    """,
    "incarnations": "SELECT COUNT(*) FROM event_stream",
    "held": "SELECT COUNT(*) FROM event_hub_dead_letter WHERE fingerprint = 'held' AND status = 'resolved'",
}

LiveStore = Path | Server  # the store while the app works: a file of SQLite, or a server


class BooksUnavailable(Exception):
    """The app did not answer with its books."""


@dataclass(frozen=True, slots=True)
class Books:
    """Numbers of events in all partitions of one incarnation. `in_hub` counts all that its hub ever took, or None
    without its answer. `stopped` says in words which partitions stand still, and why.
    """

    in_hub: int | None
    accounted: int
    written: int
    filtered: int
    dead_lettered: int
    balanced: bool
    incarnation: int | None = None
    stopped: str = ""

    def beside(self, earlier: "Books") -> "Books":
        """Return the books together with those of an earlier incarnation."""
        in_hub = None if self.in_hub is None or earlier.in_hub is None else self.in_hub + earlier.in_hub
        sums = {name: getattr(self, name) + getattr(earlier, name) for name in _SUMS}
        return Books(in_hub=in_hub, balanced=self.balanced and earlier.balanced, incarnation=self.incarnation, **sums)


_SUMS = ("accounted", "written", "filtered", "dead_lettered")


def read_books(address: str) -> Books:
    """Return the current books. The message of BooksUnavailable is one line."""
    try:
        status = json.loads(get(address, "/api/status"))
        ends = [partition["hub_end"] for partition in status["partitions"]]
        reasons = Counter(stop["reason"] for one in status["partitions"] for stop in one["stops"]).most_common()
        stopped = "".join(f"  {count} partition{'s' * (count > 1)} stopped: {reason}" for reason, count in reasons)
        return Books(
            in_hub=None if None in ends else sum(int(end) + 1 for end in ends),
            balanced=status["ledger_balanced"],
            incarnation=status["incarnation"],
            stopped=stopped,
            **{name: status[name] for name in _SUMS},
        )
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        raise BooksUnavailable(f"{address}/api/status: {str(error) or type(error).__name__}") from error


class Watch:
    """Reads the books of an address repeatedly, in the background of a `with` block.

    An answer takes seconds when the host is busy. `books` is the latest answer, None before the first. `silence` is the
    reason why the last request failed.
    """

    def __init__(self, address: str, read: Callable[[str], Books] = read_books, every: float = READ_EVERY) -> None:
        self._address = address
        self._read = read
        self._every = every
        self._ended = threading.Event()
        self.books: Books | None = None
        self.silence = ""

    def __enter__(self) -> "Watch":
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Send no more requests. Do not wait for the answer to an open one."""
        self._ended.set()

    def move(self, address: str) -> None:
        """Read from a different address from now on, and forget the books of the old one."""
        self._address, self.books = address, None

    def _watch(self) -> None:
        while not self._ended.is_set():
            address = self._address
            try:
                books, silence = self._read(address), ""
            except BooksUnavailable as error:
                books, silence = None, str(error)
            if address == self._address:
                self.books, self.silence = books or self.books, silence
            self._ended.wait(self._every if books else 0.2)


def count_accounted(store: LiveStore) -> int:
    """Count the events that are accounted for in the store, without a wait for the app's answer."""
    return int(select(store, _ACCOUNTED)[0][0])


def count_letters(store: LiveStore) -> Counter[str]:
    return Counter(dict(select(store, _LETTERS)))


def count_gaps(store: LiveStore) -> Counter[str]:
    return Counter(dict(select(store, _GAPS)))


def stops_of(store: LiveStore) -> str:
    """Return how many partitions are stopped, and why the first one is, or an empty text when none is."""
    count, detail = select(store, _STOPS)[0]
    if not count:
        return ""
    _, _, error = detail.partition("One of the errors: ")
    return f"{'1 partition' if count == 1 else f'{count} partitions'} stopped: {error or detail}"


def letters_by_cause(store: LiveStore, without: Container[str] = ()) -> list[str]:
    """Return a line for each class and status of letters, except these statuses, with one of their errors."""
    found = select(store, _LETTERS_BY_CAUSE)
    return [
        f"{count:,} of class {name}, {status}: {raised.rpartition('.')[2]}: {error}"
        for name, status, count, raised, error in found
        if status not in without
    ]


def count_survived(store: LiveStore) -> dict[str, int]:
    """Count what a dangerous chaos has left: isolated killing events, incarnations, and held events that followed."""
    return {name: int(select(store, query)[0][0]) for name, query in _SURVIVED.items()}


def count_open_letters(store: LiveStore) -> tuple[int, int]:
    count, attempts = select(store, _OPEN_LETTERS)[0]
    return int(count), int(attempts)


def select(store: LiveStore, query: str, most: int | None = None) -> list[Any]:
    """Return the rows of a query, or the first of them. A file is opened to be read only."""
    if isinstance(store, Server):
        return store.select(query, most=most)
    with reading(store) as connection:
        found = connection.execute(query)
        return found.fetchall() if most is None else found.fetchmany(most)


@contextmanager
def reading(store: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        yield connection


def get(address: str, path: str) -> bytes:
    """Return the body of the app's answer. Raises BooksUnavailable for a status other than 200."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=TIMEOUT)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status != 200:
        text = body.decode(errors="replace")
        try:
            text = str(json.loads(text)["detail"])
        except (ValueError, KeyError, TypeError):
            text = text.partition("\n")[0][:300]
        raise BooksUnavailable(f"{path} answers {response.status}: {text}")
    return body
