"""Attempts in SQL: one mark for each partition, set by compare and set."""

from uuid import UUID

from core.ingest.port import AttemptMark
from core.model.commits import PartitionState
from core.model.spans import SequenceNumber
from core.store.columns import cut, instant_of, instant_text, place_of
from core.store.database import Database, write

INVOCATION_LENGTH = 100  # characters of an invocation's id that are stored


class Attempts:
    """An AttemptStore over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_attempt(self, state: PartitionState) -> AttemptMark | None:
        found = self._database.ask("read_attempt", **place_of(state))
        if not found:
            return None
        first, last, suspects_end, attempts, attempt_id, begun_at, invocation_id = found[0]
        return AttemptMark(
            SequenceNumber(first),
            SequenceNumber(last),
            suspects_end,
            attempts,
            UUID(str(attempt_id)),
            instant_of(begun_at),
            invocation_id,
        )

    def begin_attempt(self, state: PartitionState, mark: AttemptMark, expected: AttemptMark | None) -> bool:
        values = {
            **place_of(state),
            "first_sequence_number": mark.first,
            "last_sequence_number": mark.last,
            "suspects_end": mark.suspects_end,
            "attempts": mark.attempts,
            "attempt_id": str(mark.attempt_id),
            "begun_at": instant_text(mark.begun_at),
            "invocation_id": cut(mark.invocation_id, INVOCATION_LENGTH),
        }
        if expected is None:
            return bool(write(self._database, str(state.partition), "open_attempt", **values))
        standing = {"expected_id": str(expected.attempt_id), "expected_attempts": expected.attempts}
        return bool(write(self._database, str(state.partition), "renew_attempt", **values, **standing))

    def end_attempt(self, state: PartitionState, mark: AttemptMark) -> None:
        values = {"attempts": mark.attempts - 1, "attempt_id": str(mark.attempt_id)}
        write(self._database, str(state.partition), "end_attempt", **place_of(state), **values)
