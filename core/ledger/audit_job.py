"""An audit as a job: its request, its progress, and the findings of each partition. One is open at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from core.model.events import PartitionId
from core.model.spans import SequenceNumber

DEADLINE = timedelta(hours=2)  # of a job: an open one keeps all others out
AuditStatus = Literal["open", "done", "failed"]


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """The request of an audit: one partition, or all; the ranges since the verified commit, or the `whole` ledger; a
    recount of the rows, of the hub, of the numbers from `first` to `last`."""

    audit_id: UUID
    requested_by: str
    requested_at: datetime
    partition_id: PartitionId | None = None
    whole: bool = False
    rows: bool = False
    hub: bool = False
    first: SequenceNumber | None = None
    last: SequenceNumber | None = None

    @property
    def deadline_at(self) -> datetime:
        """The time at which the job fails unless it is done."""
        return self.requested_at + DEADLINE


@dataclass(frozen=True, slots=True)
class AuditJob:
    """A job so far. `partitions` is None until it has begun. `findings` holds a JSON text for each partition that was
    audited; `fault` is the last fault of an open job, or why the job failed. `step` counts its changes."""

    request: AuditRequest
    status: AuditStatus = "open"
    step: int = 0
    partitions: tuple[PartitionId, ...] | None = None
    findings: Mapping[str, str] = field(default_factory=dict)
    fault: str | None = None
    ended_at: datetime | None = None

    @property
    def left(self) -> tuple[PartitionId, ...]:
        """The partitions that are not audited yet."""
        return tuple(id for id in self.partitions or () if id not in self.findings)
