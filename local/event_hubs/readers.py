"""The readers of a partition: the position of each, its next events, and which readers exclude each other."""

import asyncio
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Any

from local.event_hubs.codec import Described, Symbol, Timestamp, ULong, encode
from local.event_hubs.errors import AmqpError, NotEmulated, not_found
from local.event_hubs.events import Event
from local.event_hubs.hubs import Clock, Hub
from local.event_hubs.log import PartitionLog
from local.event_hubs.sections import DELIVERY_ANNOTATIONS
from local.event_hubs.sessions import CHUNK, OutgoingLink

_EPOCH, _NAME = "com.microsoft:epoch", "com.microsoft:receiver-name"
_LONGEST_NAME = 64  # characters of a name that are repeated
_METRICS = "com.microsoft:enable-receiver-runtime-metric"
_SELECTORS = (
    "apache.org:selector-filter:string",
    0x468C00000004,
)  # the descriptors of a position; its name in the map of filters is free
_PLAIN_READER_LIMIT = 5  # per partition and consumer group; learn.microsoft.com/azure/event-hubs/event-hubs-quotas
_BURST = 512  # events read from the log together

Slot = tuple[str, str, str]


@dataclass(slots=True)
class Faults:
    """The faults that a test has requested."""

    throttled_sends: int = 0
    delivery_delay: int = 0  # milliseconds
    frozen: bool = False


class Reader:
    """The position of a link in a partition.

    Raises AmqpError for an invalid position, NotEmulated for a filter that is not a position.
    """

    def __init__(self, link: OutgoingLink, partition: PartitionLog, clock: Clock, faults: Faults) -> None:
        self.link = link
        self.epoch: int | None = link.attach.properties.get(_EPOCH)
        if self.epoch is not None and type(self.epoch) is not int:
            raise AmqpError("com.microsoft:argument-error", "the epoch is not a whole number")
        self.name = str(link.attach.properties.get(_NAME, "nil"))[:_LONGEST_NAME]  # the service's word for no name
        self._partition, self._clock, self._faults = partition, clock, faults
        self._retry: asyncio.TimerHandle | None = None
        self.next_sequence = partition.position(_selector(link.attach.source.filters))
        self._wants_metrics = _METRICS in link.attach.capabilities
        link.offered = (_METRICS,) if self._wants_metrics else ()

    def take(self, count: int) -> list[bytes]:
        """Return the next payloads, up to `count` and about CHUNK bytes of them."""
        events = self._partition.read(self.next_sequence, min(count, _BURST))
        if self._faults.delivery_delay and events:
            events = self._delayed(events)
        if not events:
            return []
        payloads = [event.payload for event in events]
        sizes = list(accumulate(map(len, payloads)))
        if sizes[-1] > CHUNK:
            del payloads[bisect_left(sizes, CHUNK) + 1 :]
        self.next_sequence = events[len(payloads) - 1].sequence_number + 1
        self._partition.lead.move(self)
        return [self._metrics() + payload for payload in payloads] if self._wants_metrics else payloads

    def close(self) -> None:
        if self._retry:
            self._retry.cancel()

    def _delayed(self, events: list[Event]) -> list[Event]:
        """Return the events that are old enough. When none is, pump the link again once the first one is."""
        newest = self._clock() - self._faults.delivery_delay
        old_enough = bisect_right(events, newest, key=attrgetter("enqueued_at"))
        if old_enough == 0:
            self.close()
            wait = (events[0].enqueued_at - newest) / 1000
            self._retry = asyncio.get_running_loop().call_later(wait, self.link.pump)
        return events[:old_enough]

    def _metrics(self) -> bytes:
        """Encode the annotations that azure-eventhub calls last_enqueued_event_properties."""
        partition = self._partition
        metrics = {
            Symbol("last_enqueued_sequence_number"): partition.last_sequence,
            Symbol("last_enqueued_offset"): str(partition.last_offset),
            Symbol("last_enqueued_time_utc"): Timestamp(partition.last_enqueued_at),
            Symbol("runtime_info_retrieval_time_utc"): Timestamp(self._clock()),
        }
        return encode(Described(ULong(DELIVERY_ANNOTATIONS), metrics))


def _selector(filters: dict[Any, Any]) -> str | None:
    texts: list[Any] = []
    for name, value in filters.items():
        described = value if isinstance(value, Described) else Described(name, value)
        if described.descriptor not in _SELECTORS or texts:
            raise NotEmulated(f"the filter {name!r}")
        texts += [] if described.value is None else [described.value]
    return next((one.decode(errors="replace") if isinstance(one, bytes) else str(one) for one in texts), None)


class Readers:
    """All readers, by hub, consumer group and partition."""

    def __init__(self) -> None:
        self._by_slot: defaultdict[Slot, list[Reader]] = defaultdict(list)

    def admit(self, reader: Reader, slot: Slot) -> None:
        """Admit a reader. A reader with an epoch detaches those that have none, the same or a lower epoch.

        Raises AmqpError amqp:link:stolen for a lower epoch or none beside a reader that has one, and
        amqp:resource-limit-exceeded for the sixth reader without an epoch. Source: the Event Hubs page on
        event processor hosts, "Epoch" (learn.microsoft.com/azure/event-hubs/event-hubs-event-processor-host).
        """
        others = self._by_slot[slot]
        for other in others:
            _refuse_lower(reader, other)
        if reader.epoch is not None:
            for other in list(others):
                other.link.detach(_stolen(other, reader))
        elif len(others) >= _PLAIN_READER_LIMIT:
            raise AmqpError(
                "amqp:resource-limit-exceeded",
                "Exceeded the maximum number of allowed receivers per partition in a consumer group which is "
                f"{_PLAIN_READER_LIMIT}. List of connected receivers - {', '.join(other.name for other in others)}.",
            )
        self._by_slot[slot].append(reader)  # the slot has a new list when all of `others` were detached

    def remove(self, reader: Reader, slot: Slot) -> None:
        others = self._by_slot[slot]
        others.remove(reader)
        if not others:
            del self._by_slot[slot]


def _refuse_lower(reader: Reader, other: Reader) -> None:
    """Raise AmqpError, in the service's words, when another reader's epoch is higher."""
    if other.epoch is None or (reader.epoch is not None and reader.epoch >= other.epoch):
        return
    if reader.epoch is None:
        words = (
            f"At least one receiver for the endpoint is created with epoch of '{other.epoch}', and so non-epoch "
            "receiver is not allowed. Either reconnect with a higher epoch, or make sure all epoch receivers are "
            "closed or disconnected."
        )
    else:
        words = (
            f"Receiver '{other.name}' with a higher epoch '{other.epoch}' already exists. Receiver '{reader.name}' "
            f"with epoch {reader.epoch} cannot be created. Make sure you are creating receiver with increasing epoch "
            "value to ensure connectivity, or ensure all old epoch receivers are closed or disconnected."
        )
    raise AmqpError("amqp:link:stolen", words)


def _stolen(former: Reader, reader: Reader) -> AmqpError:
    """Return the reason, in the service's words, for which a reader takes the place of a former one."""
    epoch = -1 if former.epoch is None else former.epoch
    return AmqpError(
        "amqp:link:stolen",
        f"New receiver '{reader.name}' with higher epoch of '{reader.epoch}' is created hence current receiver "
        f"'{former.name}' with epoch '{epoch}' is getting disconnected. If you are recreating the receiver, make "
        "sure a higher epoch is used.",
    )


def slot_of(hub: Hub, consumer_group: str, partition: PartitionLog) -> Slot:
    """Return the slot that readers of a partition share. Raises AmqpError amqp:not-found for an unknown group."""
    if consumer_group not in hub.consumer_groups:
        raise not_found(f"localhost:eventhub:{hub.name}~32766|{consumer_group}")
    return hub.name, consumer_group, partition.partition_id
