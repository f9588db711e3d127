"""The transactions of purges: the steps of each, in order."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from core.ledger.retention.chain import PurgeLink
from core.ledger.retention.pieces import LedgerPiece, LetterPiece, PurgeConflict, RowPiece
from core.ledger.retention.purge import Found, PurgeJob
from core.ledger.store.purge_links import LINK_COLUMNS, RENAMED
from core.store.columns import cut, instant_text, numbers_json
from core.store.jobs import FAULT_LENGTH
from core.store.script import Script, Step
from core.store.stream import lock_step

Times = tuple[datetime, datetime]
PARTS = {  # of jobs: the statements that find an old job and delete its parts, and its id
    "replay_diff": ("find_old_dry_run", "delete_diffs", "job_id"),
    "redrive_piece": ("find_old_redrive", "delete_redrive_pieces", "redrive_id"),
}


def ledger_script(stream_id: int, piece: LedgerPiece, job: PurgeJob, now: datetime, until: datetime) -> Script:
    """Return the transaction that deletes ledger rows, adds their link, and moves the job."""
    place = {"stream_id": stream_id, "partition_id": piece.partition_id}
    conflict = partial(PurgeConflict, job.request.purge_id)
    commits = {"after_commit": piece.rows[0].commit_number - 1, "last_commit": piece.rows[-1].commit_number}
    replayed: dict[str, list[int]] = {}
    for row in piece.rows:
        if row.kind == "replay":
            counted = (row.written, row.rows_written, piece.retracted.get(row.commit_number, 0))
            before = replayed.get(row.invocation_id, [0, 0, 0])
            replayed[row.invocation_id] = [one + more for one, more in zip(before, counted, strict=True)]
    noted = [
        {"job_id": id, "written": written, "rows_written": rows, "rows_retracted": retracted}
        for id, (written, rows, retracted) in replayed.items()
    ]
    return Script(
        f"purge {job.request.purge_id}",
        (
            lock_step(stream_id, conflict),
            Step("delete_ledger_rows", {**place, **commits}, expect=len(piece.rows), otherwise=conflict),
            *([Step("note_purged_replay", {"partition_id": piece.partition_id}, many=noted)] if noted else []),
            *_link_steps(place, piece.link, job, now, until),
        ),
        gives_way=True,
    )


def letter_script(stream_id: int, piece: LetterPiece, job: PurgeJob, now: datetime, until: datetime) -> Script:
    """Return the transaction that deletes letters with their attempts, adds their link, and moves the job."""
    place = {"stream_id": stream_id, "partition_id": piece.partition_id}
    conflict = partial(PurgeConflict, job.request.purge_id)
    letters = {**place, "sequence_numbers": numbers_json([one.sequence_number for one in piece.letters])}
    attempts = sum(one.attempts for one in piece.letters)
    return Script(
        f"purge {job.request.purge_id}",
        (
            lock_step(stream_id, conflict),
            Step("delete_settled_letters", letters, expect=len(piece.letters), otherwise=conflict),
            Step("delete_attempts", letters, expect=attempts, otherwise=conflict),
            *_link_steps(place, piece.link, job, now, until),
        ),
        gives_way=True,
    )


def row_steps(stream_id: int, piece: RowPiece, now: datetime) -> tuple[Step, ...]:
    """Return the steps that delete the rows of a piece, as many as were counted; a step before it marks staged events
    that no purge has seen before."""
    table, most = piece.task.table, {"most": piece.most}
    old, of_stream = {"before_at": instant_text(piece.before), **most}, {"stream_id": stream_id}
    if table in PARTS:
        _, delete, name = PARTS[table]
        return (Step(delete, {name: piece.part_of, **most}, expect=piece.rows),) if piece.part_of else ()
    if table == "staged_event":
        marked = Step("mark_staged", {**of_stream, "seen_at": instant_text(now), **most})
        return marked, Step("delete_staged", {**of_stream, **old}, expect=piece.rows)
    if table == "aggregation_failure":
        return (Step("delete_failures", old, expect=piece.rows),)
    statement = "delete_audits" if table == "audit_job" else "delete_purges"
    return (Step(statement, {**of_stream, **old}, expect=piece.rows),)


def row_script(stream_id: int, steps: Sequence[Step], piece: RowPiece, job: PurgeJob, times: Times) -> Script:
    """Return the transaction that deletes the rows of a piece, and moves the job; `times`: now, and its end."""
    conflict = partial(PurgeConflict, job.request.purge_id)
    record = Step("record_purge", recorded(job, *times), expect=1, otherwise=conflict, keeps="step")
    demanded = (one if one.expect is None else replace(one, otherwise=conflict) for one in steps)
    return Script(f"purge {job.request.purge_id}", (lock_step(stream_id, conflict), *demanded, record), gives_way=True)


def retracted_steps(place: dict[str, Any], piece: RowPiece) -> tuple[Step, ...]:
    """Return the step that deletes retracted rows of a partition, as many as were counted."""
    return (Step("delete_retracted", {**place, "most": piece.most}, expect=piece.rows),)


def _link_steps(place: dict[str, Any], link: PurgeLink, job: PurgeJob, now: datetime, until: datetime) -> list[Step]:
    conflict = partial(PurgeConflict, job.request.purge_id)
    values = {name: getattr(link, RENAMED.get(name, name)) for name in LINK_COLUMNS}
    values["purged_at"] = instant_text(link.purged_at)
    return [
        Step("add_link", {**place, **values}, expect=1, otherwise=conflict, races=("pk_purge_link", "purge_link")),
        Step("record_purge", recorded(job, now, until), expect=1, otherwise=conflict, keeps="step"),
    ]


def recorded(job: PurgeJob, now: datetime, until: datetime) -> dict[str, Any]:
    """Return the values of a job's next step."""
    tasks = None if job.tasks is None else [(one.table, one.partition_id) for one in job.tasks]
    return {
        "purge_id": str(job.request.purge_id),
        "status": job.status,
        "tasks": json.dumps(tasks),
        "found": json.dumps({table: _figures(found) for table, found in job.found.items()}),
        "fault": cut(job.fault or "", FAULT_LENGTH),
        "updated_at": instant_text(now),
        "claimed_until": instant_text(until),
        "expected": job.step,
    }


def _figures(found: Found) -> list[Any]:
    times = [None if at is None else instant_text(at) for at in (found.oldest, found.newest)]
    return [found.rows, found.bytes, *times, list(found.notes)]
