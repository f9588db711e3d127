"""Purges in SQL: what they may delete, and the transaction of each piece."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from core.ledger.store import read_purged
from core.ledger.totals import LedgerRange, Purged
from core.model.events import PartitionId, SequenceNumber
from core.purge.purge import Found, LedgerPiece, PurgeReach, PurgeTarget, RowPiece, SettledLetter
from core.store.columns import decoded, instant_or_none, instant_text, numbers_json
from core.store.database import OneStream, lock_step
from core.store.script import Script, Step
from core.tasks.store import Ending, advance_steps
from core.tasks.task import Advance

Values = dict[str, Any]
PARTS = {  # of tasks: the statements that find an old task, and delete its parts
    "replay_diff": ("find_old_dry_run", "delete_diffs"),
    "task_part": ("find_old_task", "delete_parts"),
}
BELOW_A_TASK = tuple(delete for _, delete in PARTS.values())  # their tables follow `task` in the order of locks


def ledger_script(stream_id: int, piece: LedgerPiece, ending: Ending, ahead: Advance) -> Script:
    """Return the transaction that deletes ledger rows, notes how far they went, and advances the part."""
    place = {"stream_id": stream_id, "partition_id": piece.partition_id}
    last = {"last_commit": piece.rows[-1].commit_number}
    commits = {"after_commit": piece.rows[0].commit_number - 1, **last}
    mark = {**place, **last, "purged_to": piece.last, "purged_at": instant_text(ending.at)}
    return Script(
        f"purge {ending.task_id}",
        (
            lock_step(stream_id, ending.conflict),
            Step("mark_purged", mark, expect=1, otherwise=ending.conflict),
            Step("delete_ledger_rows", {**place, **commits}, expect=len(piece.rows), otherwise=ending.conflict),
            *advance_steps(ending, ahead),
        ),
        gives_way=True,
    )


def letter_script(place: Values, letters: Sequence[SettledLetter], ending: Ending, ahead: Advance) -> Script:
    """Return the transaction that deletes letters with their attempts, counts them, and advances the part."""
    named = {**place, "sequence_numbers": numbers_json([one.sequence_number for one in letters])}
    attempts = sum(one.attempts for one in letters)
    replayed = sum(one.replay_commit_number is not None for one in letters)
    counted = {**place, "letters": len(letters) - replayed, "replay_letters": replayed}
    return Script(
        f"purge {ending.task_id}",
        (
            lock_step(place["stream_id"], ending.conflict),
            Step("count_purged_letters", counted, expect=1, otherwise=ending.conflict),
            Step("delete_settled_letters", named, expect=len(letters), otherwise=ending.conflict),
            Step("delete_attempts", named, expect=attempts, otherwise=ending.conflict),
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
    """Return the steps that delete the rows of a piece, as many as were counted.

    A step before them marks staged events that no purge has seen before.
    """
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


ALL = 2**31 - 1  # rows: the largest number that TOP takes


class Purges:
    """Reads and purges the tables of one stream.

    A piece is one transaction that also advances its part of the task. It raises TaskConflict when the task, the
    mark of the partition or the rows have moved on without it, and then nothing was deleted.
    """

    def __init__(self, stream: OneStream) -> None:
        self.stream = self._stream = stream

    def read_purge_partitions(self) -> tuple[PartitionId, ...]:
        """Return the partitions that have a checkpoint."""
        return tuple(PartitionId(id) for id, _ in self._stream.ask("read_last_batches"))

    def read_reach(self, partition_id: PartitionId) -> PurgeReach:
        """Return the limits of a purge of a partition's ledger."""
        purged = read_purged(self._stream, partition_id)
        found = self._stream.ask("read_purge_reach", partition_id=partition_id)
        if not found:
            return PurgeReach(purged, 0, None, None, audit_is_open=False)
        checkpoint, replay_first, replay_at, open_audits = found[0]
        return PurgeReach(
            purged,
            self._commit_of(partition_id, checkpoint) or 0,
            None if replay_first is None else self._commit_of(partition_id, replay_first) or 0,
            instant_or_none(replay_at),
            bool(open_audits),
        )

    def read_cuts(self, partition_id: PartitionId) -> Mapping[str, int]:
        """Return the commit that each aggregation job has passed in a partition."""
        place = f"{self._stream.find()}/{partition_id}"
        return {job: json.loads(text).get(place, 0) for job, text in self._stream.database.ask("read_all_cuts")}

    def read_ledger_rows(self, partition_id: PartitionId, after: int, most: int) -> tuple[LedgerRange, ...]:
        """Return the next ledger rows after a commit, in order."""
        found = self._stream.ask("read_ledger_rows", partition_id=partition_id, after_commit=after, most=most)
        return decoded(LedgerRange, found)

    def read_settled_letters(
        self, partition_id: PartitionId, purged: Purged, before: datetime, most: int
    ) -> tuple[SettledLetter, ...]:
        """Return the first letters that were settled before a time, of purged numbers and commits."""
        found = self._stream.ask("read_settled_letters", **_covered(partition_id, purged, before), most=most)
        return decoded(SettledLetter, found)

    def purge_ledger(self, piece: LedgerPiece, ending: Ending, ahead: Advance) -> None:
        """Delete ledger rows, and note how far they went."""
        self._stream.database.run(ledger_script(self._stream_id(), piece, ending, ahead))

    def purge_letters(
        self, partition_id: PartitionId, letters: Sequence[SettledLetter], ending: Ending, ahead: Advance
    ) -> None:
        """Delete letters of a partition with their attempts, and count them."""
        place = {"stream_id": self._stream_id(), "partition_id": partition_id}
        self._stream.database.run(letter_script(place, letters, ending, ahead))

    def find_rows(self, target: PurgeTarget, before: datetime, most: int) -> RowPiece:
        """Return the next piece of a table that no total counts."""
        piece, old = RowPiece(target, before, most), {"before_at": instant_text(before), "most": most}
        if target.table in PARTS:
            found = self._stream.ask(PARTS[target.table][0], **old)
            return replace(piece, part_of=found[0][0], rows=found[0][1], is_last=False) if found else piece
        if target.table == "staged_event":
            ((rows, unseen),) = self._stream.ask("count_staged", **old)
        else:
            rows, unseen = self._count(target, before, most).rows, 0
        return replace(piece, rows=rows, is_last=max(rows, unseen) < most)

    def purge_rows(self, piece: RowPiece, ending: Ending, ahead: Advance) -> None:
        """Delete the rows of a piece, and note when staged events were first seen."""
        id = piece.target.partition_id
        if piece.target.table == "retracted_row" and id is not None:
            steps = retracted_steps(self._retracted(id), piece)
        else:
            steps = row_steps(self._stream_id(), piece, ending.at)
        self._stream.database.run(row_script(self._stream_id(), steps, ending, ahead))

    def count_rows(self, target: PurgeTarget, before: datetime) -> Found:
        """Count the old rows of a table that no total counts."""
        return self._count(target, before, ALL)

    def _count(self, target: PurgeTarget, before: datetime, most: int) -> Found:
        old, database = {"before_at": instant_text(before)}, self._stream.database
        if target.table in _COUNTED_WHOLE:
            return _found_of(self._stream.ask(_COUNTED_WHOLE[target.table], **old)[0])
        if target.table == "retracted_row" and target.partition_id is not None:
            return _found_of(database.ask("count_old_retracted", **self._retracted(target.partition_id), most=most)[0])
        if target.table == "aggregation_failure":
            return _found_of(database.ask("count_old_failures", **old, most=most)[0])
        return _found_of(self._stream.ask("count_old_tasks", **old, most=most)[0])

    def count_ledger(self, partition_id: PartitionId, after: int, last: int, before: datetime) -> tuple[Found, Purged]:
        """Count the old ledger rows of a range of commits, and return how far a purge of them would reach."""
        place = {"partition_id": partition_id, "after_commit": after, "last_commit": last}
        ((rows, oldest, newest, commit, number),) = self._stream.ask(
            "count_old_ledger_rows", **place, before_at=instant_text(before)
        )
        purged = read_purged(self._stream, partition_id)
        reached = replace(purged, commit_number=commit or after, last=purged.last if number is None else number)
        return _found_of((rows, 0, oldest, newest)), reached

    def count_letters(self, partition_id: PartitionId, purged: Purged, before: datetime) -> Found:
        """Count the letters that `read_settled_letters` would return."""
        return _found_of(self._stream.ask("count_settled_letters", **_covered(partition_id, purged, before))[0])

    def _stream_id(self) -> int:
        stream_id = self._stream.find()
        assert stream_id is not None  # a job names its stream
        return stream_id

    def _retracted(self, partition_id: PartitionId) -> dict[str, Any]:
        last = read_purged(self._stream, partition_id).commit_number
        return {"stream_id": self._stream_id(), "partition_id": partition_id, "last_commit": last}

    def _commit_of(self, partition_id: PartitionId, number: SequenceNumber) -> int | None:
        """Return the commit of the last batch that begins at or before a number."""
        found = self._stream.ask("find_range", partition_id=partition_id, sequence_number=number)
        return found[0][0] if found else None


def _found_of(row: tuple[Any, ...]) -> Found:
    rows, size, oldest, newest = row
    return Found(rows, size, instant_or_none(oldest), instant_or_none(newest))


def _covered(partition_id: PartitionId, purged: Purged, before: datetime) -> dict[str, Any]:
    return {
        "partition_id": partition_id,
        "last_sequence_number": purged.last,
        "last_commit": purged.commit_number,
        "before_at": instant_text(before),
    }


_COUNTED_WHOLE = {  # by a dry run
    "staged_event": "count_old_staged",
    "replay_diff": "count_old_diffs",
    "task_part": "count_old_parts",
}
