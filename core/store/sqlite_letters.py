"""The letters of the embedded store: claims, retries and moves."""

import sqlite3
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from core.errors import LetterConflict
from core.model.commits import Settled
from core.model.events import Stream
from core.model.letters import (
    ClaimedLetter,
    ClaimedPosition,
    FoundLetter,
    LetterClaim,
    LetterHold,
    LetterMove,
    RetryCommit,
)
from core.store.letter_records import (
    NOT_RECORDED,
    claim_values,
    claimed_letter_of,
    claimed_position_of,
    found_letter_of,
    hold_values,
    move_attempt_values,
    move_values,
    outcome_values,
    retry_attempt_values,
    retry_values,
)
from core.store.queries import load_queries
from core.store.records import instant_of, instant_text

Values = dict[str, Any]


class SqliteLetters(ABC):
    """See LetterStore; the connection and its transactions are SqliteStore's."""

    def claim_letters(self, claim: LetterClaim) -> tuple[ClaimedPosition, ...]:
        """See LetterStore."""
        with self._reading():
            stream_id = self._find_stream(claim.stream)
        with self._changing() as connection:
            found = _run(connection, "claim_letters", claim_values(claim, stream_id)).fetchall()
        return tuple(map(claimed_position_of, found))

    def read_claimed(self, hold: LetterHold) -> tuple[ClaimedLetter, ...]:
        """See LetterStore."""
        with self._reading() as connection:
            found = _run(connection, "read_claimed_letters", hold_values(hold)).fetchall()
        return tuple(map(claimed_letter_of, found))

    def begin_lone_try(self, hold: LetterHold, began_at: datetime, until: datetime) -> None:
        """See LetterStore."""
        times = {"began_at": instant_text(began_at), "claimed_until": instant_text(until)}
        with self._changing() as connection:
            _run(connection, "begin_lone_try", {**hold_values(hold), **times})

    def commit_retry(self, commit: RetryCommit) -> int:
        """See LetterStore."""
        shared = retry_values(commit)
        with self._changing() as connection:
            counted = _run(connection, "count_commit", shared).fetchone()
            if counted is None:
                raise LetterConflict(commit.partition, commit.claimed_by)
            number = {"commit_number": counted[0]}
            self._write_rows(connection, commit.settled, (commit.state.stream_id, shared["partition_id"], counted[0]))
            _settle(connection, commit, shared)
            _run(connection, "record_attempts", {**retry_attempt_values(commit), **number})
            _run(connection, "record_retry", {**shared, **number})
        return int(counted[0])

    def find_letters(self, hold: LetterHold) -> tuple[FoundLetter, ...]:
        """See LetterStore."""
        with self._reading() as connection:
            found = _run(connection, "find_letters", hold_values(hold)).fetchall()
        return tuple(map(found_letter_of, found))

    def move_letters(self, move: LetterMove) -> tuple[FoundLetter, ...]:
        """See LetterStore."""
        with self._reading():
            stream_id = self._find_stream(move.partition.stream)
        values = move_values(move, stream_id)
        with self._changing() as connection:
            _run(connection, "move_letters", values)
            if move.move not in NOT_RECORDED:
                _run(connection, "record_attempts", {**move_attempt_values(move, stream_id), "commit_number": 0})
            found = _run(connection, "find_letters", values).fetchall()
        return tuple(map(found_letter_of, found))

    def next_due_at(self, stream: Stream) -> datetime | None:
        """See LetterStore."""
        with self._reading() as connection:
            key = {"stream_id": self._find_stream(stream)}
            (due_at,) = _run(connection, "next_due_at", key).fetchone()
        return None if due_at is None else instant_of(due_at)

    @abstractmethod
    def _find_stream(self, stream: Stream) -> int: ...

    @abstractmethod
    def _reading(self) -> AbstractContextManager[sqlite3.Connection]: ...

    @abstractmethod
    def _changing(self) -> AbstractContextManager[sqlite3.Connection]: ...

    @abstractmethod
    def _write_rows(self, connection: sqlite3.Connection, settled: Settled, place: tuple[int, str, int]) -> None: ...


def _settle(connection: sqlite3.Connection, commit: RetryCommit, shared: Values) -> None:
    values = [{**shared, **outcome_values(outcome)} for outcome in commit.outcomes]
    settled = connection.executemany(load_queries("sqlite")["settle_letters"].text, values)
    if settled.rowcount != len(values):
        raise LetterConflict(commit.partition, commit.claimed_by)


def _run(connection: sqlite3.Connection, name: str, values: Values) -> sqlite3.Cursor:
    """A named statement; it takes of the values those that it names."""
    return connection.execute(load_queries("sqlite")[name].text, values)
