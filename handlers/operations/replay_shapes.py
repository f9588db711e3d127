"""The shapes of requests about replays, and of their answers."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from core.model.events import Span
from core.model.shapes import PAGE, Answered, Cursor, Instant, Limit, NumberText, PartitionText, Reason, Shape, shape_of
from core.replay.pieces import MOST_KEYS, LeftOut, ReplayCounts
from core.tasks.task import TaskAnswer
from handlers.operations.task_shapes import TaskShape

OffsetText = Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z:._-]{1,64}\Z", description="The hub's own text.")]
Partitions = Annotated[list[PartitionText], msgspec.Meta(min_length=1, max_length=2000)]
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
    partitions: Partitions | None = None
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
