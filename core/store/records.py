"""Between our values and the columns of named SQL: parameters by name one way, rows the other."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import msgspec

from core.errors import CheckpointConflict
from core.model.commits import BatchCommit, Checkpoint, DeadLetter, PartitionState, SequenceGap
from core.model.events import PartitionId, Stream
from core.model.spans import SequenceNumber
from core.ownership import Ownership, OwnershipClaim
from core.replay.pieces import ReplayCommit

_WITH_FRACTION, _WITHOUT_FRACTION = len("2026-01-01T00:00:00.000000Z"), len("2026-01-01T00:00:00Z")


def instant_text(moment: datetime) -> str:
    """An instant as every time is stored: UTC, ISO 8601, always six digits, so that texts sort as times do.

    ValueError for a naive datetime, which names no instant.
    """
    return instant_texts([moment])[0]


def instant_texts(moments: Sequence[datetime]) -> list[str]:
    """The same for a column of instants: msgspec writes it in a tenth of isoformat's time, but rounds odd offsets."""
    try:
        written: list[str] = msgspec.to_builtins(moments)
        return [
            text
            if moment.tzinfo is UTC and len(text) == _WITH_FRACTION
            else f"{text[:-1]}.000000Z"
            if moment.tzinfo is UTC and len(text) == _WITHOUT_FRACTION
            else instant_text(_utc(moment))
            for text, moment in zip(written, moments, strict=True)
        ]
    except (AttributeError, TypeError) as error:
        raise ValueError(f"not every value of a column of instants is a datetime: {error}") from error


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    return moment.astimezone(UTC)


def server_instant_text(moment: datetime) -> str:
    """The same for T-SQL, whose datetime2 has no zone: it is UTC by convention, and the Z is left out."""
    return instant_text(moment)[:-1]


def server_instant_texts(moments: Sequence[datetime]) -> list[str]:
    """The same for a column of instants."""
    return [text[:-1] for text in instant_texts(moments)]


def day_text(day: date) -> str:
    """A calendar day, ISO 8601."""
    return day.isoformat()


def instant_of(value: str | datetime) -> datetime:
    """An instant as either engine gives it back: a text, or a datetime of no zone."""
    return (datetime.fromisoformat(value) if isinstance(value, str) else value).replace(tzinfo=UTC)


def day_of(value: str | date) -> date:
    """A calendar day as either engine gives it back."""
    return date.fromisoformat(value) if isinstance(value, str) else value


def checkpoint_of(row: tuple[Any, ...]) -> Checkpoint:
    """The answer of `read_checkpoint`."""
    number, offset, enqueued_at, commit_number, commit_id = row
    return Checkpoint(SequenceNumber(number), offset, instant_of(enqueued_at), commit_number, UUID(commit_id))


def checkpoint_values(commit: BatchCommit) -> dict[str, Any]:
    """What `open_checkpoint` and `advance_checkpoint` bind; only the second has `expected`."""
    last = commit.last
    values = {
        "stream_id": commit.state.stream_id,
        "partition_id": commit.partition.partition_id,
        "sequence_number": last.sequence_number,
        "offset_token": last.offset,
        "enqueued_at": instant_text(last.enqueued_at),
        "commit_id": str(commit.commit_id),
        "updated_at": instant_text(commit.committed_at),
    }
    return values if commit.expected is None else {**values, "expected": commit.expected}


def ledger_values(commit: BatchCommit, commit_number: int) -> dict[str, Any]:
    """What `record_batch` binds."""
    settled = commit.settled
    return {
        "stream_id": commit.state.stream_id,
        "partition_id": commit.partition.partition_id,
        "commit_number": commit_number,
        "first_sequence_number": commit.first,
        "last_sequence_number": commit.last.sequence_number,
        "written": settled.written,
        "filtered": settled.filtered,
        "dead_lettered": len(settled.letters),
        "absent": commit.absent,
        "rows_written": settled.rows_written,
        "rows_appended": settled.rows_appended,
        "transform_version": commit.transform_version,
        "invocation_id": commit.invocation_id,
        "committed_at": instant_text(commit.committed_at),
    }


def letter_values(letter: DeadLetter, commit: BatchCommit | ReplayCommit) -> dict[str, Any]:
    """What `add_letter` binds. Only a waiting letter is due; texts lose what UTF-8 cannot hold."""
    event, failed_at = letter.event, instant_text(commit.committed_at)
    return {
        "stream_id": commit.state.stream_id,
        "partition_id": commit.partition.partition_id,
        "sequence_number": event.sequence_number,
        "offset_token": event.offset,
        "enqueued_at": instant_text(event.enqueued_at),
        "partition_key": None if event.partition_key is None else storable(event.partition_key),
        "properties": json.dumps(event.properties, default=str),
        "body": event.body if letter.keeps_body else b"",
        "body_kept": int(letter.keeps_body),
        "error_class": letter.error_class,
        "error_type": letter.error_type,
        "error": storable(letter.error),
        "fingerprint": letter.fingerprint,
        "transform_version": commit.transform_version,
        "status": letter.status,
        "due_at": _first_due_at(letter, failed_at),
        "failed_at": failed_at,
    }


def _first_due_at(letter: DeadLetter, failed_at: str) -> str | None:
    if letter.status != "waiting":
        return None
    return failed_at if letter.due_at is None else instant_text(letter.due_at)


def refuse_stale(state: PartitionState, stands: PartitionState) -> None:
    """CheckpointConflict when a state that was remembered is not the one that stands."""
    if state.next_number != stands.next_number:
        raise CheckpointConflict(state.partition, state.checkpoint.sequence_number if state.checkpoint else None)


def gap_values(gap: SequenceGap, commit: BatchCommit) -> dict[str, Any]:
    """What `settle_gap` and `add_gap` bind; only the second has `committed_at`."""
    return {
        "stream_id": commit.state.stream_id,
        "partition_id": commit.partition.partition_id,
        "first_sequence_number": gap.first,
        "last_sequence_number": gap.last,
        "status": gap.status,
    }


def ownership_of(stream: Stream, row: tuple[Any, ...]) -> Ownership:
    """One answer of `read_ownerships`."""
    partition_id, owner_id, etag, last_modified_at = row
    partition = stream.partition(PartitionId(partition_id))
    return Ownership(partition, owner_id, etag, instant_of(last_modified_at))


def ownership_values(claim: OwnershipClaim, stream_id: int) -> dict[str, Any]:
    """What `take_ownership` and `renew_ownership` bind; only the second has `expected_etag`."""
    ownership = claim.ownership
    values = {
        "stream_id": stream_id,
        "partition_id": ownership.partition.partition_id,
        "owner_id": ownership.owner_id,
        "etag": ownership.etag,
        "last_modified_at": instant_text(ownership.last_modified_at),
    }
    return values if claim.expected_etag is None else {**values, "expected_etag": claim.expected_etag}


def storable(text: str) -> str:
    """A text without lone surrogates, which no encoding carries."""
    return text.encode("utf-8", "replace").decode("utf-8")
