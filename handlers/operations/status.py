"""The state of the books: the end, checkpoint, lag and outcomes of each partition, and whether the books balance."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.api.operation import Answered, Call, Nothing, operation
from core.errors import HubRefused, HubUnreachable
from core.ledger.books import Books, PartitionBooks, lag_of, lag_time
from core.letters.listing import OPEN, LetterKey
from core.model.commits import PartitionStop
from core.model.events import PartitionId
from core.model.release import VERSION
from handlers.app import App, LetterCount, app
from handlers.operations.stops import StandingAnswer, StopAnswer, standing_answers, stop_answers
from handlers.room import own_room

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
    """What the hub will forget, as in the facts of the watch: the hours until it no longer holds the first event of an
    open letter, and of those that nothing else has stored (its whole retention where there is none, -1 where it is not
    known). It no longer holds `events_lost`."""

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
    counted = own.letter_counts.get()
    books = Books(own.ledger.read_books(), counted.letters)
    (ends, age), fault = _hub_ends(own)
    forgets = own.burn_down.get()
    stops, incarnation = own.ledger.read_stops(), own.ledger.read_incarnation()
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
        oldest_open_letter=_oldest(books.letters.oldest),
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


def _oldest(key: LetterKey | None) -> OldestLetter | None:
    if key is None:
        return None
    return OldestLetter(
        partition_id=key.partition_id, sequence_number=str(key.sequence_number), failed_at=key.failed_at
    )
