"""The books of a stream at one moment: what is accounted for, whether that is all of it, and what is open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from core.letters.listing import OPEN, LetterKey
from core.model.commits import LetterStatus
from core.model.events import PartitionId
from core.model.spans import SequenceNumber

LOOKS = 5  # at the books, when commits come between one statement and the next


@dataclass(frozen=True, slots=True)
class PartitionBooks:
    """One partition's ledger, summed. `summed_to` is the commit number up to which the store remembers the sum.

    A store that is older than anchors has none: its ledger begins at `first`.
    """

    partition_id: PartitionId
    checkpoint: SequenceNumber
    enqueued_at: datetime
    commit_number: int
    summed_to: int | None
    first: SequenceNumber
    last: SequenceNumber
    commits: int
    holes: int
    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int
    fresh_commits: int
    anchor: SequenceNumber | None = None
    open_gaps: int = 0

    @property
    def accounted(self) -> int:
        """Numbers with an outcome."""
        return self.written + self.filtered + self.dead_lettered + self.held + self.absent

    @property
    def numbers(self) -> int:
        """How many numbers there are from the anchor to the checkpoint: what has to be accounted for."""
        return self.checkpoint - (self.first if self.anchor is None else self.anchor) + 1

    @property
    def balanced(self) -> bool:
        """The ranges tile the log from the anchor to the checkpoint, and each number has one outcome."""
        return self.holes == 0 and self.last == self.checkpoint and self.accounted == self.numbers


@dataclass(frozen=True, slots=True)
class CountedLetters:
    """The letters of a stream by status; replays made `replayed` of them, of events that ranges count otherwise."""

    counts: Mapping[LetterStatus, int]
    replayed: int


@dataclass(frozen=True, slots=True)
class LetterBooks:
    """The letters of a stream by status at one moment, beside how many the ledger said there must be. `oldest` is the
    open letter that failed first; replays made `replayed` more."""

    counts: Mapping[LetterStatus, int]
    dead_lettered: int
    replayed: int = 0
    oldest: LetterKey | None = None

    @property
    def balanced(self) -> bool:
        """Each dead-lettered number has its letter, and each that a replay made is there."""
        return sum(self.counts.values()) == self.dead_lettered + self.replayed

    @property
    def open(self) -> int:
        """Letters that are not settled."""
        return sum(self.counts.get(status, 0) for status in OPEN)


@dataclass(frozen=True, slots=True)
class Books:
    """All partitions of a stream, and its letters."""

    partitions: tuple[PartitionBooks, ...]
    letters: LetterBooks

    @property
    def accounted(self) -> int:
        """Numbers with an outcome."""
        return sum(one.accounted for one in self.partitions)

    @property
    def numbers(self) -> int:
        """What has to be accounted for."""
        return sum(one.numbers for one in self.partitions)

    @property
    def balanced(self) -> bool:
        """Whether it all comes out even."""
        return self.letters.balanced and all(one.balanced for one in self.partitions)


class BookStore(Protocol):
    """What a store tells of the books of its stream."""

    def read_books(self) -> tuple[PartitionBooks, ...]:
        """The books of every partition, by number. What is summed once is remembered and not read again."""
        ...

    def count_letters(self) -> CountedLetters:
        """How many letters there are of each status, and how many replays made: of one moment."""
        ...

    def find_oldest_letter(self, statuses: Sequence[LetterStatus]) -> LetterKey | None:
        """The letter in one of these statuses that failed first."""
        ...


def read_books(store: BookStore) -> Books:
    """The books now. Letters are counted one by one: for millions of them that takes a while."""
    return Books(store.read_books(), read_letter_books(store))


def read_letter_books(store: BookStore) -> LetterBooks:
    """The letters of one moment: counted again while they seem out of balance, until nothing moved meanwhile."""
    partitions = store.read_books()
    for _ in range(LOOKS):
        counted = store.count_letters()
        dead_lettered = sum(one.dead_lettered for one in partitions)
        letters = LetterBooks(counted.counts, dead_lettered, counted.replayed)
        if letters.balanced:
            break
        before, partitions = partitions, store.read_books()
        if [one.commit_number for one in partitions] == [one.commit_number for one in before]:
            break
    else:
        letters = _in_between(letters, before, partitions)
    return replace(letters, oldest=store.find_oldest_letter(OPEN) if letters.open else None)


def _in_between(letters: LetterBooks, before: Sequence[PartitionBooks], after: Sequence[PartitionBooks]) -> LetterBooks:
    """Letters that come all the time: their count is right when it fits the books at any moment of its look."""
    least, most = (sum(one.dead_lettered for one in partitions) for partitions in (before, after))
    fitting = sum(letters.counts.values()) - letters.replayed
    return replace(letters, dead_lettered=min(max(fitting, least), most))


def lag_of(books: PartitionBooks | None, hub_end: int | None) -> int | None:
    """Events of the hub that are not accounted for yet; None while the hub cannot be asked. -1: the hub holds none."""
    if hub_end is None:
        return None
    if hub_end == -1:
        return 0
    return max(0, hub_end - (books.checkpoint if books else -1))


def lag_time(books: PartitionBooks | None, lag: int | None, now: datetime) -> timedelta | None:
    """How long the oldest event that is not accounted for can have waited: it was enqueued behind the checkpoint."""
    if lag is None or (lag and books is None):
        return None
    return max(timedelta(), now - books.enqueued_at) if lag and books else timedelta()
