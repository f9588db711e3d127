"""Redrives in SQL: jobs, the walk through their letters, and the transaction of a piece."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from core.letters.redrive import (
    Redrive,
    RedriveOutcome,
    RedrivePiece,
    Walked,
    until_request,
)
from core.letters.store.letters import move_steps
from core.letters.store.listing import filter_values
from core.model.commits import LetterStatus
from core.model.spans import SequenceNumber
from core.settle.store.partitions import Partitions
from core.store.columns import span_values
from core.store.decoding import decoded
from core.store.script import Script
from core.tasks.store import Ending, Tasks, advance_steps
from core.tasks.task import Advance, report_text

LOOKED_AT = 1_000  # letters that one statement of a walk reads


class Redrives(Partitions):
    """Redrives and their progress. A change of a job conflicts when its status or its pieces are not as expected."""

    def outcome(self, redrive_id: UUID, most: int) -> RedriveOutcome:
        """Return what became of the letters that a job retried, at most this number."""
        (found,) = decoded(RedriveOutcome, self._database.ask("count_redriven", task_id=str(redrive_id), most=most))
        return found

    def walk(self, job: Redrive, statuses: Sequence[LetterStatus], most: int) -> Walked | None:
        """Look at the next letters of the open partition of a job, and return those of its filter, at most this number;
        None when no letter of it is left. A page of many others may be short, or empty."""
        wanted, progress = job.wanted, job.open_progress
        if progress is None or wanted is None:
            return None
        assert progress.part.span is not None  # each part of a redrive has a range
        values = {
            **filter_values(until_request(wanted, job.task.requested_at)),
            **span_values(progress.part.span),
            "stream_id": job.task.stream_id,
            "partition_id": progress.part.name,
            "walked_to": progress.part.position,
            "sources": f",{','.join(statuses)},",
            "most": LOOKED_AT,
        }
        looked_at = self._database.ask("walk_up" if job.asked.walks_up else "walk_down", **values)
        numbers = tuple(SequenceNumber(number) for number, is_chosen in looked_at if is_chosen)[:most]
        if not numbers and len(looked_at) < LOOKED_AT:
            return None
        return Walked(numbers, numbers[-1] if len(numbers) == most else SequenceNumber(looked_at[-1][0]))

    def commit_piece(self, piece: RedrivePiece) -> None:
        """Move the letters whose status allows it, add an attempt to each, and count the piece, in one transaction.

        A discard locks the partition and frees the next held letter of the key of each. Raises TaskConflict (another
        driver was first, the job does not run, or it is not yet time), with nothing written. Raises
        CommitOutcomeUnknown when the answer was lost.
        """
        self._database.run(piece_script(piece))

    def close_partition(self, job: Redrive, at: datetime) -> None:
        """Close the open partition of a job; the last one ends the job. Raises as commit_piece does."""
        self._database.run(close_script(job, at))

    @property
    def tasks(self) -> Tasks:
        """The tasks of the same database."""
        return Tasks(self._database)


def piece_script(piece: RedrivePiece) -> Script:
    """Return the transaction of a piece: the move of its letters, then the job and its progress.

    It need not be durable: a loss of power takes back the move together with its progress.
    """
    task, move = piece.job.task, piece.move
    part, looked_at = piece.progress.part, {"looked_at": len(move.sequence_numbers)}
    ahead = Advance(part.name, part.step, piece.walked_to, report_text(piece.progress.report), counts=looked_at)
    return Script(
        f"{move.partition}: redrive {task.task_id}",
        (
            *move_steps(move, task.stream_id, counts="moved"),
            *advance_steps(_ending(piece.job, move.moved_at, piece.next_piece_at), ahead, "advance_redrive"),
        ),
        durable=False,
    )


def close_script(job: Redrive, at: datetime) -> Script:
    """Return the transaction that closes the open partition of a job; with the last one, it ends the job.

    A requested letter that was not moved counts as `unmoved`: it had changed before the job came to it.
    """
    progress = job.open_progress
    assert progress is not None  # a job that runs has one
    part, unmoved = progress.part, max(0, progress.asked.letters - progress.report.moved)
    report = report_text(replace(progress.report, unmoved=unmoved))
    ahead = Advance(part.name, part.step, part.position, report, is_last=True)
    return Script(f"redrive {job.task.task_id}", tuple(advance_steps(_ending(job, at), ahead)))


def _ending(job: Redrive, at: datetime, next_piece_at: datetime | None = None) -> Ending:
    return Ending(job.task.task_id, "redrive", at, next_piece_at)
