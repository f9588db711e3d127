"""Work on an audit that runs as a job: one partition after the other, each step stored."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.errors import InfrastructureFault
from core.ledger.audit_job import DEADLINE, AuditJob, AuditRequest
from core.ledger.store.audits import Audits
from core.model.events import PartitionId

LEASE = timedelta(minutes=10)  # of a process that works on a job: if it dies, another one goes on after that
STREAM = "stream"  # the key of the finding that is about no single partition


@dataclass(frozen=True, slots=True)
class AuditMeans:
    """The parts of an audit: they find the partitions, audit one until a time, and audit the stream; findings are JSON
    texts. `now` is the clock."""

    store: Audits
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
