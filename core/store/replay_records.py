"""Between replays and the columns of named SQL: parameters by name one way, rows the other."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from core.model.commits import DeadLetter, PartitionState
from core.model.events import Event, PartitionId, Stream
from core.model.rows import ReferenceKey, Row, row_table
from core.model.spans import SequenceNumber, Span
from core.replay.diff import document
from core.replay.job import (
    COUNTS,
    REPLAY_MOVES,
    JobMove,
    LeftOut,
    PartitionProgress,
    PartitionRange,
    Replayable,
    ReplayCounts,
    ReplayJob,
    ReplayRequest,
)
from core.replay.pieces import CarriedState, EventDiff, RehearsedPiece, ReplayCommit, RetractedRow, StandingState
from core.store.letter_records import numbers_json
from core.store.records import instant_of, instant_text, letter_values
from core.store.row_statements import fields_of, row_reader, types_of

COUNTED = ("letters_added", "letters_resolved", "rows_retracted")  # by the database, while it commits
WHY_RESOLVED = "a replay wrote or filtered it"
FAULT_LENGTH, NOTE_LENGTH = 2_000, 1_000
NO_COMMIT = 2**63 - 1  # a number that no commit reaches
LATEST = (datetime.max.replace(tzinfo=UTC), "~")  # behind every job


def request_values(request: ReplayRequest, stream_id: int) -> dict[str, Any]:
    """What the statements of `open_replay` bind."""
    ranges = [(one.partition_id, one.span.first, one.span.last, one.note) for one in request.ranges]
    return {
        "job_id": str(request.job_id),
        "stream_id": stream_id,
        "is_dry_run": int(request.is_dry_run),
        "asked": request.asked,
        "left_out": json.dumps([(one.partition_id, one.why) for one in request.left_out]),
        "transform_version": request.transform_version,
        "requested_by": request.requested_by,
        "reason": request.reason,
        "requested_at": instant_text(request.requested_at),
        "ranges": json.dumps(ranges),
    }


def move_values(move: JobMove) -> dict[str, Any]:
    """What `move_replay_job` binds."""
    allowed, at = REPLAY_MOVES[move.move], instant_text(move.moved_at)
    entry = {"at": at, "move": move.move, "by": move.by, "why": move.why}
    return {
        "job_id": str(move.job_id),
        "status": allowed.target,
        "sources": f",{','.join(allowed.sources)},",
        "moved_at": at,
        "fault": (move.fault or "")[:FAULT_LENGTH],
        "entry": json.dumps(entry) + "\n",
    }


def fault_values(job_id: UUID, fault: str | None, at: datetime) -> dict[str, Any]:
    """What `note_replay_fault` binds."""
    return {"job_id": str(job_id), "fault": (fault or "")[:FAULT_LENGTH], "moved_at": instant_text(at)}


def page_values(stream_id: int, most: int, before: tuple[datetime, UUID] | None) -> dict[str, Any]:
    """What `read_replay_jobs` binds."""
    at, job_id = LATEST if before is None else before
    return {"stream_id": stream_id, "requested_at": instant_text(at), "job_id": str(job_id), "most": most}


def diff_page_values(job_id: UUID, after: tuple[PartitionId, SequenceNumber] | None, most: int) -> dict[str, Any]:
    """What `read_replay_diffs` binds."""
    partition_id, number = ("", -1) if after is None else after
    return {"job_id": str(job_id), "partition_id": partition_id, "sequence_number": number, "most": most}


def commit_values(commit: ReplayCommit) -> dict[str, Any]:
    """What the statements of a piece bind, less what the database counts; the times are one."""
    return {**_place(commit), **_record(commit), **progress_values(commit, commit.counts)}


def rehearsal_values(rehearsed: RehearsedPiece) -> dict[str, Any]:
    """What `note_rehearsal` binds."""
    diffs = json.dumps([(one.sequence_number, one.diff) for one in rehearsed.diffs])
    return {**progress_values(rehearsed.commit, rehearsed.counts), "diffs": diffs}


def progress_values(commit: ReplayCommit, counts: ReplayCounts) -> dict[str, Any]:
    """What `advance_replay`, `carry_states` and `hold_replay_job` bind."""
    gone = [(span.first, span.last) for span in commit.gone_ranges]
    carried = [(state_key(key), one.number, json.dumps(document(one.row))) for key, one in commit.carried.items()]
    return {
        **{name: getattr(counts, name) for name in COUNTS if name != "states_left"},
        "job_id": str(commit.job_id),
        "partition_id": commit.partition.partition_id,
        "expected_next": commit.progress.next_number,
        "next_sequence_number": commit.next_number,
        "gone_ranges": json.dumps(gone),
        "carried": json.dumps(carried),
        "committed_at": instant_text(commit.committed_at),
    }


def replayed_letter_values(letter: DeadLetter, commit: ReplayCommit) -> dict[str, Any]:
    """What `reopen_letters` and `add_replayed_letters` bind."""
    return {**letter_values(letter, commit), "touched_by": commit.touched_by}


def close_values(job: ReplayJob, progress: PartitionProgress, at: datetime) -> dict[str, Any]:
    """What the statements that close a partition bind, less its states."""
    return {
        "job_id": str(job.request.job_id),
        "partition_id": progress.range.partition_id,
        "committed_at": instant_text(at),
    }


def states_values(stream_id: int, job: ReplayJob, progress: PartitionProgress) -> dict[str, Any]:
    """What `find_first_replay` binds, and with its answer the count of states."""
    span = progress.range.span
    return {
        "stream_id": stream_id,
        "partition_id": progress.range.partition_id,
        "invocation_id": str(job.request.job_id),
        "first_sequence_number": span.first,
        "last_sequence_number": span.last,
    }


def state_key(key: ReferenceKey) -> str:
    """A digest of a state's table and key, for keys may be longer than an index takes."""
    named = json.dumps([row_table(key.row_class).name, *key.key], default=str)
    return hashlib.sha256(named.encode()).hexdigest()


def carried_of(row_class: type, row: Sequence[Any]) -> CarriedState:
    """One answer of `read_carried`, less its key."""
    return CarriedState(SequenceNumber(row[0]), _row_of(row_class, row[1]))


def span_values(state: PartitionState, span: Span) -> dict[str, Any]:
    """A range of a partition."""
    return {
        "stream_id": state.stream_id,
        "partition_id": state.partition.partition_id,
        "first_sequence_number": span.first,
        "last_sequence_number": span.last,
    }


def event_of(row: Sequence[Any]) -> Event:
    """One answer of `read_kept_events`."""
    number, offset, enqueued_at, partition_key, properties, body = row
    place = (SequenceNumber(number), offset, instant_of(enqueued_at))
    return Event(*place, partition_key, json.loads(properties), bytes(body))


def replayable_of(row: Sequence[Any]) -> Replayable:
    """One answer of `read_replayable`."""
    return Replayable(PartitionId(row[0]), SequenceNumber(row[1]), SequenceNumber(row[2]))


def diff_of(row: Sequence[Any]) -> EventDiff:
    """One answer of `read_replay_diffs`."""
    return EventDiff(PartitionId(row[0]), SequenceNumber(row[1]), row[2])


def standing_of(row_class: type, row: Sequence[Any], state: PartitionState) -> tuple[ReferenceKey, StandingState]:
    """A state behind the columns that say who wrote it."""
    stream_id, partition_id, number, *values = row
    found = row_reader(row_class)(tuple(values))
    is_own = (stream_id, partition_id) == (state.stream_id, state.partition.partition_id)
    return ReferenceKey.of(found), StandingState(found, SequenceNumber(number) if is_own else None)


def retracted_of(row: Sequence[Any], row_classes: Mapping[str, type]) -> RetractedRow:
    """One answer of `read_retracted`, with the classes by the names of their tables."""
    table_name, number, ordinal, columns = row
    return RetractedRow(SequenceNumber(number), ordinal, _row_of(row_classes[table_name], columns))


def jobs_of(jobs: Iterable[Sequence[Any]], progress: Iterable[Sequence[Any]]) -> tuple[ReplayJob, ...]:
    """The answers of `find_replay_job` or `read_replay_jobs`, with those of `read_replay_progress`."""
    partitions: dict[str, list[PartitionProgress]] = {}
    for row in progress:
        partitions.setdefault(row[0], []).append(_progress_of(row[1:]))
    return tuple(_job_of(job, tuple(partitions.get(job[0], ()))) for job in jobs)


def _row_of(row_class: type, columns: str) -> Row:
    """A row from its columns as JSON."""
    given = json.loads(columns, parse_float=str)
    values = tuple(_value_of(given[name], types_of(hint)) for name, hint in fields_of(row_class))
    return row_reader(row_class)(values)


def _value_of(value: Any, types: tuple[Any, ...]) -> Any:
    if value is None or not {float, Decimal} & set(types):
        return value
    return Decimal(value) if Decimal in types else float(value)


def _place(commit: ReplayCommit) -> dict[str, Any]:
    return {
        "stream_id": commit.state.stream_id,
        "sequence_numbers": numbers_json(commit.numbers),
        "succeeded": numbers_json(commit.succeeded),
        "touched_by": commit.touched_by,
        "settled_why": WHY_RESOLVED,
        "kind": "replay",
        "done_by": commit.touched_by,
        "done_at": instant_text(commit.committed_at),
        "why": "",
    }


def _record(commit: ReplayCommit) -> dict[str, Any]:
    return {
        "first_sequence_number": commit.piece.span.first,
        "last_sequence_number": commit.piece.span.last,
        "absent": commit.counts.gone,
        "rows_appended": commit.settled.rows_appended,
        "transform_version": commit.transform_version,
        "invocation_id": str(commit.job_id),
    }


def _progress_of(row: Sequence[Any]) -> PartitionProgress:
    partition_id, first, last, following, note = row[:5]
    *counts, gone_ranges, closed_at = row[5:]
    return PartitionProgress(
        PartitionRange(PartitionId(partition_id), Span(first, last), note),
        SequenceNumber(following),
        ReplayCounts(*counts),
        tuple(Span(*span) for span in json.loads(gone_ranges)),
        None if closed_at is None else instant_of(closed_at),
    )


def _job_of(row: Sequence[Any], partitions: tuple[PartitionProgress, ...]) -> ReplayJob:
    job_id, _, is_dry_run, status, asked, left_out, version, by, reason, *times, fault, history, hub, group = row
    requested_at, started_at, ended_at, updated_at = (None if at is None else instant_of(at) for at in times)
    assert requested_at is not None and updated_at is not None, "the columns are NOT NULL"
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
        requested_at,
    )
    return ReplayJob(request, status, partitions, started_at, ended_at, updated_at, fault, history)
