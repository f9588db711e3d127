"""The shapes of requests about the aggregation, and of their answers."""

import json
from dataclasses import asdict
from datetime import date, datetime
from typing import Annotated, Any, Literal

import msgspec

from core.aggregation.kinds import RunOrder
from core.aggregation.quality import PartitionRows, Quality
from core.aggregation.runs import AggregationRun, Pause
from core.api.operation import Answered, Cursor, Reason, Shape
from core.api.problems import invalid
from core.api.shown import shape_of
from handlers.app import app
from handlers.operations.task_shapes import UUID_FORM

MOST_RUNS = 100
JobName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(rows\.)?[a-z][a-z0-9_]{0,39}\Z",
        description="An aggregate of the app's transform, or `rows.` and the table whose rows the lake keeps.",
    ),
]
RunText = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}\Z", description="A run's id.")]


OrderText = Annotated[str, msgspec.Meta(pattern=UUID_FORM, description="An id that the client makes for the order.")]


class AggregationBody(Shape):
    """The job to advance by one step; by default the first by name."""

    job: JobName | msgspec.UnsetType = msgspec.UNSET


class AggregationsQuery(Shape):
    """A page of the runs of a job, by default the first by name; the newest first."""

    job: JobName | None = None
    cursor: Cursor | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_RUNS)] = 20


class PauseShape(Shape):
    """The job to pause or resume, and the reason."""

    order_id: OrderText
    reason: Reason
    job: JobName | msgspec.UnsetType = msgspec.UNSET


class DaysShape(Shape):
    """The job, the first and the last day of event time in UTC (by default there is no end), and the reason."""

    order_id: OrderText
    reason: Reason
    job: JobName | msgspec.UnsetType = msgspec.UNSET
    since_day: date | None = None
    until_day: date | None = None


class RunPath(Shape):
    """A run."""

    run_id: RunText


class CancelShape(Shape):
    """The reason to cancel the job of a run."""

    order_id: OrderText
    reason: Reason


class DiscardShape(Shape):
    """The reason to discard a run, or only its staged result."""

    order_id: OrderText
    reason: Reason
    what: Literal["run", "result"]


_PartitionRows: Any = shape_of(PartitionRows)


class PartitionRowsAnswer(_PartitionRows):
    """A partition in which the tables have a different number of rows than the ledger counts."""


_Quality: Any = shape_of(Quality, partitions=list[PartitionRowsAnswer])


class QualityAnswer(_Quality):
    """The rows that a run read beside those that the ledger counts, with the `fault` in words if they differ. New
    figures may be added."""


class RunAnswer(Answered):
    """A run. A cut holds the commit number of each stream and partition; `rows_planned` are the rows that the ledger
    counts between them, and `rows_limit` is the number after which the run was ended. A repair or a backfill has the
    windows from `since_day` to `until_day`, of the rows at `rows_from`. New statuses and kinds may be added."""

    run_id: str
    job: str
    number: int
    cut_from: dict[str, int]
    cut_to: dict[str, int]
    engine: str
    attempt: int
    submits: int
    status: str
    planned_at: datetime
    intent_at: datetime
    engine_job_id: str | None
    submitted_at: datetime | None
    closed_at: datetime | None
    failure: str | None
    readings: int | None
    windows: int | None
    lake_path: str | None
    is_snapshot: bool
    committed_slices: int
    rows_limit: int | None
    rows_planned: int | None
    quality: QualityAnswer | None
    kind: str
    since_day: date | None
    until_day: date | None
    rows_from: str


class StepAnswer(Answered):
    """The actions of the step, and the newest run; `published` is true if the lake's tables are up to date."""

    did: list[str]
    published: bool
    run: RunAnswer | None


_Paused: Any = shape_of(Pause)


class PausedAnswer(_Paused):
    """The pause of a job: its time, author and reason."""


class WaitingAnswer(Answered):
    """A repair or a backfill whose run is not planned yet: its days, author, time and reason."""

    kind: str
    since_day: date | None
    until_day: date | None
    at: datetime
    who: str
    reason: str


class OrderAnswer(Answered):
    """An order about the job or one of its runs: its author, time, reason and days."""

    at: datetime
    move: str
    by: str
    why: str
    run_id: str | None
    days: str | None = None


class AggregationsAnswer(Answered):
    """The committed cut, the checkpoints that are `reached`, and a page of runs. `lag_seconds` is the age of the oldest
    commit that is not in the aggregate; `waiting` is the order that has no run yet; `history` has the newest first.
    With the `engine` "none" no step is taken, and nothing is summed."""

    job: str
    engine: str
    cut: dict[str, int]
    reached: dict[str, int]
    lag_seconds: float
    paused: PausedAnswer | None
    waiting: WaitingAnswer | None
    history: list[OrderAnswer]
    runs: list[RunAnswer]
    next: str | None


class FailureAnswer(Answered):
    """A submit of a run that gave no result: what happened, the engine's own reason, the end of its log, and a link."""

    submit: int
    attempt: int
    at: datetime
    why: str
    engine_job_id: str | None
    reason: str | None
    log: str | None
    link: str | None


class RunDetailAnswer(Answered):
    """A run with its failures, the newest first, and the time at which a result of it was staged."""

    run: RunAnswer
    staged_at: datetime | None
    failures: list[FailureAnswer]


def run_answer(run: AggregationRun) -> RunAnswer:
    """Return a run as it is shown."""
    shown: dict[str, Any] = asdict(run)
    days = shown.pop("days")
    cuts = {"cut_from": json.loads(run.cut_from), "cut_to": json.loads(run.cut_to)}
    figures = {"quality": None if run.quality is None else msgspec.json.decode(run.quality, type=QualityAnswer)}
    return RunAnswer(**shown | cuts | figures, since_day=days["since"], until_day=days["until"])


def waiting_answer(order: RunOrder | None) -> WaitingAnswer | None:
    """Return the order that waits as it is shown."""
    if order is None:
        return None
    since, until = order.days.since, order.days.until
    return WaitingAnswer(
        kind=order.kind, since_day=since, until_day=until, at=order.at, who=order.who, reason=order.reason
    )


def job_of(requested: str | msgspec.UnsetType | None) -> str:
    """Return the requested job, or the first one of the app's transform."""
    names = app().jobs
    if names and (requested is None or requested is msgspec.UNSET):
        return names[0]
    if isinstance(requested, str) and requested in names:
        return requested
    raise invalid("job", f"must be one of {', '.join(names)}" if names else "the app's transform has no aggregate")
