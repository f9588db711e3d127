"""The values of a replay's pieces: what one transaction writes, what a rehearsal tells, and what a dry run keeps."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from core.model.commits import PartitionState, Settled
from core.model.events import Event, Partition, PartitionId
from core.model.rows import ReferenceKey, Row
from core.model.spans import SequenceNumber, Span, joined
from core.replay.job import MOST_GONE_RANGES, PartitionProgress, ReplayCounts


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a range that is one transaction: the events that are left of it, rising; the others are gone."""

    span: Span
    events: tuple[Event, ...]

    @property
    def gone_ranges(self) -> tuple[Span, ...]:
        """The numbers of the span that no event has."""
        return tuple(self.span.holes(event.sequence_number for event in self.events))

    def halves(self) -> tuple["Piece", "Piece"]:
        """Two pieces that follow each other, of half the events each; there must be two at least."""
        half = len(self.events) // 2
        border = SequenceNumber(self.events[half].sequence_number - 1)
        lower = Piece(Span(self.span.first, border), self.events[:half])
        return lower, Piece(Span(SequenceNumber(border + 1), self.span.last), self.events[half:])


@dataclass(frozen=True, slots=True)
class CarriedState:
    """A state as an event of the range wrote it, for the events behind it to see."""

    number: SequenceNumber
    row: Row


@dataclass(frozen=True, slots=True)
class StandingState:
    """A state, and the event of this partition that wrote it; None where it is of another partition.

    A replay never takes the place of another partition's state: their numbers have no order among each other.
    """

    row: Row
    written_by: SequenceNumber | None

    def gives_way_to(self, number: int) -> bool:
        """Whether a state that this event writes takes its place."""
        return self.written_by is not None and self.written_by <= number


@dataclass(frozen=True, slots=True)
class ReplayCommit:
    """All that one transaction writes of a replay; `row_classes` are the tables that its events are taken out of."""

    job_id: UUID
    state: PartitionState
    piece: Piece
    settled: Settled
    carried: Mapping[ReferenceKey, CarriedState]
    row_classes: tuple[type, ...]
    progress: PartitionProgress  # as it was read: the transaction happens only if it still stands
    transform_version: str
    committed_at: datetime

    @property
    def partition(self) -> Partition:
        """The partition whose commits this counts with; its checkpoint stays where it is."""
        return self.state.partition

    @property
    def touched_by(self) -> str:
        """How letters name this replay as what touched them last."""
        return f"replay-{self.job_id}"

    @property
    def numbers(self) -> tuple[SequenceNumber, ...]:
        """The events that are replayed."""
        return tuple([event.sequence_number for event in self.piece.events])

    @property
    def succeeded(self) -> tuple[SequenceNumber, ...]:
        """Those of them that are no letters."""
        failed = {letter.event.sequence_number for letter in self.settled.letters}
        return tuple([number for number in self.numbers if number not in failed])

    @property
    def next_number(self) -> SequenceNumber:
        """Where the next piece begins."""
        return SequenceNumber(self.piece.span.last + 1)

    @property
    def gone_ranges(self) -> tuple[Span, ...]:
        """All that is gone so far, as the progress lists it."""
        return joined(self.progress.gone_ranges, self.piece.gone_ranges, MOST_GONE_RANGES)

    @property
    def counts(self) -> ReplayCounts:
        """What is known of it before it is written: the database counts the letters and what it takes away."""
        settled = self.settled
        return ReplayCounts(
            events=len(self.piece.events),
            written=settled.written,
            filtered=settled.filtered,
            dead_lettered=len(settled.letters),
            gone=self.piece.span.length - len(self.piece.events),
            rows_written=settled.rows_written,
        )


@dataclass(frozen=True, slots=True)
class RetractedRow:
    """A row that a replay took away, and where it stood; the ordinal of a state counts its event's states."""

    sequence_number: SequenceNumber
    ordinal: int
    row: Row


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What the database did for a commit before it was rolled back."""

    retracted: tuple[RetractedRow, ...]
    letters_added: int
    letters_resolved: int


@dataclass(frozen=True, slots=True)
class EventDiff:
    """How the rows of one event would change, as JSON; see `core/replay/diff.py` for its form."""

    partition_id: PartitionId
    sequence_number: SequenceNumber
    diff: str


@dataclass(frozen=True, slots=True)
class RehearsedPiece:
    """What a dry run leaves of a piece: its counts, and the diffs that are shown."""

    commit: ReplayCommit
    counts: ReplayCounts
    diffs: tuple[EventDiff, ...]
