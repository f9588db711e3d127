"""The watch: once a minute, the facts that alerts are made of (docs/alerts.md): the books beside the hub.

No tick needs the one before it: what is told of the past is read from times that the store keeps. So a tick that is
lost, doubled or run by another instance changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from core.ledger.books import Books, LetterBooks, PartitionBooks, lag_time
from core.letters.listing import LetterKey
from core.model.events import Partition, PartitionId, Stream
from core.model.hub import HubReader
from core.model.spans import SequenceNumber

# The alert on a silent watch waits as long: absent events are told by some watch, or that one fires.
ABSENT_WITHIN = timedelta(minutes=15)
STOPPED_AFTER = timedelta(minutes=5)  # as long as the longest invocation is likely to take
ASKED_FROM = timedelta(minutes=1)  # below this the hub is not asked how old an event is: the checkpoint says enough


class WatchStore(Protocol):
    """What a store tells the watch of its stream."""

    def read_books(self) -> tuple[PartitionBooks, ...]:
        """The books of every partition."""
        ...

    def find_anchor(self, partition_id: PartitionId) -> SequenceNumber | None:
        """The first number of a partition that counts; None before its first contact."""
        ...

    def read_last_batches(self) -> Mapping[PartitionId, datetime]:
        """When the newest batch of each partition was committed."""
        ...

    def count_absent(self, since: datetime) -> int:
        """How many numbers were found absent by commits since a time."""
        ...


@dataclass(frozen=True, slots=True)
class Watching:
    """What a look is taken with. `letters` counts them, `enqueued_at` knows the time of a letter's event, `ends` asks
    the hub for the last number of each partition (-1: none ever was)."""

    stream: Stream
    store: WatchStore
    hub: HubReader
    letters: Callable[[], LetterBooks]
    enqueued_at: Callable[[LetterKey], datetime | None]
    ends: Callable[[], Mapping[PartitionId, int]]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A partition with numbers that are not accounted for: since when the oldest of its events waits (None: the hub
    holds none of them any more), and when a batch was committed there last (None: never)."""

    since: datetime | None
    moved_at: datetime | None


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen at one moment."""

    at: datetime
    books: Books
    waiting: tuple[Waiting, ...]
    oldest_letter_at: datetime | None
    absent: int


def watch(own: Watching, now: datetime) -> dict[str, object]:
    """READ and DECIDE: the facts of one tick, as its log line has them. Raises InfrastructureFault."""
    return watch_facts(own.stream.event_hub, look(own, now))


def look(own: Watching, now: datetime) -> Sight:
    """READ. The ends come first: what is committed meanwhile does not seem to wait."""
    ends = own.ends()
    books = Books(own.store.read_books(), own.letters())
    oldest = books.letters.oldest
    return Sight(
        at=now,
        books=books,
        waiting=tuple(_waiting(own, books.partitions, ends, now)),
        oldest_letter_at=None if oldest is None else own.enqueued_at(oldest),
        absent=own.store.count_absent(now - ABSENT_WITHIN),
    )


def watch_facts(event_hub: str, sight: Sight) -> dict[str, object]:
    """DECIDE. Numbers of seconds are never negative: clocks differ."""
    waits = [_age(one.since, sight.at) for one in sight.waiting if one.since is not None]
    letter_at = sight.oldest_letter_at
    return {
        "action": "watch",
        "event_hub": event_hub,
        "ledger_balanced": sight.books.balanced,
        "lag_seconds": max(waits, default=0.0),
        "partitions_stopped": sum(_has_stopped(one, sight.at) for one in sight.waiting),
        "letters_open": sight.books.letters.open,
        "oldest_letter_seconds": 0.0 if letter_at is None else _age(letter_at, sight.at),
        "absent_new": sight.absent,
    }


def _waiting(
    own: Watching, books: Iterable[PartitionBooks], ends: Mapping[PartitionId, int], now: datetime
) -> Iterator[Waiting]:
    known = {one.partition_id: one for one in books}
    moved = own.store.read_last_batches()
    for id, end in ends.items():
        following = _following(own, id, known.get(id))
        if end >= following:
            yield Waiting(_since(own, known.get(id), own.stream.partition(id), now), moved.get(id))


def _following(own: Watching, id: PartitionId, books: PartitionBooks | None) -> SequenceNumber:
    """The first number that is not accounted for; what lies before the anchor of a partition never is."""
    if books is not None:
        return SequenceNumber(books.checkpoint + 1)
    return own.store.find_anchor(id) or SequenceNumber(0)


def _since(own: Watching, books: PartitionBooks | None, partition: Partition, now: datetime) -> datetime | None:
    """When the oldest event that waits was enqueued; a little of that is told without asking the hub."""
    most = lag_time(books, 1, now)
    if books is not None and most is not None and most < ASKED_FROM:
        return books.enqueued_at
    event = own.hub.first_at(partition, _following(own, partition.partition_id, books))
    return None if event is None else event.enqueued_at


def _has_stopped(one: Waiting, now: datetime) -> bool:
    """Its oldest event waits for long, or is gone by now, and nothing was committed for as long."""
    waits = one.since is None or now - one.since >= STOPPED_AFTER
    return waits and (one.moved_at is None or now - one.moved_at >= STOPPED_AFTER)


def _age(moment: datetime, now: datetime) -> float:
    return round(max(0.0, (now - moment).total_seconds()), 3)
