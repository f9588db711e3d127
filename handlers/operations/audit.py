"""Audit the ledger: the ranges at once, and with their rows as a task."""

import threading
from datetime import timedelta

from core.api.operation import Call, number_of, operation
from core.api.problems import BUSY, NOT_FOUND, Problem, invalid, not_found
from core.audit.audit import MOST_NUMBERS, Reading, audit
from core.audit.task import AuditAsked, AuditKind, audit_request
from core.model.events import PartitionId, SequenceNumber
from core.model.shapes import Nothing
from core.tasks.task import TaskOrder, TaskRequest
from handlers.app import CLOCK, App, app
from handlers.operations.audit_findings import audit_means, audited_partitions, fault_answer, partition_answer
from handlers.operations.audit_shapes import AuditAnswer, AuditQuery, AuditShape

AT_MOST = timedelta(seconds=20)  # of one request

_auditing = threading.Lock()


@operation(
    "The ranges tile the log and match the letters",
    "ledger",
    problems=(NOT_FOUND, BUSY),
)
def audit_ledger(call: Call[Nothing, AuditQuery, Nothing]) -> AuditAnswer:
    """Audit the ledger until the time of a request is over, once at a time in a process. Nothing is written."""
    if not _auditing.acquire(blocking=False):
        raise Problem(
            BUSY, "an audit is running: send the request again when it is done", headers={"Retry-After": "10"}
        )
    try:
        return _audited(call)
    finally:
        _auditing.release()


def request(own: App, order: TaskOrder, body: AuditShape) -> TaskRequest:
    """Return the task of an audit; raise a problem for a partition without a commit."""
    first, last = _ends(body)
    id = None if body.partition_id is None else PartitionId(body.partition_id)
    partitions = audited_partitions(own, id)
    if not partitions:
        raise not_found("partition_id", "there is no commit" if id is None else f"partition {id} has no commit")
    return audit_request(order, AuditAsked(id, body.rows, first, last), partitions)


def kind(own: App) -> AuditKind:
    """Return the audits of the stream."""
    return AuditKind(own.purges.stream.database, *audit_means(own), own.clock)


def _audited(call: Call[Nothing, AuditQuery, Nothing]) -> AuditAnswer:
    id = None if call.query.partition_id is None else PartitionId(call.query.partition_id)
    until = CLOCK.now() + AT_MOST
    done = audit(app().audits, id, Reading(lambda: CLOCK.now() >= until))
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
    if (first, last) != (None, None) and not asked.rows:
        raise invalid(named, "set rows, to recount the rows")
    if first is not None and last is not None:
        if last < first:
            raise invalid("last", f"{last} is before first, which is {first}")
        if last - first >= MOST_NUMBERS:
            raise invalid(
                "last", f"{last - first + 1} numbers are too many: the limit of one recount is {MOST_NUMBERS}"
            )
    return first, last
