"""Turn an operator's request for a replay into sequence numbers of each partition."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec

from core.errors import RequestRefused
from core.model.events import Event, Partition, PartitionId, SequenceNumber, Span, Stream
from core.model.ports import HubReader, OffsetRefused, Place
from core.model.shapes import Instant, NumberText, PartitionText, Reason, Shape, number_of, utc
from core.replay.pieces import (
    MOST_KEYS,
    MOST_OPEN,
    LeftOut,
    PartitionRange,
    ReplayAsked,
    ReplayReport,
)
from core.tasks.task import PartRequest, TaskOrder, TaskRequest, TaskShape, report_text


def replay_request(
    order: TaskOrder, asked: ReplayAsked, ranges: tuple[PartitionRange, ...], version: str, *, is_dry_run: bool
) -> TaskRequest:
    """Return the task of a replay. Its key is its own: replays of the same events are not the same."""
    return TaskRequest(
        order=order,
        kind="replay",
        key=str(order.task_id),
        asked=report_text(asked),
        parts=tuple(
            PartRequest(one.partition_id, one.span.first, one.span, report_text(one.note), report_text(ReplayReport()))
            for one in ranges
        ),
        total=sum(one.span.length for one in ranges),
        is_dry_run=is_dry_run,
        holds_numbers=True,
        most_open=MOST_OPEN,
        transform_version=version,
    )


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

    REVEALING = ("keys",)

    reason: Reason
    partitions: Partitions | None = None
    from_: PlaceShape | None = msgspec.field(name="from", default=None)
    to: PlaceShape | None = None
    keys: Keys | None = None
    dry_run: bool = True


@dataclass(frozen=True, slots=True)
class ReplayOrder:
    """The request of a person: `partitions` None means all, `start` and `end` None mean the ends of the ledger.

    A range by number or offset includes both ends. A range by time ends before `end`. `asked` is the range as JSON.
    With `keys`, only the events of these partition keys are replayed.
    """

    partitions: tuple[PartitionId, ...] | None
    start: Place | None
    end: Place | None
    asked: str
    is_dry_run: bool
    keys: tuple[str, ...] = ()


def order_of(body: ReplayShape) -> ReplayOrder:
    """Read the request of a person. Raises RequestRefused."""
    keys = body.keys or []
    if len(set(keys)) < len(keys):
        twice = next(at for at, key in enumerate(keys) if key in keys[:at])
        raise RequestRefused(f"keys[{twice}]", "this partition key is given twice: name each once")
    partitions = None if body.partitions is None else tuple(map(PartitionId, body.partitions))
    asked = {"partitions": body.partitions, "from": body.from_, "to": body.to}
    return ReplayOrder(
        partitions=partitions,
        start=_place(body.from_, "from"),
        end=_place(body.to, "to"),
        asked=msgspec.json.encode(asked).decode(),
        is_dry_run=body.dry_run,
        keys=tuple(keys),
    )


def _place(given: PlaceShape | None, field: str) -> Place | None:
    if given is None:
        return None
    named = [name for name in ("sequence_number", "offset", "enqueued_at") if getattr(given, name) is not None]
    if len(named) != 1:
        raise RequestRefused(field, "set exactly one of sequence_number, offset and enqueued_at")
    if given.sequence_number is not None:
        return number_of(given.sequence_number, f"{field}.sequence_number")
    return given.offset if given.offset is not None else utc(given.enqueued_at, f"{field}.enqueued_at")


def ranges_of(
    order: ReplayOrder, stream: Stream, replayable: Sequence[PartitionRange], hub: HubReader, most_events: int
) -> tuple[tuple[PartitionRange, ...], tuple[LeftOut, ...]]:
    """Return the numbers to replay of each partition, and the partitions that have none.

    Raises RequestRefused. Raises HubUnreachable or HubRefused when the hub is needed and does not answer.
    """
    start, end = order.start, order.end
    if isinstance(start, int) and isinstance(end, int):
        if end < start:
            raise RequestRefused("to", f"the range is backwards: it ends at {end}, before {start}")
        _refuse_too_many(end - start + 1, most_events)
    if isinstance(start, datetime) and isinstance(end, datetime) and end <= start:
        raise RequestRefused("to", f"the range is backwards: it ends at {end.isoformat()}, not after its beginning")
    for field, place in (("from", start), ("to", end)):
        if isinstance(place, str) and (order.partitions is None or len(order.partitions) != 1):
            raise RequestRefused(field, "an offset belongs to one partition: name that partition")
    found = []
    known = {one.partition_id: one for one in replayable}
    for id in known if order.partitions is None else dict.fromkeys(order.partitions):
        if id not in known:
            raise RequestRefused("partitions", f"no event of partition {id} is committed, so it has no range to replay")
        found.append(_range_of(order, known[id], stream.partition(id), hub))
    ranges = tuple(one for one in found if isinstance(one, PartitionRange))
    left_out = tuple(one for one in found if isinstance(one, LeftOut))
    if not ranges:
        raise RequestRefused("from", left_out[0].why if left_out else "no event is committed yet")
    _refuse_too_many(sum(one.span.length for one in ranges), most_events)
    return ranges, left_out


def _refuse_too_many(events: int, most: int) -> None:
    if events > most:
        raise RequestRefused("to", f"the range has {events} events, but REPLAY_MOST_EVENTS allows {most}")


def _range_of(
    order: ReplayOrder, one: PartitionRange, partition: Partition, hub: HubReader
) -> PartitionRange | LeftOut:
    first, before = _first(order.start, one, partition, hub)
    if first > one.span.last:
        ends = f"partition {one.partition_id} is committed up to {one.span.last}"
        return LeftOut(one.partition_id, f"{ends}, and later events cannot be replayed yet")
    last, after = _last(order.end, one, partition, hub)
    if first > last:
        return LeftOut(one.partition_id, f"partition {one.partition_id} has no event in the range")
    note = "; ".join(filter(None, (before, after)))
    return PartitionRange(one.partition_id, Span(SequenceNumber(first), SequenceNumber(last)), note or None)


def _first(start: Place | None, one: PartitionRange, partition: Partition, hub: HubReader) -> tuple[int, str | None]:
    if start is None:
        return one.span.first, None
    if isinstance(start, int):
        return max(start, one.span.first), f"the ledger begins at {one.span.first}" if start < one.span.first else None
    event = _event_at("from", start, partition, hub)
    if event is None:
        return one.span.last + 1, None
    beginning = hub.extent(partition).beginning
    if event.sequence_number > beginning or beginning <= one.span.first:
        return max(event.sequence_number, one.span.first), None
    gone = f"the hub begins at {beginning}: the time of earlier events is lost, so only a number can select them"
    return event.sequence_number, gone


def _event_at(field: str, place: Place, partition: Partition, hub: HubReader) -> Event | None:
    try:
        return hub.first_at(partition, place)
    except OffsetRefused as refusal:
        raise RequestRefused(f"{field}.offset", str(refusal)) from refusal


def _last(end: Place | None, one: PartitionRange, partition: Partition, hub: HubReader) -> tuple[int, str | None]:
    if end is None:
        return one.span.last, None
    if isinstance(end, int):
        beyond = f"events after the checkpoint at {one.span.last} are left out" if end > one.span.last else None
        return min(end, one.span.last), beyond
    event = _event_at("to", end, partition, hub)
    if event is None:
        return one.span.last, None
    is_the_end = isinstance(end, str) and event.offset == end
    return min(event.sequence_number if is_the_end else event.sequence_number - 1, one.span.last), None
