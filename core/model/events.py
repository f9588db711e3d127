"""What arrives: an event, the batch of one invocation, and the partition that both belong to."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NewType, Protocol

SequenceNumber = NewType("SequenceNumber", int)
PartitionId = NewType("PartitionId", str)


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as one consumer group sees it; `event_hub` is "namespace/hub"."""

    event_hub: str
    consumer_group: str
    partition_id: PartitionId

    def __str__(self) -> str:
        hub = self.event_hub.rpartition("/")[2]
        return f"{hub}/{self.consumer_group}/{self.partition_id}"


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the hub. `enqueued_at` is aware UTC; `offset` is opaque and never compared."""

    sequence_number: SequenceNumber
    offset: str
    enqueued_at: datetime
    partition_key: str | None
    properties: Mapping[str, object]
    body: bytes


@dataclass(frozen=True, slots=True)
class Gap:
    """Sequence numbers, both ends included, that are missing between what is committed and what is in hand."""

    first: SequenceNumber
    last: SequenceNumber


@dataclass(frozen=True, slots=True)
class EventBatch:
    """The events of one invocation: one partition, at least one event, sequence numbers rising.

    `asked` is the range for which the hub was asked: what the batch leaves out of it is absent.
    """

    partition: Partition
    events: tuple[Event, ...]
    invocation_id: str
    asked: Gap | None = None


class Position(Protocol):
    """Where a commit ends: an event, or the hub's end behind which nothing is left."""

    @property
    def sequence_number(self) -> SequenceNumber: ...

    @property
    def offset(self) -> str: ...

    @property
    def enqueued_at(self) -> datetime: ...


def event_hub_identity(namespace: str, event_hub: str) -> str:
    """The name of a hub in our tables: "namespace/hub", without the port that an emulator's address has."""
    return f"{namespace.partition(':')[0]}/{event_hub}"
