"""Publish with the azure-eventhub client: repeat each send until the hub answers."""

import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Protocol

from azure.eventhub import EventDataBatch, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage
from azure.eventhub.exceptions import AuthenticationError, EventHubError

from core.model.events import EPOCH, TIMES, sent_time
from core.remote.hub.system_properties import FIELDS
from local.feed.dangers import WireBody, message_of
from local.feed.event_file import FileEvent
from local.feed.feeding import Send
from local.feed.planned_events import LETTERS
from local.feed.record import ONCE, Copies
from local.trials.outcomes import event_of

PARTITION_KEY = b"x-opt-partition-key"  # the annotation that holds an event's key
SEND_TIMEOUT = 30.0  # seconds
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between two tries of a send
NOT_FINITE = {"gain": math.nan, "peak": math.inf, "floor": -math.inf, "level": 0.5}  # properties of malformed events
TRIES = 90  # of one send: about three minutes without an answer


class HubSilent(Exception):
    """The hub accepted a send in none of its tries."""


class Producer(Protocol):
    """The methods of EventHubProducerClient that a publisher uses."""

    def create_batch(self, *, partition_id: str) -> EventDataBatch:
        """Return an empty batch for one partition."""

    def send_batch(self, event_data_batch: EventDataBatch, *, timeout: float) -> None:
        """Send, and wait for the answer."""


def connect(connection_string: str, hub: str) -> EventHubProducerClient:
    """Return a client that repeats a failed send as seldom as its options allow."""
    return EventHubProducerClient.from_connection_string(connection_string, eventhub_name=hub, retry_total=0)


Stamp = Callable[[str | None], tuple[dict[bytes, Any], Mapping[str, Any]]]
"""Make the annotations and application properties of a sender's event, from the key of the sender."""


def keyed(key: str | None) -> tuple[dict[bytes, Any], Mapping[str, Any]]:
    """Return the annotation of an event with a partition key."""
    return ({} if key is None else {PARTITION_KEY: key}), {}


Parts = tuple[dict[bytes, Any], dict[str, Any], Mapping[str, Any]]
NOTHING: Parts = ({}, {}, {})


def parts_of(event: FileEvent) -> Parts:
    """Return the annotations, the properties of the message as the SDK names them, and the application properties of an
    event of a file. The bytes of `user-id` are not in a file."""
    found = event_of(event).sent_annotations
    for name in TIMES & found.keys():
        found[name] = sent_time(found[name])
    fields = {name.replace("-", "_"): found.pop(name) for name in FIELDS if name in found}
    fields.pop("user_id", None)
    for name, value in fields.items():
        if isinstance(value, datetime):
            fields[name] = (value - EPOCH) // timedelta(milliseconds=1)
    return {name.encode(): value for name, value in found.items()}, fields, event.properties


def message_with(
    body: bytes, annotations: dict[bytes, Any], fields: dict[str, Any], properties: Mapping[str, Any]
) -> AmqpAnnotatedMessage:
    """Return a message of data. The SDK takes no empty properties."""
    more = {"properties": fields} if fields else {}
    return AmqpAnnotatedMessage(
        data_body=body, annotations=annotations or None, application_properties=dict(properties) or None, **more
    )


class Publisher:
    """A publisher for one thread. `pause` sleeps, or returns True at once when the feed should end.

    Events that are planned as letters carry the properties, beside those of the stamp.
    """

    def __init__(
        self,
        producer: Producer,
        pause: Callable[[float], bool],
        resends: "Resends",
        properties: Mapping[str, float] = MappingProxyType({}),
        stamp: Stamp = keyed,
    ) -> None:
        self._stamp = stamp
        self._producer = producer
        self._properties = dict(properties)
        self._pause = pause
        self._resends = resends
        self.doubtful = 0

    def publish(self, send: Send) -> Copies:
        """Publish a send, and return how often it may now be in the hub. Raises HubSilent when no try succeeds.

        A send that the hub refuses as too busy is not in the hub. A send without an answer may be in the hub. It is
        repeated, so it may be there twice.
        """
        batch: EventDataBatch | None = None
        unanswered, tries, pause = 0, 0, FIRST_PAUSE
        while True:
            error: EventHubError | None = None
            try:
                batch = self._batch(send) if batch is None else batch
            except AuthenticationError:
                raise
            except EventHubError as fault:  # creating a batch asks the hub for its size limit
                error = fault
            else:
                try:
                    self._producer.send_batch(batch, timeout=SEND_TIMEOUT)
                except EventHubError as fault:
                    error = fault
                unanswered += self._resends.taken() + (error is not None and not _refused(error))
            if error is None:
                return ONCE if unanswered == 0 else self._doubt(1, unanswered + 1)
            tries += 1
            if tries == TRIES:
                raise HubSilent(f"the hub accepted no send in {tries} tries: {error}")
            if self._pause(pause):
                return self._doubt(0, unanswered)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _batch(self, send: Send) -> EventDataBatch:
        batch = self._producer.create_batch(partition_id=send.partition_id)
        for minute in send.minutes:
            annotations, properties = self._stamp(minute.partition_key)
            for event in minute.events:
                own, fields, given = NOTHING if event.sent is None else parts_of(event.sent)
                more = {**given, **properties, **(self._properties if event.expected[0] in LETTERS else {})}
                if isinstance(event.body, WireBody):
                    raw: Any = batch  # the SDK cannot encode every message
                    raw._message[5].append(message_of(event.body, minute.partition_key, more))
                    raw._count += 1
                    continue
                batch.add(message_with(event.body, {**own, **annotations}, fields, more))
        return batch

    def _doubt(self, at_least: int, at_most: int) -> Copies:
        self.doubtful += at_most > at_least
        return Copies(at_least, at_most)


def _refused(error: EventHubError) -> bool:
    """Return True when the hub answered that it is too busy: the only failure that leaves no doubt."""
    return bool(error.error == "server-busy")


class Resends(logging.Handler):
    """Count the sends that `send_batch` lost and repeated by itself: azure-eventhub 5.15 reports them only in its log.

    The client repeats every failed send once, even with a retry_total of 0.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._counts: Counter[int | None] = Counter()  # by thread: each has its own client
        self._logger = logging.getLogger("azure.eventhub._producer_client")
        self._level, self._propagated = self._logger.level, self._logger.propagate
        self._logger.setLevel(logging.DEBUG)
        self._logger.propagate = False
        self._logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Count a record that reports a lost send."""
        values = record.args if isinstance(record.args, tuple) else ()
        self._counts[record.thread] += any(isinstance(value, EventHubError) and not _refused(value) for value in values)

    def taken(self) -> int:
        """Return the number in this thread since its last call."""
        return self._counts.pop(threading.get_ident(), 0)

    def close(self) -> None:
        """Remove the handler, and restore the client's log."""
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)
        self._logger.propagate = self._propagated
        super().close()
