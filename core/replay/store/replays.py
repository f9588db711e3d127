"""Replays in SQL: jobs, their pieces, and rehearsals that are rolled back."""

import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any
from uuid import UUID

from core.errors import ReplayOverlap, ReplayRefused
from core.model.commits import PartitionState
from core.model.events import Event, PartitionId, Stream
from core.model.jobs import JobMove
from core.model.rows import ReferenceKey, keys_by_class, row_table
from core.model.spans import SequenceNumber, Span
from core.replay.job import (
    MOST_OPEN,
    LeftOut,
    PartitionProgress,
    PartitionRange,
    Replayable,
    ReplayCounts,
    ReplayJob,
    ReplayRequest,
    TooManyReplays,
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
from core.replay.store.scripts import (
    Overlapped,
    close_script,
    commit_script,
    forget_states,
    note_script,
    open_script,
    opened_key,
    ranges_json,
    rehearsal_script,
    state_key,
)
from core.settle.order import OpenLetter
from core.settle.store.partitions import Partitions, keys_json
from core.store.columns import cut, instant_of, instant_or_none, instant_text, place_of, span_values
from core.store.database import write
from core.store.decoding import decoded, row_of_json, row_reader
from core.store.jobs import FAULT_LENGTH, LATEST, job_move_values
from core.store.script import of_rows
from core.store.stream import StreamClosed

CLOSED = (
    "their numbers are of a former hub, because the next incarnation of the stream is open; request the replay again"
)
NO_COMMIT = 2**63 - 1  # a number that no commit reaches


class Replays(Partitions):
    """Replays and their progress. A change of a job conflicts when its status or progress is not as expected."""

    def read_replayable(self, stream: Stream) -> tuple[Replayable, ...]:
        """Return the numbers of each partition that can be replayed; partitions without a commit are left out."""
        found = self._database.ask("read_replayable", stream_id=self.open_stream(stream))
        return tuple(Replayable(PartitionId(row[0]), SequenceNumber(row[1]), SequenceNumber(row[2])) for row in found)

    def open_replay(self, request: ReplayRequest) -> None:
        """Write a new job, planned.

        Raises ReplayOverlap, with nothing written, when an open job holds part of its range; dry runs hold no range.
        Raises TooManyReplays, with nothing written, when MOST_OPEN jobs of the stream are open.
        Raises ReplayRefused, with nothing written, when the stream was closed after its numbers were read.
        Raises CommitOutcomeUnknown when the answer was lost.
        """
        while True:
            stream_id = self.open_stream(request.stream)
            try:
                self._database.run(open_script(request, stream_id))
            except StreamClosed:
                if self._memory:
                    self._memory.forget_stream(request.stream)
                raise ReplayRefused("partitions", CLOSED) from None
            except Overlapped:
                ((standing,),) = self._database.ask("find_overlap", stream_id=stream_id, ranges=ranges_json(request))
                if standing is not None and not request.is_dry_run:
                    raise ReplayOverlap(UUID(standing)) from None
                ((count,),) = self._database.ask("count_open_replays", stream_id=stream_id)
                if count >= MOST_OPEN:  # otherwise that job has just ended
                    raise TooManyReplays from None
            else:
                return

    def find_replay(self, job_id: UUID) -> ReplayJob | None:
        """Return a job as it is now, or None."""
        found = self._jobs("find_replay_job", job_id=str(job_id))
        return found[0] if found else None

    def read_replays(self, stream: Stream, most: int, before: tuple[datetime, UUID] | None) -> tuple[ReplayJob, ...]:
        """Return jobs of a stream, the newest first; with `before`, only those after the job of that time and id."""
        at, job_id = LATEST if before is None else before
        page = {"requested_at": instant_text(at), "job_id": str(job_id), "most": most}
        return self._jobs("read_replay_jobs", stream_id=self.open_stream(stream), **page)

    def read_open_replays(self, stream: Stream) -> tuple[UUID, ...]:
        """Return the jobs of a stream that are planned or running."""
        found = self._database.ask("read_open_replays", stream_id=self.open_stream(stream))
        return tuple(UUID(job_id) for (job_id,) in found)

    def read_replay_diffs(
        self, job_id: UUID, after: tuple[PartitionId, SequenceNumber] | None, most: int
    ) -> tuple[EventDiff, ...]:
        """Return the diffs of a dry run that come after an event, by partition and number."""
        partition_id, number = ("", -1) if after is None else after
        page = {"partition_id": partition_id, "sequence_number": number, "most": most}
        found = self._database.ask("read_replay_diffs", job_id=str(job_id), **page)
        return tuple(EventDiff(PartitionId(row[0]), SequenceNumber(row[1]), row[2]) for row in found)

    def move_replay(self, move: JobMove) -> bool:
        """Change a job's status if JOB_MOVES allows it; otherwise return False and change nothing."""
        values = {"job_id": str(move.job_id), **job_move_values(move)}
        moved = bool(write(self._database, f"replay {move.job_id}", "move_replay_job", **values))
        if move.move in ("cancel", "fail"):
            forget_states(self._database)
        return moved

    def note_replay_fault(self, job_id: UUID, fault: str | None, at: datetime) -> None:
        """Record the fault that holds up an open job, or None when the job continues."""
        values = {"job_id": str(job_id), "fault": cut(fault or "", FAULT_LENGTH), "moved_at": instant_text(at)}
        write(self._database, f"replay {job_id}", "note_replay_fault", **values)

    def read_standing_states(
        self, state: PartitionState, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, StandingState]:
        """Return the current `state_of` rows of these keys, as events of this partition see them."""
        standing: dict[ReferenceKey, StandingState] = {}
        for row_class, values in keys_by_class(keys).items():
            found = self._database.ask(of_rows("select_standing", row_class), keys=keys_json(values))
            standing.update(_standing_of(row_class, row, state) for row in found)
        return standing

    def read_carried(
        self, job_id: UUID, partition_id: PartitionId, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, CarriedState]:
        """Return the states of these keys that the pieces of a job have written so far."""
        wanted = {state_key(key): key for key in keys}
        given = keys_json((key,) for key in wanted)
        found = self._database.ask("read_carried", job_id=str(job_id), partition_id=partition_id, keys=given)
        return {
            wanted[key]: CarriedState(SequenceNumber(number), row_of_json(wanted[key].row_class, row))
            for key, number, row in found
        }

    def find_opened(self, job_id: UUID, partition_id: PartitionId, keys: AbstractSet[str]) -> Mapping[str, OpenLetter]:
        """Return the last letter of each of these partition keys that a dry run would have left open so far."""
        wanted = {opened_key(key): key for key in sorted(keys)}
        given = keys_json((key,) for key in wanted)
        found = self._database.ask("read_carried", job_id=str(job_id), partition_id=partition_id, keys=given)
        return {wanted[key]: OpenLetter(SequenceNumber(number), json.loads(row)) for key, number, row in found}

    def find_crashed(self, state: PartitionState, span: Span, transform_version: str) -> frozenset[SequenceNumber]:
        """Return the numbers of a range whose letter is of class `crash`, made with this version of the transform."""
        place = {**place_of(state), **span_values(span)}
        found = self._database.ask("find_crashed", **place, transform_version=transform_version)
        return frozenset(SequenceNumber(number) for (number,) in found)

    def find_discarded(self, state: PartitionState, span: Span) -> frozenset[SequenceNumber]:
        """Return the numbers of a range whose letter a person discarded."""
        found = self._database.ask("find_discarded", **place_of(state), **span_values(span))
        return frozenset([SequenceNumber(number) for (number,) in found])

    def read_kept_events(self, state: PartitionState, span: Span, most: int) -> tuple[Event, ...]:
        """Return the first events of a range that letters have with their body, or that are staged, in order."""
        found = self._database.ask("read_kept_events", **place_of(state), **span_values(span), most=most)
        return decoded(Event, found)

    def commit_replay(self, commit: ReplayCommit) -> int:
        """Retract the rows of the events, write their new rows, settle their letters, write a ledger row, remove the
        staged events, and move the progress, in one transaction; return its commit number. The partition's commit
        number is raised, but its checkpoint does not move. If the state has open keys, all open letters of the keys of
        this piece are held and freed by their order.

        Raises ReplayConflict (the progress has moved, the job does not run, or a different replay has committed since
        the state was read and may have opened letters) and DataRefused; neither writes anything. Raises
        CommitOutcomeUnknown when the answer was lost.
        """
        return self._database.run(commit_script(commit)).kept["commit_number"]

    def rehearse_replay(self, commit: ReplayCommit) -> Rehearsal:
        """Do a commit except for the job's own rows, roll it back, and return its effects. Raises DataRefused."""
        done = self._database.run(rehearsal_script(commit), rehearse=True)
        classes = {row_table(row_class).name: row_class for row_class in commit.row_classes}
        retracted = tuple(_retracted_of(row, classes) for row in done.rows)
        return Rehearsal(retracted, done.kept.get("letters_added", 0), done.kept["letters_resolved"])

    def note_rehearsal(self, rehearsed: RehearsedPiece) -> None:
        """Move the progress of a dry run, and write its diffs. Raises ReplayConflict and CommitOutcomeUnknown."""
        self._database.run(note_script(rehearsed))

    def close_replay(
        self, job: ReplayJob, progress: PartitionProgress, row_classes: Iterable[type], at: datetime
    ) -> None:
        """Close a partition that has no piece left, and count the states that were not written again.

        The last partition ends the job.
        """
        left = self._states_left(job, progress, row_classes)
        self._database.run(close_script(job, progress, left, at))
        forget_states(self._database)

    def _states_left(self, job: ReplayJob, progress: PartitionProgress, row_classes: Iterable[type]) -> int:
        partition_id = progress.range.partition_id
        place = {"stream_id": self.open_stream(job.request.stream), "partition_id": partition_id}
        ((first,),) = self._database.ask("find_first_replay", **place, invocation_id=str(job.request.job_id))
        values = {**place, **span_values(progress.range.span), "commit_number": NO_COMMIT if first is None else first}
        states = [row_class for row_class in row_classes if row_table(row_class).key]
        standing = sum(self._database.ask(of_rows("count_states", each), **values)[0][0] for each in states)
        return max(0, int(standing) - progress.counts.states_rewritten)

    def _jobs(self, name: str, **values: Any) -> tuple[ReplayJob, ...]:
        jobs = self._database.ask(name, **values)
        found = self._database.ask("read_replay_progress", job_ids=keys_json((job[0],) for job in jobs))
        partitions: dict[str, list[PartitionProgress]] = {}
        for row in found:
            partitions.setdefault(row[0], []).append(_progress_of(row[1:]))
        return tuple(_job_of(job, tuple(partitions.get(job[0], ()))) for job in jobs)


def _standing_of(row_class: type, row: Sequence[Any], state: PartitionState) -> tuple[ReferenceKey, StandingState]:
    """Return a state and its key. The first columns of the row name its writer, the others are its own."""
    stream_id, partition_id, number, *values = row
    found = row_reader(row_class)(tuple(values))
    is_own = (stream_id, partition_id) == (state.stream_id, state.partition.partition_id)
    return ReferenceKey.of(found), StandingState(found, SequenceNumber(number) if is_own else None)


def _retracted_of(row: Sequence[Any], row_classes: Mapping[str, type]) -> RetractedRow:
    table_name, number, ordinal, columns = row
    return RetractedRow(SequenceNumber(number), ordinal, row_of_json(row_classes[table_name], columns))


def _progress_of(row: Sequence[Any]) -> PartitionProgress:
    partition_id, first, last, following, note = row[:5]
    *counts, gone_ranges, closed_at = row[5:]
    return PartitionProgress(
        PartitionRange(PartitionId(partition_id), Span(first, last), note),
        SequenceNumber(following),
        ReplayCounts(*counts),
        tuple(Span(*span) for span in json.loads(gone_ranges)),
        instant_or_none(closed_at),
    )


def _job_of(row: Sequence[Any], partitions: tuple[PartitionProgress, ...]) -> ReplayJob:
    job_id, _, is_dry_run, status, asked, left_out, version, by, reason, *times, fault, history, hub, group = row
    requested_at, started_at, ended_at, updated_at = times
    request = ReplayRequest(
        UUID(job_id),
        Stream(hub, group),
        tuple(one.range for one in partitions),
        tuple(LeftOut(PartitionId(id), why) for id, why in json.loads(left_out)),
        asked,
        bool(is_dry_run),
        version,
        by,
        reason,
        instant_of(requested_at),
    )
    started, ended = instant_or_none(started_at), instant_or_none(ended_at)
    return ReplayJob(request, status, partitions, started, ended, instant_of(updated_at), fault, history)
