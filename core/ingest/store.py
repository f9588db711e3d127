"""Attempts in SQL: one mark for each partition, that of the newest attempt."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from core.model.commits import PartitionState
from core.model.spans import Span
from core.store.columns import cut, instant_text, place_of
from core.store.database import Database, write
from core.store.decoding import decoder

INVOCATION_LENGTH = 100  # characters of an invocation's id that are stored


@dataclass(frozen=True, slots=True)
class AttemptMark:
    """The newest attempt at a partition; it is stored until its numbers are committed.

    All marks of a process have one `attempt_id`: it knows its own marks, and those of others tell of a death.
    """

    tried: Span
    attempt_id: UUID
    begun_at: datetime
    invocation_id: str


class Attempts:
    """One mark for each partition, without a memory. A marked commit deletes the mark."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_attempt(self, state: PartitionState) -> AttemptMark | None:
        """Return the mark of the newest attempt at a partition."""
        found = self._database.ask("read_attempt", **place_of(state))
        return decoder(AttemptMark)(found[0]) if found else None

    def begin_attempt(self, state: PartitionState, mark: AttemptMark) -> None:
        """Set the mark, in the place of the one before it."""
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
        """Delete the mark of a process; do nothing when a different process has set one since."""
        mine = {**place_of(state), "attempt_id": str(mark.attempt_id)}
        write(self._database, str(state.partition), "end_attempt", **mine)
