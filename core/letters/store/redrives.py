"""Redrives in SQL: jobs, the walk through their letters, and the transaction of a piece."""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from core.letters.redrive import (
    MOST_OPEN,
    Redrive,
    RedriveConflict,
    RedrivenLetter,
    RedriveOverlap,
    RedrivePiece,
    RedriveProgress,
    RedriveRange,
    RedriveRequest,
    TooManyRedrives,
    Walked,
    filter_of_fields,
    until_request,
)
from core.letters.store.letters import move_steps
from core.letters.store.listing import filter_values
from core.model.commits import LetterStatus
from core.model.events import PartitionId, Stream
from core.model.jobs import JobMove
from core.model.spans import SequenceNumber, Span
from core.settle.store.partitions import Partitions, keys_json
from core.store.columns import cut, instant_of, instant_or_none, instant_text, span_values
from core.store.database import write
from core.store.decoding import decoded
from core.store.jobs import FAULT_LENGTH, LATEST, job_move_values
from core.store.script import Script, Step
from core.store.stream import lock_step

LOOKED_AT = 1_000  # letters that one statement of a walk reads


class Redrives(Partitions):
    """Redrives and their progress. A change of a job conflicts when its status or its pieces are not as expected."""

    def open_redrive(self, request: RedriveRequest) -> None:
        """Write a new job, planned.

        Raises RedriveOverlap and TooManyRedrives, with nothing written, and RedriveConflict when the stream was closed.
        Raises CommitOutcomeUnknown when the answer was lost.
        """
        stream_id = request.stream_id
        while True:
            try:
                self._database.run(open_script(request))
            except _NotAdded:
                found = self._database.ask("find_chosen_redrive", stream_id=stream_id, chosen_key=request.chosen_key)
                if found:
                    raise RedriveOverlap(UUID(found[0][0])) from None
                ((count,),) = self._database.ask("count_open_redrives", stream_id=stream_id)
                if count >= MOST_OPEN:  # otherwise that job has just ended
                    raise TooManyRedrives from None
            else:
                return

    def find_redrive(self, redrive_id: UUID) -> Redrive | None:
        """Return a job as it is now, or None."""
        found = self._redrives("find_redrive_job", redrive_id=str(redrive_id))
        return found[0] if found else None

    def read_redrives(self, stream: Stream, most: int, before: tuple[datetime, UUID] | None) -> tuple[Redrive, ...]:
        """Return jobs of a stream, the newest first; with `before`, only those after the job of that time and id."""
        at, redrive_id = LATEST if before is None else before
        page = {"requested_at": instant_text(at), "redrive_id": str(redrive_id), "most": most}
        return self._redrives("read_redrive_jobs", stream_id=self.open_stream(stream), **page)

    def read_open_redrives(self, stream: Stream) -> tuple[UUID, ...]:
        """Return the jobs of a stream that are planned or running."""
        found = self._database.ask("read_open_redrives", stream_id=self.open_stream(stream))
        return tuple(UUID(redrive_id) for (redrive_id,) in found)

    def read_redriven(self, job: Redrive, after: tuple[int, int], most: int) -> tuple[RedrivenLetter, ...]:
        """Return letters that a job moved, in the order of its pieces, after a place in a piece."""
        redrive_id, (piece, within) = str(job.request.redrive_id), after
        page = {"after_piece": piece, "after_place": within, "most": most}
        found = self._database.ask("read_redriven_letters", redrive_id=redrive_id, **page)
        return decoded(RedrivenLetter, found)

    def move_redrive(self, move: JobMove) -> bool:
        """Change a job's status if JOB_MOVES allows it; otherwise return False and change nothing."""
        values = {"redrive_id": str(move.job_id), **job_move_values(move)}
        return bool(write(self._database, f"redrive {move.job_id}", "move_redrive_job", **values))

    def note_redrive_fault(self, redrive_id: UUID, fault: str | None, at: datetime) -> None:
        """Record the fault that holds up an open job, or None when the job continues."""
        values = {"redrive_id": str(redrive_id), "fault": cut(fault or "", FAULT_LENGTH), "moved_at": instant_text(at)}
        write(self._database, f"redrive {redrive_id}", "note_redrive_fault", **values)

    def walk(self, job: Redrive, statuses: Sequence[LetterStatus], most: int) -> Walked | None:
        """Look at the next letters of the open partition of a job, and return those of its filter, at most this number;
        None when no letter of it is left. A page of many others may be short, or empty."""
        request, progress = job.request, job.open_progress
        if progress is None or request.wanted is None:
            return None
        values = {
            **filter_values(until_request(request.wanted, request.requested_at)),
            **span_values(progress.range.span),
            "stream_id": request.stream_id,
            "partition_id": progress.range.partition_id,
            "walked_to": progress.walked_to,
            "sources": f",{','.join(statuses)},",
            "most": LOOKED_AT,
        }
        looked_at = self._database.ask("walk_up" if request.walks_up else "walk_down", **values)
        numbers = tuple(SequenceNumber(number) for number, is_chosen in looked_at if is_chosen)[:most]
        if not numbers and len(looked_at) < LOOKED_AT:
            return None
        return Walked(numbers, numbers[-1] if len(numbers) == most else SequenceNumber(looked_at[-1][0]))

    def commit_piece(self, piece: RedrivePiece) -> None:
        """Move the letters whose status allows it, add an attempt to each, and count the piece, in one transaction.

        A discard locks the partition and frees the next held letter of the key of each. Raises RedriveConflict (another
        driver was first, the job does not run, or it is not yet time), with nothing written. Raises
        CommitOutcomeUnknown when the answer was lost.
        """
        self._database.run(piece_script(piece))

    def close_partition(self, job: Redrive, at: datetime) -> None:
        """Close the open partition of a job; the last one ends the job. Raises as commit_piece does."""
        self._database.run(close_script(job, at))

    def _redrives(self, name: str, **values: Any) -> tuple[Redrive, ...]:
        jobs = self._database.ask(name, **values)
        found = self._database.ask("read_redrive_progress", redrive_ids=keys_json((job[0],) for job in jobs))
        progress: dict[str, list[RedriveProgress]] = {}
        for row in found:
            progress.setdefault(row[0], []).append(_progress_of(row[1:]))
        return tuple(_job_of(job, tuple(progress.get(job[0], ()))) for job in jobs)


class _NotAdded(Exception):
    """The job was not added: an open job has the same letters chosen, or too many jobs are open."""


def open_script(request: RedriveRequest) -> Script:
    """Return the transaction of a new job; it locks the stream, whose jobs are opened one after the other."""
    job = {"redrive_id": str(request.redrive_id)}
    values = {
        **job,
        "stream_id": request.stream_id,
        "move": request.move,
        "chosen_key": request.chosen_key,
        "chosen": json.dumps(request.chosen),
        "total": request.total,
        "per_second": request.per_second,
        "requested_by": request.requested_by,
        "reason": request.reason,
        "requested_at": instant_text(request.requested_at),
        "most_open": MOST_OPEN,
    }
    closed = partial(RedriveConflict, request.redrive_id)
    return Script(
        f"redrive {request.redrive_id}",
        (
            lock_step(request.stream_id, closed),
            Step("add_redrive_job", values, expect=1, otherwise=_NotAdded),
            Step("add_redrive_progress", {**job, "progress": _progress_json(request)}),
        ),
    )


def piece_script(piece: RedrivePiece) -> Script:
    """Return the transaction of a piece: the move of its letters, then the job and its progress.

    It need not be durable: a loss of power takes back the move together with its progress.
    """
    job, move, stream_id = piece.job, piece.move, piece.job.request.stream_id
    own = {"redrive_id": str(job.request.redrive_id), "moved_at": instant_text(move.moved_at)}
    place = {"stream_id": stream_id, "partition_id": move.partition.partition_id}
    steps = move_steps(move, stream_id, counts="moved")
    numbers = steps[-1].values["sequence_numbers"]
    counted = {**own, "pieces": job.pieces}
    times = {"next_piece_at": instant_text(piece.next_piece_at), "latest": instant_text(piece.latest)}
    progress = {**own, **place, "walked_to": piece.walked_to, "looked_at": len(move.sequence_numbers)}
    moved = {**counted, **place, "sequence_numbers": numbers, "move_id": move.move_id}
    return Script(
        f"{move.partition}: redrive {job.request.redrive_id}",
        (
            *steps,
            Step("advance_redrive_job", {**counted, **times}, expect=1, otherwise=_conflict(job)),
            Step("advance_redrive_progress", progress),
            Step("add_redrive_piece", moved),
        ),
        durable=False,
    )


def close_script(job: Redrive, at: datetime) -> Script:
    """Return the transaction that closes the open partition of a job; with the last one, it ends the job."""
    values = {"redrive_id": str(job.request.redrive_id), "pieces": job.pieces, "moved_at": instant_text(at)}
    progress = job.open_progress
    closed = [] if progress is None else [{**values, "partition_id": progress.range.partition_id}]
    return Script(
        f"redrive {job.request.redrive_id}",
        (
            Step("hold_redrive_job", values, expect=1, otherwise=_conflict(job)),
            *(Step("close_redrive_progress", one) for one in closed),
            Step("end_redrive_job", values, expect=1, otherwise=_conflict(job)),
        ),
    )


def _conflict(job: Redrive) -> partial[RedriveConflict]:
    return partial(RedriveConflict, job.request.redrive_id)


def _progress_json(request: RedriveRequest) -> str:
    """Return the partitions of a new job as JSON: a walk begins next to its first letter."""
    rows = []
    for one in request.ranges:
        first, last = one.span.ends
        start = first - 1 if request.walks_up else last + 1
        numbers = None if one.numbers is None else json.dumps(one.numbers)
        rows.append((one.partition_id, first, last, start, one.letters, numbers))
    return json.dumps(rows)


def _progress_of(row: Sequence[Any]) -> RedriveProgress:
    partition_id, first, last, walked_to, letters, moved, unmoved, numbers, closed_at = row
    own = None if numbers is None else tuple(map(SequenceNumber, json.loads(numbers)))
    ranged = RedriveRange(PartitionId(partition_id), Span(first, last), letters, own)
    return RedriveProgress(ranged, SequenceNumber(walked_to), moved, unmoved, instant_or_none(closed_at))


def _job_of(row: Sequence[Any], progress: tuple[RedriveProgress, ...]) -> Redrive:
    redrive_id, stream_id, move, status, chosen, total, pieces, per_second, next_piece_at, by, reason, *times = row[:15]
    fault, history, hub, group = row[15:]
    requested_at, started_at, ended_at, updated_at = times
    fields = json.loads(chosen)
    request = RedriveRequest(
        UUID(redrive_id),
        Stream(hub, group),
        stream_id,
        move,
        None if fields is None else filter_of_fields(fields),
        tuple(one.range for one in progress),
        total,
        per_second,
        by,
        reason,
        instant_of(requested_at),
    )
    started, ended = instant_or_none(started_at), instant_or_none(ended_at)
    due = instant_of(next_piece_at)
    return Redrive(request, status, progress, pieces, due, started, ended, instant_of(updated_at), fault, history)
