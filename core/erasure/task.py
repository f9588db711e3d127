"""An erasure as a task: it forgets subjects in each partition, then in the lake. One is open at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import msgspec

from core.aggregation.lake_upkeep import ErasedRows
from core.erasure.erasure import (
    COUNTS,
    LAKE,
    MOST_SUBJECTS,
    ErasureAsked,
    FoundPiece,
    asked_of,
    erased_by,
    erasing_of,
    erasure_request,
    without_subjects,
)
from core.erasure.store import Erase, Erasures
from core.errors import RequestRefused
from core.model.events import PartitionId, Stream, span
from core.model.policies import SubjectKey
from core.model.ports import Clock
from core.model.rows import row_table
from core.model.shapes import Answered, Reason
from core.tasks.run import ONE_PIECE, Done, Sleep, TaskKind, move_task
from core.tasks.store import Tasks
from core.tasks.task import Advance, Task, TaskAnswer, TaskOrder, TaskPart, TaskRequest, TaskShape, report_text

NUMBERS = 10_000  # of one piece
PAUSE = timedelta(seconds=1)  # between two looks at a partition whose last events are not committed yet

# Erases in the lake, and orders the repair of aggregates. Returns notes for the report, or None while a run is open or
# missing that has to end first.
EraseLake = Callable[[ErasedRows], tuple[str, ...] | None]
LastInHub = Callable[[], Mapping[PartitionId, int]]

Subject = Annotated[
    str, msgspec.Meta(min_length=1, max_length=200, description="A partition key, or a value of a room's subject.")
]
Subjects = Annotated[list[Subject], msgspec.Meta(min_length=1, max_length=MOST_SUBJECTS)]


class ErasureShape(TaskShape, tag="erasure"):
    """A request to forget subjects, without the blanks around them. Only a request with `dry_run` = false erases
    anything. It fails before it erases more than `most_rows` rows. The subjects are stored until the task is over."""

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


@dataclass(frozen=True, slots=True)
class ErasureKind(TaskKind):
    """The erasures of one stream. One piece reads at most `numbers` sequence numbers."""

    stream: Stream
    store: Erasures
    key: SubjectKey
    erase_lake: EraseLake
    clock: Clock
    sleep: Sleep
    numbers: int = NUMBERS
    read_ends: LastInHub = dict  # the last number of each partition in the hub

    name = "erasure"
    asked = ErasureShape
    answer = ErasureAnswer

    @property
    def tasks(self) -> Tasks:
        return Tasks(self.store.stream.database)

    def request(self, order: TaskOrder, asked: ErasureShape) -> TaskRequest:
        """Return the task of an erasure: up to each checkpoint, and for real up to the end of the hub."""
        subjects = tuple(dict.fromkeys(subject for one in asked.subjects if (subject := one.strip())))
        self._refuse(subjects, asked.reason)
        lasts: dict[PartitionId, int] = {id: self.store.find_last(id) for id in self.store.read_partitions()}
        for id, last in {} if asked.dry_run else self.read_ends().items():
            lasts[id] = max(last, lasts.get(id, -1))
        spans = {id: span(0, last) for id, last in sorted(lasts.items()) if last >= 0}
        if not spans:
            raise RequestRefused("erasures", "there is no event yet, so nothing can be erased", "not-found")
        return erasure_request(order, subjects, spans, is_dry_run=asked.dry_run, most_rows=asked.most_rows)

    def _refuse(self, subjects: tuple[str, ...], reason: str) -> None:
        if not self.key.secret:
            why = "set ERASURE_KEY first: its key hashes the subjects that stay forgotten (docs/erasure.md)"
            raise RequestRefused("", why, "conflict")
        tables = list(map(row_table, self.store.row_classes))
        if not any(one.subject for one in tables):
            named = next((one.name for one in tables if not one.key), tables[0].name if tables else "TABLE")
            why = "no table of the room declares its subject, so rows of a subject cannot be found: name the column, as"
            raise RequestRefused("", f'{why} in @appended_to("{named}", subject="COLUMN")', "conflict")
        if not subjects:
            raise RequestRefused("subjects", "these texts have nothing to read in them")
        if without_subjects(reason, subjects) != reason:
            raise RequestRefused("reason", "the reason is stored, so it must not name a subject")

    def report(self, task: Task, *, is_listed: bool) -> dict[str, Any]:
        """Return what was erased so far, or what a dry run found."""
        asked, total = asked_of(task), erased_by(task)
        return {
            "subjects": asked.count,
            "most_rows": asked.most_rows,
            "rows": total.row_count,
            **{name: getattr(total, name) for name in COUNTS},
            "tables": dict(total.rows),
            "partitions": [
                ErasedPartitionAnswer(partition_id=one.name, next=str(one.position), last=str(one.span.last))
                for one in task.parts
                if one.span is not None
            ],
            "notes": [*total.notes],
        }

    def advance(self, task: Task, part: TaskPart, until: datetime) -> Done:
        """Erase the next piece of a partition, or count it in a dry run. At the end, erase in the lake."""
        piece = _PieceOfErasure(self, task, part)
        return piece.close() if part.name == LAKE else piece.go_on()

    def over(self, task_id: UUID) -> None:
        """Forget the values of the subjects of a cancelled or failed task. Erased rows stay erased."""
        task = self.tasks.find(task_id)
        if task is not None:
            self.store.reword(_reworded(self.store, task, asked_of(task).subjects))


@dataclass(frozen=True, slots=True)
class _PieceOfErasure:
    """One piece of an erasure."""

    kind: ErasureKind
    task: Task
    part: TaskPart

    def go_on(self) -> Done:
        """Erase the next numbers of a partition, or wait until its last ones are committed."""
        store, id = self.kind.store, PartitionId(self.part.name)
        assert self.part.span is not None  # a part of a partition has one
        last = min(self.part.span.last, store.find_last(id))
        if last < self.part.position <= self.part.span.last and not self.task.is_dry_run:
            self.kind.sleep(PAUSE.total_seconds())
            return ONE_PIECE
        first = store.find_next(id, self.part.position) if last >= self.part.position else last + 1
        if first > last:
            return self._settle(id, FoundPiece(span(last + 1, last), {}), last)
        reach, subjects = span(first, min(last, first + self.kind.numbers - 1)), frozenset(self._subjects)
        found = store.find_piece(id, reach, self._subjects, lambda texts: not subjects.isdisjoint(texts))
        return self._settle(id, found, last)

    def close(self) -> Done:
        """Erase in the lake, order repairs, and forget the values of the subjects: nothing is left of them then."""
        task = self.task
        notes: tuple[str, ...] | None = ()
        if not task.is_dry_run:
            ended = [part for part in task.parts if part.span is not None]
            closed = [part.closed_at for part in ended if part.closed_at is not None]
            rows = ErasedRows(  # the database has already erased its own rows of these subjects
                task_id=task.task_id,
                stream_id=task.stream_id,
                by=task.requested_by,
                at=task.requested_at,
                subjects=self._subjects,
                until={PartitionId(part.name): part.span.last for part in ended if part.span is not None},
                days=erased_by(task).days,
                since=max(closed, default=self.kind.clock.now()),
            )
            notes = self.kind.erase_lake(rows)
        if notes is None:
            self.kind.sleep(PAUSE.total_seconds())
            return ONE_PIECE
        report = report_text(replace(erasing_of(self.part), notes=notes))
        ahead = Advance(self.part.name, self.part.step, self.part.position, report, is_last=True)
        self.kind.store.close(_reworded(self.kind.store, self.task, self._subjects), self.kind.ending(self.task), ahead)
        return ONE_PIECE

    def _settle(self, id: PartitionId, found: FoundPiece, last: int) -> Done:
        """Commit a piece and advance its part. A part of a dry run ends at the last committed number."""
        assert self.part.span is not None
        rows, most = erased_by(self.task).plus(found.figures).row_count, asked_of(self.task).most_rows
        if most is not None and rows > most and not self.task.is_dry_run:
            why = f"it would erase at least {rows} rows, and most_rows is {most}: begin a dry run, and look at its rows"
            move_task(self.task.task_id, "fail", self.kind, why)
            return ONE_PIECE
        is_last = found.span.last >= (last if self.task.is_dry_run else self.part.span.last)
        report = report_text(erasing_of(self.part).plus(found.figures))
        ahead = Advance(self.part.name, self.part.step, found.span.last + 1, report, is_last)
        erase = Erase(
            partition=self.kind.stream.partition(id),
            piece=FoundPiece(found.span, {}) if self.task.is_dry_run else found,
            subjects=self._subjects,
            key=self.kind.key,
            until=self.part.span.last,
            by=self.task.requested_by,
            is_first=self.part.step == 0 and not self.task.is_dry_run,
        )
        self.kind.store.erase(erase, self.kind.ending(self.task), ahead)
        return Done(1, max(0, found.span.length))

    @property
    def _subjects(self) -> tuple[str, ...]:
        return asked_of(self.task).subjects


def _reworded(store: Erasures, task: Task, subjects: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the texts of the tasks that name a subject, without the subject. The erasure keeps only their number."""
    found = []
    for task_id, asked, reason, fault, history in store.read_tasks():
        given = (asked, reason, fault, history)
        if task_id == str(task.task_id):
            known = asked_of(task)
            asked = report_text(ErasureAsked((), known.count, known.most_rows))
        texts = (asked, reason, fault, history)
        after = tuple(None if text is None else without_subjects(text, subjects) for text in texts)
        if after != given:
            found.append((task_id, *after))
    return found
