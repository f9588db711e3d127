"""Between letters and the columns of named SQL: parameters by name one way, rows the other."""

import json
from collections.abc import Sequence
from typing import Any

from core.model.events import Event, PartitionId
from core.model.letters import (
    MOVES,
    ClaimedLetter,
    ClaimedPosition,
    FoundLetter,
    LetterClaim,
    LetterHold,
    LetterMove,
    LetterOutcome,
    LetterPosition,
    RetryCommit,
)
from core.model.spans import SequenceNumber
from core.store.records import instant_of, instant_text, storable

NOT_RECORDED = ("claim", "release")  # moves that try nothing leave no attempt


def claim_values(claim: LetterClaim, stream_id: int) -> dict[str, Any]:
    """What `claim_letters` binds."""
    return {
        "stream_id": stream_id,
        "claimed_by": claim.claimed_by,
        "claimed_at": instant_text(claim.claimed_at),
        "claimed_until": instant_text(claim.claimed_until),
        "most": claim.most,
    }


def claimed_position_of(row: Sequence[Any]) -> ClaimedPosition:
    """One answer of `claim_letters`."""
    partition_id, number, lost_claims = row
    return ClaimedPosition(LetterPosition(PartitionId(partition_id), SequenceNumber(number)), lost_claims)


def hold_values(hold: LetterHold) -> dict[str, Any]:
    """What names letters, with the claim that holds them."""
    return {
        "stream_id": hold.state.stream_id,
        "partition_id": hold.partition.partition_id,
        "sequence_numbers": numbers_json(hold.sequence_numbers),
        "claimed_by": hold.claimed_by,
    }


def claimed_letter_of(row: Sequence[Any]) -> ClaimedLetter:
    """One answer of `read_claimed_letters`."""
    number, offset, enqueued_at, partition_key, properties, body, body_kept, attempts, lost_claims = row
    place = (SequenceNumber(number), offset, instant_of(enqueued_at))
    event = Event(*place, partition_key, json.loads(properties), bytes(body))
    return ClaimedLetter(event, bool(body_kept), attempts, lost_claims)


def found_letter_of(row: Sequence[Any]) -> FoundLetter:
    """One answer of `find_letters`."""
    return FoundLetter(*row)


def retry_values(commit: RetryCommit) -> dict[str, Any]:
    """What all letters of a retry have in common: parameters of `settle_letters` and `record_retry`."""
    settled, numbers = commit.settled, commit.sequence_numbers
    return {
        "stream_id": commit.state.stream_id,
        "partition_id": commit.partition.partition_id,
        "claimed_by": commit.claimed_by,
        "first_sequence_number": numbers[0],
        "last_sequence_number": numbers[-1],
        "written": settled.written,
        "filtered": settled.filtered,
        "dead_lettered": len(numbers) - settled.written - settled.filtered,
        "rows_written": settled.rows_written,
        "rows_appended": settled.rows_appended,
        "transform_version": commit.transform_version,
        "invocation_id": commit.invocation_id,
        "committed_at": instant_text(commit.committed_at),
    }


def retry_attempt_values(commit: RetryCommit) -> dict[str, Any]:
    """What `record_attempts` binds for a retry, less its commit number."""
    return {
        "stream_id": commit.state.stream_id,
        "partition_id": commit.partition.partition_id,
        "sequence_numbers": numbers_json(commit.sequence_numbers),
        "touched_by": commit.claimed_by,
        "kind": "retry",
        "done_by": commit.invocation_id,
        "why": "",
        "done_at": instant_text(commit.committed_at),
    }


def outcome_values(outcome: LetterOutcome) -> dict[str, Any]:
    """What differs by letter in `settle_letters`; texts lose what UTF-8 cannot hold."""
    failure = outcome.failure
    return {
        "sequence_number": outcome.sequence_number,
        "status": outcome.status,
        "attempted": int(outcome.attempted),
        "due_at": None if outcome.due_at is None else instant_text(outcome.due_at),
        "error_class": failure and failure.error_class,
        "error_type": failure and failure.error_type,
        "error": failure and storable(failure.error),
        "fingerprint": failure and failure.fingerprint,
        "why": outcome.why,
    }


def move_values(move: LetterMove, stream_id: int) -> dict[str, Any]:
    """What `move_letters` binds."""
    allowed = MOVES[move.move]
    return {
        "stream_id": stream_id,
        "partition_id": move.partition.partition_id,
        "sequence_numbers": numbers_json(move.sequence_numbers),
        "sources": f",{','.join(allowed.sources)},",
        "claimed_by": move.claimed_by or "",
        "move_id": move.move_id,
        "kind": move.move,
        "status": allowed.target,
        "due_at": instant_text(move.due_at),
        "moved_at": instant_text(move.moved_at),
        "why": storable(move.why),
    }


def move_attempt_values(move: LetterMove, stream_id: int) -> dict[str, Any]:
    """What `record_attempts` binds for a move, less its commit number: it has none."""
    return {
        "stream_id": stream_id,
        "partition_id": move.partition.partition_id,
        "sequence_numbers": numbers_json(move.sequence_numbers),
        "touched_by": move.move_id,
        "kind": move.move,
        "done_by": storable(move.by),
        "why": storable(move.why),
        "done_at": instant_text(move.moved_at),
    }


def numbers_json(numbers: Sequence[SequenceNumber]) -> str:
    """Sequence numbers as both engines read them: an array of arrays of one."""
    return json.dumps([[number] for number in numbers])
