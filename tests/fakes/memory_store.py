"""A Store in memory that keeps every promise of the Protocol: it passes the contract suite of the engines."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

from core.errors import CheckpointConflict, DataRefused, LetterConflict
from core.ledger.status import PartitionLedger
from core.model.commits import BatchCommit, Checkpoint, DeadLetter, PartitionState, SequenceGap
from core.model.events import Event, Partition, PartitionId, Stream
from core.model.letters import (
    ClaimedLetter,
    ClaimedPosition,
    FoundLetter,
    LetterClaim,
    LetterHold,
    LetterMove,
    RetryCommit,
)
from core.model.rows import PlacedRow, ReferenceKey, Row, row_table
from core.model.spans import SequenceNumber, Span
from core.ownership import Ownership, OwnershipClaim
from core.replay.job import ReplayJob
from core.replay.pieces import CarriedState, EventDiff, ReplayCommit
from core.store.records import refuse_stale
from core.store.row_statements import fields_of, types_of
from tests.fakes import memory_letters
from tests.fakes.kept import KeptAttempt, KeptGap, KeptLetter, KeptRange, KeptRetracted, KeptRow
from tests.fakes.memory_replays import MemoryReplays

Place = tuple[int, str]


@dataclass(frozen=True)
class _Tables:
    """All that is committed; a transaction works on a copy and is committed by taking the copy's place."""

    streams: dict[tuple[str, str], int] = field(default_factory=dict)
    checkpoints: dict[Place, Checkpoint] = field(default_factory=dict)
    appended: dict[tuple[type, int, str, int, int], KeptRow] = field(default_factory=dict)
    states: dict[ReferenceKey, KeptRow] = field(default_factory=dict)
    letters: dict[tuple[int, str, int], KeptLetter] = field(default_factory=dict)
    ledger: dict[tuple[int, str, int], KeptRange] = field(default_factory=dict)
    ownerships: dict[Place, Ownership] = field(default_factory=dict)
    retries: dict[tuple[int, str, int], KeptRange] = field(default_factory=dict)
    attempts: list[KeptAttempt] = field(default_factory=list)
    jobs: dict[UUID, ReplayJob] = field(default_factory=dict)
    diffs: dict[tuple[UUID, str, int], EventDiff] = field(default_factory=dict)
    replays: dict[tuple[int, str, int], KeptRange] = field(default_factory=dict)
    carried: dict[tuple[UUID, str, ReferenceKey], CarriedState] = field(default_factory=dict)
    retracted: list[KeptRetracted] = field(default_factory=list)
    staged: dict[tuple[int, str, int], Event] = field(default_factory=dict)
    opened: dict[int, datetime] = field(default_factory=dict)
    anchors: dict[Place, SequenceNumber] = field(default_factory=dict)
    gaps: dict[tuple[int, str, int], KeptGap] = field(default_factory=dict)

    def copy(self) -> "_Tables":
        return _Tables(*(copy(getattr(self, name)) for name in self.__dataclass_fields__))


class MemoryStore(MemoryReplays):
    """See Store and ReplayStore. Owners that share a database share the object."""

    def __init__(self) -> None:
        self._tables = _Tables()
        self._lock = threading.Lock()

    def read_partition(self, partition: Partition) -> PartitionState:
        with self._transaction() as tables:
            hub = (partition.event_hub, partition.consumer_group)
            stream_id = tables.streams.setdefault(hub, len(tables.streams) + 1)
            opened_at = tables.opened.setdefault(stream_id, datetime.now(UTC))
            place = (stream_id, partition.partition_id)
            if place in tables.checkpoints:
                return PartitionState(partition, stream_id, tables.checkpoints[place])
            return PartitionState(partition, stream_id, None, tables.anchors.get(place), opened_at)

    def open_stream(self, stream: Stream) -> int:
        return self.read_partition(stream.partition(PartitionId(""))).stream_id

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        states = self._tables.states
        return {key: states[key].row for key in keys if key in states}

    def commit_batch(self, commit: BatchCommit) -> int:
        with self._transaction() as tables:
            commit_number = _advance(tables, commit)
            _write_rows(tables, commit, commit_number)
            for letter in commit.settled.letters:
                _add(tables.letters, (*_place(commit), letter.event.sequence_number), _kept_letter(letter, commit))
            _record(tables, commit, commit_number)
            for gap in commit.gaps:
                _settle_gap(tables, commit, gap)
        return commit_number

    def anchor_partition(self, state: PartitionState, anchor: SequenceNumber, at: datetime) -> PartitionState:
        with self._transaction() as tables:
            tables.anchors.setdefault((state.stream_id, state.partition.partition_id), anchor)
        return self.read_partition(state.partition)

    def note_gap(self, state: PartitionState, gap: Span, found_at: datetime) -> None:
        place = (state.stream_id, state.partition.partition_id)
        refuse_stale(state, self.read_partition(state.partition))
        with self._transaction() as tables:
            stands = tables.gaps.get((*place, gap.first))
            found = KeptGap(*place, gap.first, gap.last, found_at, "open", 1)
            if stands is not None:
                found = replace(stands, last=gap.last, status="open", attempts=stands.attempts + 1)
            tables.gaps[*place, gap.first] = found

    def close_gaps(self, partition: Partition) -> None:
        state = self.read_partition(partition)
        with self._transaction() as tables:
            for key, gap in tables.gaps.items():
                is_here = key[:2] == (state.stream_id, partition.partition_id)
                if (
                    is_here
                    and gap.status == "open"
                    and state.checkpoint
                    and gap.last <= state.checkpoint.sequence_number
                ):
                    tables.gaps[key] = replace(gap, status="healed")

    def read_ledgers(self) -> tuple[PartitionLedger, ...]:
        tables = self._tables
        hubs = {stream_id: hub for hub, stream_id in tables.streams.items()}
        places = sorted(tables.checkpoints, key=lambda place: (place[0], len(place[1]), place[1]))
        return tuple(_books(tables, place, hubs[place[0]]) for place in places)

    def read_ownerships(self, stream: Stream) -> tuple[Ownership, ...]:
        stream_id, tables = self.read_partition(stream.partition(PartitionId(""))).stream_id, self._tables
        return tuple(one for place, one in tables.ownerships.items() if place[0] == stream_id)

    def claim_ownership(self, claim: OwnershipClaim) -> bool:
        partition = claim.ownership.partition
        place = (self.read_partition(partition).stream_id, partition.partition_id)
        with self._transaction() as tables:
            stands = tables.ownerships.get(place)
            if (None if stands is None else stands.etag) != claim.expected_etag:
                return False
            tables.ownerships[place] = claim.ownership
        return True

    def read_checkpoints(self, stream: Stream) -> Mapping[PartitionId, tuple[SequenceNumber, str]]:
        stream_id, tables = self.read_partition(stream.partition(PartitionId(""))).stream_id, self._tables
        found = ((place, stands) for place, stands in tables.checkpoints.items() if place[0] == stream_id)
        return {PartitionId(place[1]): (stands.sequence_number, stands.offset) for place, stands in found}

    def claim_letters(self, claim: LetterClaim) -> tuple[ClaimedPosition, ...]:
        stream_id = self.open_stream(claim.stream)
        with self._transaction() as tables:
            return memory_letters.claim(tables.letters, claim, stream_id)

    def read_claimed(self, hold: LetterHold) -> tuple[ClaimedLetter, ...]:
        held = memory_letters.held(self._tables.letters, hold)
        return tuple(memory_letters.claimed_letter(one) for _, one in held)

    def begin_lone_try(self, hold: LetterHold, began_at: datetime, until: datetime) -> None:
        with self._transaction() as tables:
            for key, one in memory_letters.held(tables.letters, hold):
                tables.letters[key] = replace(one, began_at=began_at, claimed_until=until, due_at=until)

    def commit_retry(self, commit: RetryCommit) -> int:
        with self._transaction() as tables:
            stands = tables.checkpoints.get(_place(commit))
            if stands is None:
                raise LetterConflict(commit.partition, commit.claimed_by)
            number = stands.commit_number + 1
            tables.checkpoints[_place(commit)] = replace(stands, commit_number=number)
            _write_rows(tables, commit, number)
            memory_letters.settle(tables.letters, tables.attempts, commit, number)
            tables.retries[(*_place(commit), number)] = memory_letters.retry_range(commit, number)
        return number

    def find_letters(self, hold: LetterHold) -> tuple[FoundLetter, ...]:
        place = (hold.partition.partition_id, hold.sequence_numbers)
        return memory_letters.find(self._tables.letters, hold.state.stream_id, place)

    def move_letters(self, move: LetterMove) -> tuple[FoundLetter, ...]:
        stream_id = self.read_partition(move.partition).stream_id
        with self._transaction() as tables:
            memory_letters.move(tables.letters, tables.attempts, move, stream_id)
            return memory_letters.find(tables.letters, stream_id, (move.partition.partition_id, move.sequence_numbers))

    def next_due_at(self, stream: Stream) -> datetime | None:
        stream_id = self.read_partition(stream.partition(PartitionId(""))).stream_id
        live = [one for key, one in self._tables.letters.items() if key[0] == stream_id]
        return min((one.due_at for one in live if one.due_at is not None), default=None)

    def close(self) -> None:
        """Nothing to let go of."""

    def rows(self, row_class: type) -> list[KeptRow]:
        kept = [*self._tables.appended.values(), *self._tables.states.values()]
        return sorted((one for one in kept if type(one.row) is row_class), key=_position)

    def letters(self) -> list[KeptLetter]:
        return sorted(self._tables.letters.values(), key=lambda one: (*_of(one), one.sequence_number))

    def ledger(self) -> list[KeptRange]:
        return sorted(self._tables.ledger.values(), key=lambda one: (*_of(one), one.commit_number))

    def retries(self) -> list[KeptRange]:
        return sorted(self._tables.retries.values(), key=lambda one: (*_of(one), one.commit_number))

    def attempts(self) -> list[KeptAttempt]:
        return sorted(self._tables.attempts, key=lambda one: (*_of(one), one.sequence_number, one.attempt))

    def gaps(self) -> list[KeptGap]:
        return sorted(self._tables.gaps.values(), key=lambda one: (*_of(one), one.first))

    def _write_kept(self, tables: "_Tables", kept: KeptRow) -> None:
        _write_row(tables, kept)

    def _letter_of(self, letter: DeadLetter, commit: ReplayCommit) -> KeptLetter:
        return _kept_letter(letter, commit)

    @contextmanager
    def _transaction(self) -> Iterator[_Tables]:
        with self._lock:
            tables = self._tables.copy()
            yield tables
            self._tables = tables


def _write_rows(tables: _Tables, commit: BatchCommit | RetryCommit, commit_number: int) -> None:
    for row_class, rows in commit.settled.rows.items():
        for number, ordinal, row in _newest_of_each(rows) if row_table(row_class).key else rows:
            _write_row(tables, KeptRow(*_place(commit), number, ordinal, commit_number, row))


def _place(commit: BatchCommit | RetryCommit | ReplayCommit) -> Place:
    return commit.state.stream_id, commit.partition.partition_id


def _of(kept: KeptRow | KeptLetter | KeptRange | KeptAttempt | KeptGap) -> tuple[int, int, str]:
    return kept.stream_id, len(kept.partition_id), kept.partition_id


def _position(kept: KeptRow) -> tuple[Any, ...]:
    return (*_of(kept), kept.sequence_number, kept.ordinal or 0, repr(kept.row))


def _advance(tables: _Tables, commit: BatchCommit) -> int:
    stands = tables.checkpoints.get(_place(commit))
    if (None if stands is None else stands.sequence_number) != commit.expected:
        raise CheckpointConflict(commit.partition, commit.expected)
    last = commit.last
    for value in (last.sequence_number, last.offset, last.enqueued_at):
        _refuse_unstorable(value)
    number = 1 if stands is None else stands.commit_number + 1
    tables.checkpoints[_place(commit)] = Checkpoint(
        last.sequence_number, last.offset, last.enqueued_at, number, commit.commit_id
    )
    return number


def _newest_of_each(rows: Iterable[PlacedRow]) -> Iterable[PlacedRow]:
    """A state that another one of the same commit replaces is never written, and so never refused."""
    return {ReferenceKey.of(placed[2]): placed for placed in rows}.values()


def _write_row(tables: _Tables, kept: KeptRow) -> None:
    row_class = type(kept.row)
    for name, hint in fields_of(row_class):
        value = getattr(kept.row, name)
        _refuse_unstorable(value)
        if not isinstance(value, types_of(hint)):
            raise DataRefused(f"{name} of {row_class.__name__} cannot be {value!r}")
    if not row_table(row_class).key:
        _add(tables.appended, (row_class, kept.stream_id, kept.partition_id, kept.sequence_number, kept.ordinal), kept)
        return
    key = ReferenceKey.of(kept.row)
    stands = tables.states.get(key)
    if stands is None or _of(stands) != _of(kept) or stands.sequence_number <= kept.sequence_number:
        tables.states[key] = replace(kept, ordinal=None)


def _kept_letter(letter: DeadLetter, commit: BatchCommit | ReplayCommit) -> KeptLetter:
    event, at = letter.event, commit.committed_at
    _refuse_unstorable(event.enqueued_at)
    return KeptLetter(
        *_place(commit),
        event.sequence_number,
        event.offset,
        event.enqueued_at,
        None if event.partition_key is None else _without_surrogates(event.partition_key),
        dict(event.properties),
        event.body if letter.keeps_body else b"",
        letter.error_class,
        letter.error_type,
        _without_surrogates(letter.error),
        letter.fingerprint,
        commit.transform_version,
        letter.status,
        1,
        (letter.due_at or at) if letter.status == "waiting" else None,
        at,
        letter.keeps_body,
    )


def _record(tables: _Tables, commit: BatchCommit, commit_number: int) -> None:
    done, (stream_id, partition_id) = commit.settled, _place(commit)
    if (
        done.written + done.filtered + len(done.letters) + commit.absent
        != commit.last.sequence_number - commit.first + 1
    ):
        raise DataRefused("the counts of a range must sum to its length")
    kept = KeptRange(
        stream_id,
        partition_id,
        commit_number,
        commit.first,
        commit.last.sequence_number,
        done.written,
        done.filtered,
        len(done.letters),
        commit.absent,
        done.rows_written,
        commit.transform_version,
        commit.invocation_id,
        commit.committed_at,
    )
    _add(tables.ledger, (stream_id, partition_id, commit.first), kept)


def _settle_gap(tables: _Tables, commit: BatchCommit, gap: SequenceGap) -> None:
    if gap.last < gap.first:
        raise DataRefused(f"a gap cannot reach from {gap.first} to {gap.last}")
    new = KeptGap(*_place(commit), gap.first, gap.last, commit.committed_at, gap.status, 1)
    stands = tables.gaps.get((*_place(commit), gap.first), new)
    tables.gaps[*_place(commit), gap.first] = replace(stands, last=gap.last, status=gap.status)


def _books(tables: _Tables, place: Place, hub: tuple[str, str]) -> PartitionLedger:
    ranges = sorted((one for key, one in tables.ledger.items() if key[:2] == place), key=lambda one: one.first)
    holes = sum(after.first != before.last + 1 for before, after in pairwise(ranges))
    is_cut = place in tables.anchors and ranges[0].first != tables.anchors[place]
    return PartitionLedger(
        partition=Partition(*hub, place[1]),  # type: ignore[arg-type]
        checkpoint=tables.checkpoints[place].sequence_number,
        first=ranges[0].first,  # type: ignore[arg-type]
        last=max(one.last for one in ranges),  # type: ignore[arg-type]
        commits=len(ranges),
        holes=holes + is_cut,
        written=sum(one.written for one in ranges),
        filtered=sum(one.filtered for one in ranges),
        dead_lettered=sum(one.dead_lettered for one in ranges),
        held=0,
        absent=sum(one.absent for one in ranges),
        letters=sum(key[:2] == place for key in tables.letters) - _letters_added(tables, place, hub),
    )


def _letters_added(tables: _Tables, place: Place, hub: tuple[str, str]) -> int:
    own = [
        job for job in tables.jobs.values() if (job.request.stream.event_hub, job.request.stream.consumer_group) == hub
    ]
    found = [job.progress_of(PartitionId(place[1])) for job in own if not job.request.is_dry_run]
    return sum(one.counts.letters_added for one in found if one is not None)


def _add(table: dict[Any, Any], key: tuple[Any, ...], kept: object) -> None:
    if key in table:
        raise DataRefused(f"{key} is there already")
    table[key] = kept


def _refuse_unstorable(value: object) -> None:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise DataRefused(f"{value} has more than 64 bits")
    if isinstance(value, str) and value != _without_surrogates(value):
        raise DataRefused("a lone surrogate is no text")
    if isinstance(value, datetime) and value.tzinfo is None:
        raise DataRefused(f"{value} has no time zone")


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
