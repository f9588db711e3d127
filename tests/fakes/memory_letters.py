"""The letters of the MemoryStore: what each verb does to a transaction's tables."""

from collections.abc import Iterator
from dataclasses import replace

from core.errors import LetterConflict
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
from tests.fakes.kept import KeptAttempt, KeptLetter, KeptRange

Letters = dict[tuple[int, str, int], KeptLetter]
Attempts = list[KeptAttempt]


def claim(letters: Letters, asked: LetterClaim, stream_id: int) -> tuple[ClaimedPosition, ...]:
    due = [
        key
        for key, one in letters.items()
        if key[0] == stream_id
        and one.status in MOVES["claim"].sources
        and one.due_at is not None
        and one.due_at <= asked.claimed_at
    ]
    claimed = []
    for key in due[: asked.most]:
        one = letters[key]
        lost = one.status == "retrying" and (one.lost_claims == 0 or one.began_at is not None)
        letters[key] = replace(
            one,
            status="retrying",
            lost_claims=one.lost_claims + lost,
            claimed_by=asked.claimed_by,
            claimed_until=asked.claimed_until,
            due_at=asked.claimed_until,
            began_at=None,
        )
        position = LetterPosition(PartitionId(key[1]), SequenceNumber(key[2]))
        claimed.append(ClaimedPosition(position, letters[key].lost_claims))
    return tuple(claimed)


def held(letters: Letters, hold: LetterHold) -> Iterator[tuple[tuple[int, str, int], KeptLetter]]:
    for number in sorted(set(hold.sequence_numbers)):
        key = (hold.state.stream_id, hold.partition.partition_id, number)
        one = letters.get(key)
        if one is not None and one.status == "retrying" and one.claimed_by == hold.claimed_by:
            yield key, one


def claimed_letter(one: KeptLetter) -> ClaimedLetter:
    place = (SequenceNumber(one.sequence_number), one.offset, one.enqueued_at)
    event = Event(*place, one.partition_key, one.properties, one.body)
    return ClaimedLetter(event, one.body_kept, one.attempts, one.lost_claims)


def find(letters: Letters, stream_id: int, place: tuple[str, tuple[SequenceNumber, ...]]) -> tuple[FoundLetter, ...]:
    partition_id, numbers = place
    stand = [letters.get((stream_id, partition_id, number)) for number in sorted(set(numbers))]
    return tuple(
        FoundLetter(SequenceNumber(one.sequence_number), one.status, one.claimed_by)  # type: ignore[arg-type]
        for one in stand
        if one is not None
    )


def settle(letters: Letters, attempts: Attempts, commit: RetryCommit, commit_number: int) -> None:
    hold = LetterHold(commit.state, commit.sequence_numbers, commit.claimed_by)
    standing = dict(held(letters, hold))
    if len(standing) != len(commit.outcomes):
        raise LetterConflict(commit.partition, commit.claimed_by)
    for (key, one), outcome in zip(standing.items(), commit.outcomes, strict=True):
        letters[key] = _settled(one, outcome, commit)
        made = _attempt(letters[key], len(_of(attempts, key)) + 1)
        attempts.append(replace(made, commit_number=commit_number, done_by=commit.invocation_id))


def _settled(one: KeptLetter, outcome: LetterOutcome, commit: RetryCommit) -> KeptLetter:
    failure = outcome.failure
    return replace(
        one,
        status=outcome.status,
        attempts=one.attempts + outcome.attempted,
        due_at=outcome.due_at,
        claimed_until=None,
        began_at=None,
        lost_claims=0,
        transform_version=commit.transform_version,
        error_class=failure.error_class if failure else one.error_class,
        error_type=failure.error_type if failure else one.error_type,
        error=failure.error.encode("utf-8", "replace").decode() if failure else one.error,
        fingerprint=failure.fingerprint if failure else one.fingerprint,
        settled_at=None if outcome.status == "waiting" else commit.committed_at,
        settled_why=outcome.why,
    )


def _attempt(one: KeptLetter, attempt: int) -> KeptAttempt:
    failed = one.status != "resolved"
    return KeptAttempt(
        stream_id=one.stream_id,
        partition_id=one.partition_id,
        sequence_number=one.sequence_number,
        attempt=attempt,
        touched_by=one.claimed_by or "",
        kind="retry",
        status=one.status,
        error_class=one.error_class if failed else None,
        error=one.error if failed else None,
        commit_number=None,
        done_by="",
        why=one.settled_why,
    )


def record_replay(attempts: Attempts, one: KeptLetter, commit_number: int) -> None:
    """What a replay did to a letter that it touched."""
    key = (one.stream_id, one.partition_id, one.sequence_number)
    if all(each.touched_by != one.claimed_by for each in _of(attempts, key)):
        made = _attempt(one, len(_of(attempts, key)) + 1)
        attempts.append(replace(made, kind="replay", commit_number=commit_number, done_by=one.claimed_by or ""))


def move(letters: Letters, attempts: Attempts, asked: LetterMove, stream_id: int) -> None:
    allowed = MOVES[asked.move]
    for number in asked.sequence_numbers:
        key = (stream_id, asked.partition.partition_id, number)
        one = letters.get(key)
        if one is None or one.status not in allowed.sources or one.claimed_by == asked.move_id:
            continue
        if asked.claimed_by is not None and one.claimed_by != asked.claimed_by:
            continue
        letters[key] = _moved(one, asked)
        if asked.move != "release":
            made = _attempt(letters[key], len(_of(attempts, key)) + 1)
            attempts.append(replace(made, kind=asked.move, done_by=asked.by, why=asked.why))


def _moved(one: KeptLetter, asked: LetterMove) -> KeptLetter:
    target, again = MOVES[asked.move].target, asked.move == "requeue"
    return replace(
        one,
        status=target,
        due_at=asked.due_at if target == "waiting" else None,
        claimed_by=asked.move_id,
        claimed_until=None,
        began_at=None,
        attempts=0 if again else one.attempts,
        lost_claims=0 if again else one.lost_claims,
        settled_at=None if target == "waiting" else asked.moved_at,
        settled_why=None if target == "waiting" else asked.why,
    )


def _of(attempts: Attempts, key: tuple[int, str, int]) -> Attempts:
    return [one for one in attempts if (one.stream_id, one.partition_id, one.sequence_number) == key]


def retry_range(commit: RetryCommit, commit_number: int) -> KeptRange:
    numbers, done = commit.sequence_numbers, commit.settled
    return KeptRange(
        commit.state.stream_id,
        commit.partition.partition_id,
        commit_number,
        numbers[0],
        numbers[-1],
        done.written,
        done.filtered,
        len(numbers) - done.written - done.filtered,
        0,
        done.rows_written,
        commit.transform_version,
        commit.invocation_id,
        commit.committed_at,
    )
