"""What the app's books say: GET /api/status, read whole or not at all, or their sum from the store's file."""

import http.client
import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TIMEOUT = 15.0  # seconds; the app itself gives up asking the hub before


OPEN = ("waiting", "retrying", "held")  # the statuses of letters that are not settled
_LETTERS = "SELECT status, COUNT(*) FROM event_hub_dead_letter GROUP BY status"
_GAPS = "SELECT status, SUM(last_sequence_number - first_sequence_number + 1) FROM sequence_gap GROUP BY status"
_ACCOUNTED = """
SELECT COALESCE(SUM(last_sequence_number - first_sequence_number + 1), 0) FROM batch_ledger WHERE kind = 'batch'
"""


class BooksUnavailable(Exception):
    """The app does not answer, or not with its books."""


@dataclass(frozen=True, slots=True)
class Books:
    """Events, of all partitions together. `in_hub` is what the hub ever took, None while the hub cannot be asked."""

    in_hub: int | None
    accounted: int
    written: int
    filtered: int
    dead_lettered: int
    balanced: bool

    @property
    def lag(self) -> int | None:
        """Events in the hub that are not accounted for; the hub is asked less often than the store."""
        return None if self.in_hub is None else max(0, self.in_hub - self.accounted)


def read_books(address: str) -> Books:
    """The books now; BooksUnavailable says why not, in one line."""
    try:
        return _books(json.loads(_get(address, "/api/status")))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        raise BooksUnavailable(f"{address}/api/status: {str(error) or type(error).__name__}") from error


def count_accounted(store: Path) -> int:
    """How many events are accounted for at this moment, for those who cannot wait for the app's answer."""
    with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as connection:
        return int(connection.execute(_ACCOUNTED).fetchone()[0])


def count_letters(store: Path) -> Counter[str]:
    """How many letters of each status there are at this moment."""
    with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as connection:
        return Counter(dict(connection.execute(_LETTERS)))


def count_gaps(store: Path) -> Counter[str]:
    """How many events were missing once, by what became of them: healed, absent, or open."""
    with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as connection:
        return Counter(dict(connection.execute(_GAPS)))


def count_open_letters(store: Path) -> int:
    """How many letters are not settled at this moment."""
    counts = count_letters(store)
    return sum(counts[status] for status in OPEN)


def _get(address: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=TIMEOUT)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status != 200:
        raise BooksUnavailable(f"{path} answers {response.status}: {_problem(body)}")
    return body


def _problem(body: bytes) -> str:
    text = body.decode(errors="replace")
    try:
        return str(json.loads(text)["detail"])
    except (ValueError, KeyError, TypeError):
        return text.partition("\n")[0][:300]


def _books(status: Mapping[str, Any]) -> Books:
    return Books(
        in_hub=_in_hub(status["partitions"]),
        accounted=status["accounted"],
        written=status["written"],
        filtered=status["filtered"],
        dead_lettered=status["dead_lettered"],
        balanced=status["ledger_balanced"],
    )


def _in_hub(partitions: list[dict[str, Any]]) -> int | None:
    ends = [partition["hub_end"] for partition in partitions]
    return None if None in ends else sum(int(end) + 1 for end in ends)
