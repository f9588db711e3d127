"""An instance of an orchestration, as its clients see it."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


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
