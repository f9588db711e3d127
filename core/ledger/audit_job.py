"""An audit as a job: its request, its progress, and the findings of each partition. One is open at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, Protocol
from uuid import UUID

from core.errors import InfrastructureFault
from core.model.events import PartitionId
from core.model.spans import SequenceNumber

LEASE = timedelta(minutes=10)  # of a process that works on a job: if it dies, another one goes on after that
DEADLINE = timedelta(hours=2)  # of a job: an open one keeps all others out
STREAM = "stream"  # the key of the finding that is about no single partition

AuditStatus = Literal["open", "done", "failed"]


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """The request of an audit: one partition, or all; the ranges since the verified sums, or the `whole` ledger; and a
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


class AuditJobStore(Protocol):
    """Stores the audits of one stream."""

    def open_audit(self, request: AuditRequest) -> bool:
        """Store a job; return False, with nothing stored, while another one is open, or the stream is unknown."""

    def find_open_audit(self) -> UUID | None:
        """Return the job that is open, or None."""

    def find_audit(self, audit_id: UUID) -> AuditJob | None:
        """Return a job, or None."""

    def claim_audit(self, now: datetime, until: datetime) -> AuditJob | None:
        """Claim the open job until a time; None when there is none, or another process has claimed it."""

    def record_audit(self, job: AuditJob, now: datetime, until: datetime) -> bool:
        """Store the next step of a claimed job, claimed until a time; False when another process has claimed it."""


@dataclass(frozen=True, slots=True)
class AuditMeans:
    """The parts of an audit: they find the partitions, audit one until a time, and audit the stream; findings are JSON
    texts. `now` is the clock."""

    store: AuditJobStore
    find_partitions: Callable[[AuditRequest], tuple[PartitionId, ...]]
    audit_partition: Callable[[AuditRequest, PartitionId, datetime], str]
    audit_stream: Callable[[AuditRequest], str]
    now: Callable[[], datetime]


def work_on_audit(means: AuditMeans, until: datetime) -> AuditJob | None:
    """Work on the open job until a time, partition by partition; return it, or None when there is nothing to do.

    Each step is stored. After a fault, the job waits for the next call; at its deadline, it fails.
    """
    job = means.store.claim_audit(means.now(), means.now() + LEASE)
    while job is not None and job.status == "open":
        if means.now() >= job.request.deadline_at:
            return _stored(means, _failed(job, means.now()))
        if means.now() >= until:
            return _stored(means, job, claim_for=timedelta())
        try:
            following = _next_step(means, job)
        except InfrastructureFault as fault:
            return _stored(means, replace(job, fault=str(fault)), claim_for=timedelta())
        job = _stored(means, following)
    return job


def _stored(means: AuditMeans, job: AuditJob, claim_for: timedelta = LEASE) -> AuditJob | None:
    now = means.now()
    return replace(job, step=job.step + 1) if means.store.record_audit(job, now, now + claim_for) else None


def _next_step(means: AuditMeans, job: AuditJob) -> AuditJob:
    """Find the partitions; then audit one after the other; then end."""
    begun = replace(job, fault=None)
    if job.partitions is None:
        return replace(begun, partitions=means.find_partitions(job.request))
    if not job.left:
        found = means.audit_stream(job.request)
        return replace(begun, findings={**job.findings, STREAM: found}, status="done", ended_at=means.now())
    id = job.left[0]
    found = means.audit_partition(job.request, id, means.now() + LEASE / 2)
    return replace(begun, findings={**job.findings, id: found})


def _failed(job: AuditJob, now: datetime) -> AuditJob:
    why = f"the audit was not done in {DEADLINE}" + (f": {job.fault}" if job.fault else "")
    return replace(job, status="failed", fault=why, ended_at=now)
