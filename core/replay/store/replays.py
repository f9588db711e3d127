"""Replays in SQL: jobs, their pieces, and rehearsals that are rolled back."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from core.model.commits import PartitionState
from core.model.events import Event, PartitionId, Stream
from core.model.rows import ReferenceKey, keys_by_class, row_table
from core.model.spans import SequenceNumber, Span
from core.replay.job import COUNTED, PartitionProgress, Replayable, ReplayCounts, ReplayJob, replay_of
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
    close_script,
    commit_script,
    forget_states,
    note_script,
    opened_key,
    rehearsal_script,
    state_key,
)
from core.settle.order import OpenLetter
from core.settle.store.partitions import Partitions, keys_json
from core.store.columns import place_of, span_values
from core.store.decoding import decoded, row_of_json, row_reader
from core.store.script import of_rows
from core.tasks.store import Tasks

NO_COMMIT = 2**63 - 1  # a number that no commit reaches


class Replays(Partitions):
    """Replays and their progress. A change of a job conflicts when its status or progress is not as expected."""

    def read_replayable(self, stream: Stream) -> tuple[Replayable, ...]:
        """Return the numbers of each partition that can be replayed; partitions without a commit are left out."""
        found = self._database.ask("read_replayable", stream_id=self.open_stream(stream))
        return tuple(Replayable(PartitionId(row[0]), SequenceNumber(row[1]), SequenceNumber(row[2])) for row in found)

    def find_replay(self, job_id: UUID) -> ReplayJob | None:
        """Return a job as it is now, or None."""
        found = self.tasks.find(job_id)
        return replay_of(found) if found is not None and found.kind == "replay" else None

    def read_replay_diffs(
        self, job_id: UUID, after: tuple[PartitionId, SequenceNumber] | None, most: int
    ) -> tuple[EventDiff, ...]:
        """Return the diffs of a dry run that come after an event, by partition and number."""
        partition_id, number = ("", -1) if after is None else after
        page = {"partition_id": partition_id, "sequence_number": number, "most": most}
        found = self._database.ask("read_replay_diffs", task_id=str(job_id), **page)
        return tuple(EventDiff(PartitionId(row[0]), SequenceNumber(row[1]), row[2]) for row in found)

    def forget_states(self) -> None:
        """Delete the states of jobs that have ended."""
        forget_states(self._database)

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
        self,
        job_id: UUID,
        partition_id: PartitionId,
        keys: Iterable[ReferenceKey],
        named: Callable[[ReferenceKey], str] = state_key,
    ) -> Mapping[ReferenceKey, CarriedState]:
        """Return the states of these keys that the pieces of a job have written so far."""
        wanted = {named(key): key for key in keys}
        given = keys_json((key,) for key in wanted)
        found = self._database.ask("read_carried", task_id=str(job_id), partition_id=partition_id, keys=given)
        return {
            wanted[key]: CarriedState(SequenceNumber(number), row_of_json(wanted[key].row_class, row))
            for key, number, row in found
        }

    def find_opened(self, job_id: UUID, partition_id: PartitionId, keys: AbstractSet[str]) -> Mapping[str, OpenLetter]:
        """Return the last letter of each of these partition keys that a dry run would have left open so far."""
        wanted = {opened_key(key): key for key in sorted(keys)}
        given = keys_json((key,) for key in wanted)
        found = self._database.ask("read_carried", task_id=str(job_id), partition_id=partition_id, keys=given)
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

    def commit_replay(self, commit: ReplayCommit) -> ReplayCounts:
        """Retract the rows of the events, write their new rows, settle their letters, write a ledger row, remove the
        staged events, and move the progress, in one transaction; return the counts of the piece. The partition's commit
        number is raised, but its checkpoint does not move. If the state has open keys, all open letters of the keys of
        this piece are held and freed by their order.

        Raises TaskConflict (the progress has moved, the job does not run, or a different replay has committed since
        the state was read and may have opened letters) and DataRefused; neither writes anything. Raises
        CommitOutcomeUnknown when the answer was lost.
        """
        kept = self._database.run(commit_script(commit)).kept
        return replace(commit.counts, **{name: kept[name] for name in COUNTED if name in kept})

    def rehearse_replay(self, commit: ReplayCommit) -> Rehearsal:
        """Do a commit except for the job's own rows, roll it back, and return its effects. Raises DataRefused."""
        done = self._database.run(rehearsal_script(commit), rehearse=True)
        classes = {row_table(row_class).name: row_class for row_class in commit.row_classes}
        retracted = tuple(_retracted_of(row, classes) for row in done.rows)
        return Rehearsal(retracted, done.kept.get("letters_added", 0), done.kept["letters_resolved"])

    def note_rehearsal(self, rehearsed: RehearsedPiece) -> None:
        """Move the progress of a dry run, and write its diffs. Raises TaskConflict and CommitOutcomeUnknown."""
        self._database.run(note_script(rehearsed))

    def close_replay(
        self, job: ReplayJob, progress: PartitionProgress, row_classes: Iterable[type], at: datetime
    ) -> None:
        """Close a partition that has no piece left, and count the states that were not written again.

        The last partition ends the job. A replay by key counts only the states that it lowered.
        """
        left = self._states_left(job, progress, row_classes)
        self._database.run(close_script(job.task, progress, left, at))
        forget_states(self._database)

    def _states_left(self, job: ReplayJob, progress: PartitionProgress, row_classes: Iterable[type]) -> int:
        lowered = progress.report.states_lowered
        if job.asked.keys:
            return lowered  # a count of the range would count the states of other keys too
        partition_id = progress.range.partition_id
        place = {"stream_id": self.open_stream(job.task.stream), "partition_id": partition_id}
        ((first,),) = self._database.ask("find_first_replay", **place, invocation_id=str(job.task.task_id))
        values = {**place, **span_values(progress.range.span), "commit_number": NO_COMMIT if first is None else first}
        states = [row_class for row_class in row_classes if row_table(row_class).key]
        standing = sum(self._database.ask(of_rows("count_states", each), **values)[0][0] for each in states)
        return max(0, int(standing) - progress.report.states_rewritten) + lowered

    @property
    def tasks(self) -> Tasks:
        """The tasks of the same database."""
        return Tasks(self._database)


def _standing_of(row_class: type, row: Sequence[Any], state: PartitionState) -> tuple[ReferenceKey, StandingState]:
    """Return a state and its key. The first columns of the row name its writer, the others are its own."""
    stream_id, partition_id, number, *values = row
    found = row_reader(row_class)(tuple(values))
    place, own = (stream_id, partition_id), (state.stream_id, state.partition.partition_id)
    return ReferenceKey.of(found), StandingState(found, SequenceNumber(number) if place == own else None, place < own)


def _retracted_of(row: Sequence[Any], row_classes: Mapping[str, type]) -> RetractedRow:
    table_name, number, ordinal, columns = row
    return RetractedRow(SequenceNumber(number), ordinal, row_of_json(row_classes[table_name], columns))
