"""Request a purge, show its progress, and cancel it."""

from datetime import datetime
from uuid import UUID

from core.api.cursors import Moment, key_of, page_of
from core.api.operation import Answer, Call, Nothing, operation
from core.api.problems import BUSY, CONFLICT, NOT_FOUND, Problem, invalid, not_found
from core.ledger.audit import audit
from core.ledger.ranges import Reading
from core.ledger.retention.purge import BY_PARTITION, BY_STREAM, PurgeJob, PurgeRequest
from core.ledger.retention.work import PurgeMeans
from core.model.events import PartitionId
from core.model.retention import DEFAULT_DAYS
from handlers.app import CLOCK, App, app
from handlers.operations.purge_shapes import (
    CancelPurgeShape,
    PurgeAnswer,
    PurgedTableAnswer,
    PurgePath,
    PurgesAnswer,
    PurgeShape,
    PurgesQuery,
)


@operation("Request a purge of old rows; a dry run by default", "purges", {202: PurgeAnswer}, (NOT_FOUND, BUSY))
def request_purge(call: Call[Nothing, Nothing, PurgeShape]) -> Answer:
    """Store a job; the timer `run_purges` works on it. One job is open at a time, in all processes together."""
    own, asked = app(), call.body.older_than_days or {}
    unknown = sorted(set(asked) - set(DEFAULT_DAYS))
    if unknown:
        raise invalid("older_than_days", f"there is no table {unknown[0]}: name some of {', '.join(DEFAULT_DAYS)}")
    days = {**own.settings.purging.days, **asked}
    request = PurgeRequest(CLOCK.new_id(), call.who, call.body.reason, call.at, days, call.body.dry_run)
    if not own.purges.open_purge(request):
        standing = own.purges.find_open_purge()
        if standing is None and own.find_stream() is None:
            raise not_found("purges", "there is no commit yet, so nothing can be purged")
        more = {} if standing is None else {"purge_id": str(standing)}  # it may have ended at this moment
        raise Problem(BUSY, "a different purge is open: wait until it ends", more=more, headers={"Retry-After": "10"})
    return Answer(_purge(PurgeJob(request)), 202, {"Location": f"/api/purges/{request.purge_id}", "Retry-After": "5"})


@operation("A page of purges", "purges")
def list_purges(call: Call[Nothing, PurgesQuery, Nothing]) -> PurgesAnswer:
    """List a page of purges, the newest first."""
    query, before = call.query, None
    if query.cursor is not None:
        at, purge_id = key_of("purges", query.cursor, tuple[Moment, UUID])
        before = (at, purge_id)
    found = app().purges.read_purges(query.limit + 1, before)
    page, following = page_of(
        found, query.limit, "purges", lambda job: (job.request.requested_at, job.request.purge_id)
    )
    return PurgesAnswer(purges=[_purge(job) for job in page], next=following)


@operation("One purge with its progress", "purges", problems=(NOT_FOUND,))
def show_purge(call: Call[PurgePath, Nothing, Nothing]) -> PurgeAnswer:
    """Show a job."""
    return _purge(_found(call.path.purge_id))


@operation("Cancel a purge; the rows that it deleted stay deleted", "purges", problems=(NOT_FOUND, CONFLICT))
def cancel_purge(call: Call[PurgePath, Nothing, CancelPurgeShape]) -> PurgeAnswer:
    """Cancel the job for good; it begins no further piece."""
    job = _found(call.path.purge_id)
    why = f"cancelled by {call.who}: {call.body.reason}"
    if not app().purges.cancel_purge(job.request.purge_id, why, call.at):
        status = _found(call.path.purge_id).status
        raise Problem(CONFLICT, f"cancel: the purge is {status}", more={"purge_status": status})
    return _purge(_found(call.path.purge_id))


def purge_means(own: App) -> PurgeMeans:
    """Return the means of purges."""

    def verify(id: PartitionId, until: datetime) -> int | None:
        done = audit(own.ledger, id, Reading(whole=False, is_over=lambda: own.clock.now() >= until))
        return len(done.faults) if done.faults or done.complete else None

    jobs = own.jobs if own.settings.spark.engine != "none" else ()
    return PurgeMeans(own.purges, verify, jobs, own.clock.now)


def _found(purge_id: str) -> PurgeJob:
    job = app().purges.find_purge(UUID(purge_id))
    if job is None:
        raise not_found("purge_id", f"there is no purge {purge_id}")
    return job


def _purge(job: PurgeJob) -> PurgeAnswer:
    request = job.request
    return PurgeAnswer(
        purge_id=str(request.purge_id),
        status=job.status,
        dry_run=request.is_dry_run,
        older_than_days=dict(request.days),
        rows=sum(found.rows for found in job.found.values()),
        tables=[_table(job, name) for name in (*BY_PARTITION, *BY_STREAM) if name in job.found],
        left=None if job.tasks is None else len(job.tasks),
        requested_by=request.requested_by,
        reason=request.reason,
        requested_at=request.requested_at,
        updated_at=job.updated_at,
        ended_at=job.ended_at,
        fault=job.fault,
    )


def _table(job: PurgeJob, name: str) -> PurgedTableAnswer:
    found = job.found[name]
    return PurgedTableAnswer(
        table=name,
        rows=found.rows,
        bytes=found.bytes,
        oldest=found.oldest,
        newest=found.newest,
        notes=[*found.notes],
    )
