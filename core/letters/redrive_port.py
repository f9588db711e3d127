"""The store that redrives need: jobs, the walk through their letters, and their pieces."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from core.letters.listing import LetterFilter, ListedLetter
from core.letters.port import Selection
from core.letters.redrive import (
    Redrive,
    RedriveCause,
    RedrivenLetter,
    RedrivePiece,
    RedriveRange,
    RedriveRequest,
    Walked,
)
from core.model.commits import LetterStatus
from core.model.events import Stream
from core.model.jobs import JobMove


class RedriveStore(Protocol):
    """Stores jobs and their progress. A change of a job conflicts when its status or its pieces are not as expected."""

    def open_redrive(self, request: RedriveRequest) -> None:
        """Write a new job, planned.

        Raises RedriveOverlap and TooManyRedrives, with nothing written, and RedriveConflict when the stream was closed.
        Raises CommitOutcomeUnknown when the answer was lost.
        """

    def find_redrive(self, redrive_id: UUID) -> Redrive | None:
        """Return a job as it is now, or None."""

    def read_redrives(self, stream: Stream, most: int, before: tuple[datetime, UUID] | None) -> tuple[Redrive, ...]:
        """Return jobs of a stream, the newest first; with `before`, only those after the job of that time and id."""

    def read_open_redrives(self, stream: Stream) -> tuple[UUID, ...]:
        """Return the jobs of a stream that are planned or running."""

    def read_redriven(self, job: Redrive, after: tuple[int, int], most: int) -> tuple[RedrivenLetter, ...]:
        """Return letters that a job moved, in the order of its pieces, after a place in a piece."""

    def move_redrive(self, move: JobMove) -> bool:
        """Change a job's status if JOB_MOVES allows it; otherwise return False and change nothing."""

    def note_redrive_fault(self, redrive_id: UUID, fault: str | None, at: datetime) -> None:
        """Record the fault that holds up an open job, or None when the job continues."""

    def walk(self, job: Redrive, statuses: Sequence[LetterStatus], most: int) -> Walked | None:
        """Look at the next letters of the open partition of a job, and return those of its filter, at most this number;
        None when no letter of it is left. A page of many others may be short, or empty."""

    def commit_piece(self, piece: RedrivePiece) -> None:
        """Move the letters whose status allows it, add an attempt to each, and count the piece, in one transaction.

        A discard locks the partition and frees the next held letter of the key of each. Raises RedriveConflict (another
        driver was first, the job does not run, or it is not yet time), with nothing written. Raises
        CommitOutcomeUnknown when the answer was lost.
        """

    def close_partition(self, job: Redrive, at: datetime) -> None:
        """Close the open partition of a job; the last one ends the job. Raises as commit_piece does."""


class ChosenStore(Protocol):
    """Finds the letters that a redrive would move, among those in given statuses."""

    def find_stream(self) -> int | None:
        """Return the id of the stream whose letters are found; it may have been closed some seconds ago."""

    def count_matching(self, wanted: LetterFilter, statuses: Sequence[LetterStatus]) -> int:
        """Count the letters that fit a filter."""

    def range_matching(self, wanted: LetterFilter, statuses: Sequence[LetterStatus]) -> tuple[RedriveRange, ...]:
        """Return the letters that fit a filter, as ranges of partitions."""

    def find_selected(self, positions: Selection, statuses: Sequence[LetterStatus]) -> Selection:
        """Return those of these positions that have a letter in one of these statuses."""

    def cause_matching(
        self, wanted: LetterFilter, statuses: Sequence[LetterStatus], most: int
    ) -> tuple[RedriveCause, ...]:
        """Return the largest causes of the letters that fit a filter."""

    def sample_matching(
        self, wanted: LetterFilter, statuses: Sequence[LetterStatus], most: int
    ) -> tuple[ListedLetter, ...]:
        """Return the letters that fit a filter and failed first."""
