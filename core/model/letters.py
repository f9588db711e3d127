"""Dead letters: their states, the moves between them, and the backoff of their attempts.

A letter is `waiting` until it is due. A keeper then claims it for a limited time, the lease, and it is `retrying`. The
outcome of the retry makes it `resolved`, `waiting` again or `exhausted`. Every change of status is one of MOVES and
happens in the same transaction as its effect. `resolved` and `discarded` are final. A person's discard takes a letter
from the keeper that is retrying it: that keeper's commit conflicts and writes nothing of the letter.

Under `hold_key` the later events of a partition key with an open letter are letters too, `held` and untried. Of the
open letters of a key only the first is not held. When it is settled, the same transaction frees the next one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from core.model.commits import DeadLetter, ErrorClass, LetterStatus, PartitionState, Settled
from core.model.events import Event, Partition, PartitionId, SequenceNumber, Stream

SETTLED: tuple[LetterStatus, ...] = ("resolved", "discarded")
OPEN: tuple[LetterStatus, ...] = ("waiting", "retrying", "held", "exhausted")


@dataclass(frozen=True, slots=True)
class LetterKey:
    """The place of a letter in the order of pages: by the time of its failure, then by position."""

    failed_at: datetime
    partition_id: PartitionId
    sequence_number: SequenceNumber


@dataclass(frozen=True, slots=True)
class Backoff:
    """The terms of the pauses. The longest pause is `base` after the first attempt, and `factor` times as long after
    each further attempt, up to `ceiling`. `attempts` is the number of attempts in all."""

    base: timedelta = timedelta(seconds=30)
    ceiling: timedelta = timedelta(hours=1)
    attempts: int = 8
    factor: float = 2.0

    def longest(self, attempts: int) -> timedelta:
        """Return the longest pause after so many attempts. Fewer than one count as one."""
        if not self.base:
            return self.base
        try:
            growth = self.factor ** (max(attempts, 1) - 1)
        except OverflowError:
            return self.ceiling
        seconds = self.base.total_seconds() * growth
        return timedelta(seconds=seconds) if seconds < self.ceiling.total_seconds() else self.ceiling

    def pause(self, attempts: int, chance: float) -> timedelta:
        """Return a pause: the longest times `chance` (0 to 1), so that letters are not all retried at once."""
        return self.longest(attempts) * chance

    def is_spent(self, attempts: int) -> bool:
        return attempts >= self.attempts


OrderPolicy = Literal["none", "hold_key"]
OrderedMove = Literal["requeue", "discard"]
Move = Literal["claim", "resolve", "fail", "exhaust", "release", "requeue", "discard", "free", "hold"]

LOST_CLAIMS = 3  # after so many holders died while they tried a letter alone, it is not tried again

# Finds an event in the hub when its body was not stored; None when the hub no longer has it. Raises InfrastructureFault
# when the hub does not answer.
EventFinder = Callable[[Partition, SequenceNumber], Event | None]
TRANSACTION_LIMIT = 1_000  # letters that one transaction moves


@dataclass(frozen=True, slots=True)
class Allowed:
    """One row of the table of moves: from any of the sources to the target."""

    sources: tuple[LetterStatus, ...]
    target: LetterStatus


MOVES: Mapping[Move, Allowed] = {
    "claim": Allowed(("waiting", "retrying"), "retrying"),  # from retrying only when the lease has ended
    "resolve": Allowed(("retrying",), "resolved"),
    "fail": Allowed(("retrying",), "waiting"),  # it is tried again after a pause
    "exhaust": Allowed(("waiting", "retrying"), "exhausted"),
    "release": Allowed(("retrying",), "waiting"),  # not tried: no attempt is counted
    "requeue": Allowed(("waiting", "exhausted"), "waiting"),  # a person orders it: due now, attempts begin again
    "discard": Allowed(("waiting", "retrying", "exhausted", "held"), "discarded"),
    "free": Allowed(("held",), "waiting"),  # the earlier letter of its key is settled
    "hold": Allowed(("waiting", "retrying", "exhausted"), "held"),  # a replay opened an earlier letter of its key
}

# The status of a letter of each class after a failed attempt, while attempts are left.
AFTER_FAILURE: Mapping[ErrorClass, LetterStatus] = {
    "poison": "exhausted",  # it can never succeed
    "reference": "waiting",  # the row may come later
    "refused": "waiting",  # the table may be repaired
    "unknown": "waiting",  # the next deployment may fix the bug
    "crash": "exhausted",  # a person must look at it before it kills another process
}


@dataclass(frozen=True, slots=True)
class LetterPolicy:
    """The settings of letters. A transaction takes `chunk` letters and a claim takes `fan_out` chunks. The claim holds
    for the time of `lease`. Under `hold_key`, up to `held_limit` letters of a partition are held."""

    backoff: Backoff = field(default_factory=Backoff)
    keep_bodies: bool = True
    chunk: int = 100
    fan_out: int = 16
    lease: timedelta = timedelta(seconds=300)
    order: OrderPolicy = "none"
    held_limit: int = 10_000

    @property
    def longest_wait(self) -> timedelta:
        """The longest time until a letter is due or its lease ends, and a minute in which readings of the time may
        differ. Only a clock that was ahead sets a later time."""
        return max(self.backoff.ceiling, self.backoff.base, self.lease) + timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class LetterPosition:
    """The position of a letter in its stream."""

    partition_id: PartitionId
    sequence_number: SequenceNumber


Selection = tuple[LetterPosition, ...]


@dataclass(frozen=True, slots=True)
class LetterChunk:
    """The ids of letters of one partition under one claim, small enough for the history of an orchestration.

    `alone`: each letter lost a claim before, so each is tried alone. Run such a chunk after the others.
    """

    partition_id: PartitionId
    sequence_numbers: tuple[SequenceNumber, ...]
    claimed_by: str
    alone: bool = False


@dataclass(frozen=True, slots=True)
class LetterClaim:
    """A request for up to `most` letters of a stream that are due by `claimed_at`, or only after `latest`: only a clock
    that was ahead sets such a time."""

    stream: Stream
    claimed_by: str
    claimed_at: datetime
    claimed_until: datetime
    latest: datetime
    most: int


@dataclass(frozen=True, slots=True)
class ClaimedPosition:
    """A letter that a claim holds, and the number of claims that it lost before."""

    position: LetterPosition
    lost_claims: int


@dataclass(frozen=True, slots=True)
class LetterHold:
    """The letters of one partition under a claim. The claim may have lost some of them since."""

    state: PartitionState
    sequence_numbers: tuple[SequenceNumber, ...]
    claimed_by: str

    @property
    def partition(self) -> Partition:
        return self.state.partition


@dataclass(frozen=True, slots=True)
class ClaimedLetter:
    """A letter as a retry reads it. `event` has an empty body when the body was not stored."""

    event: Event
    body_kept: bool
    attempts: int
    lost_claims: int

    @property
    def sequence_number(self) -> SequenceNumber:
        return self.event.sequence_number


@dataclass(frozen=True, slots=True)
class LetterOutcome:
    """The outcome of a letter. `failure` is None when the reason stays the same. A waiting letter has `due_at`, any
    other letter has `why`. `attempted` is False when nothing was tried. The lone tries that killed their process count
    as one."""

    sequence_number: SequenceNumber
    status: LetterStatus
    failure: DeadLetter | None = None
    due_at: datetime | None = None
    why: str | None = None
    attempted: bool = True


@dataclass(frozen=True, slots=True)
class RetryCommit:
    """Everything that one transaction of a retry writes: rows, outcomes, attempts, and a ledger row of kind `retry`."""

    state: PartitionState
    claimed_by: str
    outcomes: tuple[LetterOutcome, ...]
    settled: Settled
    transform_version: str
    invocation_id: str
    committed_at: datetime

    @property
    def partition(self) -> Partition:
        """The partition whose commit number this commit raises. The checkpoint does not move."""
        return self.state.partition

    @property
    def sequence_numbers(self) -> tuple[SequenceNumber, ...]:
        return tuple(outcome.sequence_number for outcome in self.outcomes)


@dataclass(frozen=True, slots=True)
class LetterMove:
    """A move of letters that runs no transform. A move that is sent twice under one `move_id` takes effect once.

    `claimed_by` limits the move to letters that this claim holds. None: any. `due_at` is for letters that then wait.
    """

    move: Move
    partition: Partition
    sequence_numbers: tuple[SequenceNumber, ...]
    move_id: str
    moved_at: datetime
    due_at: datetime
    by: str
    why: str
    claimed_by: str | None = None


@dataclass(frozen=True, slots=True)
class FoundLetter:
    """A letter's current status, and the claim or move that touched the letter last."""

    sequence_number: SequenceNumber
    status: LetterStatus
    touched_by: str | None


@dataclass(frozen=True, slots=True)
class RetryReport:
    """The counts of a chunk's letters by outcome. `lost`: the claim lost them, and nothing of them was written.
    `released`: they were not tried and wait again."""

    partition_id: PartitionId
    resolved: int = 0
    waiting: int = 0
    exhausted: int = 0
    released: int = 0
    lost: int = 0
    commits: int = 0
    rows_written: int = 0

    def facts(self) -> dict[str, str | int]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def chunks_of(claimed: Sequence[ClaimedPosition], claimed_by: str, most: int) -> tuple[LetterChunk, ...]:
    """Cut a claim into chunks of one partition each, in order of position. Letters that are tried alone come last."""
    groups: dict[tuple[bool, PartitionId], list[SequenceNumber]] = {}
    for each in sorted(claimed, key=lambda one: one.position.sequence_number):
        groups.setdefault((each.lost_claims > 0, each.position.partition_id), []).append(each.position.sequence_number)
    return tuple(
        LetterChunk(partition_id, tuple(numbers[start : start + most]), claimed_by, alone)
        for (alone, partition_id), numbers in sorted(groups.items(), key=lambda group: group[0])
        for start in range(0, len(numbers), most)
    )
