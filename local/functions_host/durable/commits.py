"""The values that the store reads and writes: a commit holds everything that one transaction writes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from local.functions_host.durable.history import Event
from local.functions_host.durable.instances import Instance, NewInstance, Status


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
