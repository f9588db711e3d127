"""Attempts in SQL: one mark for each partition, that of the newest attempt."""

from uuid import UUID

from core.ingest.port import AttemptMark
from core.model.commits import PartitionState
from core.model.spans import span
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
        first, last, attempt_id, begun_at, invocation_id = found[0]
        return AttemptMark(span(first, last), UUID(str(attempt_id)), instant_of(begun_at), invocation_id)

    def begin_attempt(self, state: PartitionState, mark: AttemptMark) -> None:
        values = {
            **place_of(state),
            "first_sequence_number": mark.tried.first,
            "last_sequence_number": mark.tried.last,
            "attempt_id": str(mark.attempt_id),
            "begun_at": instant_text(mark.begun_at),
            "invocation_id": cut(mark.invocation_id, INVOCATION_LENGTH),
        }
        write(self._database, str(state.partition), "begin_attempt", **values)

    def end_attempt(self, state: PartitionState, mark: AttemptMark) -> None:
        mine = {**place_of(state), "attempt_id": str(mark.attempt_id)}
        write(self._database, str(state.partition), "end_attempt", **mine)
