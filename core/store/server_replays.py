"""The replays of the production store: a piece is one T-SQL batch and one round trip."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any
from uuid import UUID

from core.errors import ReplayOverlap
from core.model.commits import PartitionState
from core.model.events import Event, PartitionId, Stream
from core.model.rows import ReferenceKey, keys_by_class, row_table
from core.model.spans import SequenceNumber, Span
from core.replay.job import JobMove, PartitionProgress, Replayable, ReplayJob, ReplayRequest
from core.replay.pieces import CarriedState, EventDiff, Rehearsal, RehearsedPiece, ReplayCommit, StandingState
from core.store import replay_records as records
from core.store.replay_statements import STANDING, server_count_states
from core.store.row_statements import server_select_states
from core.store.server_commit import UNFOLDING, server_texts, statement
from core.store.server_json import can_stand, rows_json
from core.store.server_replay_commit import (
    close_replay_statement,
    commit_replay_statement,
    note_rehearsal_statement,
    open_replay_statement,
    rehearse_replay_statement,
)

_STATES = ("stream_id", "partition_id", "commit_number", "first_sequence_number", "last_sequence_number")


class ServerReplays(ABC):
    """See ReplayStore; sessions and faults are SqlServerStore's."""

    def read_replayable(self, stream: Stream) -> tuple[Replayable, ...]:
        """See ReplayStore."""
        with self._faults():
            found = self._rows("read_replayable", stream_id=self._find_stream(stream))
        return tuple(map(records.replayable_of, found))

    def open_replay(self, request: ReplayRequest) -> None:
        """See ReplayStore; the rows of the partitions' checkpoints are the lock."""
        with self._faults():
            stream_id = self._find_stream(request.stream)
        with self._replaying(str(request.stream), request.job_id):
            ((standing,),) = self._execute(*open_replay_statement(request, stream_id))
        if standing is not None:
            raise ReplayOverlap(UUID(standing))

    def find_replay(self, job_id: UUID) -> ReplayJob | None:
        """See ReplayStore."""
        found = self._jobs("find_replay_job", job_id=str(job_id))
        return found[0] if found else None

    def read_replays(self, stream: Stream, most: int, before: tuple[datetime, UUID] | None) -> tuple[ReplayJob, ...]:
        """See ReplayStore."""
        with self._faults():
            stream_id = self._find_stream(stream)
        return self._jobs("read_replay_jobs", **server_texts(records.page_values(stream_id, most, before)))

    def read_open_replays(self, stream: Stream) -> tuple[UUID, ...]:
        """See ReplayStore."""
        with self._faults():
            found = self._rows("read_open_replays", stream_id=self._find_stream(stream))
        return tuple(UUID(row[0]) for row in found)

    def read_replay_diffs(
        self, job_id: UUID, after: tuple[PartitionId, SequenceNumber] | None, most: int
    ) -> tuple[EventDiff, ...]:
        """See ReplayStore."""
        with self._faults():
            found = self._rows("read_replay_diffs", **records.diff_page_values(job_id, after, most))
        return tuple(map(records.diff_of, found))

    def move_replay(self, move: JobMove) -> bool:
        """See ReplayStore."""
        with self._faults():
            values = records.move_values(move)
            moved = bool(self._rows("move_replay_job", **server_texts(values)))
            self._rows("forget_states", **values)
        return moved

    def note_replay_fault(self, job_id: UUID, fault: str | None, at: datetime) -> None:
        """See ReplayStore."""
        with self._faults():
            self._rows("note_replay_fault", **server_texts(records.fault_values(job_id, fault, at)))

    def read_standing_states(
        self, state: PartitionState, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, StandingState]:
        """See ReplayStore."""
        standing: dict[ReferenceKey, StandingState] = {}
        for row_class, values in keys_by_class(keys).items():
            if not (known := [key for key in values if can_stand(key)]):
                continue
            keys_json, folded = rows_json(known)
            unfolding = UNFOLDING if folded else {}
            text = statement(server_select_states(row_class, folded, STANDING), (*unfolding, "keys"))
            with self._faults():
                found = self._execute(text, [*unfolding.values(), keys_json])
            standing.update(records.standing_of(row_class, tuple(row), state) for row in found)
        return standing

    def read_carried(
        self, job_id: UUID, partition_id: PartitionId, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, CarriedState]:
        """See ReplayStore."""
        wanted = {records.state_key(key): key for key in keys}
        given = json.dumps([[key] for key in wanted])
        with self._faults():
            found = self._rows("read_carried", job_id=str(job_id), partition_id=partition_id, keys=given)
        return {wanted[key]: records.carried_of(wanted[key].row_class, row) for key, *row in map(tuple, found)}

    def read_kept_events(self, state: PartitionState, span: Span, most: int) -> tuple[Event, ...]:
        """See ReplayStore."""
        with self._faults():
            found = self._rows("read_kept_events", **records.span_values(state, span), most=most)
        return tuple(map(records.event_of, found))

    def commit_replay(self, commit: ReplayCommit) -> int:
        """See ReplayStore."""
        text, given = commit_replay_statement(commit)
        with self._replaying(commit.partition, commit.job_id, commit.row_classes):
            found = self._execute(text, given)
        return int(found[0][0])

    def rehearse_replay(self, commit: ReplayCommit) -> Rehearsal:
        """See ReplayStore."""
        text, given = rehearse_replay_statement(commit)
        with self._replaying(commit.partition, commit.job_id, commit.row_classes):
            *taken, counts = sorted(self._execute(text, given), key=lambda row: row[0] == "")
        classes = {row_table(row_class).name: row_class for row_class in commit.row_classes}
        retracted = tuple(records.retracted_of(tuple(row), classes) for row in taken)
        return Rehearsal(retracted, int(counts[1]), int(counts[2]))

    def note_rehearsal(self, rehearsed: RehearsedPiece) -> None:
        """See ReplayStore."""
        with self._replaying(rehearsed.commit.partition, rehearsed.commit.job_id):
            self._execute(*note_rehearsal_statement(rehearsed))

    def close_replay(
        self, job: ReplayJob, progress: PartitionProgress, row_classes: Iterable[type], at: datetime
    ) -> None:
        """See ReplayStore."""
        with self._faults():
            left = self._states_left(job, progress, row_classes)
        values = {**records.close_values(job, progress, at), "states_left": left}
        with self._replaying(job.partition_of(progress), job.request.job_id):
            self._execute(*close_replay_statement(values))

    def _states_left(self, job: ReplayJob, progress: PartitionProgress, row_classes: Iterable[type]) -> int:
        values = records.states_values(self._find_stream(job.request.stream), job, progress)
        named = ("stream_id", "partition_id", "invocation_id")
        ((first,),) = self._rows("find_first_replay", **{name: values[name] for name in named})
        values["commit_number"] = records.NO_COMMIT if first is None else first
        given, standing = [values[name] for name in _STATES], 0
        for row_class in row_classes:
            if row_table(row_class).key:
                ((count,),) = self._execute(statement(server_count_states(row_class), _STATES), given)
                standing += int(count)
        return max(0, standing - progress.counts.states_rewritten)

    def _jobs(self, name: str, **values: Any) -> tuple[ReplayJob, ...]:
        with self._faults():
            jobs = [tuple(row) for row in self._rows(name, **values)]
            ids = json.dumps([[job[0]] for job in jobs])
            progress = [tuple(row) for row in self._rows("read_replay_progress", job_ids=ids)]
        return records.jobs_of(jobs, progress)

    @abstractmethod
    def _find_stream(self, stream: Stream) -> int: ...

    @abstractmethod
    def _rows(self, name: str, **values: Any) -> list[Any]: ...

    @abstractmethod
    def _execute(self, text: str, given: list[Any]) -> list[Any]: ...

    @abstractmethod
    def _faults(self) -> AbstractContextManager[None]: ...

    @abstractmethod
    def _replaying(
        self, partition: object, job_id: UUID, row_classes: Iterable[type] = ()
    ) -> AbstractContextManager[None]: ...
