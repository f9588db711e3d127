"""The replays of the MemoryStore: what each verb does to a transaction's tables."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from core.errors import DataRefused, ReplayConflict, ReplayOverlap
from core.model.commits import PartitionState
from core.model.events import Event, Partition, PartitionId, Stream
from core.model.rows import ReferenceKey, row_table
from core.model.spans import SequenceNumber, Span
from core.replay.job import (
    OPEN_STATUSES,
    REPLAY_MOVES,
    JobMove,
    PartitionProgress,
    Replayable,
    ReplayCounts,
    ReplayJob,
    ReplayRequest,
)
from core.replay.pieces import (
    CarriedState,
    EventDiff,
    Rehearsal,
    RehearsedPiece,
    ReplayCommit,
    RetractedRow,
    StandingState,
)
from core.store.replay_records import WHY_RESOLVED, move_values
from tests.fakes.kept import KeptLetter, KeptRange, KeptRetracted, KeptRow
from tests.fakes.memory_letters import record_replay

Write = Callable[[Any, KeptRow], None]
Letter = Callable[[Any, ReplayCommit], KeptLetter]


class _RolledBack(Exception):
    pass


class MemoryReplays:
    """See ReplayStore; tables and transactions are MemoryStore's."""

    _tables: Any
    _transaction: Callable[[], AbstractContextManager[Any]]
    _write_kept: Write
    _letter_of: Letter
    read_partition: Callable[[Partition], PartitionState]
    open_stream: Callable[[Stream], int]

    def read_replayable(self, stream: Stream) -> tuple[Replayable, ...]:
        stream_id, tables = self.open_stream(stream), self._tables
        places = sorted((place for place in tables.checkpoints if place[0] == stream_id), key=lambda p: (len(p[1]), p))
        firsts = {place: min(one.first for key, one in tables.ledger.items() if key[:2] == place) for place in places}
        return tuple(
            Replayable(PartitionId(place[1]), firsts[place], tables.checkpoints[place].sequence_number)
            for place in places
        )

    def open_replay(self, request: ReplayRequest) -> None:
        with self._transaction() as tables:
            standing = [one for one in tables.jobs.values() if _holds(one, request)]
            if standing and not request.is_dry_run:
                raise ReplayOverlap(min(one.request.job_id for one in standing))
            partitions = tuple(PartitionProgress(one, one.span.first) for one in request.ranges)
            _refuse_known(tables.jobs, request.job_id)
            at = request.requested_at
            tables.jobs[request.job_id] = ReplayJob(request, "planned", partitions, None, None, at, None, "")

    def find_replay(self, job_id: UUID) -> ReplayJob | None:
        return self._tables.jobs.get(job_id)

    def read_replays(self, stream: Stream, most: int, before: tuple[datetime, UUID] | None) -> tuple[ReplayJob, ...]:
        def order(job: ReplayJob) -> tuple[datetime, str]:
            return job.request.requested_at, str(job.request.job_id)

        jobs = sorted((job for job in self._tables.jobs.values() if _is_of(job, stream)), key=order, reverse=True)
        after = [job for job in jobs if before is None or order(job) < (before[0], str(before[1]))]
        return tuple(after[:most])

    def read_open_replays(self, stream: Stream) -> tuple[UUID, ...]:
        jobs = (job for job in self._tables.jobs.values() if _is_of(job, stream))
        return tuple(job.request.job_id for job in jobs if job.status in ("planned", "running"))

    def read_replay_diffs(
        self, job_id: UUID, after: tuple[PartitionId, SequenceNumber] | None, most: int
    ) -> tuple[EventDiff, ...]:
        def order(place: tuple[str, int]) -> tuple[int, str, int]:
            return len(place[0]), place[0], place[1]

        found = sorted((key for key in self._tables.diffs if key[0] == job_id), key=lambda key: order(key[1:]))
        behind = [key for key in found if after is None or order(key[1:]) > order(after)]
        return tuple(self._tables.diffs[key] for key in behind[:most])

    def move_replay(self, move: JobMove) -> bool:
        allowed = REPLAY_MOVES[move.move]
        with self._transaction() as tables:
            job = tables.jobs.get(move.job_id)
            if job is None or job.status not in allowed.sources:
                return False
            tables.jobs[move.job_id] = replace(
                job,
                status=allowed.target,
                started_at=(job.started_at or move.moved_at) if allowed.target == "running" else job.started_at,
                ended_at=move.moved_at if allowed.target in ("cancelled", "failed") else None,
                updated_at=move.moved_at,
                fault=move.fault,
                history=job.history + move_values(move)["entry"],
            )
            _forget(tables, move.job_id)
        return True

    def note_replay_fault(self, job_id: UUID, fault: str | None, at: datetime) -> None:
        with self._transaction() as tables:
            job = tables.jobs[job_id]
            if job.status in OPEN_STATUSES and job.fault != fault:
                tables.jobs[job_id] = replace(job, fault=fault, updated_at=at)

    def read_standing_states(
        self, state: PartitionState, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, StandingState]:
        states, place = self._tables.states, (state.stream_id, state.partition.partition_id)
        return {key: _standing(states[key], place) for key in keys if key in states}

    def read_carried(
        self, job_id: UUID, partition_id: PartitionId, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, CarriedState]:
        carried = self._tables.carried
        return {key: carried[job_id, partition_id, key] for key in keys if (job_id, partition_id, key) in carried}

    def read_kept_events(self, state: PartitionState, span: Span, most: int) -> tuple[Event, ...]:
        place = (state.stream_id, state.partition.partition_id)
        staged = {key: one for key, one in self._tables.staged.items() if key[:2] == place}
        letters = {key: one for key, one in self._tables.letters.items() if key[:2] == place and one.body_kept}
        kept = staged | {key: _event_of(one) for key, one in letters.items()}
        found = [one for key, one in sorted(kept.items()) if span.first <= key[2] <= span.last]
        return tuple(found[:most])

    def commit_replay(self, commit: ReplayCommit) -> int:
        with self._transaction() as tables:
            number, done = self._write(tables, commit)
            for replayed in commit.numbers:
                tables.staged.pop((commit.state.stream_id, commit.partition.partition_id, replayed), None)
            _advance(tables, commit, replace(commit.counts, **_counted(done)))
        return number

    def rehearse_replay(self, commit: ReplayCommit) -> Rehearsal:
        try:
            with self._transaction() as tables:
                _, done = self._write(tables, commit)
                raise _RolledBack
        except _RolledBack:
            return done

    def note_rehearsal(self, rehearsed: RehearsedPiece) -> None:
        with self._transaction() as tables:
            _advance(tables, rehearsed.commit, rehearsed.counts)
            for one in rehearsed.diffs:
                tables.diffs[rehearsed.commit.job_id, one.partition_id, one.sequence_number] = one

    def close_replay(
        self, job: ReplayJob, progress: PartitionProgress, row_classes: Iterable[type], at: datetime
    ) -> None:
        job_id, stream_id = job.request.job_id, self.open_stream(job.request.stream)
        with self._transaction() as tables:
            stands = tables.jobs[job_id]
            if stands.status != "running":
                raise ReplayConflict(job.partition_of(progress), job_id)
            own = stands.progress_of(progress.range.partition_id)
            if own.closed_at is None and own.is_through:
                left = _states_left(tables, stream_id, job, own, set(row_classes))
                counts = replace(own.counts, states_left=max(0, left - own.counts.states_rewritten))
                stands = _with(stands, replace(own, counts=counts, closed_at=at), at)
            if all(one.closed_at is not None for one in stands.partitions):
                stands = replace(stands, status="done", ended_at=at, fault=None)
            tables.jobs[job_id] = replace(stands, updated_at=at)
            _forget(tables, job_id)

    def stage(self, state: PartitionState, events: Iterable[Event]) -> None:
        place = (state.stream_id, state.partition.partition_id)
        with self._transaction() as tables:
            for event in events:
                tables.staged.setdefault((*place, event.sequence_number), event)

    def staged(self) -> list[tuple[str, int]]:
        return sorted(key[1:] for key in self._tables.staged)

    def replays(self) -> list[KeptRange]:
        return sorted(
            self._tables.replays.values(), key=lambda one: (one.stream_id, one.partition_id, one.commit_number)
        )

    def retracted(self) -> list[KeptRetracted]:
        return sorted(self._tables.retracted, key=lambda one: one.position)

    def _write(self, tables: Any, commit: ReplayCommit) -> tuple[int, Rehearsal]:
        place = (commit.state.stream_id, commit.partition.partition_id)
        checkpoint = tables.checkpoints.get(place)
        if checkpoint is None or checkpoint.sequence_number < commit.piece.span.last:
            raise ReplayConflict(commit.partition, commit.job_id)
        number = checkpoint.commit_number + 1
        tables.checkpoints[place] = replace(checkpoint, commit_number=number)
        taken = [one for row_class in commit.row_classes for one in _take(tables, row_class, commit)]
        tables.retracted.extend(KeptRetracted.of(one, ordinal, number) for one, ordinal in taken)
        for row_class, placed in commit.settled.rows.items():
            for at, ordinal, row in placed if not row_table(row_class).key else _last_of_each(placed):
                stands = tables.states.get(ReferenceKey.of(row)) if row_table(row_class).key else None
                if stands is None or (stands.stream_id, stands.partition_id) == place:
                    self._write_kept(tables, KeptRow(*place, at, ordinal, number, row))
        added, resolved = self._settle_letters(tables, commit, number)
        tables.replays[(*place, number)] = _range(commit, number)
        rows = tuple(RetractedRow(SequenceNumber(one.sequence_number), ordinal, one.row) for one, ordinal in taken)
        return number, Rehearsal(rows, added, resolved)

    def _settle_letters(self, tables: Any, commit: ReplayCommit, commit_number: int) -> tuple[int, int]:
        place, resolved, added = (commit.state.stream_id, commit.partition.partition_id), 0, 0
        free: dict[str, Any] = {
            "claimed_by": commit.touched_by,
            "claimed_until": None,
            "began_at": None,
            "lost_claims": 0,
        }
        for number in commit.succeeded:
            one = tables.letters.get((*place, number))
            if one is not None and one.status != "resolved":
                settled = {"settled_at": commit.committed_at, "settled_why": WHY_RESOLVED, "due_at": None}
                version = commit.transform_version
                done = replace(one, status="resolved", transform_version=version, **settled, **free)
                tables.letters[(*place, number)] = done
                resolved += 1
        for letter in commit.settled.letters:
            key = (*place, letter.event.sequence_number)
            stands, new = tables.letters.get(key), replace(self._letter_of(letter, commit), **free)
            added += stands is None
            if stands is None:
                tables.letters[key] = new
            elif stands.status != "discarded":
                kept = ("offset", "enqueued_at", "partition_key", "properties", "body", "body_kept")
                tables.letters[key] = replace(new, **{name: getattr(stands, name) for name in kept})
        for number in commit.numbers:
            one = tables.letters.get((*place, number))
            if one is not None and one.claimed_by == commit.touched_by:
                record_replay(tables.attempts, one, commit_number)
        return added, resolved


def _holds(job: ReplayJob, request: ReplayRequest) -> bool:
    if job.status not in OPEN_STATUSES or job.request.is_dry_run or not _is_of(job, request.stream):
        return False
    return any(
        own.partition_id == asked.partition_id
        and own.span.first <= asked.span.last
        and own.span.last >= asked.span.first
        for own in job.request.ranges
        for asked in request.ranges
    )


def _is_of(job: ReplayJob, stream: Stream) -> bool:
    own = job.request.stream
    return (own.event_hub, own.consumer_group) == (stream.event_hub, stream.consumer_group)


def _refuse_known(jobs: Mapping[UUID, ReplayJob], job_id: UUID) -> None:
    if job_id in jobs:
        raise DataRefused(f"{job_id} is there already")


def _standing(kept: KeptRow, place: tuple[int, str]) -> StandingState:
    is_own = (kept.stream_id, kept.partition_id) == place
    return StandingState(kept.row, SequenceNumber(kept.sequence_number) if is_own else None)


def _event_of(kept: KeptLetter) -> Event:
    place = (SequenceNumber(kept.sequence_number), kept.offset, kept.enqueued_at)
    return Event(*place, kept.partition_key, kept.properties, kept.body)


def _counted(done: Rehearsal) -> dict[str, int]:
    return {
        "rows_retracted": len(done.retracted),
        "letters_added": done.letters_added,
        "letters_resolved": done.letters_resolved,
    }


def _take(tables: Any, row_class: type, commit: ReplayCommit) -> list[tuple[KeptRow, int]]:
    place, numbers = (commit.state.stream_id, commit.partition.partition_id), set(commit.numbers)
    if row_table(row_class).key:
        return _take_states(tables, row_class, commit)
    keys = [key for key in tables.appended if key[:3] == (row_class, *place) and key[3] in numbers]
    return [(tables.appended.pop(key), key[4]) for key in keys]


def _take_states(tables: Any, row_class: type, commit: ReplayCommit) -> list[tuple[KeptRow, int]]:
    place, taken, counts = (commit.state.stream_id, commit.partition.partition_id), [], dict[int, int]()
    for number, _, row in _last_of_each(commit.settled.rows.get(row_class, ())):
        stands = tables.states.get(ReferenceKey.of(row))
        if stands is None or (stands.stream_id, stands.partition_id) != place or stands.sequence_number > number:
            continue
        taken.append(tables.states.pop(ReferenceKey.of(row)))
    taken.sort(key=lambda one: row_table(row_class).key_of(one.row))
    placed = []
    for one in taken:
        ordinal = counts[one.sequence_number] = counts.get(one.sequence_number, -1) + 1
        placed.append((one, ordinal))
    return placed


def _last_of_each(placed: Iterable[Any]) -> Iterable[Any]:
    return {ReferenceKey.of(one[2]): one for one in placed}.values()


def _advance(tables: Any, commit: ReplayCommit, counts: ReplayCounts) -> None:
    job = tables.jobs[commit.job_id]
    own = job.progress_of(commit.partition.partition_id)
    if job.status != "running" or own.closed_at is not None or own.next_number != commit.progress.next_number:
        raise ReplayConflict(commit.partition, commit.job_id)
    moved = replace(own, next_number=commit.next_number, counts=own.counts.plus(counts), gone_ranges=commit.gone_ranges)
    tables.jobs[commit.job_id] = _with(job, moved, commit.committed_at)
    for key, one in commit.carried.items():
        tables.carried[commit.job_id, commit.partition.partition_id, key] = one


def _with(job: ReplayJob, progress: PartitionProgress, at: datetime) -> ReplayJob:
    own = progress.range.partition_id
    partitions = tuple(progress if one.range.partition_id == own else one for one in job.partitions)
    return replace(job, partitions=partitions, updated_at=at)


def _states_left(
    tables: Any, stream_id: int, job: ReplayJob, progress: PartitionProgress, row_classes: set[type]
) -> int:
    place, span = (stream_id, progress.range.partition_id), progress.range.span
    own = [
        one.commit_number
        for key, one in tables.replays.items()
        if key[:2] == place and one.invocation_id == str(job.request.job_id)
    ]
    first = min(own, default=2**63)
    return sum(
        type(one.row) in row_classes
        and (one.stream_id, one.partition_id) == place
        and span.first <= one.sequence_number <= span.last
        and one.commit_number < first
        for one in tables.states.values()
    )


def _forget(tables: Any, job_id: UUID) -> None:
    if tables.jobs[job_id].status not in OPEN_STATUSES:
        for key in [key for key in tables.carried if key[0] == job_id]:
            del tables.carried[key]


def _range(commit: ReplayCommit, number: int) -> KeptRange:
    done, span = commit.settled, commit.piece.span
    return KeptRange(
        commit.state.stream_id,
        commit.partition.partition_id,
        number,
        span.first,
        span.last,
        done.written,
        done.filtered,
        len(done.letters),
        commit.counts.gone,
        done.rows_written,
        commit.transform_version,
        str(commit.job_id),
        commit.committed_at,
    )
