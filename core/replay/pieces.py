"""The pieces of a replay: how a range is cut into them, what one transaction writes, and what a dry run stores."""

from collections.abc import Callable, Generator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice
from typing import Protocol
from uuid import UUID

from core.model.commits import PartitionState, Settled
from core.model.events import BATCH_EVENTS, Event, Partition, PartitionId, order_key
from core.model.rows import ReferenceKey, Row
from core.model.spans import SequenceNumber, Span, joined
from core.replay.job import MOST_GONE_RANGES, PartitionProgress, ReplayCounts
from core.settle.order import OpenLetter


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a range that is one transaction: its events that still exist, in order; the other numbers are gone.

    In a replay by key, `gone` has the numbers that are gone; the events of the remaining ones have other keys.
    """

    span: Span
    events: tuple[Event, ...]
    gone: tuple[Span, ...] | None = None

    @property
    def gone_ranges(self) -> tuple[Span, ...]:
        """The numbers of the span of which no source has the event."""
        if self.gone is not None:
            return self.gone
        return tuple(self.span.holes(event.sequence_number for event in self.events))

    @property
    def left_alone(self) -> int:
        """The numbers of the span without an event in this piece: those that are gone, and those of other keys."""
        return self.span.length - len(self.events)

    def cut(self, events: int) -> tuple["Piece", "Piece | None"]:
        """Return a piece with the first `events` events, and the rest; None as the rest when no event is left.

        A piece that has any events must be cut after at least one.
        """
        if events >= len(self.events):
            return self, None
        following = self.events[events].sequence_number
        lower, upper = Span(self.span.first, SequenceNumber(following - 1)), Span(following, self.span.last)
        return (
            Piece(lower, self.events[:events], self._gone_in(lower)),
            Piece(upper, self.events[events:], self._gone_in(upper)),
        )

    def _gone_in(self, part: Span) -> tuple[Span, ...] | None:
        if self.gone is None:
            return None
        return tuple([both for one in self.gone if (both := one.overlap(part)) is not None])


class StoredEvents(Protocol):
    """Finds the events of a range that are stored outside the hub."""

    def read_kept_events(self, state: PartitionState, span: Span, most: int) -> tuple[Event, ...]:
        """Return the first events of a range that letters have with their body, or that are staged, in order."""


class PieceReader:
    """Cuts the rest of a range into pieces; a number without a letter, a staged event or an event in the hub is gone.

    Where several sources have an event, the letter's is taken, because that is the event that failed; else the staged
    one. With `keys`, only the events of these partition keys come into pieces.
    """

    def __init__(
        self,
        store: StoredEvents,
        state: PartitionState,
        events: Generator[Event, None, None],
        most: int = BATCH_EVENTS,
        keys: AbstractSet[str] = frozenset(),
    ) -> None:
        self._store = store
        self._state = state
        self._events = events
        self._most = most
        self._keys = keys
        self._read: list[Event] = []  # events from the hub that are not in a piece yet

    def next_piece(self, left: Span, is_late: Callable[[], bool] = lambda: False) -> Piece:
        """Return the first piece of a range, which must not be empty and begins where the piece before it ended.

        With keys, the reader goes on until it has a piece's worth of their events, or until it is late.
        """
        if not self._keys:
            return self._next(left, self._most)
        read = [self._next(left, self._most)]
        room = self._most - len(read[0].events)
        while room and read[-1].span.last < left.last and not is_late():
            following = SequenceNumber(read[-1].span.last + 1)
            read.append(self._next(Span(following, left.last), room))
            room -= len(read[-1].events)
        events = chain.from_iterable(one.events for one in read)
        gone = [one for each in read for one in each.gone_ranges]
        return Piece(Span(left.first, read[-1].span.last), tuple(events), joined((), gone, len(gone)))

    def _next(self, left: Span, room: int) -> Piece:
        """Return the next events of a range, of which at most `room` are wanted.

        Raises StreamIncarnationChanged when an event that a replay by key leaves alone is one of a new hub.
        """
        self._read += islice(self._events, self._most - len(self._read))
        last = self._read[-1].sequence_number if len(self._read) == self._most else left.last
        kept = self._store.read_kept_events(self._state, Span(left.first, last), self._most)
        if len(kept) == self._most:
            last = min(last, kept[-1].sequence_number)
        found = {event.sequence_number: event for event in (*self._read, *kept) if event.sequence_number <= last}
        numbers = sorted(found)
        wanted = [number for number in numbers if order_key(found[number]) in self._keys] if self._keys else numbers
        if len(wanted) > room:
            last = wanted[room - 1]
        self._read = [event for event in self._read if event.sequence_number > last]
        span, events = Span(left.first, SequenceNumber(last)), tuple([found[number] for number in wanted[:room]])
        if not self._keys:
            return Piece(span, events)
        passed = [number for number in numbers if number <= last]
        for number in passed:  # the plan of a piece sees only the events of the keys
            self._state.refuse_other_hub(found[number])
        return Piece(span, events, tuple(span.holes(passed)))

    def close(self) -> None:
        self._events.close()


@dataclass(frozen=True, slots=True)
class CarriedState:
    """A state that an event of the range wrote; the events after it see it."""

    number: SequenceNumber
    row: Row


@dataclass(frozen=True, slots=True)
class StandingState:
    """A state, and the event of this partition that wrote it; None when an event of a different partition wrote it.

    A replay never replaces the state of a different partition: numbers of two partitions have no common order.
    """

    row: Row
    written_by: SequenceNumber | None

    def gives_way_to(self, number: int) -> bool:
        """Return True when a state that an event with this number writes replaces this state."""
        return self.written_by is not None and self.written_by <= number


@dataclass(frozen=True, slots=True)
class ReplayCommit:
    """All that one transaction of a replay writes; it removes the old rows of its events from the `row_classes`.

    Where the events of a partition key are kept in order, `opened` are its letters that later events wait for.
    """

    job_id: UUID
    state: PartitionState
    piece: Piece
    settled: Settled
    carried: Mapping[ReferenceKey, CarriedState]
    row_classes: tuple[type, ...]
    progress: PartitionProgress  # as it was read: the transaction conflicts if it has moved
    transform_version: str
    committed_at: datetime
    opened: Mapping[str, OpenLetter] = field(default_factory=dict)

    @property
    def partition(self) -> Partition:
        """The partition whose commit number this commit raises; the checkpoint does not move."""
        return self.state.partition

    @property
    def touched_by(self) -> str:
        """The name of this replay in the letters that it touches."""
        return f"replay-{self.job_id}"

    @property
    def numbers(self) -> tuple[SequenceNumber, ...]:
        return tuple([event.sequence_number for event in self.piece.events])

    @property
    def succeeded(self) -> tuple[SequenceNumber, ...]:
        """The numbers of the replayed events that did not become letters."""
        failed = {letter.event.sequence_number for letter in self.settled.letters}
        return tuple([number for number in self.numbers if number not in failed])

    @property
    def keys(self) -> frozenset[str]:
        """The partition keys of its events."""
        return frozenset([key for event in self.piece.events if (key := order_key(event)) is not None])

    @property
    def next_number(self) -> SequenceNumber:
        return SequenceNumber(self.piece.span.last + 1)

    @property
    def gone_ranges(self) -> tuple[Span, ...]:
        """All ranges that are gone so far, in the form in which the progress lists them."""
        return joined(self.progress.report.gone_ranges, self.piece.gone_ranges, MOST_GONE_RANGES)

    @property
    def counts(self) -> ReplayCounts:
        """The counts that are known before the write; the database counts letters and retracted rows."""
        settled = self.settled
        return ReplayCounts(
            events=len(self.piece.events),
            written=settled.written,
            filtered=settled.filtered,
            dead_lettered=settled.dead_lettered,
            held=settled.held,
            gone=sum(one.length for one in self.piece.gone_ranges),
            rows_written=settled.rows_written,
        )


@dataclass(frozen=True, slots=True)
class RetractedRow:
    """A row that a replay removed, and its position; the ordinal of a state counts the states of its event."""

    sequence_number: SequenceNumber
    ordinal: int
    row: Row


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The effects of a commit that was rolled back."""

    retracted: tuple[RetractedRow, ...]
    letters_added: int
    letters_resolved: int


@dataclass(frozen=True, slots=True)
class EventDiff:
    """The changes to the rows of one event, as JSON; `core/replay/diff.py` describes the form."""

    partition_id: PartitionId
    sequence_number: SequenceNumber
    diff: str


@dataclass(frozen=True, slots=True)
class RehearsedPiece:
    """The result of a piece in a dry run: its counts, and the diffs that are shown."""

    commit: ReplayCommit
    counts: ReplayCounts
    diffs: tuple[EventDiff, ...]
