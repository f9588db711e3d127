"""An erasure as a task: its request and answer, the task that it makes, and how it is shown."""

import time
from collections.abc import Mapping
from typing import Annotated

import msgspec

from core.aggregation.lake_tables import FILES_KEPT
from core.aggregation.lake_upkeep import ErasedRows, erase_rows
from core.aggregation.orders import Pipelines
from core.api.problems import CONFLICT, Problem, invalid, not_found
from core.erasure.erasure import COUNTS, MOST_SUBJECTS, asked_of, erased_by, erasure_request, without_subjects
from core.erasure.store import Erasures
from core.erasure.task import ErasureKind
from core.model.events import PartitionId, Span, span
from core.model.rows import row_table
from core.model.shapes import Answered, Reason
from core.purge.store import Purges
from core.remote.hub.reader import read_ends
from core.tasks.task import Task, TaskAnswer, TaskOrder, TaskRequest, of_every_kind
from core.transforms.loading import load_aggregates
from handlers.app import App, aggregation
from handlers.operations.task_shapes import TaskShape

Subject = Annotated[
    str, msgspec.Meta(min_length=1, max_length=200, description="A partition key, or a value of a room's subject.")
]
Subjects = Annotated[list[Subject], msgspec.Meta(min_length=1, max_length=MOST_SUBJECTS)]


class ErasureShape(TaskShape, tag="erasure"):
    """A request to forget subjects, without the blanks around them. Only a request with `dry_run` = false erases
    anything; it fails before it erases more than `most_rows` rows. The subjects are stored until the task is over."""

    subjects: Subjects
    reason: Reason
    dry_run: bool = True
    most_rows: Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None = None


class ErasedPartitionAnswer(Answered):
    """A partition: the next number that is looked at, and the last one up to which the subjects stay forgotten."""

    partition_id: str
    next: str
    last: str


class ErasureAnswer(TaskAnswer, tag_field="kind", tag="erasure"):
    """An erasure so far, or what a dry run found: the number of subjects, rows by table, letters, staged events, rows
    that replays had taken away, and events in the results of dry runs. `notes` say what is left, and until when."""

    subjects: int
    most_rows: int | None
    rows: int
    letters: int
    staged: int
    retracted: int
    diffs: int
    tables: dict[str, int]
    partitions: list[ErasedPartitionAnswer]
    notes: list[str]


def request(own: App, order: TaskOrder, body: ErasureShape) -> TaskRequest:
    """Return the task of an erasure; raise a problem for subjects that cannot be erased."""
    subjects = tuple(dict.fromkeys(subject for one in body.subjects if (subject := one.strip())))
    _refuse(own, subjects, body.reason)
    spans = _spans(own, body.dry_run)
    return erasure_request(order, subjects, spans, is_dry_run=body.dry_run, most_rows=body.most_rows)


def kind(own: App) -> ErasureKind:
    """Return the erasures of the stream."""
    store = Erasures(own.stream, own.transform.row_classes, load_aggregates(own.transform.row_classes))
    return ErasureKind(
        own.settings.stream, store, own.settings.erasure, lambda erased: _erase_lake(own, erased), own.clock, time.sleep
    )


def shown(task: Task) -> ErasureAnswer:
    """Show an erasure."""
    asked, total = asked_of(task), erased_by(task)
    done = sum(one.closed_at is not None for one in task.parts)
    partitions = [
        ErasedPartitionAnswer(partition_id=one.name, next=str(one.position), last=str(one.span.last))
        for one in task.parts
        if one.span is not None
    ]
    counts = {name: getattr(total, name) for name in COUNTS}
    return ErasureAnswer(
        **of_every_kind(task, done, len(task.parts)),
        subjects=asked.count,
        most_rows=asked.most_rows,
        rows=total.row_count,
        tables=dict(total.rows),
        partitions=partitions,
        notes=[*total.notes],
        **counts,
    )


def _refuse(own: App, subjects: tuple[str, ...], reason: str) -> None:
    if not own.settings.erasure.secret:
        why = "set ERASURE_KEY first: its key hashes the subjects that stay forgotten (docs/erasure.md)"
        raise Problem(CONFLICT, why)
    if not any(row_table(one).subject for one in own.transform.row_classes):
        tables = [row_table(one) for one in own.transform.row_classes]
        named = next((one.name for one in tables if not one.key), tables[0].name if tables else "TABLE")
        why = "no table of the room declares its subject, so rows of a subject cannot be found: name the column, as in"
        raise Problem(CONFLICT, f'{why} @appended_to("{named}", subject="COLUMN")')
    if not subjects:
        raise invalid("subjects", "these texts have nothing to read in them")
    if without_subjects(reason, subjects) != reason:
        raise invalid("reason", "the reason is stored, so it must not name a subject")


def _spans(own: App, is_dry_run: bool) -> Mapping[PartitionId, Span]:
    """Return the numbers of each partition: up to its checkpoint, and for real up to the end of the hub."""
    store = Erasures(own.stream, own.transform.row_classes)
    lasts: dict[PartitionId, int] = {id: store.find_last(id) for id in Purges(own.stream).read_purge_partitions()}
    if not is_dry_run:
        for id, last in read_ends(own.stream_hub).items():
            lasts[id] = max(last, lasts.get(id, -1))
    found = {id: span(0, last) for id, last in sorted(lasts.items()) if last >= 0}
    if not found:
        raise not_found("erasures", "there is no event yet, so nothing can be erased")
    return found


def _erase_lake(own: App, erased: ErasedRows) -> tuple[str, ...] | None:
    """Erase in the lake and repair the aggregates, where there is an engine; say what is left elsewhere."""
    engine = aggregation()
    notes: tuple[str, ...] | None = ()
    if engine is not None:
        notes = erase_rows(erased, engine, Pipelines(own.brief))
    return None if notes is None else (*notes, *_left(own, has_lake=engine is not None and engine.lake is not None))


def _left(own: App, *, has_lake: bool) -> tuple[str, ...]:
    """Say what an erasure cannot reach, and until when it stays."""
    now, retention = own.clock.now(), own.settings.hub_retention
    until = "until its retention ends" if retention is None else f"until {(now + retention):%Y-%m-%d}"
    left = [
        f"the event hub keeps its events {until}; they are not taken again",
        "files of Event Hubs Capture stay until you delete them; a replay out of them takes nothing of the subjects",
        "backups of the database keep the rows until their retention ends",
    ]
    if has_lake:
        left.append(
            f"replaced files of the lake stay for readers until {(now + FILES_KEPT):%Y-%m-%d}, then VACUUM goes"
        )
    return tuple(left)
