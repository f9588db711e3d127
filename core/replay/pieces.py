"""The pieces of a replay: its progress, its next events, and what one transaction commits.

A job works through a range of each partition, piece by piece. Each piece is one transaction that also moves the
progress of the job, by compare and set: so a piece is done once, however many workers drive the job, and a job that is
not `running` does not proceed. The ranges of planned, running and paused jobs do not overlap, except dry runs.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, islice
from uuid import UUID

import msgspec

from core.model.commits import PartitionState, Settled
from core.model.events import BATCH_EVENTS, Event, Partition, PartitionId, SequenceNumber, Span, joined, order_key
from core.model.rows import PlacedRow, ReferenceKey, Row, row_table
from core.settle.settle import OpenLetter
from core.tasks.task import Task, TaskPart, report_of

# The limit of planned, running and paused jobs of a stream. Each open job has an orchestration with links of its own to
# the hub, and dry runs store diffs: without a limit, one caller in a loop could use up the hub's links and the store.
MOST_OPEN = 20
MOST_KEYS = 1_000  # of a replay: they are stored with its request, and each event is compared with them


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """The numbers of one partition to replay, or that can be. `note` says which requested numbers were left out."""

    partition_id: PartitionId
    span: Span
    note: str | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A requested partition in which nothing can be replayed."""

    partition_id: PartitionId
    why: str


@dataclass(frozen=True, slots=True)
class ReplayCounts:
    """The counts of a replay so far. A dry run counts the events, letters and rows that a replay would change.

    `gone` counts numbers that are not in the hub and have no letter. Nobody knows the partition keys of their events,
    so a replay by key counts all those of its range. `states_left` counts states of the range that their event did not
    write again: they stay as they are. A replay by key does not count them. Those of `states_lowered` count too: their
    event wrote an older value of `newest_by` than before. Rows of other events, which are not stored, may be newer.
    """

    events: int = 0
    written: int = 0
    filtered: int = 0
    dead_lettered: int = 0
    held: int = 0
    gone: int = 0
    letters_added: int = 0
    letters_resolved: int = 0
    rows_written: int = 0
    rows_retracted: int = 0
    events_changed: int = 0
    rows_added: int = 0
    rows_removed: int = 0
    rows_changed: int = 0
    states_rewritten: int = 0
    states_lowered: int = 0
    states_left: int = 0


COUNTS: tuple[str, ...] = tuple(ReplayCounts.__dataclass_fields__)
COUNTED = ("letters_added", "letters_resolved", "rows_retracted")  # only the transaction of a piece knows them
MOST_GONE_RANGES = 1_000  # ranges that a partition lists; `gone` counts the numbers of all ranges


@dataclass(frozen=True, slots=True)
class ReplayReport(ReplayCounts):
    """The stored report of a partition: its counts, and the first ranges that are gone.

    The versions of the transform that did the pieces are in order.
    """

    gone_ranges: tuple[Span, ...] = ()
    transform_versions: tuple[str, ...] = ()


class ReplayAsked(msgspec.Struct, frozen=True, omit_defaults=True):
    """The stored request of a replay. `asked` is the range as JSON, as the person requested it.

    In the partitions `left_out`, nothing can be replayed. With `keys`, only the events of these partition keys are
    replayed.
    """

    asked: str
    left_out: tuple[LeftOut, ...]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """The progress of a job in one partition: its next piece begins at `next_number`."""

    range: PartitionRange
    next_number: SequenceNumber
    report: ReplayReport = field(default_factory=ReplayReport)
    step: int = 0
    closed_at: datetime | None = None

    @property
    def is_through(self) -> bool:
        """True when no piece is left. The partition may still have to be closed."""
        return self.next_number > self.range.span.last


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """A job as it is now: its task, its request, and its progress in each partition."""

    task: Task
    asked: ReplayAsked
    partitions: tuple[PartitionProgress, ...]

    @property
    def counts(self) -> ReplayCounts:
        return ReplayCounts(*(sum(getattr(one.report, name) for one in self.partitions) for name in COUNTS))

    @property
    def others(self) -> int:
        """The events that were read and left alone, because they have none of the job's partition keys."""
        read = sum(one.next_number - one.range.span.first for one in self.partitions)
        return read - self.counts.events - self.counts.gone


def replay_of(task: Task) -> ReplayJob:
    """Return the replay of a task."""
    return ReplayJob(task, report_of(task.asked, ReplayAsked), tuple(map(progress_of, task.parts)))


def progress_of(part: TaskPart) -> PartitionProgress:
    """Return the progress of a replay in the partition of a part."""
    assert part.span is not None  # each part of a replay has a range
    ranged = PartitionRange(PartitionId(part.name), part.span, msgspec.json.decode(part.asked))
    report = report_of(part.report, ReplayReport)
    return PartitionProgress(ranged, SequenceNumber(part.position), report, part.step, part.closed_at)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a range that is one transaction: its events, in order, and its numbers that are gone.

    In a replay by key, the events of the remaining numbers have other keys.
    """

    span: Span
    events: tuple[Event, ...]
    gone: tuple[Span, ...] = ()

    @property
    def left_alone(self) -> int:
        """The numbers of the span without an event in this piece: those that are gone, and those of other keys."""
        return self.span.length - len(self.events)

    def cut(self, events: int) -> tuple["Piece", "Piece | None"]:
        """Return a piece with the first `events` events, and the rest, or None as the rest when no event is left.

        A piece that has any events must be cut after at least one.
        """
        if events >= len(self.events):
            return self, None
        following = self.events[events].sequence_number
        spans = Span(self.span.first, SequenceNumber(following - 1)), Span(following, self.span.last)
        lower, upper = [tuple([both for one in self.gone if (both := one.overlap(part))]) for part in spans]
        return Piece(spans[0], self.events[:events], lower), Piece(spans[1], self.events[events:], upper)


KeptEvents = Callable[[PartitionState, Span, int], Sequence[Event]]  # the first events of a range outside the hub


@dataclass(slots=True)
class PieceReader:
    """Cuts the rest of a range into pieces. A number without a letter, a staged event or an event in the hub is gone.

    Where several sources have an event, the letter's is taken, because that event has failed. After it comes the staged
    event. With `keys`, only the events of these partition keys come into pieces.
    """

    kept: KeptEvents
    state: PartitionState
    events: Generator[Event, None, None]
    most: int = BATCH_EVENTS
    keys: AbstractSet[str] = frozenset()
    _read: list[Event] = field(default_factory=list)  # events from the hub that are not in a piece yet

    def next_piece(self, left: Span, is_late: Callable[[], bool] = lambda: False) -> Piece:
        """Return the first piece of a range, which must not be empty and begins where the piece before it ended.

        With keys, the reader goes on until it has a piece's worth of their events, or until it is late.
        """
        read = [self._next(left, self.most)]
        room = self.most - len(read[0].events)
        while room and read[-1].span.last < left.last and not is_late():
            following = SequenceNumber(read[-1].span.last + 1)
            read.append(self._next(Span(following, left.last), room))
            room -= len(read[-1].events)
        events = chain.from_iterable(one.events for one in read)
        gone = [one for each in read for one in each.gone]
        return Piece(Span(left.first, read[-1].span.last), tuple(events), joined((), gone, len(gone)))

    def _next(self, left: Span, room: int) -> Piece:
        """Return the next events of a range, of which at most `room` are wanted.

        Raises StreamIncarnationChanged for an event before the checkpoint that was enqueued after it: the hub is a new
        one.
        """
        self._read += islice(self.events, self.most - len(self._read))
        last = self._read[-1].sequence_number if len(self._read) == self.most else left.last
        kept = self.kept(self.state, Span(left.first, last), self.most)
        if len(kept) == self.most:
            last = min(last, kept[-1].sequence_number)
        found = {event.sequence_number: event for event in (*self._read, *kept) if event.sequence_number <= last}
        numbers = sorted(found)
        wanted = [number for number in numbers if order_key(found[number]) in self.keys] if self.keys else numbers
        if len(wanted) > room:
            last = wanted[room - 1]
        self._read = [event for event in self._read if event.sequence_number > last]
        span, passed = Span(left.first, SequenceNumber(last)), [number for number in numbers if number <= last]
        for number in passed:
            self.state.refuse_other_hub(found[number])
        return Piece(span, tuple([found[number] for number in wanted[:room]]), tuple(span.holes(passed)))

    def close(self) -> None:
        self.events.close()


@dataclass(frozen=True, slots=True)
class WrittenState:
    """A state that an event of the range wrote, and the numbers of all events of its piece that write its key.

    A state that a job carries for later events names no `writers`.
    """

    number: SequenceNumber
    row: Row
    writers: AbstractSet[SequenceNumber] = frozenset()

    def is_newer(self, other: "WrittenState") -> bool:
        """Return True when this one stays although a later event wrote a different one."""
        rank_of = row_table(type(self.row)).rank_of
        return rank_of(self.row, self.number) > rank_of(other.row, other.number)

    def takes_back(self, standing: "StandingState | None") -> SequenceNumber:
        """Return the number of the event whose state is taken back: it writes the key again."""
        written_by = None if standing is None else standing.written_by
        return written_by if written_by is not None and written_by in self.writers else self.number


@dataclass(frozen=True, slots=True)
class StandingState:
    """A state, and the event of this partition that wrote it. None: an event of a different partition wrote it.

    A replay replaces the state of a different partition only by a newer value of `newest_by`: numbers of two partitions
    have no common order. Between equal values, the state of a partition that `comes_first` is the older one. One that
    `is_rehearsed` would stand if the earlier pieces of a dry run had been committed.
    """

    row: Row
    written_by: SequenceNumber | None
    comes_first: bool = False
    is_rehearsed: bool = False

    def gives_way_to(self, new: WrittenState) -> bool:
        """Return True when a replay replaces this state by a new one."""
        table = row_table(type(self.row))
        if self.written_by in new.writers:
            return True
        if self.written_by is not None:
            return table.rank_of(self.row, self.written_by) <= table.rank_of(new.row, new.number)
        if not table.newest_by:
            return False
        number = new.number - 1 if self.comes_first else new.number + 1
        return table.rank_of(self.row, number) < table.rank_of(new.row, new.number)


def standing_after(carried: WrittenState, standing: StandingState | None) -> StandingState:
    """Return the state that stands after the earlier pieces of a dry run, which carry one that replaced it."""
    is_earlier = standing is not None and standing.written_by is not None and standing.written_by <= carried.number
    if standing is None or is_earlier or standing.gives_way_to(carried):
        return StandingState(carried.row, carried.number, is_rehearsed=True)
    return standing


@dataclass(frozen=True, slots=True)
class ReplayCommit:
    """All that one transaction of a replay writes. It removes the old rows of its events from the `row_classes`.

    Where the events of a partition key are kept in order, `opened` are its letters that later events wait for.
    `standing` are the states of the keys that a column orders, as they were before the commit. In a dry run, they are
    as its earlier pieces would have left them.
    """

    job_id: UUID
    state: PartitionState
    piece: Piece
    settled: Settled
    carried: Mapping[ReferenceKey, WrittenState]
    row_classes: tuple[type, ...]
    progress: PartitionProgress  # as it was read: the transaction conflicts if it has moved
    transform_version: str
    committed_at: datetime
    opened: Mapping[str, OpenLetter] = field(default_factory=dict)
    standing: Mapping[ReferenceKey, StandingState] = field(default_factory=dict)

    def new_states(self, *, ordered: bool = False) -> dict[ReferenceKey, WrittenState]:
        """Return the states that the commit would set. With `ordered`, only those that a column orders."""
        found: dict[ReferenceKey, WrittenState] = {}
        for row_class, placed in self.settled.rows.items():
            table = row_table(row_class)
            for number, _, row in placed if table.newest_by or (table.key and not ordered) else ():
                key, new = (
                    ReferenceKey.of(row),
                    WrittenState(SequenceNumber(number), row, frozenset([SequenceNumber(number)])),
                )
                if (known := found.get(key)) is not None:
                    newest = max(known, new, key=lambda one: table.rank_of(one.row, one.number))
                    new = replace(newest, writers=known.writers | new.writers)
                found[key] = new
        return found

    def placed_states(self, row_class: type) -> Sequence[PlacedRow]:
        """Return the rows of a class of states. Where a column orders them, each key has one row, whose ordinal
        is the number of the event of which it takes back the state."""
        if not row_table(row_class).newest_by:
            return self.settled.rows.get(row_class, ())
        new = self.new_states(ordered=True).items()
        return [
            (one.number, one.takes_back(self.standing.get(key)), one.row)
            for key, one in new
            if key.row_class is row_class
        ]

    @property
    def partition(self) -> Partition:
        """The partition whose commit number this commit raises. The checkpoint does not move."""
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
    def counts(self) -> ReplayCounts:
        """The counts that are known before the write. The database counts letters and retracted rows."""
        settled, lowered = self.settled, 0
        for key, new in self.new_states(ordered=True).items():
            stands, rank_of = self.standing.get(key), row_table(key.row_class).rank_of
            if stands is not None and stands.written_by in new.writers:
                lowered += rank_of(new.row) < rank_of(stands.row)
        return ReplayCounts(
            events=len(self.piece.events),
            written=settled.written,
            filtered=settled.filtered,
            dead_lettered=settled.dead_lettered,
            held=settled.held,
            gone=sum(one.length for one in self.piece.gone),
            rows_written=settled.rows_written,
            states_lowered=lowered,
        )

    def progress_after(self, counts: ReplayCounts) -> PartitionProgress:
        """Return the progress after this piece, which had these counts."""
        before = self.progress.report
        report = ReplayReport(
            **{name: getattr(before, name) + getattr(counts, name) for name in COUNTS},
            gone_ranges=joined(before.gone_ranges, self.piece.gone, MOST_GONE_RANGES),
            transform_versions=tuple(dict.fromkeys((*before.transform_versions, self.transform_version))),
        )
        following = SequenceNumber(self.piece.span.last + 1)
        return replace(self.progress, next_number=following, report=report, step=self.progress.step + 1)


@dataclass(frozen=True, slots=True)
class RetractedRow:
    """A row that a replay removed, and its position. The ordinal of a state counts the states of its event."""

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
    """The changes to the rows of one event, as JSON in the form that `core/replay/diff.py` describes."""

    partition_id: PartitionId
    sequence_number: SequenceNumber
    diff: str


@dataclass(frozen=True, slots=True)
class RehearsedPiece:
    """The result of a piece in a dry run: its counts, the diffs that are shown, and the states that a column orders and
    that would be replaced."""

    commit: ReplayCommit
    counts: ReplayCounts
    diffs: tuple[EventDiff, ...]
    states: Mapping[ReferenceKey, WrittenState] = field(default_factory=dict)
