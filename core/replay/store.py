"""Replays in SQL: the pieces of a replay, and rehearsals that are rolled back."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from core.model.commits import PartitionState
from core.model.events import Event, PartitionId, SequenceNumber, Span, Stream
from core.model.rows import ReferenceKey, keys_by_class, row_table
from core.replay.diff import document
from core.replay.pieces import (
    COUNTED,
    EventDiff,
    PartitionProgress,
    PartitionRange,
    Rehearsal,
    RehearsedPiece,
    ReplayCommit,
    ReplayCounts,
    ReplayJob,
    RetractedRow,
    StandingState,
    WrittenState,
    replay_of,
)
from core.settle.partition_store import (
    Partitions,
    counts_of,
    freed_by,
    keys_json,
    known_erasures,
    letter_values,
    order_steps,
)
from core.settle.settle import OpenLetter
from core.store.columns import (
    decoded,
    instant_text,
    numbers_json,
    place_of,
    row_of_json,
    row_reader,
    span_values,
    texts_json,
)
from core.store.database import Database
from core.store.row_statements import in_table_order
from core.store.script import Script, Step, of_rows
from core.tasks.store import Ending, Tasks, advance_steps, forget_states
from core.tasks.task import Advance, Task, report_text

WHY_RESOLVED = "a replay wrote or filtered it"


def commit_script(commit: ReplayCommit) -> Script:
    """Return the transaction of a piece: first the steps that write it, then its job and the progress of the job."""
    staged = {**place_of(commit.state), "sequence_numbers": numbers_json(commit.numbers)}
    steps = (*_writing_steps(commit), Step("forget_staged", staged), *_progress_steps(commit, commit.counts))
    return Script(f"{commit.partition}: replay {commit.job_id}", steps, gives_way=True)


def rehearsal_script(commit: ReplayCommit) -> Script:
    """Return the part of a piece's transaction that writes. It answers with the rows that it retracts."""
    answer = Step("read_retracted", place_of(commit.state), answers=True)
    steps = (*_writing_steps(commit), answer)
    return Script(f"{commit.partition}: replay {commit.job_id}", steps, gives_way=True)


def note_script(rehearsed: RehearsedPiece) -> Script:
    """Return the transaction that moves the progress of a dry run and stores its diffs.

    It locks no partition, so the progress is its fence, after that of erasures.
    """
    commit = rehearsed.commit
    conflict = Ending(commit.job_id, "replay", commit.committed_at).conflict
    known = {"stream_id": commit.state.stream_id, **known_erasures(commit.state)}
    fence = Step("know_erasures", known, expect=1, otherwise=conflict, keeps="known_stream")
    values = {
        "task_id": str(commit.job_id),
        "partition_id": commit.partition.partition_id,
        "diffs": json.dumps([(one.sequence_number, one.diff) for one in rehearsed.diffs]),
    }
    carried = [
        (opened_key(key), one.sequence_number, json.dumps(one.error_class)) for key, one in commit.opened.items()
    ]
    carried += [
        (rehearsed_key(key), max(one.writers), json.dumps(document(one.row))) for key, one in rehearsed.states.items()
    ]
    steps = (fence, *_progress_steps(commit, rehearsed.counts, carried), Step("add_replay_diffs", values))
    return Script(f"{commit.partition}: replay {commit.job_id}", steps)


def close_script(task: Task, progress: PartitionProgress, states_left: int, at: datetime) -> Script:
    """Return the transaction that closes a partition. It locks the job's row, and the last partition ends the job."""
    report = report_text(replace(progress.report, states_left=states_left))
    closed = Advance(progress.range.partition_id, progress.step, progress.next_number, report, is_last=True)
    ending = Ending(task.task_id, "replay", at, transform_version=task.transform_version)
    return Script(f"replay {task.task_id}", tuple(advance_steps(ending, closed)))


def state_key(key: ReferenceKey) -> str:
    """Return a digest of a state's table and key, because a key may be too long for an index."""
    named = json.dumps([row_table(key.row_class).name, *key.key], default=str)
    return hashlib.sha256(named.encode()).hexdigest()


def rehearsed_key(key: ReferenceKey) -> str:
    """Return a digest of a state that a dry run would have left."""
    return hashlib.sha256(f"rehearsed {state_key(key)}".encode()).hexdigest()


def opened_key(key: str) -> str:
    """Return a digest of a partition key whose letter a dry run would have left open. No table has this name."""
    return hashlib.sha256(json.dumps(["partition key", key]).encode()).hexdigest()


def _writing_steps(commit: ReplayCommit) -> list[Step]:
    """Return the steps that replace the rows of the events and settle their letters: existing ones are reopened."""
    place, at = place_of(commit.state), instant_text(commit.committed_at)
    span, conflict = span_values(commit.piece.span), Ending(commit.job_id, "replay", commit.committed_at).conflict
    reach = {**place, "last_sequence_number": span["last_sequence_number"]}
    touched = {**place, "touched_by": commit.touched_by}
    resolved = {
        **touched,
        "succeeded": numbers_json(commit.succeeded),
        "settled_why": WHY_RESOLVED,
        "transform_version": commit.transform_version,
        "committed_at": at,
    }
    attempts = {
        **touched,
        "sequence_numbers": numbers_json(commit.numbers),
        "kind": "replay",
        "done_by": commit.touched_by,
        "done_at": at,
        "why": "",
    }
    letters = [letter_values(letter, commit.transform_version, at) for letter in commit.settled.letters]
    added = Step("add_replayed_letters", touched, many=letters, counts="letters_added")
    made = Step("count_made_letters", place)
    letter_steps = [Step("reopen_letters", touched, many=letters), added, made] if letters else []
    order, freed, known = [], [], known_erasures(commit.state)
    if commit.state.open_keys is not None and commit.keys:
        by = {**place, "freed_by": freed_by(commit.job_id), "freed_at": at}
        order = [Step("order_letters", {**by, "partition_keys": texts_json(commit.keys)})]
        freed = [Step("record_freed", {**by, "done_by": commit.touched_by})]
    recorded = {
        **counts_of(commit.settled, commit.piece.left_alone),
        "transform_version": commit.transform_version,
        "invocation_id": str(commit.job_id),
        "committed_at": at,
    }
    return [
        Step("count_replay", {**reach, **known}, expect=1, otherwise=conflict, keeps="commit_number"),
        *order_steps(commit.state, str(commit.job_id), conflict, clears=False),
        *_retract_steps(commit),
        *(step for row_class in in_table_order(commit.row_classes) for step in _row_steps(row_class, commit)),
        Step("resolve_letters", resolved, counts="letters_resolved"),
        *letter_steps,
        *order,
        Step("record_attempts", attempts),
        *freed,
        Step("record_change", {**place, **span, **recorded, "kind": "replay"}),
    ]


def _retract_steps(commit: ReplayCommit) -> list[Step]:
    """Return the steps that copy the rows of the events before the first of them is removed."""
    place, steps = place_of(commit.state), []
    events = {**place, "sequence_numbers": numbers_json(commit.numbers)}
    for row_class in in_table_order(commit.row_classes):
        if not row_table(row_class).key:
            steps.append(Step(of_rows("retract", row_class), events, counts="rows_retracted"))
        elif placed := commit.placed_states(row_class):
            retract = of_rows("retract_states", row_class)
            steps.append(Step(retract, place, many=placed, counts="rows_retracted"))
    return steps


def _row_steps(row_class: type, commit: ReplayCommit) -> list[Step]:
    """Return the steps that remove the rows of the events from a table, and write their new ones."""
    table, place, placed = row_table(row_class), place_of(commit.state), commit.settled.rows.get(row_class, ())
    if table.key:
        placed, races = commit.placed_states(row_class), (table.name,)
        return [Step(of_rows("replace_states", row_class), place, many=placed, races=races)] if placed else []
    events = {**place, "sequence_numbers": numbers_json(commit.numbers)}
    steps = [Step(of_rows("delete", row_class), events)]
    append = Step(of_rows("append", row_class), place, many=placed)
    return [*steps, append] if placed else steps


def _progress_steps(
    commit: ReplayCommit, counts: ReplayCounts, rehearsed: Sequence[tuple[str, SequenceNumber, str]] = ()
) -> list[Step]:
    own = {"task_id": str(commit.job_id), "partition_id": commit.partition.partition_id}
    ending = Ending(commit.job_id, "replay", commit.committed_at, transform_version=commit.transform_version)
    counted = {name: getattr(counts, name) for name in COUNTED}
    after = commit.progress_after(replace(counts, **dict.fromkeys(COUNTED, 0)))
    position, report = after.next_number, report_text(after.report)
    ahead = Advance(own["partition_id"], commit.progress.step, position, report, counts=counted)
    carried = [(state_key(key), one.number, json.dumps(document(one.row))) for key, one in commit.carried.items()]
    carried += rehearsed
    return [
        *advance_steps(ending, ahead, "advance_replay"),
        *([Step("carry_states", {**own, "carried": json.dumps(carried)})] if carried else []),
    ]


NO_COMMIT = 2**63 - 1  # a number that no commit reaches


class Replays:
    """Replays and their progress. A change of a job conflicts when its status or progress is not as expected."""

    def __init__(self, database: Database, partitions: Partitions) -> None:
        self._database = database
        self.partitions = partitions

    def read_replayable(self, stream: Stream) -> tuple[PartitionRange, ...]:
        """Return the numbers of each partition with a commit: from the first of its ledger to the checkpoint."""
        found = self._database.ask("read_replayable", stream_id=self.partitions.open_stream(stream))
        return tuple(PartitionRange(id, Span(first, checkpoint)) for id, first, checkpoint in found)

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
    ) -> Mapping[ReferenceKey, WrittenState]:
        """Return the states of these keys that the pieces of a job have written so far."""
        wanted = {named(key): key for key in keys}
        given = keys_json((key,) for key in wanted)
        found = self._database.ask("read_carried", task_id=str(job_id), partition_id=partition_id, keys=given)
        return {
            wanted[key]: WrittenState(SequenceNumber(number), row_of_json(wanted[key].row_class, row))
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
        """Replay a piece in one transaction, and return its counts.

        The transaction retracts the rows of the events, writes their new rows and settles their letters. It also writes
        a ledger row, removes the staged events and moves the progress. The partition's commit number is raised, but its
        checkpoint does not move. If the state has open keys, all open letters of the keys of this piece are held and
        freed by their order.

        Raises TaskConflict or DataRefused, with nothing written, and CommitOutcomeUnknown when the answer was lost.
        TaskConflict: the progress has moved, the job does not run, or a different replay has committed since the state
        was read and may have opened letters.
        """
        kept = self._database.run(commit_script(commit)).kept
        return replace(commit.counts, **{name: kept[name] for name in COUNTED if name in kept})

    def rehearse_replay(self, commit: ReplayCommit) -> Rehearsal:
        """Do a commit except for the job's own rows, roll it back, and return its effects. Raises DataRefused."""
        done = self._database.run(rehearsal_script(commit), rehearse=True)
        classes = {row_table(row_class).name: row_class for row_class in commit.row_classes}
        retracted = tuple(
            RetractedRow(SequenceNumber(number), ordinal, row_of_json(classes[table], columns))
            for table, number, ordinal, columns in done.rows
        )
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
        task, report, left = job.task, progress.report, progress.report.states_lowered
        if not job.asked.keys:  # a count of the range would count the states of other keys too
            stream_id = self.partitions.open_stream(task.stream)
            place = {"stream_id": stream_id, "partition_id": progress.range.partition_id}
            ((first,),) = self._database.ask("find_first_replay", **place, invocation_id=str(task.task_id))
            place |= {**span_values(progress.range.span), "commit_number": NO_COMMIT if first is None else first}
            states = [row_class for row_class in row_classes if row_table(row_class).key]
            standing = sum(self._database.ask(of_rows("count_states", each), **place)[0][0] for each in states)
            left += max(0, int(standing) - report.states_rewritten)
        self._database.run(close_script(task, progress, left, at))
        forget_states(self._database)

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
