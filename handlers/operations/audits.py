"""Audit the ranges of the ledger at once. With its rows, an audit is a task."""

import threading
from datetime import datetime, timedelta

from core.api.operation import Call, operation
from core.api.problems import BUSY, NOT_FOUND, Problem, not_found
from core.audit.audit import Reading, audit
from core.audit.store import AuditStore
from core.audit.task import AuditedAnswer, FaultAnswer, partition_answer
from core.model.events import PartitionId
from core.model.shapes import Answered, Nothing, PartitionText, Shape, written
from handlers.app import CLOCK, App, app


class AuditQuery(Shape):
    """One partition, or all."""

    partition_id: PartitionText | None = None


class AuditAnswer(Answered):
    """The audit of the ranges. If it is not `complete`, the time was over: request an audit as a task."""

    at: datetime
    balanced: bool
    complete: bool
    accounted: int
    faults: list[FaultAnswer]
    partitions: list[AuditedAnswer]


def audit_store(own: App) -> AuditStore:
    """Return the store of the stream's audits."""
    return AuditStore(own.stream, own.transform.row_classes)


AT_MOST = timedelta(seconds=20)  # of one request

_auditing = threading.Lock()


@operation(
    "Audit the ledger: whether each number has one outcome, and the letters match",
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
        id = None if call.query.partition_id is None else PartitionId(call.query.partition_id)
        until = CLOCK.now() + AT_MOST
        done = audit(audit_store(app()), id, Reading(lambda: CLOCK.now() >= until))
    finally:
        _auditing.release()
    if id is not None and not done.partitions:
        raise not_found("partition_id", f"partition {id} has no commit")
    return AuditAnswer(
        at=call.at,
        balanced=done.balanced,
        complete=done.complete,
        accounted=sum(one.ledger.accounted for one in done.partitions),
        faults=[written(FaultAnswer, fault) for fault in done.faults],
        partitions=[partition_answer(one) for one in done.partitions],
    )
