"""The transactions of purges: the steps of each, in order."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from core.ledger.retention.pieces import LedgerPiece, LetterPiece, RowPiece
from core.store.columns import instant_text, numbers_json
from core.store.script import Script, Step
from core.store.stream import lock_step
from core.tasks.store import Ending, advance_steps
from core.tasks.task import Advance

PARTS = {  # of tasks: the statements that find an old task, and delete its parts
    "replay_diff": ("find_old_dry_run", "delete_diffs"),
    "task_part": ("find_old_task", "delete_parts"),
}
BELOW_A_TASK = tuple(delete for _, delete in PARTS.values())  # their tables follow `task` in the order of locks


def ledger_script(stream_id: int, piece: LedgerPiece, ending: Ending, ahead: Advance) -> Script:
    """Return the transaction that deletes ledger rows, notes how far they went, and advances the part."""
    place = {"stream_id": stream_id, "partition_id": piece.partition_id}
    commits = {"after_commit": piece.rows[0].commit_number - 1, "last_commit": piece.rows[-1].commit_number}
    replayed: dict[str, list[int]] = {}
    for row in piece.rows:
        if row.kind == "replay":
            counted = (row.written, row.rows_written, piece.retracted.get(row.commit_number, 0))
            before = replayed.get(row.invocation_id, [0, 0, 0])
            replayed[row.invocation_id] = [one + more for one, more in zip(before, counted, strict=True)]
    noted = [
        {"replay_id": id, "written": written, "rows_written": rows, "rows_retracted": retracted}
        for id, (written, rows, retracted) in replayed.items()
    ]
    mark = {**place, **commits, "purged_to": piece.last, "purged_at": instant_text(ending.at)}
    hold, *advance = advance_steps(ending, ahead)
    return Script(
        f"purge {ending.task_id}",
        (
            lock_step(stream_id, ending.conflict),
            Step("mark_purged", mark, expect=1, otherwise=ending.conflict),
            Step("delete_ledger_rows", {**place, **commits}, expect=len(piece.rows), otherwise=ending.conflict),
            hold,
            *([Step("note_purged_replay", {"partition_id": piece.partition_id}, many=noted)] if noted else []),
            *advance,
        ),
        gives_way=True,
    )


def letter_script(stream_id: int, piece: LetterPiece, ending: Ending, ahead: Advance) -> Script:
    """Return the transaction that deletes letters with their attempts, counts them, and advances the part."""
    place = {"stream_id": stream_id, "partition_id": piece.partition_id}
    letters = {**place, "sequence_numbers": numbers_json([one.sequence_number for one in piece.letters])}
    attempts = sum(one.attempts for one in piece.letters)
    replayed = sum(one.replay_commit_number is not None for one in piece.letters)
    counted = {**place, "letters": len(piece.letters) - replayed, "replay_letters": replayed}
    return Script(
        f"purge {ending.task_id}",
        (
            lock_step(stream_id, ending.conflict),
            Step("count_purged_letters", counted, expect=1, otherwise=ending.conflict),
            Step("delete_settled_letters", letters, expect=len(piece.letters), otherwise=ending.conflict),
            Step("delete_attempts", letters, expect=attempts, otherwise=ending.conflict),
            *advance_steps(ending, ahead),
        ),
        gives_way=True,
    )


def row_script(stream_id: int, steps: Sequence[Step], ending: Ending, ahead: Advance) -> Script:
    """Return the transaction that deletes the rows of a piece, and advances the part."""
    demanded = [one if one.expect is None else replace(one, otherwise=ending.conflict) for one in steps]
    advance = advance_steps(ending, ahead)
    is_below = any(one.statement in BELOW_A_TASK for one in demanded)
    own = (*advance, *demanded) if is_below else (*demanded, *advance)
    return Script(f"purge {ending.task_id}", (lock_step(stream_id, ending.conflict), *own), gives_way=True)


def row_steps(stream_id: int, piece: RowPiece, now: datetime) -> tuple[Step, ...]:
    """Return the steps that delete the rows of a piece, as many as were counted; a step before it marks staged events
    that no purge has seen before."""
    table, most = piece.target.table, {"most": piece.most}
    old, of_stream = {"before_at": instant_text(piece.before), **most}, {"stream_id": stream_id}
    if table in PARTS:
        delete = PARTS[table][1]
        return (Step(delete, {"of_task": piece.part_of, **most}, expect=piece.rows),) if piece.part_of else ()
    if table == "staged_event":
        marked = Step("mark_staged", {**of_stream, "seen_at": instant_text(now), **most})
        return marked, Step("delete_staged", {**of_stream, **old}, expect=piece.rows)
    if table == "aggregation_failure":
        return (Step("delete_failures", old, expect=piece.rows),)
    return (Step("delete_tasks", {**of_stream, **old}, expect=piece.rows),)


def retracted_steps(place: dict[str, Any], piece: RowPiece) -> tuple[Step, ...]:
    """Return the step that deletes retracted rows of a partition, as many as were counted."""
    return (Step("delete_retracted", {**place, "most": piece.most}, expect=piece.rows),)
