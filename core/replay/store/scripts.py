"""The transactions of replays: the steps of each, in order."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from core.errors import StoreUnavailable
from core.model.locks import ROWS_AT_ONCE
from core.model.rows import ReferenceKey, row_table
from core.model.spans import SequenceNumber
from core.replay.diff import document
from core.replay.job import COUNTED, PartitionProgress, ReplayCounts
from core.replay.pieces import RehearsedPiece, ReplayCommit
from core.settle.store.held import freed_by, order_steps
from core.settle.store.partitions import Values, counts_of, letter_values
from core.store.columns import instant_text, numbers_json, place_of, span_values, texts_json
from core.store.database import Database
from core.store.rows import in_table_order
from core.store.script import Script, Step, of_rows
from core.tasks.store import Ending, advance_steps
from core.tasks.task import Advance, Task, report_text

WHY_RESOLVED = "a replay wrote or filtered it"


def forget_states(database: Database) -> None:
    """Delete the states that jobs carried which are over, a part in a transaction, because a job may carry many.

    They are rubbish from the job's end on, so a fault leaves them to the end of the next job.
    """
    step = Step("forget_states", {"most": ROWS_AT_ONCE}, counts="forgotten")
    script = Script("states of replays", (step,), may_repeat=True, gives_way=True)
    with suppress(StoreUnavailable):
        while database.run(script).kept["forgotten"] == ROWS_AT_ONCE:
            pass


def commit_script(commit: ReplayCommit) -> Script:
    """Return the transaction of a piece: first the steps that write it, then its job and the progress of the job."""
    staged = {**place_of(commit.state), "sequence_numbers": numbers_json(commit.numbers)}
    steps = (*_writing_steps(commit), Step("forget_staged", staged), *_progress_steps(commit, commit.counts))
    return Script(f"{commit.partition}: replay {commit.job_id}", steps, gives_way=True)


def rehearsal_script(commit: ReplayCommit) -> Script:
    """Return the part of a piece's transaction that writes; it answers with the rows that it retracts."""
    answer = Step("read_retracted", place_of(commit.state), answers=True)
    steps = (*_writing_steps(commit), answer)
    return Script(f"{commit.partition}: replay {commit.job_id}", steps, gives_way=True)


def note_script(rehearsed: RehearsedPiece) -> Script:
    """Return the transaction that moves the progress of a dry run and stores its diffs.

    It locks no partition, so the progress is its fence and comes first.
    """
    commit = rehearsed.commit
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
    steps = (*_progress_steps(commit, rehearsed.counts, carried), Step("add_replay_diffs", values))
    return Script(f"{commit.partition}: replay {commit.job_id}", steps)


def close_script(task: Task, progress: PartitionProgress, states_left: int, at: datetime) -> Script:
    """Return the transaction that closes a partition; with the last partition, it ends the job, whose row it locks."""
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
    """Return a digest of a partition key whose letter a dry run would have left open; no table has this name."""
    return hashlib.sha256(json.dumps(["partition key", key]).encode()).hexdigest()


def _writing_steps(commit: ReplayCommit) -> list[Step]:
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
    order, freed = _order_steps(commit, place, at)
    return [
        Step("count_replay", reach, expect=1, otherwise=conflict, keeps="commit_number"),
        *order_steps(commit.state, str(commit.job_id), conflict, clears=False),
        *_retract_steps(commit),
        *(step for row_class in in_table_order(commit.row_classes) for step in _row_steps(row_class, commit)),
        Step("resolve_letters", resolved, counts="letters_resolved"),
        *_letter_steps(commit, touched, at),
        *order,
        Step("record_attempts", attempts),
        *freed,
        Step("record_change", {**place, **span, **_record_values(commit, at), "kind": "replay"}),
    ]


def _order_steps(commit: ReplayCommit, place: Values, at: str) -> tuple[list[Step], list[Step]]:
    """Return the steps that keep the open letters of the keys in order, and those that record the freed ones."""
    if commit.state.open_keys is None or not commit.keys:
        return [], []
    by = {**place, "freed_by": freed_by(commit.job_id), "freed_at": at}
    ordered = Step("order_letters", {**by, "partition_keys": texts_json(commit.keys)})
    return [ordered], [Step("record_freed", {**by, "done_by": commit.touched_by})]


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


def _letter_steps(commit: ReplayCommit, touched: Values, at: str) -> list[Step]:
    """Return the steps that reopen existing letters and add the others."""
    letters = [letter_values(letter, commit.transform_version, at) for letter in commit.settled.letters]
    added = Step("add_replayed_letters", touched, many=letters, counts="letters_added")
    made = Step("count_made_letters", place_of(commit.state))
    return [Step("reopen_letters", touched, many=letters), added, made] if letters else []


def _record_values(commit: ReplayCommit, at: str) -> Values:
    return {
        **counts_of(commit.settled, commit.piece.left_alone),
        "transform_version": commit.transform_version,
        "invocation_id": str(commit.job_id),
        "committed_at": at,
    }


def _progress_steps(
    commit: ReplayCommit, counts: ReplayCounts, rehearsed: Sequence[tuple[str, SequenceNumber, str]] = ()
) -> list[Step]:
    own = {"task_id": str(commit.job_id), "partition_id": commit.partition.partition_id}
    ending = Ending(commit.job_id, "replay", commit.committed_at, transform_version=commit.transform_version)
    counted = {name: getattr(counts, name) for name in COUNTED}
    known = replace(counts, **dict.fromkeys(COUNTED, 0))
    report = report_text(commit.progress.report_after(known, commit.gone_ranges, commit.transform_version))
    ahead = Advance(own["partition_id"], commit.progress.step, commit.next_number, report, counts=counted)
    carried = [(state_key(key), one.number, json.dumps(document(one.row))) for key, one in commit.carried.items()]
    carried += rehearsed
    return [
        *advance_steps(ending, ahead, "advance_replay"),
        *([Step("carry_states", {**own, "carried": json.dumps(carried)})] if carried else []),
    ]
