"""The shapes of requests about audits, and of their answers."""

from datetime import datetime
from typing import Any

import msgspec

from core.audit.faults import FaultKind, LedgerFault
from core.model.shapes import Answered, NumberText, PartitionText, Shape, shape_of
from core.tasks.task import TaskAnswer
from handlers.operations.task_shapes import TaskShape


class AuditQuery(Shape):
    """One partition, or all."""

    partition_id: PartitionText | None = None


class AuditShape(TaskShape, tag="audit"):
    """A request for an audit as a task: one partition, or all. `rows` also recounts the rows: the numbers from `first`
    to `last` of one partition, or the newest numbers of each."""

    partition_id: PartitionText | None = None
    rows: bool = False
    first: NumberText | None = None
    last: NumberText | None = None


_Fault: Any = shape_of(LedgerFault, kind=FaultKind)


class FaultAnswer(_Fault):
    """A fault of the ledger, and the numbers that it concerns."""


class RowRecountAnswer(Answered):
    """The recount of the rows from `first` to `last`. Each row is compared with the commit that it names, and each
    commit that lies wholly among these numbers with its rows. `complete` is true if these are all numbers of
    the partition."""

    first: str
    last: str
    rows: int
    complete: bool


class AuditedAnswer(Answered):
    """A partition up to commit `until`. If it is not `complete`, the time was over before the newest commit, and
    nothing but these ranges was compared. `rows` is null unless it was requested and exists."""

    partition_id: str
    first: str
    last: str
    checkpoint: str
    commits: int
    accounted: int
    dead_lettered: int
    letters: int
    until: str
    complete: bool
    balanced: bool
    rows: RowRecountAnswer | None


class AuditAnswer(Answered):
    """The audit of the ranges. If it is not `complete`, the time was over: request an audit as a task."""

    at: datetime
    balanced: bool
    complete: bool
    accounted: int
    faults: list[FaultAnswer]
    partitions: list[AuditedAnswer]


class AuditJobAnswer(TaskAnswer, tag_field="kind", tag="audit"):
    """An audit that runs as a task, with its findings so far: `done` of `total` partitions."""

    balanced: bool
    complete: bool
    accounted: int
    faults: list[FaultAnswer]
    partitions: list[AuditedAnswer]


class Finding(msgspec.Struct, frozen=True):
    """The finding of one partition, or of the stream, in the form in which a job stores it."""

    faults: list[FaultAnswer]
    partition: AuditedAnswer | None = None
