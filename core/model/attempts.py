"""Attempts: the mark that a process leaves in the store before it tries events that may kill it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from core.model.spans import SequenceNumber


@dataclass(frozen=True, slots=True)
class AttemptMark:
    """The newest attempt at a partition; it is stored until its numbers are committed.

    `attempts` counts the attempts at this range, the newest included, that are not known to have ended. A part of a
    range that was narrowed has the number after that range as `suspects_end`; elsewhere it is not above `first`.
    """

    first: SequenceNumber
    last: SequenceNumber
    suspects_end: int
    attempts: int
    attempt_id: UUID
    begun_at: datetime
    invocation_id: str

    @property
    def is_narrowed(self) -> bool:
        return self.suspects_end > self.first
