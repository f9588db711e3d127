"""Audit the ledger: the ranges since the audit before at once; all ranges, the rows and the hub as a job."""

import threading
from datetime import timedelta
from uuid import UUID

from core.api.operation import Answer, Call, Nothing, number_of, operation
from core.api.problems import BUSY, NOT_FOUND, Problem, invalid, not_found
from core.ledger.audit import audit
from core.ledger.audit_job import AuditJob, AuditRequest
from core.ledger.ranges import Reading
from core.ledger.recount import MOST_EVENTS, MOST_NUMBERS
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from handlers.app import CLOCK, app
from handlers.operations.audit_findings import audited_partitions, fault_answer, job_answer, partition_answer
from handlers.operations.audit_shapes import AuditAnswer, AuditJobAnswer, AuditPath, AuditQuery, AuditShape

AT_MOST = timedelta(seconds=20)  # of one request; the next one goes on

_auditing = threading.Lock()


@operation(
    "Whether the ranges since the audit before tile the log and match the letters",
    "ledger",
    problems=(NOT_FOUND, BUSY),
)
def audit_ledger(call: Call[Nothing, AuditQuery, Nothing]) -> AuditAnswer:
    """Audit the ledger until the time of a request is over, once at a time in a process."""
    if not _auditing.acquire(blocking=False):
        raise Problem(
            BUSY, "an audit is running: send the request again when it is done", headers={"Retry-After": "10"}
        )
    try:
        return _audited(call)
    finally:
        _auditing.release()


@operation("Request an audit of all ranges, the rows or the hub", "ledger", {202: AuditJobAnswer}, (NOT_FOUND, BUSY))
def request_audit(call: Call[Nothing, Nothing, AuditShape]) -> Answer:
    """Store a job; the timer `run_audits` works on it. One job is open at a time, in all processes together."""
    own, asked = app(), call.body
    first, last = _ends(asked)
    id = None if asked.partition_id is None else PartitionId(asked.partition_id)
    if not audited_partitions(own, id):
        raise not_found("partition_id", "there is no commit" if id is None else f"partition {id} has no commit")
    request = AuditRequest(CLOCK.new_id(), call.who, call.at, id, asked.whole, asked.rows, asked.hub, first, last)
    if not own.audits.open_audit(request):
        standing = own.audits.find_open_audit()
        more = {} if standing is None else {"audit_id": str(standing)}  # it may have ended at this moment
        raise Problem(BUSY, "a different audit is open: wait until it ends", more=more, headers={"Retry-After": "10"})
    return Answer(
        job_answer(AuditJob(request)), 202, {"Location": f"/api/audits/{request.audit_id}", "Retry-After": "5"}
    )


@operation("One audit that runs as a job, with its findings so far", "ledger", problems=(NOT_FOUND,))
def show_audit(call: Call[AuditPath, Nothing, Nothing]) -> AuditJobAnswer:
    """Show a job."""
    found = app().audits.find_audit(UUID(call.path.audit_id))
    if found is None:
        raise not_found("audit_id", f"there is no audit {call.path.audit_id}")
    return job_answer(found)


def _audited(call: Call[Nothing, AuditQuery, Nothing]) -> AuditAnswer:
    id = None if call.query.partition_id is None else PartitionId(call.query.partition_id)
    until = CLOCK.now() + AT_MOST
    done = audit(app().ledger, id, Reading(whole=False, is_over=lambda: CLOCK.now() >= until))
    if id is not None and not done.partitions:
        raise not_found("partition_id", f"partition {id} has no commit")
    return AuditAnswer(
        at=call.at,
        balanced=done.balanced,
        complete=done.complete,
        accounted=sum(one.ledger.accounted for one in done.partitions),
        faults=[fault_answer(fault) for fault in done.faults],
        partitions=[partition_answer(one) for one in done.partitions],
    )


def _ends(asked: AuditShape) -> tuple[SequenceNumber | None, SequenceNumber | None]:
    """Read the ends of a recount."""
    first = None if asked.first is None else number_of(asked.first, "first")
    last = None if asked.last is None else number_of(asked.last, "last")
    named = "first" if first is not None else "last"
    if (first, last) != (None, None) and asked.partition_id is None:
        raise invalid("partition_id", "first and last are numbers of one partition: set partition_id")
    if (first, last) != (None, None) and not (asked.rows or asked.hub):
        raise invalid(named, "set rows or hub, to recount the rows or the hub")
    if first is not None and last is not None:
        _refuse_range(first, last, MOST_EVENTS if asked.hub else MOST_NUMBERS)
    return first, last


def _refuse_range(first: SequenceNumber, last: SequenceNumber, limit: int) -> None:
    if last < first:
        raise invalid("last", f"{last} is before first, which is {first}")
    if last - first >= limit:
        raise invalid("last", f"{last - first + 1} numbers are too many: the limit of one recount is {limit}")
