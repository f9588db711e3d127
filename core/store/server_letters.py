"""The letters of the production store: claims, retries and moves, each one T-SQL batch and one round trip."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from functools import cache
from typing import Any

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
from core.model.rows import row_table
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
from core.store.row_statements import rows_variable, server_write
from core.store.server_commit import UNFOLDING, declare, server_texts, shaped_rows, template
from core.store.server_json import storable_json

_OUTCOME = (
    "sequence_number", "status", "attempted", "due_at", "error_class", "error_type", "error", "fingerprint", "why",
)  # fmt: skip


class ServerLetters(ABC):
    """See LetterStore; sessions and faults are SqlServerStore's."""

    def claim_letters(self, claim: LetterClaim) -> tuple[ClaimedPosition, ...]:
        """See LetterStore."""
        with self._faults():
            values = claim_values(claim, self._find_stream(claim.stream))
            found = self._rows("claim_letters", **server_texts(values))
        return tuple(map(claimed_position_of, found))

    def read_claimed(self, hold: LetterHold) -> tuple[ClaimedLetter, ...]:
        """See LetterStore."""
        with self._faults():
            found = self._rows("read_claimed_letters", **hold_values(hold))
        return tuple(map(claimed_letter_of, found))

    def begin_lone_try(self, hold: LetterHold, began_at: datetime, until: datetime) -> None:
        """See LetterStore."""
        times = {"began_at": instant_text(began_at), "claimed_until": instant_text(until)}
        with self._faults():
            self._rows("begin_lone_try", **hold_values(hold), **server_texts(times))

    def commit_retry(self, commit: RetryCommit) -> int:
        """See LetterStore."""
        text, given = retry_statement(commit)
        with self._faults(commit):
            found = self._execute(text, given)
        return int(found[0][0])

    def find_letters(self, hold: LetterHold) -> tuple[FoundLetter, ...]:
        """See LetterStore."""
        with self._faults():
            found = self._rows("find_letters", **hold_values(hold))
        return tuple(map(found_letter_of, found))

    def move_letters(self, move: LetterMove) -> tuple[FoundLetter, ...]:
        """See LetterStore."""
        with self._faults():
            found = self._execute(*move_statement(move, self._find_stream(move.partition.stream)))
        return tuple(map(found_letter_of, found))

    def next_due_at(self, stream: Stream) -> datetime | None:
        """See LetterStore."""
        with self._faults():
            ((due_at,),) = self._rows("next_due_at", stream_id=self._find_stream(stream))
        return None if due_at is None else instant_of(due_at)

    @abstractmethod
    def _find_stream(self, stream: Stream) -> int: ...

    @abstractmethod
    def _rows(self, name: str, **values: Any) -> list[Any]: ...

    @abstractmethod
    def _execute(self, text: str, given: list[Any]) -> list[Any]: ...

    @abstractmethod
    def _faults(self, commit: RetryCommit | None = None) -> AbstractContextManager[None]: ...


def retry_statement(commit: RetryCommit) -> tuple[str, list[Any]]:
    """The text of a retry's batch, the same for retries of one shape, and its parameters in order."""
    sent = shaped_rows(commit.settled)
    values = server_texts({**retry_values(commit), **retry_attempt_values(commit), **UNFOLDING})
    values["letter_count"] = len(commit.outcomes)
    outcomes = [server_texts(outcome_values(outcome)) for outcome in commit.outcomes]
    given = [values[name] for name in _retry_scalars()]
    given += [rows for rows, _ in sent.values()]
    given.append(storable_json([[one[name] for name in _OUTCOME] for one in outcomes]))
    return _retry_text(tuple((row_class, folded) for row_class, (_, folded) in sent.items())), given


def move_statement(move: LetterMove, stream_id: int) -> tuple[str, list[Any]]:
    """The text of a move's batch and its parameters in order."""
    recorded = move.move not in NOT_RECORDED
    values = server_texts({**move_attempt_values(move, stream_id), **move_values(move, stream_id)})
    return _move_text(recorded), [values[name] for name in _move_scalars(recorded)]


@cache
def _retry_text(shapes: tuple[tuple[type, bool], ...]) -> str:
    queries = load_queries("sqlserver")
    tables = [rows_variable(row_table(row_class)) for row_class, _ in shapes]
    return template("commit_retry").format(
        declarations=declare(_retry_scalars(), [*tables, "letters"]),
        partition=queries["count_commit"].text,
        rows="\n".join(server_write(row_class, folded).text for row_class, folded in shapes),
        letters=queries["settle_letters"].text,
        attempts=queries["record_attempts"].text,
        ledger=queries["record_retry"].text,
    )


@cache
def _move_text(recorded: bool) -> str:
    queries = load_queries("sqlserver")
    return template("move_letters").format(
        declarations=declare(_move_scalars(recorded)),
        letters=queries["move_letters"].text,
        attempts=queries["record_attempts"].text if recorded else "",
        answer=queries["find_letters"].text,
    )


@cache
def _retry_scalars() -> tuple[str, ...]:
    names = _params("count_commit", "settle_letters", "record_attempts", "record_retry")
    return (*(name for name in names if name not in ("commit_number", *_OUTCOME)), "why", "letter_count", *UNFOLDING)


@cache
def _move_scalars(recorded: bool) -> tuple[str, ...]:
    names = _params("move_letters", "record_attempts", "find_letters") if recorded else _params("move_letters")
    return tuple(name for name in names if name != "commit_number")


def _params(*names: str) -> Mapping[str, None]:
    queries = load_queries("sqlserver")
    return dict.fromkeys(param for name in names for param in queries[name].params)
