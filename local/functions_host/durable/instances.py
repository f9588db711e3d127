"""An instance of an orchestration, as its clients see it."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from local.functions_host.durable.history import Event


class Status(StrEnum):
    """The runtime status, in the extension's words."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"
    TERMINATED = "Terminated"

    @property
    def is_final(self) -> bool:
        """True when the instance has ended."""
        return self in (Status.COMPLETED, Status.FAILED, Status.TERMINATED)


@dataclass(frozen=True, slots=True)
class Parent:
    """The call of a sub-orchestration: the waiting execution, and the sequence number."""

    instance_id: str
    execution_id: str
    task_id: int


@dataclass(frozen=True, slots=True)
class NewInstance:
    """An orchestration to start. `input` is JSON; an execution id is new for each start and each continue-as-new."""

    instance_id: str
    execution_id: str
    name: str
    input: str | None = None
    parent: Parent | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """An orchestration and its status; input, output and custom status are JSON."""

    instance_id: str
    execution_id: str
    name: str
    status: Status
    created_at: datetime
    updated_at: datetime
    input: str | None
    output: str | None
    custom_status: str | None
    parent: Parent | None


@dataclass(frozen=True, slots=True)
class InstanceFilter:
    """A selection of instances; `after` is the last id of the page before, no status means any status."""

    prefix: str = ""
    created_from: datetime | None = None
    created_to: datetime | None = None
    statuses: Collection[Status] = ()
    after: str = ""
    top: int = 100


def is_entity(instance_id: str) -> bool:
    """Return True for the id of an entity, "@name@key"."""
    return instance_id.startswith("@")


@dataclass(frozen=True, slots=True)
class Entry:
    """An event that waits for an instance; without an execution id it is for any execution."""

    number: int
    execution_id: str | None
    event: Event


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An event for an instance or entity; it arrives at `due_at` or later."""

    instance_id: str
    execution_id: str | None
    event: Event
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Episode:
    """The input of an orchestrator's turn. `past` holds the history's events, each as JSON."""

    instance: Instance | None
    past: Sequence[str]
    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class ActivityOrder:
    """An activity to run for an execution; `input` is its text."""

    instance_id: str
    execution_id: str
    task_id: int
    name: str
    input: str | None


@dataclass(frozen=True, slots=True)
class ActivityDue:
    """An ordered activity without a result."""

    number: int
    order: ActivityOrder


@dataclass(frozen=True, slots=True)
class ChildOrder:
    """A sub-orchestration to start; `refused` goes to the parent when an instance of that id still runs."""

    child: NewInstance
    refused: Outgoing


@dataclass(frozen=True, slots=True)
class EpisodeCommit:
    """Everything that an orchestrator's turn changes.

    The turn belongs to `execution_id`; `successor` replaces this execution when it continues as new. `events` follow
    the `past` events of the history. `waits_for_nothing` is logged and not written: the orchestrator has not ended,
    and nothing is under way that could wake it.
    """

    instance_id: str
    execution_id: str
    at: datetime
    status: Status
    consumed: Sequence[int]
    past: int = 0
    events: Sequence[Event] = ()
    output: str | None = None
    custom_status: str | None = None
    activities: Sequence[ActivityOrder] = ()
    children: Sequence[ChildOrder] = ()
    outgoing: Sequence[Outgoing] = ()
    successor: NewInstance | None = None
    waits_for_nothing: bool = False

    @property
    def error(self) -> str | None:
        """The reason of a failed orchestration."""
        return json.loads(self.output) if self.status is Status.FAILED and self.output else None


@dataclass(frozen=True, slots=True)
class EntityBatch:
    """The operations that wait for an entity, and its state as JSON (None: it does not exist)."""

    entity_id: str
    state: str | None
    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class EntityCommit:
    """Everything that a batch of operations changes."""

    entity_id: str
    consumed: Sequence[int]
    state: str | None
    outgoing: Sequence[Outgoing]
