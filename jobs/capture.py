"""Event Hubs Capture: Avro files, read on the executors. Each event goes through a transform of the app.

Source of the format: "Capture events through Azure Event Hubs", its Avro schema, and its default names of files,
NAMESPACE/HUB/PARTITION/YEAR/MONTH/DAY/HOUR/MINUTE/SECOND.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from core.errors import ProcessDied
from core.model.commits import Settled
from core.model.event_keys import under_key
from core.model.events import PARTITION_KEY, Event, SequenceNumber, captured
from core.model.ports import parse_instant
from core.model.property_values import encode_properties
from core.model.rows import ReferenceKey, References, row_table
from core.model.transforms import Transform
from core.settle.child_process import Children
from core.settle.isolate import nothing_new
from core.settle.settle import EventKilled, dead_letter, settle
from core.settle.watchdog import Watchdog
from core.transforms.loading import load_transform
from jobs.row_texts import arrow_schema, row_of, texts_of

SETTLED, SELECTED = 2_000, 200  # events at a time: to settle, and to select with their bodies
RANGE, LETTER = "-range", "-letter"  # outcomes that are not rows of a table
OUTCOMES = (
    "partition_id string, sequence_number bigint, ordinal int, table_name string, is_state boolean, texts array<string>"
)
EVENTS = (
    "partition_id string, sequence_number bigint, offset_token string, enqueued_at timestamp, partition_key string,"
    " properties string, body binary"
)
_PLACE = re.compile(r"/(?P<partition>[^/]+)/\d{4}/\d\d/\d\d/\d\d/\d\d/\d\d\.avro$")
_TIME = "%m/%d/%Y %I:%M:%S %p"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The events of these partitions (empty: all) from the first to the last sequence number, both included."""

    partitions: frozenset[str]
    first: int
    last: int

    def takes(self, partition_id: str, number: int) -> bool:
        """Return true for an event that is wanted."""
        return (not self.partitions or partition_id in self.partitions) and self.first <= number <= self.last


@dataclass(frozen=True, slots=True)
class Settling:
    """The module of the transform, the states in SQL, and the wanted events: an executor settles them with these.

    A transform that does not return within the `deadline` ends its process. After a death, `in_child`, or in a later
    attempt of a task of Spark, it runs in a child process, and an event that kills is a letter of class `crash`.
    """

    transform: str
    references: Sequence[tuple[type, tuple[str | None, ...]]]
    wanted: Wanted
    deadline: timedelta
    in_child: bool = False


def partition_of(path: str) -> str:
    """Return the partition of a file. Raises ValueError for a name that Capture does not give."""
    found = _PLACE.search(path)
    if found is None:
        raise ValueError(f"{path} is not named as Event Hubs Capture names files: .../PARTITION/YEAR/.../SECOND.avro")
    return found["partition"]


def read_events(content: bytes) -> Iterator[Event]:
    """Return the events of a file in their order."""
    import fastavro

    return map(_event, fastavro.reader(io.BytesIO(content)))


def outcomes_with(settling: Settling) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function for mapInArrow, from files (path, content) to OUTCOMES, that settles as the trigger does."""

    def settle_files(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for path, content in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                for outcomes in _outcomes(settling, partition_of(path), read_events(content)):
                    yield _arrow(pa, OUTCOMES, outcomes)

    return settle_files


def events_within(
    spans: Mapping[str, tuple[int, int]], transform: str, event_key: str
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function for mapInArrow, from files (path, content) to EVENTS: those in the span of their partition."""

    def select_events(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        key_of = load_transform(transform, event_key=event_key).key_of
        for batch in batches:
            for path, content in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                partition_id = partition_of(path)
                first, last = spans.get(partition_id, (0, -1))
                read = (under_key(event, key_of) for event in read_events(content))
                events = (event for event in read if first <= event.sequence_number <= last)
                while some := list(islice(events, SELECTED)):  # as a dead letter stores them
                    yield _arrow(pa, EVENTS, [
                        (partition_id, one.sequence_number, one.offset, one.enqueued_at, one.key,
                         encode_properties(one.properties, one.stored_annotations), one.body) for one in some
                    ])  # fmt: skip

    return select_events


def _outcomes(settling: Settling, partition_id: str, events: Iterable[Event]) -> Iterator[list[tuple[Any, ...]]]:
    rows = [row_of(row_class, texts) for row_class, texts in settling.references]
    references = References({ReferenceKey.of(row): row for row in rows})
    wanted = [event for event in events if settling.wanted.takes(partition_id, event.sequence_number)]
    with _trying(settling) as settled_by:
        for at in range(0, len(wanted), SETTLED):
            some = wanted[at : at + SETTLED]
            yield [(partition_id, first, -1, RANGE, False, [str(last)]) for first, last in _unbroken(some)]
            for settled in settled_by(some, references):
                if outcomes := _found(partition_id, settled):
                    yield outcomes


def _found(partition_id: str, settled: Settled) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for row_class, placed in settled.rows.items():
        table = row_table(row_class)
        kind = (table.name, bool(table.key))
        found += [(partition_id, number, ordinal, *kind, texts_of(row)) for number, ordinal, row in placed]
    for letter in settled.letters:
        number = letter.event.sequence_number
        found.append((partition_id, number, -1, LETTER, False, [letter.error_class, letter.error]))
    return found


@contextmanager
def _trying(settling: Settling) -> Iterator[Callable[[Sequence[Event], References], Iterable[Settled]]]:
    """Give the function that settles events: here, or one by one in a child process."""
    from pyspark import TaskContext

    task = TaskContext.get()
    if not settling.in_child and (task is None or task.attemptNumber() == 0):
        with closing(Watchdog(settling.deadline)) as watchdog:
            here = load_transform(settling.transform, watch=watchdog.over)
            yield lambda events, references: [settle(events, references, here)]
        return
    transform = load_transform(settling.transform)
    with (
        closing(Children(settling.transform, transform.rows_limit, settling.deadline)) as children,
        children.in_child(transform, nothing_new) as in_child,
    ):
        yield lambda events, references: (_settled_in_child(event, references, in_child) for event in events)


def _settled_in_child(event: Event, references: References, in_child: Transform) -> Settled:
    try:
        return settle((event,), references, in_child)
    except EventKilled as killer:
        return Settled({}, [dead_letter(event, ProcessDied(str(killer)), in_child)], 0, 0)


def _unbroken(events: Sequence[Event]) -> Iterator[tuple[int, int]]:
    first = last = events[0].sequence_number
    for event in events[1:]:
        if event.sequence_number != last + 1:
            yield first, last
            first = event.sequence_number
        last = event.sequence_number
    yield first, last


def _arrow(pa: Any, schema: str, rows: list[tuple[Any, ...]]) -> Any:
    shape = arrow_schema(pa, schema)
    columns = zip(zip(*rows, strict=True), shape, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(column, field.type) for column, field in columns], schema=shape)


def _event(record: Any) -> Event:
    system: Mapping[str, Any] = record["SystemProperties"] or {}
    key = system.get(PARTITION_KEY)
    return Event(
        SequenceNumber(record["SequenceNumber"]),
        str(record["Offset"]),
        _instant(record["EnqueuedTimeUtc"]),
        None if key is None else str(key),
        dict(record["Properties"] or {}),
        record["Body"] or b"",
        captured(system),
    )


def _instant(text: str) -> datetime:
    try:
        return parse_instant(text) if "-" in text else datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    except ValueError as error:
        what = f"expected {_TIME}, or a time of RFC 3339"
        raise ValueError(f"{text!r} is not a time of Event Hubs Capture: {what}") from error
