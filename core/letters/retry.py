"""Retry dead letters: claim what is due, settle it chunk by chunk, and move letters as a person asks.

SQL is the schedule (`due_at`), and whoever calls these functions is only its alarm clock: calling too often, too late,
twice at once or never again loses nothing and applies nothing twice.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.errors import CommitOutcomeUnknown, InfrastructureFault
from core.letters.chunk import ChunkRetry
from core.letters.plan import Trial
from core.letters.port import LetterStore
from core.model.clock import Clock
from core.model.events import Partition, PartitionId, Stream
from core.model.letters import (
    EventFinder,
    FoundLetter,
    LetterChunk,
    LetterClaim,
    LetterHold,
    LetterMove,
    LetterPolicy,
    LetterPosition,
    Move,
    MoveReport,
    RetryReport,
    Unmoved,
    chunks_of,
)
from core.model.spans import SequenceNumber
from core.model.transform import Transform

MOST_MOVED = 1_000  # letters in one transaction of a person's request
LENGTHS = (100, 400)  # characters that are kept of who asked, and why


@dataclass(frozen=True, slots=True)
class Keeper:
    """What keeps the letters of one stream."""

    stream: Stream
    store: LetterStore
    transform: Transform
    find_event: EventFinder
    clock: Clock
    letters: LetterPolicy = LetterPolicy()  # noqa: RUF009 - it is frozen


@dataclass(frozen=True, slots=True)
class Order:
    """Who asks for a move of letters, and why."""

    by: str
    why: str


RELEASED = Order("keeper", "it was not tried")


def claim_due(keeper: Keeper) -> tuple[LetterChunk, ...]:
    """Claim letters that are due, as many as `fan_out` chunks hold; ids only. Empty when none is due.

    Each is held until the lease ends; retry every chunk before that. Those marked `alone` come last and are better run
    one after another: any of them may have killed a process.
    """
    policy, now = keeper.letters, keeper.clock.now()
    token = str(keeper.clock.new_id())
    claim = LetterClaim(keeper.stream, token, now, now + policy.lease, policy.chunk * policy.fan_out)
    return chunks_of(keeper.store.claim_letters(claim), token, policy.chunk)


def retry_chunk(chunk: LetterChunk, keeper: Keeper, invocation_id: str) -> RetryReport:
    """Try the letters of a chunk that its claim still holds, and commit their outcomes; says what became of them.

    Never raises for what a letter holds. Raises InfrastructureFault; what was committed before it stands, and the rest
    is released when the store can still be reached, or else falls free when the lease ends.
    """
    try:
        state = keeper.store.read_partition(keeper.stream.partition(chunk.partition_id))
        hold = LetterHold(state, chunk.sequence_numbers, chunk.claimed_by)
        trial = Trial(keeper.transform, keeper.clock, keeper.letters, invocation_id)
        retry = ChunkRetry(keeper.store, hold, trial, keeper.find_event)
        retry.run()
        if retry.left:
            released = release(replace(chunk, sequence_numbers=tuple(retry.left)), keeper)
            retry.count(released=len(released.moved), lost=len(released.unmoved))
    except InfrastructureFault:
        with suppress(InfrastructureFault):
            release(chunk, keeper)
        raise
    return retry.report


def next_due_at(keeper: Keeper) -> datetime | None:
    """When the next letter is due, or a lease ends; None when none waits. In the past when some are due now.

    Letters that fail later may be due sooner: never sleep longer than a short, set time on it.
    """
    return keeper.store.next_due_at(keeper.stream)


def release(chunk: LetterChunk, keeper: Keeper) -> MoveReport:
    """Give back the letters of a chunk that its claim still holds and nothing was done with: no attempt is counted.

    They are due after a short pause, so that what stood in the way may pass.
    """
    positions = [LetterPosition(chunk.partition_id, number) for number in chunk.sequence_numbers]
    return _move("release", positions, keeper, RELEASED, chunk.claimed_by)


def requeue(positions: Iterable[LetterPosition], keeper: Keeper, order: Order) -> MoveReport:
    """A person asks that waiting or exhausted letters be retried: due now, and their attempts begin anew."""
    return _move("requeue", positions, keeper, order)


def discard(positions: Iterable[LetterPosition], keeper: Keeper, order: Order) -> MoveReport:
    """A person gives letters up for good, also held ones and those that are being retried at this moment."""
    return _move("discard", positions, keeper, order)


def exhaust(positions: Iterable[LetterPosition], keeper: Keeper, order: Order) -> MoveReport:
    """A person stops the retries of letters without giving them up: they stay until requeued or discarded."""
    return _move("exhaust", positions, keeper, order)


def _move(
    move: Move, positions: Iterable[LetterPosition], keeper: Keeper, order: Order, claimed_by: str | None = None
) -> MoveReport:
    """One transaction for each thousand letters of a partition; those moved before a fault stay moved."""
    moved: list[LetterPosition] = []
    unmoved: list[Unmoved] = []
    for partition_id, numbers in _parts(positions):
        sent = _stamped(move, keeper, order, keeper.stream.partition(partition_id))
        sent = replace(sent, sequence_numbers=numbers, claimed_by=claimed_by)
        found = {letter.sequence_number: letter for letter in _send(sent, keeper.store)}
        for number in numbers:
            letter, position = found.get(number), LetterPosition(partition_id, number)
            if letter is not None and letter.touched_by == sent.move_id:
                moved.append(position)
            else:
                unmoved.append(Unmoved(position, None if letter is None else letter.status))
    return MoveReport(tuple(moved), tuple(unmoved))


def _stamped(move: Move, keeper: Keeper, order: Order, partition: Partition) -> LetterMove:
    """A move of nothing yet, with its id and its times."""
    clock, (by, why) = keeper.clock, LENGTHS
    now = clock.now()
    pause = keeper.letters.backoff.pause(1, clock.chance()) if move == "release" else timedelta()
    move_id = str(clock.new_id())
    return LetterMove(move, partition, (), move_id, now, now + pause, order.by[:by], order.why[:why])


def _send(move: LetterMove, store: LetterStore) -> Sequence[FoundLetter]:
    """Sent again when its answer was lost: the second time it only reports."""
    try:
        return store.move_letters(move)
    except CommitOutcomeUnknown:
        return store.move_letters(move)


def _parts(positions: Iterable[LetterPosition]) -> Iterable[tuple[PartitionId, tuple[SequenceNumber, ...]]]:
    numbers: dict[PartitionId, dict[SequenceNumber, None]] = {}
    for position in positions:
        numbers.setdefault(position.partition_id, {})[position.sequence_number] = None
    for partition_id, wanted in numbers.items():
        rising = sorted(wanted)
        for start in range(0, len(rising), MOST_MOVED):
            yield partition_id, tuple(rising[start : start + MOST_MOVED])
