"""The totals of a stream: what is accounted for, whether it balances, and the lag of each minute."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

from core.model.commits import LetterStatus
from core.model.events import PartitionId, SequenceNumber
from core.model.letters import OPEN, LetterKey
from core.model.transforms import NONE_UNKNOWN, WITHOUT_KEY, unknown_fields_of


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of the numbers of a ledger."""

    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int

    @property
    def accounted(self) -> int:
        """The number of events and absent numbers with an outcome."""
        return self.written + self.filtered + self.lettered + self.absent

    @property
    def lettered(self) -> int:
        """The number of events that became letters, failed or held."""
        return self.dead_lettered + self.held


@dataclass(frozen=True, slots=True)
class PartitionBooks(Outcomes):
    """The totals of a partition, as its checkpoint carries them: `commits` and the outcomes are of batches from number
    `first` on, and `letters` counts those that replays made too. Without the row of its anchor, `anchor` is None.
    `unknown_fields` counts the events by the name of a field that the room does not know, as JSON. `is_recorded`: the
    ledger's row of the newest commit has the same totals.
    """

    partition_id: PartitionId
    checkpoint: SequenceNumber
    enqueued_at: datetime
    commit_number: int
    first: SequenceNumber
    commits: int
    letters: int
    unknown_fields: str = NONE_UNKNOWN
    anchor: SequenceNumber | None = None
    open_gaps: int = 0
    is_recorded: bool = True

    @property
    def numbers(self) -> int:
        """The count of numbers from the anchor to the checkpoint. Each of them has to be accounted for."""
        return self.checkpoint - (self.first if self.anchor is None else self.anchor) + 1

    @property
    def balanced(self) -> bool:
        """True when there are as many outcomes as numbers from the anchor to the checkpoint, and the ledger agrees."""
        return self.is_recorded and self.accounted == self.numbers


@dataclass(frozen=True, slots=True)
class LetterBooks:
    """The letters of a stream by status at one moment, and the number that the checkpoints count: `dead_lettered` from
    batches, held events included, and `replayed` from replays. `settled` letters and those `purged` since are no longer
    open. `oldest` is the open letter that failed first."""

    counts: Mapping[LetterStatus, int]
    dead_lettered: int
    replayed: int = 0
    oldest: LetterKey | None = None
    purged: int = 0
    settled: int = 0

    @property
    def balanced(self) -> bool:
        """True when there are as many letters, purged ones included, as batches and replays made."""
        return self.open + self.settled + self.purged == self.dead_lettered + self.replayed

    @property
    def open(self) -> int:
        return sum(self.counts.get(status, 0) for status in OPEN)


def count_without_key(partitions: Iterable[PartitionBooks]) -> int:
    """Count the events of partitions without a readable key."""
    return sum(unknown_fields_of(one.unknown_fields).get(WITHOUT_KEY, 0) for one in partitions)


@dataclass(frozen=True, slots=True)
class Books:
    """All partitions of a stream, and its letters."""

    partitions: tuple[PartitionBooks, ...]
    letters: LetterBooks

    @property
    def unknown_fields(self) -> list[tuple[str, int]]:
        """The names of the fields that the room does not know, each with its number of events, the largest first."""
        counts: Counter[str] = Counter()
        for one in self.partitions:
            counts.update(unknown_fields_of(one.unknown_fields))
        return [(name, events) for name, events in counts.most_common() if name != WITHOUT_KEY]

    @property
    def accounted(self) -> int:
        return sum(one.accounted for one in self.partitions)

    @property
    def numbers(self) -> int:
        return sum(one.numbers for one in self.partitions)

    @property
    def balanced(self) -> bool:
        return self.letters.balanced and all(one.balanced for one in self.partitions)


@dataclass(frozen=True, slots=True)
class LedgerRange:
    """One row of the ledger."""

    commit_number: int
    kind: Literal["batch", "retry", "replay"]
    first: SequenceNumber
    last: SequenceNumber
    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int
    rows_written: int
    transform_version: str
    invocation_id: str
    committed_at: datetime


@dataclass(frozen=True, slots=True)
class Purged:
    """The purged part of a partition's ledger: its rows up to a commit. `at` is the time of the last purge.

    The sequence numbers of these rows go from `first`, the first of the partition, to `last`.
    """

    commit_number: int
    first: SequenceNumber
    last: SequenceNumber
    at: datetime | None


NOT_PURGED = Purged(0, SequenceNumber(0), SequenceNumber(-1), None)


def lag_of(books: PartitionBooks | None, hub_end: int | None) -> int | None:
    """Count the events after the checkpoint, or None while the hub does not answer. A hub that ends at -1 is empty."""
    if hub_end is None:
        return None
    return max(0, hub_end - (books.checkpoint if books else -1))


def lag_time(books: PartitionBooks | None, lag: int | None, now: datetime) -> timedelta | None:
    """Return the longest time that the first event after the checkpoint can have waited, or None: it is unknown."""
    if lag is None or (lag and books is None):
        return None
    return max(timedelta(), now - books.enqueued_at) if lag and books else timedelta()


KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Minute:
    """The lag of a stream, in events, and the count of its accounted numbers at one time."""

    at: datetime
    lag: int
    accounted: int


def rates(minutes: Sequence[Minute]) -> list[float | None]:
    """Return for each minute the numbers accounted for per second since the minute before. The first has None."""
    found: list[float | None] = [None] if minutes else []
    for before, after in pairwise(minutes):
        seconds = (after.at - before.at).total_seconds()
        found.append(round(max(0, after.accounted - before.accounted) / max(1.0, seconds), 3))
    return found
