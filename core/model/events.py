"""Events, batches, partitions, and ranges of sequence numbers."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any, NewType, Protocol

import msgspec

SequenceNumber = NewType("SequenceNumber", int)


@dataclass(frozen=True, slots=True)
class Span:
    """Sequence numbers, both ends included."""

    first: SequenceNumber
    last: SequenceNumber

    @property
    def ends(self) -> tuple[SequenceNumber, SequenceNumber]:
        return self.first, self.last

    @property
    def length(self) -> int:
        return self.last - self.first + 1

    def holds(self, other: "Span") -> bool:
        """Return True when every number of the other span is in this one."""
        return self.first <= other.first and other.last <= self.last

    def overlap(self, other: "Span") -> "Span | None":
        """Return the numbers that are in both spans, or None when there are none."""
        first, last = max(self.first, other.first), min(self.last, other.last)
        return Span(first, last) if first <= last else None

    def runs(self, numbers: Iterable[int]) -> "Iterator[tuple[Span, bool]]":
        """Cut the span into runs of numbers that are given (True) and runs of numbers that are not (False).

        The given numbers must rise, come once each, and lie in the span.
        """
        following = int(self.first)
        for _, run in groupby(enumerate(numbers), key=lambda placed: placed[1] - placed[0]):
            given = [number for _, number in run]
            if given[0] > following:
                yield span(following, given[0] - 1), False
            yield span(given[0], given[-1]), True
            following = given[-1] + 1
        if following <= self.last:
            yield span(following, self.last), False

    def holes(self, numbers: Iterable[int]) -> "list[Span]":
        """Return the runs of this span without any given number. The numbers are as for `runs`."""
        return [run for run, is_given in self.runs(numbers) if not is_given]


def span(first: int, last: int) -> Span:
    """Return a span of plain numbers."""
    return Span(SequenceNumber(first), SequenceNumber(last))


def joined(before: Sequence[Span], after: Sequence[Span], limit: int) -> tuple[Span, ...]:
    """Return both lists as one, with touching spans joined. Spans above the limit are left out."""
    spans = list(before)
    for one in after:
        if spans and spans[-1].last + 1 == one.first:
            spans[-1] = Span(spans[-1].first, one.last)
        elif len(spans) < limit:
            spans.append(one)
    return tuple(spans)


PartitionId = NewType("PartitionId", str)
BATCH_EVENTS = 500  # the most events of one transaction; host.json has the same limit for the trigger
SAME_INSTANT = timedelta(milliseconds=2)  # the host and the SDK round an enqueued time differently

number_of = attrgetter("sequence_number")


@dataclass(frozen=True, slots=True)
class Stream:
    """An event hub as one consumer group sees it. `event_hub` is "namespace/hub"."""

    event_hub: str
    consumer_group: str

    def partition(self, partition_id: PartitionId) -> "Partition":
        return Partition(self.event_hub, self.consumer_group, partition_id)


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One life of a hub as a stream stores it. `hub_created_at` is None until the hub was read for the first time."""

    stream_id: int
    number: int
    opened_at: datetime
    hub_created_at: datetime | None
    opened_by: str | None = None
    opened_why: str | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as one consumer group sees it. `event_hub` is "namespace/hub"."""

    event_hub: str
    consumer_group: str
    partition_id: PartitionId

    @property
    def stream(self) -> Stream:
        return Stream(self.event_hub, self.consumer_group)

    def __str__(self) -> str:
        hub = self.event_hub.rpartition("/")[2]
        return f"{hub}/{self.consumer_group}/{self.partition_id}"


Annotations = Mapping[str, object] | Callable[[], Mapping[str, object]]
PARTITION_KEY = "x-opt-partition-key"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MILLISECOND = 253_402_300_799_999  # since 1970: of the year 9999
_IDS = ("message-id", "correlation-id")
TIMES = frozenset(("absolute-expiry-time", "creation-time", "iothub-enqueuedtime"))
_STAMPS = ("x-opt-sequence-number", "x-opt-offset", "x-opt-enqueued-time", PARTITION_KEY)
_OF_NET = ("SequenceNumber", "Offset", "OffsetString", "PartitionKey", "EnqueuedTimeUtc")  # its names for the same
_FIELDS = frozenset((*_STAMPS, *_OF_NET))


class WhenAsked:
    """Annotations that a function reads at the first call. A child process gets what was read."""

    __slots__ = ("_found", "_given", "_read")

    def __init__(self, read: Callable[..., dict[str, object]], *given: object) -> None:
        self._read, self._given = read, given
        self._found: dict[str, object] | None = None

    def __call__(self) -> dict[str, object]:
        if self._found is None:
            self._found = self._read(*self._given)
        return self._found

    def __reduce__(self) -> tuple[type, tuple[dict[str, object]]]:
        return dict, (self(),)


class Event(msgspec.Struct, frozen=True):
    """One event of the hub. `body` has the bytes that were sent, `properties` the application properties by name.

    `sequence_number` orders the events of a partition. `enqueued_at` is aware UTC. `offset` is never compared.
    `annotations` are the system properties as the trigger's JSON has them, or a function that reads them from the
    message: `system_properties` is for transforms. `own_key` is the key that the room or `EVENT_KEY` gives the event.
    It is no dataclass, because one is made for each event: a frozen dataclass takes ten times as long to fill.
    """

    sequence_number: SequenceNumber
    offset: str
    enqueued_at: datetime
    partition_key: str | None
    properties: Mapping[str, object]
    body: bytes
    annotations: Annotations | None = None
    own_key: str | None = None

    @classmethod
    def from_columns(cls, *columns: Any) -> "Event":
        """Return a stored event, from columns in the order of the fields. `stored_annotations` are read with the
        properties, and the column of the key has the event's own key."""
        number, offset, enqueued_at, key, (properties, system), body = columns
        if PARTITION_KEY in system:
            return cls(number, offset, enqueued_at, system[PARTITION_KEY], properties, body, system, key)
        return cls(number, offset, enqueued_at, key, properties, body, system or None)

    @property
    def stored_annotations(self) -> dict[str, object]:
        """The system properties as a letter stores them. With an own key, they include the partition key."""
        own = {} if self.own_key in (None, self.partition_key) else {PARTITION_KEY: self.partition_key}
        return self.sent_annotations | own

    @property
    def key(self) -> str | None:
        """The key by which the event is held, found, replayed and erased."""
        return self.partition_key if self.own_key is None else self.own_key

    @property
    def sent_annotations(self) -> dict[str, object]:
        """The system properties without nulls, and without the ones that an event has as fields."""
        found = self.annotations() if callable(self.annotations) else self.annotations or {}
        return {name: value for name, value in found.items() if value is not None and name not in _FIELDS}

    @property
    def system_properties(self) -> dict[str, object]:
        """The properties that the hub, an IoT Hub or the library of the sender gave the event. docs/transforms.md has
        the table. Each use makes a new mapping."""
        found = self.sent_annotations
        for name in TIMES & found.keys():
            found[name] = sent_time(found[name])
        found.update(zip(_STAMPS, (self.sequence_number, self.offset, self.enqueued_at), strict=False))
        return found if self.partition_key is None else {**found, PARTITION_KEY: self.partition_key}


def captured(system: Mapping[str, object]) -> dict[str, object]:
    """Return the system properties of a file of Event Hubs Capture as the trigger's JSON has them."""

    def sent(name: str, value: object) -> object:
        if isinstance(value, bytes):
            return value.hex().upper() if name in _IDS else b64encode(value).decode()
        if name in TIMES and isinstance(value, int):
            return str(EPOCH + timedelta(milliseconds=min(max(value, 0), LAST_MILLISECOND)))
        return str(value) if name in _IDS and isinstance(value, int) else value

    return {name: sent(name, value) for name, value in system.items()}


def sent_time(value: object) -> object:
    """Return a text of the trigger's JSON as a time. Any other value stays unchanged."""
    if not isinstance(value, str):
        return value
    try:
        found = datetime.fromisoformat(value)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return value


def is_same_instant(one: datetime, other: datetime) -> bool:
    """Return True when two times of one event differ by rounding only."""
    return abs(one - other) <= SAME_INSTANT


def order_key(event: Event) -> str | None:
    """Return the key of an event as the store has it, or None: an event without one is never held."""
    key = event.key
    return key if key is None or key.isascii() else key.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class EventBatch:
    """The events of one invocation: one partition, at least one event, in order of sequence number.

    `asked` is the range that the hub was asked for: its numbers that are not in the batch are absent. `retries`: how
    often the invocation was attempted before.
    """

    partition: Partition
    events: tuple[Event, ...]
    invocation_id: str
    asked: Span | None = None
    retries: int = 0

    @property
    def is_retry(self) -> bool:
        """True when the invocation was attempted before."""
        return self.retries > 0


class Position(Protocol):
    """The end of a commit: an event, or the end of the hub."""

    @property
    def sequence_number(self) -> SequenceNumber: ...

    @property
    def offset(self) -> str: ...

    @property
    def enqueued_at(self) -> datetime: ...


def stream_of(namespace: str, event_hub: str, consumer_group: str) -> Stream:
    """Return the stream as our tables name it: "namespace/hub", without the port of an emulator's address.

    The namespace is a host name, whose case does not count: the trigger has it in lower case, and the SDK as it is set.
    """
    return Stream(f"{namespace.partition(':')[0].lower()}/{event_hub}", consumer_group)
