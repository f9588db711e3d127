"""Attempts in SQL: the marks of those that have not ended, and of events that killed a child process."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from core.model.commits import PartitionState
from core.model.spans import SequenceNumber, Span
from core.store.columns import cut, instant_text, place_of, span_values, storable
from core.store.database import Database, write
from core.store.decoding import decoded

INVOCATION_LENGTH = 100  # characters of an invocation's id that are stored
VERDICT_LENGTH = 2_000  # characters of a verdict that are stored


@dataclass(frozen=True, slots=True)
class AttemptMark:
    """An attempt at events of a partition. It is stored until they are written.

    All marks of a process have one `attempt_id`: it knows its own marks, and those of others tell of a death. `deaths`
    counts the deaths before the attempt. A `verdict` says how its one event kills under this version of the transform.
    """

    tried: Span
    attempt_id: UUID
    begun_at: datetime
    invocation_id: str
    deaths: int
    transform_version: str
    verdict: str | None


class Attempts:
    """The marks of a partition, one for each last number, without a memory. A marked commit deletes its marks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_marks(self, state: PartitionState, among: Span) -> tuple[AttemptMark, ...]:
        """Return the marks of a partition that have one of these numbers, in order of their last number."""
        found = self._database.ask("read_marks", **place_of(state), **span_values(among))
        return decoded(AttemptMark, found)

    def begin_attempt(self, state: PartitionState, mark: AttemptMark) -> None:
        """Set a mark, in the place of the one with the same last number."""
        values = {
            **place_of(state),
            **span_values(mark.tried),
            "attempt_id": str(mark.attempt_id),
            "begun_at": instant_text(mark.begun_at),
            "invocation_id": cut(mark.invocation_id, INVOCATION_LENGTH),
            "deaths": mark.deaths,
            "transform_version": mark.transform_version,
            "verdict": None if mark.verdict is None else cut(storable(mark.verdict), VERDICT_LENGTH),
        }
        write(self._database, str(state.partition), "begin_attempt", **values)

    def end_attempt(self, state: PartitionState, last: SequenceNumber, by: UUID, deaths: int | None) -> None:
        """Delete the mark of an attempt. With `deaths`, keep it as the mark of nobody.

        Does nothing when a different process has set one since.
        """
        own = {**place_of(state), "last_sequence_number": last, "attempt_id": str(by)}
        if deaths is None:
            write(self._database, str(state.partition), "end_attempt", **own)
        else:
            write(self._database, str(state.partition), "leave_attempt", **own, deaths=deaths)

    def clear_attempts(self, state: PartitionState, written: Span) -> None:
        """Delete the marks that end in these numbers."""
        write(self._database, str(state.partition), "clear_attempts", **place_of(state), **span_values(written))
