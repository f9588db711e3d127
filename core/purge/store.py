"""Purges in SQL: what they may delete, and the transaction of each piece."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from core.ledger.store import read_purged
from core.ledger.totals import LedgerRange, Purged
from core.model.events import PartitionId, SequenceNumber
from core.purge.purge import Found, PurgeReach, PurgeTarget, RowPiece, SettledLetter
from core.store.columns import decoded, instant_or_none, instant_text, numbers_json
from core.store.database import OneStream, lock_step
from core.store.script import Script, Step
from core.tasks.store import Ending, advance_steps
from core.tasks.task import Advance

Values = dict[str, Any]


class RowStatements(NamedTuple):
    """The statements of a table that no total counts: for a dry run, to find a piece, and to delete it."""

    count_all: str
    find: str
    delete: str


STATEMENTS = {
    "retracted_row": RowStatements("count_old_retracted", "count_old_retracted", "delete_retracted"),
    "staged_event": RowStatements("count_old_staged", "count_staged", "delete_staged"),
    "replay_diff": RowStatements("count_old_diffs", "find_old_dry_run", "delete_diffs"),
    "task_part": RowStatements("count_old_parts", "find_old_task", "delete_parts"),
    "task": RowStatements("count_old_tasks", "count_old_tasks", "delete_tasks"),
    "aggregation_failure": RowStatements("count_old_failures", "count_old_failures", "delete_failures"),
}
BELOW_A_TASK = ("replay_diff", "task_part")  # a piece is of one task, and locks its rows after the task's own


def ledger_script(
    place: Values, rows: Sequence[LedgerRange], last: SequenceNumber, ending: Ending, ahead: Advance
) -> Script:
    """Return the transaction that deletes ledger rows, notes how far they went, and advances the part."""
    commits = {**place, "after_commit": rows[0].commit_number - 1, "last_commit": rows[-1].commit_number}
    mark = {**commits, "purged_to": last, "purged_at": instant_text(ending.at)}
    return _script(
        place["stream_id"],
        ending,
        Step("mark_purged", mark, expect=1, otherwise=ending.conflict),
        Step("delete_ledger_rows", commits, expect=len(rows), otherwise=ending.conflict),
        *advance_steps(ending, ahead),
    )


def letter_script(place: Values, letters: Sequence[SettledLetter], ending: Ending, ahead: Advance) -> Script:
    """Return the transaction that deletes letters with their attempts, counts them, and advances the part."""
    named = {**place, "sequence_numbers": numbers_json([one.sequence_number for one in letters])}
    attempts = sum(one.attempts for one in letters)
    replayed = sum(one.replay_commit_number is not None for one in letters)
    counted = {**place, "letters": len(letters) - replayed, "replay_letters": replayed}
    return _script(
        place["stream_id"],
        ending,
        Step("count_purged_letters", counted, expect=1, otherwise=ending.conflict),
        Step("delete_settled_letters", named, expect=len(letters), otherwise=ending.conflict),
        Step("delete_attempts", named, expect=attempts, otherwise=ending.conflict),
        *advance_steps(ending, ahead),
    )


def row_script(values: Values, piece: RowPiece, ending: Ending, ahead: Advance) -> Script:
    """Return the transaction that deletes as many rows of a piece as were counted, and advances the part.

    A step before marks staged events that no purge has seen before.
    """
    table, advance = piece.target.table, advance_steps(ending, ahead)
    given = {**values, "of_task": piece.part_of, "seen_at": instant_text(ending.at)}
    deleted = Step(STATEMENTS[table].delete, given, expect=piece.rows, otherwise=ending.conflict)
    if table in BELOW_A_TASK:
        steps = [*advance, deleted] if piece.part_of else advance
    else:
        marked = [Step("mark_staged", given)] if table == "staged_event" else []
        steps = [*marked, deleted, *advance]
    return _script(values["stream_id"], ending, *steps)


def _script(stream_id: int, ending: Ending, *steps: Step) -> Script:
    return Script(f"purge {ending.task_id}", (lock_step(stream_id, ending.conflict), *steps), gives_way=True)


ALL = 2**31 - 1  # rows: the largest number that TOP takes


class Purges:
    """Reads and purges the tables of one stream.

    A piece is one transaction that also advances its part of the task. It raises TaskConflict when the task, the
    mark of the partition or the rows have moved on without it, and then nothing was deleted.
    """

    def __init__(self, stream: OneStream) -> None:
        self.stream = stream

    def read_purge_partitions(self) -> tuple[PartitionId, ...]:
        """Return the partitions that have a checkpoint."""
        return tuple(PartitionId(id) for id, _ in self.stream.ask("read_last_batches"))

    def read_reach(self, partition_id: PartitionId) -> PurgeReach:
        """Return the limits of a purge of a partition's ledger."""
        purged = read_purged(self.stream, partition_id)
        found = self.stream.ask("read_purge_reach", partition_id=partition_id)
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
        place = f"{self.stream.find()}/{partition_id}"
        return {job: json.loads(text).get(place, 0) for job, text in self.stream.database.ask("read_all_cuts")}

    def read_ledger_rows(self, partition_id: PartitionId, after: int, most: int) -> tuple[LedgerRange, ...]:
        """Return the next ledger rows after a commit, in order."""
        found = self.stream.ask("read_ledger_rows", partition_id=partition_id, after_commit=after, most=most)
        return decoded(LedgerRange, found)

    def read_settled_letters(
        self, partition_id: PartitionId, purged: Purged, before: datetime, most: int
    ) -> tuple[SettledLetter, ...]:
        """Return the first letters that were settled before a time, of purged numbers and commits."""
        found = self.stream.ask("read_settled_letters", **_covered(partition_id, purged, before), most=most)
        return decoded(SettledLetter, found)

    def purge_ledger(
        self,
        partition_id: PartitionId,
        rows: Sequence[LedgerRange],
        last: SequenceNumber,
        ending: Ending,
        ahead: Advance,
    ) -> None:
        """Delete the first ledger rows of a partition. `last` is the last number of all its purged batches then."""
        place = {"stream_id": self._stream_id(), "partition_id": partition_id}
        self.stream.database.run(ledger_script(place, rows, last, ending, ahead))

    def purge_letters(
        self, partition_id: PartitionId, letters: Sequence[SettledLetter], ending: Ending, ahead: Advance
    ) -> None:
        """Delete letters of a partition with their attempts, and count them."""
        place = {"stream_id": self._stream_id(), "partition_id": partition_id}
        self.stream.database.run(letter_script(place, letters, ending, ahead))

    def find_rows(self, target: PurgeTarget, before: datetime, most: int) -> RowPiece:
        """Return the next piece of a table that no total counts."""
        piece, find = RowPiece(target, before, most), STATEMENTS[target.table].find
        found = self.stream.database.ask(find, **self._values(target, before, most))
        if target.table in BELOW_A_TASK:
            return replace(piece, part_of=found[0][0], rows=found[0][1], is_last=False) if found else piece
        rows, unseen, *_ = found[0]  # only of staged events, some are not marked yet
        return replace(piece, rows=rows, is_last=max(rows, unseen) < most)

    def purge_rows(self, piece: RowPiece, ending: Ending, ahead: Advance) -> None:
        """Delete the rows of a piece, and note when staged events were first seen."""
        values = self._values(piece.target, piece.before, piece.most)
        self.stream.database.run(row_script(values, piece, ending, ahead))

    def count_rows(self, target: PurgeTarget, before: datetime) -> Found:
        """Count the old rows of a table that no total counts."""
        count = STATEMENTS[target.table].count_all
        return _found_of(self.stream.database.ask(count, **self._values(target, before, ALL))[0])

    def count_ledger(self, partition_id: PartitionId, after: int, last: int, before: datetime) -> tuple[Found, Purged]:
        """Count the old ledger rows of a range of commits, and return how far a purge of them would reach."""
        place = {"partition_id": partition_id, "after_commit": after, "last_commit": last}
        ((rows, oldest, newest, commit, number),) = self.stream.ask(
            "count_old_ledger_rows", **place, before_at=instant_text(before)
        )
        purged = read_purged(self.stream, partition_id)
        reached = replace(purged, commit_number=commit or after, last=purged.last if number is None else number)
        return _found_of((rows, 0, oldest, newest)), reached

    def count_letters(self, partition_id: PartitionId, purged: Purged, before: datetime) -> Found:
        """Count the letters that `read_settled_letters` would return."""
        return _found_of(self.stream.ask("count_settled_letters", **_covered(partition_id, purged, before))[0])

    def _stream_id(self) -> int:
        stream_id = self.stream.find()
        assert stream_id is not None  # a job names its stream
        return stream_id

    def _values(self, target: PurgeTarget, before: datetime, most: int) -> Values:
        values: Values = {"before_at": instant_text(before), "most": most}
        if target.table == "retracted_row":
            assert target.partition_id is not None  # each of its parts is of a partition
            purged = read_purged(self.stream, target.partition_id)
            values |= {"partition_id": target.partition_id, "last_commit": purged.commit_number}
        return {**values, "stream_id": self._stream_id()}

    def _commit_of(self, partition_id: PartitionId, number: SequenceNumber) -> int | None:
        """Return the commit of the last batch that begins at or before a number."""
        found = self.stream.ask("find_range", partition_id=partition_id, sequence_number=number)
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
