"""The state of the books: the end, checkpoint, lag and outcomes of each partition, and whether the books balance.

A result is remembered for five seconds, that of the write for thirty.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from core.api.operation import Answer, Call, operation
from core.errors import HubledgerError, HubRefused, HubUnreachable, StopReason, StoreUnavailable
from core.ledger.store import Ledger
from core.ledger.totals import KEPT, Books, PartitionBooks, lag_of, lag_time, rates
from core.ledger.watch import find_standing
from core.model.commits import PartitionStop
from core.model.events import PartitionId
from core.model.letters import OPEN
from core.model.release import VERSION
from core.model.shapes import Answered, Nothing, Shape, written
from handlers.app import CLOCK, App, LetterCount, app
from handlers.remembered import Lifetime, Remembered
from handlers.room_routes import own_room
from handlers.timers import watching

QUOTES_NOTHING = frozenset({"incarnation", "held", "trigger"})  # the details of the other reasons have words of errors


class StopAnswer(Answered):
    """A stop of a partition, on purpose or by the database: its reason, its time, and the attempts that met it.
    `detail` is null where it may quote an event; `GET /api/revealed/stops` shows it."""

    partition_id: str
    reason: StopReason
    detail: str | None
    stopped_at: datetime
    attempts: int

    def quoting(self) -> tuple[str, ...]:
        return () if self.reason in QUOTES_NOTHING else ("detail",)


class StopsAnswer(Answered):
    """The stops of all partitions, with their details."""

    stops: list[StopAnswer]


class StandingAnswer(Answered):
    """A partition that stands: events of it wait, and no batch of it was committed for five minutes, whatever the
    reason. `fault` is the name of the last error of its batches in this instance, null where this one met none."""

    partition_id: str
    since: datetime
    fault: str | None


def standing_answers() -> list[StandingAnswer]:
    """Return the partitions that stand. None where the hub or the database cannot tell."""
    with suppress(HubledgerError):
        found, faults = STANDING.get(), app().batch_log.faults
        return [
            StandingAnswer(partition_id=id, since=found[id], fault=faults.get(id))
            for id in sorted(found, key=lambda id: (len(id), id))
        ]
    return []


STANDING = Remembered(lambda: find_standing(watching(app()), app().clock.now()), Lifetime(fresh=5.0, limit=5.0))


def stop_answers(id: PartitionId, stops: Iterable[PartitionStop]) -> list[StopAnswer]:
    """Return the stops of a partition."""
    return [written(StopAnswer, stop, partition_id=id) for stop in stops]


PATIENCE = 2.0  # seconds for a write
_writer = ThreadPoolExecutor(1, thread_name_prefix="health")  # one thread: a write that hangs is not doubled
THIRTY_SECONDS = Lifetime(fresh=30.0, limit=30.0)
FIVE_SECONDS = Lifetime(fresh=5.0, limit=5.0)  # health is requested often, and by many


class HealthAnswer(Answered):
    """The health, and the name of the fault where there is one."""

    healthy: bool
    fault: str | None = None


class LedgerHealthAnswer(Answered):
    """The health of the books, with the numbers that prove it, and the partitions that are stopped or stand."""

    healthy: bool
    numbers: int
    accounted: int
    dead_lettered: int
    replayed: int
    letters_open: int
    stops: list[StopAnswer]
    standing: list[StandingAnswer]


@operation("The process lives", "health")
def health_live(call: Call[Nothing, Nothing, Nothing]) -> HealthAnswer:
    """Answer: the process lives."""
    return HealthAnswer(healthy=True)


@operation("The store can be used", "health", {200: HealthAnswer, 503: HealthAnswer})
def health_ready(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """Check that settings, database and schema can be used, and that the database takes a write within two seconds. The
    write leaves no row, and is tried every thirty seconds. A fault is reported by its name only."""
    fault = READINESS.get()
    return Answer(HealthAnswer(healthy=fault is None, fault=fault), 200 if fault is None else 503)


def _find_fault() -> str | None:
    try:
        app().stream.find()
    except HubledgerError as fault:
        return type(fault).__name__
    return WRITABLE.get()


def _find_fault_of_writing() -> str | None:
    try:
        _writer.submit(Ledger(app().stream).try_write, CLOCK.new_id()).result(PATIENCE)
    except (HubledgerError, TimeoutError) as fault:
        return StoreUnavailable.__name__ if isinstance(fault, TimeoutError) else type(fault).__name__
    return None


@operation("The books balance and no partition stands", "health", {200: LedgerHealthAnswer, 503: LedgerHealthAnswer})
def health_ledger(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """Check that the books balance, and that no partition is stopped or stands."""
    books, stops = BOOKS.get()
    standing = standing_answers()
    body = LedgerHealthAnswer(
        healthy=books.balanced and not stops and not standing,
        numbers=books.numbers,
        accounted=books.accounted,
        dead_lettered=books.letters.dead_lettered,
        replayed=books.letters.replayed,
        letters_open=books.letters.open,
        stops=[answer for id, each in stops.items() for answer in stop_answers(id, each)],
        standing=standing,
    )
    return Answer(body, 200 if body.healthy else 503)


def _read_books() -> tuple[Books, Mapping[PartitionId, tuple[PartitionStop, ...]]]:
    own = app()
    ledger = Ledger(own.stream)
    return Books(ledger.read_books(), own.letter_counts.get().letters), ledger.read_stops()


READINESS, BOOKS = Remembered(_find_fault, FIVE_SECONDS), Remembered(_read_books, FIVE_SECONDS)
WRITABLE = Remembered(_find_fault_of_writing, THIRTY_SECONDS)

MOST_MINUTES = KEPT // timedelta(minutes=1)


class HistoryQuery(Shape):
    """The minutes up to now; those of a day are stored."""

    minutes: Annotated[int, msgspec.Meta(ge=1, le=MOST_MINUTES)] = 180


class MinuteAnswer(Answered):
    """One watch: `lag` counts the events after the checkpoints, `accounted` the numbers with an outcome, and `rate` the
    numbers accounted for per second since the watch before it. Minutes without a watch are missing."""

    at: datetime
    lag: int
    accounted: int
    rate: float | None


class HistoryAnswer(Answered):
    """The minutes, the newest last."""

    minutes: list[MinuteAnswer]


@operation("Lag and rate by minute, of at most one day", "ledger")
def status_history(call: Call[Nothing, HistoryQuery, Nothing]) -> HistoryAnswer:
    """Return the minutes that the watch has stored."""
    found = Ledger(app().stream).read_minutes(call.at - timedelta(minutes=call.query.minutes))
    return HistoryAnswer(
        minutes=[
            MinuteAnswer(at=one.at, lag=one.lag, accounted=one.accounted, rate=rate)
            for one, rate in zip(found, rates(found), strict=True)
        ]
    )


@operation("The stopped partitions with the errors that stopped them", "ledger")
def list_stops(call: Call[Nothing, Nothing, Nothing]) -> StopsAnswer:
    """List the stops with every detail."""
    found = Ledger(app().stream).read_stops()
    return StopsAnswer(stops=[answer for id, each in found.items() for answer in stop_answers(id, each)])


OUTCOMES = ("written", "filtered", "dead_lettered", "held", "absent")


class PartitionBooksAnswer(Answered):
    """The books of a partition. `numbers` from its anchor to `checkpoint` must be accounted for; `lag_seconds` is the
    longest time that an event can have waited to be accounted for."""

    partition_id: str
    hub_end: str | None
    checkpoint: str | None
    first: str | None
    enqueued_at: datetime | None
    lag: int | None
    lag_seconds: float | None
    balanced: bool
    numbers: int
    accounted: int
    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int
    commits: int
    open_gaps: int
    stops: list[StopAnswer]


class LettersByStatus(Answered):
    """The `open` letters by status, and the rest of all that were made and not purged: `settled`, as resolved or
    discarded. `dead_lettered` are those that batches made, held ones included, and `replayed` those that replays made.
    The open ones were counted at `counted_at`: some seconds ago where the count takes long."""

    waiting: int
    retrying: int
    held: int
    exhausted: int
    settled: int
    open: int
    dead_lettered: int
    replayed: int
    counted_at: datetime


class HubForgets(Answered):
    """The events that the hub will forget, as in the facts of the watch: the hours until it no longer holds the first
    event of an open letter, and of those that nothing else has stored (its whole retention where there is none, -1
    where it is not known). It no longer holds `events_lost`."""

    letters_expiring_hours: float
    loss_hours: float
    events_lost: int


class OldestLetter(Answered):
    """The open letter that failed first."""

    partition_id: str
    sequence_number: str
    failed_at: datetime


class UnknownField(Answered):
    """A field that the room's bodies do not have, and the events that had it: the app ignored the field. Without a
    name: all fields beyond the first fifteen names of a partition."""

    name: str
    events: int


class RoomPage(Answered):
    """A page of the room within the operator's page: the address after `#/`, the title, and the file of its module."""

    name: str
    title: str
    file: str


class StatusAnswer(Answered):
    """The books: `accounted` must equal `numbers`. Numbers of events are numbers; sequence numbers are strings. Each
    `hub_end` was read at `hub_read_at`, so it may be before a checkpoint that was read since. `room_pages` are the
    pages that the app's room brings to the operator's page. `version` is that of the app's release."""

    at: datetime
    version: str
    event_hub: str
    consumer_group: str
    incarnation: int | None
    hub_created_at: datetime | None
    hub_fault: str | None
    hub_read_at: datetime | None
    ledger_balanced: bool
    numbers: int
    accounted: int
    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int
    lag: int | None
    open_gaps: int
    stops: int
    standing: list[StandingAnswer]
    letters: LettersByStatus
    oldest_open_letter: OldestLetter | None
    hub_forgets: HubForgets
    unknown_fields: list[UnknownField]
    room_pages: list[RoomPage]
    partitions: list[PartitionBooksAnswer]


@operation("The books: what is accounted for, lag, letters", "ledger")
def status(call: Call[Nothing, Nothing, Nothing]) -> StatusAnswer:
    """Return the books and the ends of the hub; without an answer from the hub, the books alone."""
    own = app()
    ledger, counted = Ledger(own.stream), own.letter_counts.get()
    books = Books(ledger.read_books(), counted.letters)
    (ends, age), fault = _hub_ends(own)
    forgets, oldest = own.burn_down.get(), books.letters.oldest
    stops, incarnation = ledger.read_stops(), ledger.read_incarnation()
    partitions = _partitions(BookSources(books, ends, stops), call.at)
    waiting = {one.partition_id for one in partitions if one.lag}
    return StatusAnswer(
        at=call.at,
        version=VERSION,
        event_hub=own.settings.event_hub,
        consumer_group=own.settings.consumer_group,
        incarnation=None if incarnation is None else incarnation.number,
        hub_created_at=None if incarnation is None else incarnation.hub_created_at,
        hub_fault=fault,
        hub_read_at=None if age is None else call.at - age,
        ledger_balanced=books.balanced,
        numbers=books.numbers,
        accounted=books.accounted,
        **{name: sum(getattr(one, name) for one in books.partitions) for name in OUTCOMES},
        lag=None if ends is None else sum(one.lag or 0 for one in partitions),
        open_gaps=sum(one.open_gaps for one in books.partitions),
        stops=sum(map(len, stops.values())),
        standing=[one for one in standing_answers() if one.partition_id in waiting],
        letters=_letters(counted),
        oldest_open_letter=None if oldest is None else written(OldestLetter, oldest),
        hub_forgets=HubForgets(**{name: getattr(forgets, name) for name in HubForgets.__struct_fields__}),
        unknown_fields=[UnknownField(name=name, events=events) for name, events in books.unknown_fields],
        room_pages=[RoomPage(**one._asdict()) for one in own_room().pages],
        partitions=partitions,
    )


def _hub_ends(own: App) -> tuple[tuple[Mapping[PartitionId, int] | None, timedelta | None], str | None]:
    """Return the ends of the hub with their age, or the fault of a hub that does not answer."""
    try:
        ends, seconds = own.hub_ends.get_aged()
        return (ends, timedelta(seconds=seconds)), None
    except (HubUnreachable, HubRefused) as fault:
        return (None, None), str(fault)


@dataclass(frozen=True, slots=True)
class BookSources:
    """The sources of a partition's line: the books, the hub's ends (None: it did not answer), and the stops."""

    books: Books
    ends: Mapping[PartitionId, int] | None
    stops: Mapping[PartitionId, tuple[PartitionStop, ...]]


def _partitions(found: BookSources, now: datetime) -> list[PartitionBooksAnswer]:
    """List the partitions that the books, the hub or the stops know."""
    known = {one.partition_id: one for one in found.books.partitions}
    ids = sorted({*known, *(found.ends or {}), *found.stops}, key=lambda id: (len(id), id))
    return [_partition(id, known.get(id), found, now) for id in ids]


def _partition(
    id: PartitionId, books: PartitionBooks | None, found: BookSources, now: datetime
) -> PartitionBooksAnswer:
    hub_end = None if found.ends is None else found.ends.get(id)
    lag = lag_of(books, hub_end)
    waited = lag_time(books, lag, now)
    return PartitionBooksAnswer(
        partition_id=id,
        hub_end=None if hub_end is None else str(hub_end),
        checkpoint=None if books is None else str(books.checkpoint),
        first=None if books is None else str(books.first),
        enqueued_at=None if books is None else books.enqueued_at,
        lag=lag,
        lag_seconds=None if waited is None else round(waited.total_seconds(), 3),
        balanced=books is None or books.balanced,
        **{
            name: 0 if books is None else getattr(books, name)
            for name in ("numbers", "accounted", "commits", "open_gaps", *OUTCOMES)
        },
        stops=stop_answers(id, found.stops.get(id, ())),
    )


def _letters(counted: LetterCount) -> LettersByStatus:
    found = counted.letters
    counts = {status: found.counts.get(status, 0) for status in OPEN}
    sums = {name: getattr(found, name) for name in ("settled", "open", "dead_lettered", "replayed")}
    return LettersByStatus(counted_at=counted.at, **sums, **counts)
