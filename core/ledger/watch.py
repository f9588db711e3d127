"""The facts of the watch: what the alerts read once a minute, and the hours until the hub forgets unread events.

The beginning of a partition in the hub shows exactly which events the hub no longer holds. The rest is a forecast: the
hub forgets an event when it is as old as the hub's retention, or a little later.

No tick needs the tick before it: facts about the past come from times in the store. So a tick that is lost, runs twice
or runs in a different instance changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

from core.errors import HubRefused, HubUnreachable, StreamIncarnationChanged
from core.ledger.store import LETTERS, BurnDowns, ForgottenKind, Ledger, OpenCount
from core.ledger.totals import Books, Minute, PartitionBooks, lag_time
from core.measured import measured
from core.model.events import Partition, PartitionId, SequenceNumber, Stream
from core.model.letters import LetterKey
from core.model.ports import HubReader

ONLY_IN_HUB: tuple[ForgottenKind, ...] = ("unkept", "gap")  # their events are lost when the hub forgets them
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class BurnDown:
    """The open letters and gaps at one moment. A hub that does not answer, or is another one, is known to have
    forgotten none of their events. Where no setting states the `retention`, there is no forecast."""

    at: datetime
    retention: timedelta | None
    counts: tuple[OpenCount, ...]

    @property
    def letters_expiring_hours(self) -> float:
        """The hours until the hub forgets the first event of an open letter."""
        return self._hours(LETTERS)

    @property
    def loss_hours(self) -> float:
        """The hours until the hub forgets the first event that is only there."""
        return self._hours(ONLY_IN_HUB)

    @property
    def lost(self) -> tuple[OpenCount, ...]:
        """The open letters without a body, and the open gaps, whose event the hub no longer holds."""
        return tuple(one for one in self.counts if one.gone and one.kind in ONLY_IN_HUB)

    @property
    def events_lost(self) -> int:
        return sum(one.gone for one in self.lost)

    def _hours(self, kinds: Sequence[ForgottenKind]) -> float:
        """Return the hours until the hub forgets the first of these events: never less than 0, its whole retention when
        there is none, and -1 where the retention is not known."""
        if self.retention is None:
            return -1.0
        enqueued_at = [one.first_at for one in self.counts if one.kind in kinds and one.first_at is not None]
        left = min(enqueued_at, default=self.at) + self.retention - self.at
        return round(max(timedelta(), left) / HOUR, 3)


def read_burn_down(
    stream: Stream, store: BurnDowns, hub: HubReader, retention: timedelta | None, now: datetime
) -> BurnDown:
    """READ the burn-down of this moment. Raises only the store's faults.

    Without an answer of the hub, nothing is known to be gone, and a gap is as old as the event before it.
    """
    gaps = store.read_open_gaps()
    ids = tuple(dict.fromkeys((*store.read_partition_ids(), *(gap.partition_id for gap in gaps))))
    gap_at = {gap.partition_id: gap.after_at for gap in reversed(gaps)}
    try:
        beginnings = {id: hub.extent(stream.partition(id)).beginning for id in ids}
        first = {gap.partition_id: gap for gap in reversed(gaps) if gap.first >= beginnings[gap.partition_id]}
        found = {id: hub.first_at(stream.partition(id), gap.first) for id, gap in first.items()}
        gap_at |= {id: event.enqueued_at for id, event in found.items() if event is not None}
    except (HubRefused, HubUnreachable, StreamIncarnationChanged):
        beginnings = dict.fromkeys(ids, SequenceNumber(0))
    counts = [one for id in ids for one in store.count_open_letters(id, beginnings[id])]
    for id, each in groupby(gaps, lambda gap: gap.partition_id):
        are_gone = [gap.first < beginnings[id] for gap in each]
        first_at = None if all(are_gone) else gap_at[id]  # those that the hub holds count as old as the first
        counts.append(OpenCount(id, "gap", sum(are_gone), first_at, beginnings[id]))
    return BurnDown(now, retention, tuple(counts))


# An alert fires when the watch is silent for this long, so no absent event and no failed job goes unreported.
ABSENT_WITHIN = timedelta(minutes=15)
STOPPED_AFTER = timedelta(minutes=5)  # as long as the longest likely invocation
READ_FROM = timedelta(minutes=1)  # for a shorter lag, the checkpoint's time is close enough: the hub is not read


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The aggregation: the time of the oldest commit that waits for it, and the submits that failed lately.

    `faults` counts the runs that were committed lately with a fault in the quality of their rows. `stale` has the
    tables in the lake that are not up to date, each with the time since which that is so.
    """

    oldest_at: datetime | None = None
    failures: int = 0
    faults: int = 0
    stale: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def waits_since(self) -> datetime | None:
        """The time of the oldest commit that waits, or of the first table that became stale."""
        return min((*self.stale.values(), *((self.oldest_at,) if self.oldest_at else ())), default=None)


@dataclass(frozen=True, slots=True)
class Watching:
    """The sources of the watch. `enqueued_at` returns the time of a letter's event, and `ends` reads the last number of
    each partition from the hub (-1: none yet). `pipeline` looks at the aggregation and its failures since a time, and
    `burn_down` at what the hub still holds. `faults` has the name of the last error of each partition in this process.
    """

    stream: Stream
    store: Ledger
    hub: HubReader
    enqueued_at: Callable[[LetterKey], datetime | None]
    ends: Callable[[], Mapping[PartitionId, int]]
    pipeline: Callable[[datetime], Pipeline] = lambda since: Pipeline()
    burn_down: Callable[[datetime], BurnDown] = lambda now: BurnDown(now, None, ())
    faults: Mapping[PartitionId, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LaggingPartition:
    """A partition with unaccounted numbers: the time since which its oldest event waits (None: the hub no longer holds
    any), and the time of its last batch, or of the opening of the stream before the first one."""

    partition_id: PartitionId
    since: datetime | None
    moved_at: datetime

    def stands_since(self, now: datetime) -> datetime | None:
        """Return the time since which events wait and no batch comes. None before STOPPED_AFTER has passed."""
        since = max(self.since or self.moved_at, self.moved_at)
        return since if now - since >= STOPPED_AFTER else None


@dataclass(frozen=True, slots=True)
class Observation:
    """The facts that the watch read at one moment. `lags` counts the waiting numbers of each partition of the hub."""

    stream: Stream
    at: datetime
    books: Books
    lagging: tuple[LaggingPartition, ...]
    oldest_letter_at: datetime | None
    absent: int
    stops: int = 0
    tasks_held_up: int = 0
    pipeline: Pipeline = Pipeline()
    lags: Mapping[PartitionId, int] = field(default_factory=dict)
    burn_down: BurnDown | None = None
    faults: Mapping[PartitionId, str] = field(default_factory=dict)

    @property
    def lag(self) -> int:
        """The numbers that wait in all partitions."""
        return sum(self.lags.values())

    @property
    def minute(self) -> Minute:
        """The row of this minute, which the watch stores."""
        return Minute(self.at, self.lag, self.books.accounted)

    def facts(self) -> dict[str, object]:
        """Return the fields of the log line. Clocks differ, so negative seconds become 0."""
        letter_at, commit_at = self.oldest_letter_at, self.pipeline.waits_since
        waits = [_age(one.since, self.at) for one in self.lagging if one.since is not None]
        standing = [one.partition_id for one in self.lagging if one.stands_since(self.at) is not None]
        burning = self.burn_down or BurnDown(self.at, None, ())
        return {
            "action": "watch",
            "event_hub": self.stream.event_hub,
            "consumer_group": self.stream.consumer_group,
            "ledger_balanced": self.books.balanced,
            "lag_seconds": max(waits, default=0.0),
            "partitions_stopped": len(standing),
            "standing": ", ".join(f"{id} ({self.faults[id]})" if id in self.faults else id for id in standing),
            "stops_recorded": self.stops,
            "tasks_held_up": self.tasks_held_up,
            "letters_open": self.books.letters.open,
            "oldest_letter_seconds": 0.0 if letter_at is None else _age(letter_at, self.at),
            "letters_expiring_hours": burning.letters_expiring_hours,
            "loss_hours": burning.loss_hours,
            "events_lost": burning.events_lost,
            "absent_new": self.absent,
            "aggregation_lag_seconds": 0.0 if commit_at is None else _age(commit_at, self.at),
            "stale": ", ".join(f"{table} since {at:%Y-%m-%dT%H:%M:%SZ}" for table, at in self.pipeline.stale.items()),
            "aggregation_failures": self.pipeline.failures,
            "aggregation_faults": self.pipeline.faults,
        }


@measured("watch")
def observe(own: Watching, now: datetime) -> Observation:
    """READ the facts. The ends are read first, so that events committed during the reads do not seem to wait. Raises
    InfrastructureFault."""
    ends = own.ends()
    books = Books(own.store.read_books(), own.store.count_letters())
    oldest, lags = books.letters.oldest, _lags(own, books.partitions, ends)
    return Observation(
        stream=own.stream,
        at=now,
        books=books,
        lagging=_lagging(own, books.partitions, lags, now),
        oldest_letter_at=None if oldest is None else own.enqueued_at(oldest),
        absent=own.store.count_absent(now - ABSENT_WITHIN),
        stops=len(own.store.read_stops()),
        tasks_held_up=own.store.count_tasks_held_up(),
        pipeline=own.pipeline(now - ABSENT_WITHIN),
        lags=lags,
        burn_down=own.burn_down(now),
        faults=own.faults,
    )


def find_standing(own: Watching, now: datetime) -> Mapping[PartitionId, datetime]:
    """READ the partitions that stand, whatever the reason, each with the time since which it does.

    It reads the hub only for a partition that may stand. Raises InfrastructureFault.
    """
    ends = own.ends()
    partitions = own.store.read_books()
    lagging = _lagging(own, partitions, _lags(own, partitions, ends), now)
    return {one.partition_id: since for one in lagging if (since := one.stands_since(now)) is not None}


def _lags(
    own: Watching, partitions: Sequence[PartitionBooks], ends: Mapping[PartitionId, int]
) -> Mapping[PartitionId, int]:
    """Count the numbers that wait in each partition."""
    known = {one.partition_id: one for one in partitions}
    return {id: max(0, end + 1 - _first_unaccounted(own, id, known.get(id))) for id, end in ends.items()}


def _lagging(
    own: Watching, partitions: Sequence[PartitionBooks], lags: Mapping[PartitionId, int], now: datetime
) -> tuple[LaggingPartition, ...]:
    waiting = [id for id, lag in lags.items() if lag]
    known = {one.partition_id: one for one in partitions}
    moved = own.store.read_last_batches() if waiting else {}
    incarnation = None if moved.keys() >= set(waiting) else own.store.read_incarnation()
    opened_at = now if incarnation is None else incarnation.opened_at
    return tuple(
        [
            LaggingPartition(id, _since(own, known.get(id), own.stream.partition(id), now), moved.get(id, opened_at))
            for id in waiting
        ]
    )


def _first_unaccounted(own: Watching, id: PartitionId, books: PartitionBooks | None) -> SequenceNumber:
    """Return the first number that has to be accounted for next. Numbers before the anchor never have to be."""
    if books is not None:
        return SequenceNumber(books.checkpoint + 1)
    return own.store.find_anchor(id) or SequenceNumber(0)


def _since(own: Watching, books: PartitionBooks | None, partition: Partition, now: datetime) -> datetime | None:
    """Return the time at which the oldest waiting event was enqueued, or for a short lag the checkpoint's time."""
    longest = lag_time(books, 1, now)
    if books is not None and longest is not None and longest < READ_FROM:
        return books.enqueued_at
    event = own.hub.first_at(partition, _first_unaccounted(own, partition.partition_id, books))
    return None if event is None else event.enqueued_at


def _age(moment: datetime, now: datetime) -> float:
    return round(max(0.0, (now - moment).total_seconds()), 3)
