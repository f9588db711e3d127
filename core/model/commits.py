"""The values of a transaction: the state of the partition before it, and the commit."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from core.errors import StopReason, StreamIncarnationChanged
from core.model.events import Event, Partition, Position, SequenceNumber, Span, order_key
from core.model.rows import PlacedRow, row_table
from core.model.transforms import NONE_UNKNOWN, plus_unknown_fields

HISTORY, RARE = 100, 0.01  # events that show how a partition was before, and the share of failures that is nearly none
ErrorClass = Literal["poison", "reference", "refused", "unknown", "crash"]
GapStatus = Literal["open", "healed", "absent"]
LetterStatus = Literal["waiting", "retrying", "held", "resolved", "exhausted", "discarded"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The last committed number of a partition. `commit_number` counts its commits of every kind, from 1, and
    `unknown_fields` the events of batches by the name of a field that the room does not know, as JSON."""

    sequence_number: SequenceNumber
    offset: str
    enqueued_at: datetime
    commit_number: int
    commit_id: UUID
    unknown_fields: str = NONE_UNKNOWN


@dataclass(frozen=True, slots=True)
class PartitionStop:
    """The record of a stop of a partition, on purpose or by the database: since when, and how often it was met.

    While the trigger stands, the numbers of `carried` went by the app's own reader. In the last attempt of an outage,
    `failed` of the `tried` events failed, most of them with `failure`, which is a type and the line of the room.
    """

    reason: StopReason
    detail: str
    attempts: int
    stopped_at: datetime
    carried: Span | None = None
    failure: str | None = None
    failed: int | None = None
    tried: int | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """The last events of a partition up to a state of it, and how many of them failed."""

    failed: int = 0
    events: int = 0

    @property
    def was_good(self) -> bool:
        return self.events >= HISTORY and self.failed < RARE * self.events


@dataclass(frozen=True, slots=True)
class OpenKeys:
    """The partition keys that may have an open letter: no other key of the partition has one. None: all may."""

    keys: frozenset[str] | None

    def among(self, wanted: Iterable[str | None]) -> frozenset[str]:
        """Return those of these keys that may have an open letter."""
        asked = frozenset([key for key in wanted if key is not None])
        return asked if self.keys is None else self.keys & asked

    def plus(self, opened: Iterable[str | None]) -> "OpenKeys":
        """Return the keys with those of new letters."""
        new = frozenset([key for key in opened if key is not None])
        return self if self.keys is None or new <= self.keys else OpenKeys(self.keys | new)

    def minus(self, closed: frozenset[str]) -> "OpenKeys":
        """Return the keys without those that were found to have no open letter."""
        return self if self.keys is None or not closed else OpenKeys(self.keys - closed)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The state of a partition before a commit. Without a checkpoint, nothing was committed yet.

    Only a state without a checkpoint has `opened_at`, the time at which the stream was opened, and, once it is decided,
    `anchor`, the partition's first number. `stops` are the stops that were recorded when the state was read.
    `open_keys` are read where the events of a partition key are kept in order. `erased_at` is the time of the newest
    erasure of the database, if there was one. A plan knows the `erasures` that were opened before the state was read.
    """

    partition: Partition
    stream_id: int
    checkpoint: Checkpoint | None
    anchor: SequenceNumber | None = None
    opened_at: datetime | None = None
    stops: tuple[PartitionStop, ...] = ()
    open_keys: OpenKeys | None = None
    erased_at: datetime | None = None
    erasures: int = 0

    def stop_for(self, reason: StopReason) -> PartitionStop | None:
        """Return the stop of this reason, if the partition was stopped for it."""
        return next((stop for stop in self.stops if stop.reason == reason), None)

    def without_stops(self, reasons: Collection[StopReason]) -> "PartitionState":
        """Return the state of a partition whose stops of these reasons have ended."""
        return replace(self, stops=tuple([stop for stop in self.stops if stop.reason not in reasons]))

    def refuse_other_hub(self, event: Event) -> None:
        """Raise StreamIncarnationChanged when an event that is not after the checkpoint was enqueued after it."""
        known = self.checkpoint
        if known is not None and event.enqueued_at > known.enqueued_at:
            evidence = f"event {event.sequence_number} was enqueued after the checkpoint at {known.sequence_number}"
            raise StreamIncarnationChanged(self.partition, evidence)

    @property
    def next_number(self) -> SequenceNumber:
        """The first number of the next commit. The partition must be anchored or committed."""
        if self.checkpoint is not None:
            return SequenceNumber(self.checkpoint.sequence_number + 1)
        if self.anchor is None:
            raise ValueError(f"{self.partition} is not anchored")
        return self.anchor


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A whole event that could not become rows, and the reason. `fingerprint` groups letters of one cause, and
    `error_at` is the file and line of the room that raised the error.

    A waiting letter without a `due_at` is due when it is written. Without `keeps_body`, only the hub has the body. A
    held letter was not tried: it waits for the letter before it of its partition key, `held_behind`.
    """

    event: Event
    error_class: ErrorClass
    error_type: str
    error: str
    fingerprint: str
    status: LetterStatus
    due_at: datetime | None = None
    keeps_body: bool = True
    held_behind: SequenceNumber | None = None
    error_at: str | None = None

    @property
    def failure(self) -> str:
        """The type of the error and the line of the room, as `KeyError at transform.py:57`: it quotes no event."""
        name = self.error_type.rpartition(".")[2]
        return f"{name} at {self.error_at}" if self.error_at else name

    def without_body(self) -> "DeadLetter":
        """Return the letter without body and properties of its event: a retry reads them from the hub."""
        return replace(self, event=msgspec.structs.replace(self.event, properties={}, body=b""), keeps_body=False)


def error_type(error_class: type[BaseException]) -> str:
    """Return the name of a class of errors in letters."""
    return f"{error_class.__module__}.{error_class.__qualname__}"


@dataclass(frozen=True, slots=True)
class Settled:
    """The outcome of every event of a range: rows by class, letters, and the counts of events by outcome. The events
    with each unknown field are counted by its name."""

    rows: Mapping[type, Sequence[PlacedRow]]
    letters: Sequence[DeadLetter]
    written: int
    filtered: int
    unknown_fields: Mapping[str, int] = field(default_factory=dict)

    @property
    def held(self) -> int:
        """The number of events that were not tried, because an earlier letter of their key is open."""
        return sum([letter.status == "held" for letter in self.letters])

    @property
    def dead_lettered(self) -> int:
        """The number of events that failed."""
        return len(self.letters) - self.held

    @property
    def rows_written(self) -> int:
        """The number of rows over all classes. One event may write several."""
        return sum(map(len, self.rows.values()))

    @property
    def rows_appended(self) -> int:
        """The number of rows that no later commit replaces: all except states."""
        return sum([len(placed) for row_class, placed in self.rows.items() if not row_table(row_class).key])


@dataclass(frozen=True, slots=True)
class SequenceGap:
    """A range of numbers that was missing, and its status."""

    first: SequenceNumber
    last: SequenceNumber
    status: GapStatus


@dataclass(frozen=True, slots=True)
class BatchCommit:
    """All that one transaction writes for the numbers `first` to `last`. The hub no longer has `absent` of them.

    `is_marked`: its numbers may have marks, and the commit deletes them. `ends` are the reasons of the stops that end
    with it.
    """

    state: PartitionState
    commit_id: UUID
    first: SequenceNumber
    last: Position
    settled: Settled
    transform_version: str
    invocation_id: str
    committed_at: datetime
    absent: int = 0
    gaps: Sequence[SequenceGap] = ()
    is_marked: bool = False
    ends: tuple[StopReason, ...] = ()

    @property
    def partition(self) -> Partition:
        return self.state.partition

    @property
    def expected(self) -> SequenceNumber | None:
        """The checkpoint that this commit requires, or None for the first commit of the partition."""
        checkpoint = self.state.checkpoint
        return None if checkpoint is None else checkpoint.sequence_number

    @property
    def events(self) -> int:
        """The number of events that this commit accounts for, without absent numbers."""
        return self.last.sequence_number - self.first + 1 - self.absent

    @property
    def unknown_fields(self) -> str:
        """The counts of unknown fields after this commit, as the checkpoint stores them."""
        checkpoint = self.state.checkpoint
        stored = NONE_UNKNOWN if checkpoint is None else checkpoint.unknown_fields
        return plus_unknown_fields(stored, self.settled.unknown_fields)

    def ending(self, *, outage: bool, held: bool, erasure_key: bool) -> "BatchCommit":
        """Return the commit that ends the partition's stops of these reasons. Each commit ends a fault of the store."""
        is_over = {"outage": outage, "held": held, "store": True, "erasure_key": erasure_key}
        ends = tuple([stop.reason for stop in self.state.stops if is_over.get(stop.reason)])
        return replace(self, ends=ends) if ends else self

    def state_after(self, commit_number: int) -> PartitionState:
        """Return the partition's state after this commit, under its commit number."""
        last = self.last
        place = (last.sequence_number, last.offset, last.enqueued_at)
        checkpoint = Checkpoint(*place, commit_number, self.commit_id, self.unknown_fields)
        keys, stops = self.state.open_keys, self.state.without_stops(self.ends).stops
        if keys is not None:
            keys = keys.plus([order_key(letter.event) for letter in self.settled.letters])
        return replace(self.state, checkpoint=checkpoint, anchor=None, opened_at=None, stops=stops, open_keys=keys)


# SQL Server exchanges 5,000 locks of one statement in one index for a lock of the table. A row takes two: one on its
# key and one on its page, or two on a key that changes.
ROWS_AT_ONCE = 2_000
