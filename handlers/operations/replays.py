"""Replays as tasks: the request and the answer, the means of a replay, and how it is shown."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from core.api.operation import Call, Number, key_of, number_of, operation, page_of, utc
from core.api.problems import NOT_FOUND, invalid
from core.errors import ReplayRefused
from core.model.events import PartitionId, SequenceNumber, Span
from core.model.ports import Place
from core.model.shapes import (
    PAGE,
    Answered,
    Cursor,
    Instant,
    Limit,
    Nothing,
    NumberText,
    PartitionText,
    Reason,
    Shape,
    shape_of,
    written,
)
from core.replay.pieces import MOST_KEYS, LeftOut, PartitionProgress, ReplayCounts, replay_of
from core.replay.request import ReplayOrder
from core.replay.store import Replays
from core.replay.task import ReplayKind, replay_task
from core.settle.partition_store import Partitions
from core.tasks.task import Task, TaskAnswer, TaskOrder, TaskRequest, of_every_kind
from handlers.app import App, app
from handlers.operations.task_shapes import TaskPath, TaskShape, found_task

OffsetText = Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z:._-]{1,64}\Z", description="The hub's own text.")]
PartitionTexts = Annotated[list[PartitionText], msgspec.Meta(min_length=1, max_length=2000)]
KeyText = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000, description="A partition key, byte by byte.")]
Keys = Annotated[list[KeyText], msgspec.Meta(min_length=1, max_length=MOST_KEYS)]


class PlaceShape(Shape):
    """A place in a partition, by exactly one of these fields."""

    sequence_number: NumberText | None = None
    offset: OffsetText | None = None
    enqueued_at: Instant | None = None


class ReplayShape(TaskShape, tag="replay"):
    """A request for a replay. A range by number or offset includes both ends, one by time ends before `to`. A field
    that is left out means all that is committed. With `keys`, only the events of these partition keys are replayed.
    Only a request with `dry_run` = false changes anything."""

    reason: Reason
    partitions: PartitionTexts | None = None
    from_: PlaceShape | None = msgspec.field(name="from", default=None)
    to: PlaceShape | None = None
    keys: Keys | None = None
    dry_run: bool = True


class DiffQuery(Shape):
    """A page of events that would change, by partition and number."""

    limit: Limit = PAGE
    cursor: Cursor | None = None


_Span: Any = shape_of(Span)


class SpanAnswer(_Span):
    """Sequence numbers, both ends included."""


_Counts: Any = shape_of(ReplayCounts, hidden=("states_rewritten", "states_lowered"))


class CountsAnswer(_Counts):
    """The work so far; in a dry run, the work that it would do. Only dry runs count `rows_added`, `rows_removed`,
    `rows_changed` and `events_changed`. `held` events wait for an earlier letter of their partition key. `gone` numbers
    are neither in the hub nor in a letter, nor staged; a replay by key counts those of its range, whatever their keys
    were. `states_left` are states that their event did not write again, or wrote with an older value of `newest_by`. A
    replay by key counts only the latter."""


class PartitionAnswer(Answered):
    """The progress of a job in a partition: `next` is the first number of its next piece; `note` says which numbers
    of the request are left out. `transform_versions` did its pieces, in order."""

    partition_id: str
    first: str
    last: str
    next: str
    closed_at: datetime | None
    note: str | None
    counts: CountsAnswer
    gone: list[SpanAnswer]
    transform_versions: list[str]


_LeftOut: Any = shape_of(LeftOut)


class LeftOutAnswer(_LeftOut):
    """A partition in which nothing can be replayed."""


class ReplayAnswer(TaskAnswer, tag_field="kind", tag="replay", omit_defaults=True):
    """A replay. Only apps with its `transform_version` do its pieces. `app_transform_version` is the version of the app
    that answers. Only a replay by key has the last two fields: the number of its partition `keys`, and the events of
    `other_keys` that were read and left alone. The diff, which reveals events, names the keys."""

    asked: dict[str, Any]
    counts: CountsAnswer
    partitions: list[PartitionAnswer]
    left_out: list[LeftOutAnswer]
    transform_version: str
    app_transform_version: str
    keys: int | None = None
    other_keys: int | None = None


class RowAnswer(Answered):
    """A row of a table."""

    table: str
    row: dict[str, Any]


class ChangedRowAnswer(Answered):
    """A row that changes, with each changed column before and after."""

    table: str
    row: dict[str, Any]
    columns: dict[str, list[Any]]


class EventDiffAnswer(Answered):
    """The rows of an event that a replay would change."""

    partition_id: str
    sequence_number: str
    outcome: Literal["written", "filtered", "dead_lettered", "held"]
    error: str | None
    added: list[RowAnswer]
    removed: list[RowAnswer]
    changed: list[ChangedRowAnswer]


class DiffAnswer(Answered, omit_defaults=True):
    """A page of events that would change. Each partition shows its first thousand; the job counts all. Only the diff of
    a replay by key has `keys`: the partition keys that were requested."""

    events: list[EventDiffAnswer]
    next: str | None
    keys: list[str] | None = None


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
    found = replay_store(app()).read_replay_diffs(job_id, after, query.limit + 1)
    page, following = page_of(found, query.limit, str(job_id), lambda one: (one.partition_id, one.sequence_number))
    events = [
        {
            "partition_id": one.partition_id,
            "sequence_number": str(one.sequence_number),
            "error": None,
            **json.loads(one.diff),
        }
        for one in page
    ]
    changes = msgspec.convert(events, type=list[EventDiffAnswer])
    return DiffAnswer(events=changes, next=following, keys=list(job.asked.keys) or None)


def replay_store(own: App) -> Replays:
    """Return the store of the replays, which waits for a database that does not answer."""
    return Replays(own.core.patient, Partitions(own.core.patient))


def kind(own: App) -> ReplayKind:
    """Return the replays of the stream."""
    given, means = own.settings, (replay_store(own), own.stream_hub, own.transform, own.clock)
    return ReplayKind(given.stream, *means, given.letters, erasure=given.erasure, journal=own.core.ingestion.journal)


def shown(task: Task) -> ReplayAnswer:
    """Show a replay."""
    job = replay_of(task)
    counts, keys = job.counts, len(job.asked.keys)
    return ReplayAnswer(
        **of_every_kind(task, counts.events + counts.gone + job.others, task.total),
        asked=json.loads(job.asked.asked),
        counts=written(CountsAnswer, counts),
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
        counts=written(CountsAnswer, one.report),
        gone=[written(SpanAnswer, each) for each in one.report.gone_ranges],
        transform_versions=list(one.report.transform_versions),
    )
