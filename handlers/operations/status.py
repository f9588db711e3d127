"""The state of the books: the end, checkpoint, lag and outcomes of each partition, and whether the books balance.

A result is remembered for five seconds, and the result of the write for thirty.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec

from core.api.operation import Answer, Call, operation
from core.erasure.store import ErasureKeyAnswer
from core.errors import HubledgerError, HubRefused, HubUnreachable, StopReason, StoreUnavailable
from core.ledger.store import Ledger, OpenCount, StreamStop
from core.ledger.totals import KEPT, Books, PartitionBooks, count_without_key, lag_of, lag_time, rates
from core.ledger.watch import find_standing
from core.model.commits import PartitionStop
from core.model.events import PartitionId
from core.model.letters import OPEN, LetterKey
from core.model.release import VERSION
from core.model.shapes import Answered, Nothing, Shape, shape_of, written
from handlers.app import CLOCK, app
from handlers.operations.erasure_keys import lost_keys
from handlers.remembered import Lifetime, Remembered
from handlers.room_routes import own_room
from handlers.timers import watching

QUOTES_NOTHING = frozenset({"incarnation", "held", "trigger"})  # the details of the other reasons have words of errors


_Stop: Any = shape_of(PartitionStop, hidden=("carried",), reason=StopReason, detail=str | None)


class StopAnswer(_Stop):
    """A stop of a partition, on purpose or by the database: its reason, its time, and the attempts that met it.
    `detail` is null where it may quote an event. `GET /api/revealed/stops` shows it. In the last attempt of an
    `outage`, `failed` of the `tried` events failed, most of them with `failure`. After `patience` attempts, events that
    fail become letters. Batches have made `letters` since the stop began."""

    partition_id: str
    patience: int | None
    letters: int

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
            StandingAnswer(partition_id=id, since=found[id], fault=faults.get(id)) for id in sorted(found, key=order)
        ]
    return []


def order(id: PartitionId) -> tuple[int, str]:
    """Return the place of a partition in lists: 2 comes before 10."""
    return len(id), id


STANDING = Remembered(lambda: find_standing(watching(app()), app().clock.now()), Lifetime(fresh=5.0, limit=5.0))


def stop_answers(stops: Iterable[StreamStop]) -> list[StopAnswer]:
    """Return stops in words, those of an outage with the patience of the fuse."""
    patience = app().settings.fuse.patience
    return [
        written(
            StopAnswer,
            one.stop,
            partition_id=one.partition_id,
            letters=one.letters,
            patience=patience if one.stop.reason == "outage" else None,
        )
        for one in stops
    ]


PATIENCE = 2.0  # seconds for a write
_writer = ThreadPoolExecutor(1, thread_name_prefix="health")  # one thread: a write that hangs is not doubled
THIRTY_SECONDS = Lifetime(fresh=30.0, limit=30.0)
FIVE_SECONDS = Lifetime(fresh=5.0, limit=5.0)  # health is requested often, and by many


class HealthAnswer(Answered):
    """The health, and the name of the fault where there is one."""

    healthy: bool
    fault: str | None = None


class LedgerHealthAnswer(Answered):
    """The health of the books, with the numbers that prove it, the partitions that are stopped or stand, and the number
    of keys of erased subjects that the settings do not have."""

    healthy: bool
    lost_erasure_keys: int
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
        own = app()
        if (stream_id := own.stream.find()) is not None:
            own.core.ingestion.store.find_former_key(stream_id)
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
    """Check that the books balance, no partition is stopped or stands, and no key of erased subjects is lost."""
    books, stops = BOOKS.get()
    standing, lost = standing_answers(), LOST_KEYS.get()
    body = written(
        LedgerHealthAnswer,
        books,
        healthy=books.balanced and not (stops or standing or lost),
        lost_erasure_keys=len(lost),
        dead_lettered=books.letters.dead_lettered,
        replayed=books.letters.replayed,
        letters_open=books.letters.open,
        stops=stop_answers(stops),
        standing=standing,
    )
    return Answer(body, 200 if body.healthy else 503)


def _read_books() -> tuple[Books, tuple[StreamStop, ...]]:
    own = app()
    ledger = Ledger(own.stream)
    return Books(ledger.read_books(), own.letter_counts.get().letters), ledger.read_stops()


READINESS, BOOKS = Remembered(_find_fault, FIVE_SECONDS), Remembered(_read_books, FIVE_SECONDS)
WRITABLE = Remembered(_find_fault_of_writing, THIRTY_SECONDS)
LOST_KEYS = Remembered(lost_keys, THIRTY_SECONDS)

MOST_MINUTES = KEPT // timedelta(minutes=1)


class HistoryQuery(Shape):
    """The minutes up to now. The minutes of one day are stored."""

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
    shown = [written(MinuteAnswer, one, rate=rate) for one, rate in zip(found, rates(found), strict=True)]
    return HistoryAnswer(minutes=shown)


@operation("The stopped partitions with the errors that stopped them", "ledger")
def list_stops(call: Call[Nothing, Nothing, Nothing]) -> StopsAnswer:
    """List the stops with every detail."""
    return StopsAnswer(stops=stop_answers(Ledger(app().stream).read_stops()))


class OutcomesAnswer(Answered, kw_only=True):
    """The count of numbers that have to be accounted for, and their outcomes."""

    numbers: int
    accounted: int
    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int
    open_gaps: int


class PartitionBooksAnswer(OutcomesAnswer):
    """The books of a partition. `numbers` from its anchor to `checkpoint` must be accounted for. `lag_seconds` is the
    longest time that an event can have waited to be accounted for."""

    partition_id: str
    hub_end: str | None
    checkpoint: str | None
    first: str | None
    enqueued_at: datetime | None
    lag: int | None
    lag_seconds: float | None
    balanced: bool
    commits: int
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


_Lost: Any = shape_of(OpenCount, hidden=("first_at", "gone"))


class LostEvents(_Lost):
    """The lost events of a partition: of open gaps, or of open letters without a body, with numbers before `before`."""

    events: int


class HubForgets(Answered):
    """The events that the hub will forget, as in the facts of the watch: the hours until it no longer holds the first
    event of an open letter, and of those that nothing else has stored (its whole retention where there is none, -1
    where it is not known). It no longer holds `events_lost`: those of `lost`."""

    letters_expiring_hours: float
    loss_hours: float
    events_lost: int
    lost: list[LostEvents]


_OldestLetter: Any = shape_of(LetterKey)


class OldestLetter(_OldestLetter):
    """The open letter that failed first."""


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


class StatusAnswer(OutcomesAnswer):
    """The books: `accounted` must equal `numbers`. Sequence numbers are strings, and other numbers are numbers. Each
    `hub_end` was read at `hub_read_at`, so it may be before a newer checkpoint. `room_pages` are the pages of the app's
    room. `without_key` counts the events without a readable key: the partition key is used instead. While
    `lost_erasure_keys` has some, events older than the newest erasure wait. `version` is the app's release,
    `transform_version` its transform's."""

    at: datetime
    version: str
    transform_version: str
    event_hub: str
    consumer_group: str
    incarnation: int | None
    hub_created_at: datetime | None
    hub_fault: str | None
    hub_read_at: datetime | None
    ledger_balanced: bool
    lag: int | None
    stops: int
    standing: list[StandingAnswer]
    letters: LettersByStatus
    oldest_open_letter: OldestLetter | None
    hub_forgets: HubForgets
    unknown_fields: list[UnknownField]
    without_key: int
    lost_erasure_keys: list[ErasureKeyAnswer]
    room_pages: list[RoomPage]
    partitions: list[PartitionBooksAnswer]


@operation("The books: what is accounted for, lag, letters", "ledger")
def status(call: Call[Nothing, Nothing, Nothing]) -> StatusAnswer:
    """Return the books and the ends of the hub. Without an answer from the hub, return the books alone."""
    own, ends, read_at, hub_fault = app(), None, None, None
    ledger, counted = Ledger(own.stream), own.letter_counts.get()
    books = Books(ledger.read_books(), counted.letters)
    try:
        ends, age = own.hub_ends.get_aged()
        read_at = call.at - timedelta(seconds=age)
    except (HubUnreachable, HubRefused) as fault:
        hub_fault = str(fault)
    forgets, oldest = own.burn_down.get(), books.letters.oldest
    stops, incarnation = ledger.read_stops(), ledger.read_incarnation()
    known = {one.partition_id: one for one in books.partitions}
    partitions = [
        _partition(id, known.get(id), None if ends is None else ends.get(id), stops, call.at)
        for id in sorted({*known, *(ends or {}), *(one.partition_id for one in stops)}, key=order)
    ]
    waiting = {one.partition_id for one in partitions if one.lag}
    return StatusAnswer(
        at=call.at,
        version=VERSION,
        transform_version=own.transform.version,
        event_hub=own.settings.event_hub,
        consumer_group=own.settings.consumer_group,
        incarnation=None if incarnation is None else incarnation.number,
        hub_created_at=None if incarnation is None else incarnation.hub_created_at,
        hub_fault=hub_fault,
        hub_read_at=read_at,
        ledger_balanced=books.balanced,
        **{name: sum(getattr(one, name) for one in books.partitions) for name in OutcomesAnswer.__struct_fields__},
        lag=None if ends is None else sum(one.lag or 0 for one in partitions),
        stops=len(stops),
        standing=[one for one in standing_answers() if one.partition_id in waiting],
        letters=written(
            LettersByStatus,
            counted.letters,
            counted_at=counted.at,
            **{status: counted.letters.counts.get(status, 0) for status in OPEN},
        ),
        oldest_open_letter=None if oldest is None else written(OldestLetter, oldest),
        hub_forgets=written(
            HubForgets, forgets, lost=[written(LostEvents, one, events=one.gone) for one in forgets.lost]
        ),
        unknown_fields=[UnknownField(name=name, events=events) for name, events in books.unknown_fields],
        without_key=count_without_key(books.partitions),
        lost_erasure_keys=LOST_KEYS.get(),
        room_pages=[written(RoomPage, one) for one in own_room().pages],
        partitions=partitions,
    )


def _partition(
    id: PartitionId, books: PartitionBooks | None, hub_end: int | None, stops: Iterable[StreamStop], now: datetime
) -> PartitionBooksAnswer:
    """Show a partition that the books, the hub or the stops know."""
    lag = lag_of(books, hub_end)
    waited = lag_time(books, lag, now)
    nothing = dict.fromkeys(("commits", *OutcomesAnswer.__struct_fields__), 0)
    unread = {"checkpoint": None, "first": None, "enqueued_at": None, "balanced": True, **nothing}
    return written(
        PartitionBooksAnswer,
        books,
        partition_id=id,
        hub_end=None if hub_end is None else str(hub_end),
        lag=lag,
        lag_seconds=None if waited is None else round(waited.total_seconds(), 3),
        stops=stop_answers(one for one in stops if one.partition_id == id),
        **(unread if books is None else {}),
    )
