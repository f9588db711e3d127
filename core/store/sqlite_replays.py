"""The replays of the embedded store: jobs, their pieces, and rehearsals that are rolled back."""

import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from uuid import UUID

from core.errors import ReplayConflict, ReplayOverlap
from core.model.commits import PartitionState
from core.model.events import Event, PartitionId, Stream
from core.model.rows import ReferenceKey, keys_by_class, row_table
from core.model.spans import SequenceNumber, Span
from core.replay.job import JobMove, PartitionProgress, Replayable, ReplayJob, ReplayRequest
from core.replay.pieces import CarriedState, EventDiff, Rehearsal, RehearsedPiece, ReplayCommit, StandingState
from core.store import replay_records as records
from core.store.replay_statements import STANDING, sqlite_count_states
from core.store.row_statements import sqlite_select_states
from core.store.sqlite_replay_commit import Values, run, write_replay


class _RolledBack(Exception):
    """Ends a rehearsal."""


class SqliteReplays(ABC):
    """See ReplayStore; the connection and its transactions are SqliteStore's."""

    def read_replayable(self, stream: Stream) -> tuple[Replayable, ...]:
        """See ReplayStore."""
        with self._reading() as connection:
            found = run(connection, "read_replayable", {"stream_id": self._find_stream(stream)}).fetchall()
        return tuple(map(records.replayable_of, found))

    def open_replay(self, request: ReplayRequest) -> None:
        """See ReplayStore; one writer at a time is the lock."""
        with self._reading():
            values = records.request_values(request, self._find_stream(request.stream))
        with self._changing() as connection:
            run(connection, "lock_partitions", values)
            if not request.is_dry_run:
                (standing,) = run(connection, "find_overlap", values).fetchone()
                if standing is not None:
                    raise ReplayOverlap(UUID(standing))
            run(connection, "add_replay_job", values)
            run(connection, "add_replay_progress", values)

    def find_replay(self, job_id: UUID) -> ReplayJob | None:
        """See ReplayStore."""
        found = self._jobs("find_replay_job", {"job_id": str(job_id)})
        return found[0] if found else None

    def read_replays(self, stream: Stream, most: int, before: tuple[datetime, UUID] | None) -> tuple[ReplayJob, ...]:
        """See ReplayStore."""
        with self._reading():
            stream_id = self._find_stream(stream)
        return self._jobs("read_replay_jobs", records.page_values(stream_id, most, before))

    def read_open_replays(self, stream: Stream) -> tuple[UUID, ...]:
        """See ReplayStore."""
        with self._reading() as connection:
            found = run(connection, "read_open_replays", {"stream_id": self._find_stream(stream)}).fetchall()
        return tuple(UUID(job_id) for (job_id,) in found)

    def read_replay_diffs(
        self, job_id: UUID, after: tuple[PartitionId, SequenceNumber] | None, most: int
    ) -> tuple[EventDiff, ...]:
        """See ReplayStore."""
        with self._reading() as connection:
            found = run(connection, "read_replay_diffs", records.diff_page_values(job_id, after, most)).fetchall()
        return tuple(map(records.diff_of, found))

    def move_replay(self, move: JobMove) -> bool:
        """See ReplayStore."""
        with self._changing() as connection:
            values = records.move_values(move)
            moved = run(connection, "move_replay_job", values).fetchone()
            run(connection, "forget_states", values)
        return moved is not None

    def note_replay_fault(self, job_id: UUID, fault: str | None, at: datetime) -> None:
        """See ReplayStore."""
        with self._changing() as connection:
            run(connection, "note_replay_fault", records.fault_values(job_id, fault, at))

    def read_standing_states(
        self, state: PartitionState, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, StandingState]:
        """See ReplayStore."""
        standing: dict[ReferenceKey, StandingState] = {}
        for row_class, values in keys_by_class(keys).items():
            with self._reading() as connection:
                select = sqlite_select_states(row_class, STANDING)
                found = connection.execute(select, (json.dumps(values, default=str),)).fetchall()
            standing.update(records.standing_of(row_class, row, state) for row in found)
        return standing

    def read_carried(
        self, job_id: UUID, partition_id: PartitionId, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, CarriedState]:
        """See ReplayStore."""
        wanted = {records.state_key(key): key for key in keys}
        values = {"job_id": str(job_id), "partition_id": partition_id, "keys": json.dumps([[key] for key in wanted])}
        with self._reading() as connection:
            found = run(connection, "read_carried", values).fetchall()
        return {wanted[key]: records.carried_of(wanted[key].row_class, row) for key, *row in found}

    def read_kept_events(self, state: PartitionState, span: Span, most: int) -> tuple[Event, ...]:
        """See ReplayStore."""
        with self._reading() as connection:
            values = {**records.span_values(state, span), "most": most}
            found = run(connection, "read_kept_events", values).fetchall()
        return tuple(map(records.event_of, found))

    def commit_replay(self, commit: ReplayCommit) -> int:
        """See ReplayStore."""
        with self._changing() as connection:
            values = write_replay(connection, commit)
            run(connection, "forget_staged", values)
            _move_on(connection, commit, values)
        return int(values["commit_number"])

    def rehearse_replay(self, commit: ReplayCommit) -> Rehearsal:
        """See ReplayStore."""
        with suppress(_RolledBack), self._changing() as connection:
            values = write_replay(connection, commit)
            found = run(connection, "read_retracted", values).fetchall()
            raise _RolledBack
        classes = {row_table(row_class).name: row_class for row_class in commit.row_classes}
        retracted = tuple(records.retracted_of(row, classes) for row in found)
        return Rehearsal(retracted, values["letters_added"], values["letters_resolved"])

    def note_rehearsal(self, rehearsed: RehearsedPiece) -> None:
        """See ReplayStore."""
        values = records.rehearsal_values(rehearsed)
        with self._changing() as connection:
            run(connection, "add_replay_diffs", values)
            _move_on(connection, rehearsed.commit, values)

    def close_replay(
        self, job: ReplayJob, progress: PartitionProgress, row_classes: Iterable[type], at: datetime
    ) -> None:
        """See ReplayStore."""
        values = records.close_values(job, progress, at)
        with self._changing() as connection:
            values["states_left"] = self._states_left(connection, job, progress, row_classes)
            run(connection, "close_replay_progress", values)
            if run(connection, "hold_replay_job", values).rowcount != 1:
                raise ReplayConflict(job.partition_of(progress), job.request.job_id)
            run(connection, "end_replay_job", values)
            run(connection, "forget_states", values)

    def _states_left(
        self, connection: sqlite3.Connection, job: ReplayJob, progress: PartitionProgress, row_classes: Iterable[type]
    ) -> int:
        stream_id = self._find_stream(job.request.stream)
        values = records.states_values(stream_id, job, progress)
        (first,) = run(connection, "find_first_replay", values).fetchone()
        values["commit_number"] = records.NO_COMMIT if first is None else first
        states = [row_class for row_class in row_classes if row_table(row_class).key]
        standing = sum(connection.execute(sqlite_count_states(each), values).fetchone()[0] for each in states)
        return max(0, int(standing) - progress.counts.states_rewritten)

    def _jobs(self, name: str, values: Values) -> tuple[ReplayJob, ...]:
        with self._reading() as connection:
            jobs = run(connection, name, values).fetchall()
            ids = json.dumps([[job[0]] for job in jobs])
            progress = run(connection, "read_replay_progress", {"job_ids": ids}).fetchall()
        return records.jobs_of(jobs, progress)

    @abstractmethod
    def _find_stream(self, stream: Stream) -> int: ...

    @abstractmethod
    def _reading(self) -> AbstractContextManager[sqlite3.Connection]: ...

    @abstractmethod
    def _changing(self) -> AbstractContextManager[sqlite3.Connection]: ...


def _move_on(connection: sqlite3.Connection, commit: ReplayCommit, values: Values) -> None:
    if run(connection, "advance_replay", values).rowcount != 1:
        raise ReplayConflict(commit.partition, commit.job_id)
    if commit.carried:
        run(connection, "carry_states", values)
    if run(connection, "hold_replay_job", values).rowcount != 1:
        raise ReplayConflict(commit.partition, commit.job_id)
