"""A replay as a task: make it of a request, and show it and the diff of a dry run."""

import json

import msgspec

from core.api.operation import Call, Number, key_of, number_of, operation, page_of, utc
from core.api.problems import NOT_FOUND, invalid
from core.errors import ReplayRefused
from core.model.events import PartitionId, SequenceNumber, Span
from core.model.ports import Place
from core.model.shapes import Nothing, PartitionText, written
from core.replay.pieces import PartitionProgress, ReplayCounts, replay_of
from core.replay.request import ReplayOrder
from core.replay.task import ReplayKind, replay_task
from core.tasks.task import Task, TaskOrder, TaskRequest, of_every_kind
from handlers.app import App, app
from handlers.operations.replay_shapes import (
    CountsAnswer,
    DiffAnswer,
    DiffQuery,
    EventDiffAnswer,
    LeftOutAnswer,
    PartitionAnswer,
    PlaceShape,
    ReplayAnswer,
    ReplayShape,
    SpanAnswer,
)
from handlers.operations.task_shapes import TaskPath, found_task


def request(own: App, order: TaskOrder, body: ReplayShape) -> TaskRequest:
    """Return the task of a replay; raise a problem for a range that cannot be replayed."""
    try:
        return replay_task(order, _wanted(body), kind(own), own.settings.replay_most_events)
    except ReplayRefused as refusal:
        raise invalid(refusal.field, refusal.why) from refusal


@operation("The changes that a dry run shows, event by event", "tasks", problems=(NOT_FOUND,))
def show_replay_diff(call: Call[TaskPath, DiffQuery, Nothing]) -> DiffAnswer:
    """Show a page of the diff of a dry run so far."""
    job, query = replay_of(found_task(app(), call.path.task_id, "replay")), call.query
    job_id = job.task.task_id
    after = None
    if query.cursor is not None:
        partition_id, number = key_of(str(job_id), query.cursor, tuple[PartitionText, Number])
        after = (PartitionId(partition_id), SequenceNumber(number))
    found = app().replays.read_replay_diffs(job_id, after, query.limit + 1)
    page, following = page_of(found, query.limit, str(job_id), lambda one: (one.partition_id, one.sequence_number))
    events = [_diff(one.partition_id, one.sequence_number, one.diff) for one in page]
    return DiffAnswer(events=events, next=following, keys=list(job.asked.keys) or None)


def kind(own: App) -> ReplayKind:
    """Return the replays of the stream."""
    given, means = own.settings, (own.replays, own.stream_hub, own.transform, own.clock)
    return ReplayKind(given.stream, *means, given.letters, erasure=given.erasure, journal=own.means.journal)


def shown(task: Task) -> ReplayAnswer:
    """Show a replay."""
    job = replay_of(task)
    counts, keys = job.counts, len(job.asked.keys)
    return ReplayAnswer(
        **of_every_kind(task, counts.events + counts.gone + job.others, task.total),
        asked=json.loads(job.asked.asked),
        counts=_counts(counts),
        partitions=[_partition(one) for one in job.partitions],
        left_out=[written(LeftOutAnswer, one) for one in job.asked.left_out],
        transform_version=task.transform_version or "",
        app_transform_version=app().transform.version,
        keys=keys or None,
        other_keys=job.others if keys else None,
    )


def _wanted(body: ReplayShape) -> ReplayOrder:
    partitions = None if body.partitions is None else tuple(map(PartitionId, body.partitions))
    asked = {"partitions": body.partitions, "from": body.from_, "to": body.to}
    return ReplayOrder(
        partitions=partitions,
        start=_place(body.from_, "from"),
        end=_place(body.to, "to"),
        asked=msgspec.json.encode(asked).decode(),
        is_dry_run=body.dry_run,
        keys=_keys(body.keys or []),
    )


def _keys(given: list[str]) -> tuple[str, ...]:
    """Return the partition keys of a request, as the store has them; a key that is given twice is a problem."""
    keys = dict.fromkeys(given)
    if len(keys) < len(given):
        twice = next(at for at, key in enumerate(given) if key in given[:at])
        raise invalid(f"keys[{twice}]", "this partition key is given twice: name each once")
    return tuple(keys)


def _place(given: PlaceShape | None, field: str) -> Place | None:
    if given is None:
        return None
    named = [name for name in ("sequence_number", "offset", "enqueued_at") if getattr(given, name) is not None]
    if len(named) != 1:
        raise invalid(field, "set exactly one of sequence_number, offset and enqueued_at")
    if given.sequence_number is not None:
        return number_of(given.sequence_number, f"{field}.sequence_number")
    return given.offset if given.offset is not None else utc(given.enqueued_at, f"{field}.enqueued_at")


def _partition(one: PartitionProgress) -> PartitionAnswer:
    span = one.range.span
    return PartitionAnswer(
        partition_id=one.range.partition_id,
        first=str(span.first),
        last=str(span.last),
        next=str(one.next_number),
        closed_at=one.closed_at,
        note=one.range.note,
        counts=_counts(one.report),
        gone=[_span(each) for each in one.report.gone_ranges],
        transform_versions=list(one.report.transform_versions),
    )


def _counts(counts: ReplayCounts) -> CountsAnswer:
    return written(CountsAnswer, counts)


def _span(span: Span) -> SpanAnswer:
    return written(SpanAnswer, span)


def _diff(partition_id: str, number: int, diff: str) -> EventDiffAnswer:
    event = {"partition_id": partition_id, "sequence_number": str(number), "error": None}
    return msgspec.convert({**event, **json.loads(diff)}, type=EventDiffAnswer)
