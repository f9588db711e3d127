"""The port between the Event Hubs trigger and a hub (the SDK's, or one in memory for tests)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class StartAt:
    """The start of reading: after `offset` (an opaque text, or AMQP's "-1" or "@latest"), or after `enqueued_at`.

    `sequence_number` belongs to the event at `offset`, where it is known.
    """

    offset: str | None = None
    enqueued_at: datetime | None = None
    sequence_number: int | None = None


START = StartAt(offset="-1", sequence_number=-1)
END = StartAt(offset="@latest")


@dataclass(frozen=True, slots=True)
class HubEvent:
    """One event of a partition. `enqueued_at` is aware UTC. `system_properties` are JSON, as the message has them.

    An event that does not bind fails its invocation before the function.
    """

    body: bytes
    sequence_number: int
    offset: str
    enqueued_at: datetime
    partition_key: str | None = None
    properties: Mapping[str, Any] | None = field(default_factory=dict)  # as JSON; None: .NET has no values for them
    system_properties: dict[str, Any] = field(default_factory=dict)
    binds: bool = True

    @property
    def position(self) -> StartAt:
        return StartAt(self.offset, None, self.sequence_number)


@dataclass(frozen=True, slots=True)
class HubAddress:
    """A hub and a consumer group. `namespace` is fully qualified and has no port."""

    namespace: str
    hub: str
    consumer_group: str


class ReaderStopped(Exception):
    """The reader cannot read an event. The events that were received with it are lost to this stream."""

    def __init__(self, sequence_number: int, *, is_first: bool) -> None:
        super().__init__(f"the reader stops on event {sequence_number}")
        self.sequence_number = sequence_number
        self.is_first = is_first  # of what was received with it


class EventStream(Protocol):
    """The events of one partition, in order. A stream survives lost connections."""

    async def read(self, limit: int) -> Sequence[HubEvent]:
        """Wait for events and return 1 to `limit` of them. A cancelled read loses none.

        Raises ReaderStopped after the last event that was received before, and then the stream has ended.
        """

    async def close(self) -> None:
        """Close the partition."""


class EventSource(Protocol):
    """One hub, read by one consumer group."""

    async def partition_ids(self) -> Sequence[str]:
        """Return the hub's partitions. Log and retry while the hub cannot be reached."""

    async def open(self, partition_id: str, start: StartAt) -> EventStream:
        """Begin to read a partition."""

    async def close(self) -> None:
        """Close the connections."""
