"""An erasure as a task: it forgets subjects in each partition, then in the lake. One is open at a time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec

from core.aggregation.lake_upkeep import ErasedRows
from core.erasure.erasure import (
    COUNTS,
    LAKE,
    MOST_NAMED,
    MOST_SUBJECTS,
    Erasing,
    ErasureAsked,
    FoundPiece,
    asked_of,
    erased_by,
    erasing_of,
    erasure_request,
    forms_of,
    place_of_part,
)
from core.erasure.store import Erase, Erasures, opening_of
from core.errors import RequestRefused
from core.model.events import Stream, span
from core.model.policies import SubjectKey
from core.model.ports import Clock
from core.model.rows import row_table
from core.model.shapes import Answered, Reason
from core.settle.mentions import without_subjects
from core.store.database import read_time
from core.tasks.run import ONE_PIECE, Done, TaskKind, move_task
from core.tasks.store import TaskOpening, Tasks
from core.tasks.task import (
    Advance,
    Task,
    TaskAnswer,
    TaskOrder,
    TaskPart,
    TaskRequest,
    TaskShape,
    report_of,
    report_text,
)

NUMBERS = 10_000  # of one piece
CLOCKS_APART = timedelta(
    seconds=10
)  # at most: a time far ahead would forget new events, one behind would forget too few

# Erases in the lake, and orders the repair of aggregates. Returns notes for the report. Raises ErasureWaits while a run
# is open or missing that has to end first.
EraseLake = Callable[[ErasedRows], tuple[str, ...]]

Subject = Annotated[
    str, msgspec.Meta(min_length=1, max_length=200, description="A partition key, or a value of a room's subject.")
]
Subjects = Annotated[list[Subject], msgspec.Meta(min_length=1, max_length=MOST_SUBJECTS)]


class ErasureShape(TaskShape, tag="erasure"):
    """A request to forget subjects. Only a request with `dry_run` = false erases anything. It fails before it erases
    more than `most_rows` rows. The subjects are stored until the task is over."""

    REVEALING = ("subjects",)

    subjects: Subjects
    reason: Reason
    dry_run: bool = True
    most_rows: Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None = None


class ErasedPartitionAnswer(Answered):
    """A partition of any stream of the database: the next number that is looked at, and the last one. `stream` names a
    stream that is not the app's own, which has null."""

    stream_id: int
    stream: str | None
    partition_id: str
    next: str
    last: str


class FoundLetterAnswer(Answered):
    """The position of a letter that mentions a subject. `stream` names a stream that is not the app's own, which has
    null."""

    stream: str | None
    partition_id: str
    sequence_number: str


class ErasureAnswer(TaskAnswer, tag_field="kind", tag="erasure"):
    """The counts of an erasure so far, or of a dry run: subjects, rows by table, letters, attempts at other letters
    with an error or a reason that mentions a subject, staged events, rows that replays had taken away, and events in
    the results of dry runs. `letters_found` are the first hundred of the letters, but none in a list. `notes` name the
    copies that stay, and until when."""

    subjects: int
    most_rows: int | None
    rows: int
    letters: int
    reasons: int
    staged: int
    retracted: int
    diffs: int
    tables: dict[str, int]
    letters_found: list[FoundLetterAnswer]
    partitions: list[ErasedPartitionAnswer]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class ErasureKind(TaskKind):
    """The erasures of a database. One piece reads at most `numbers` sequence numbers."""

    stream: Stream
    store: Erasures
    key: SubjectKey
    erase_lake: EraseLake
    clock: Clock
    app_time: Callable[[], datetime]  # by the app's own clock
    numbers: int = NUMBERS

    name = "erasure"
    asked = ErasureShape
    answer = ErasureAnswer

    @property
    def tasks(self) -> Tasks:
        return Tasks(self.store.stream.database)

    def request(self, order: TaskOrder, asked: ErasureShape) -> TaskRequest:
        """Return the task of an erasure. Raises RequestRefused for a subject that no column can have."""
        given = tuple(dict.fromkeys(asked.subjects))
        self._refuse()
        forms: dict[str, None] = {}
        for one in given:
            try:
                forms |= dict.fromkeys(forms_of(one, self.store.row_classes))
            except ValueError as fault:
                raise RequestRefused("subjects", f"{one!r:.80} is no subject: {fault}") from None
        if without_subjects(asked.reason, tuple(forms)) != asked.reason:
            raise RequestRefused("reason", "the reason is stored, so it must not name a subject")
        spans = {id: span(0, last) for id, last in sorted(self.store.read_checkpoints().items())}
        stored = ErasureAsked(tuple(forms), len(given), asked.most_rows)
        return erasure_request(order, stored, spans, is_dry_run=asked.dry_run)

    def opening(self, request: TaskRequest) -> TaskOpening:
        """Return the steps that note the subjects and add the parts. The later one of the two clocks tells the time.
        Raises RequestRefused when the clocks of the database and of the app are too far apart."""
        here, there = self.app_time(), read_time(self.store.database)
        if abs(there - here) > CLOCKS_APART:
            apart = f"{abs(there - here).total_seconds():,.0f} s {'ahead of' if there > here else 'behind'} the app's"
            why = (
                f"the clock of the database is {apart}, and an erasure needs the right time: set the wrong clock right"
            )
            raise RequestRefused("", f"{why} (docs/erasure.md)", "conflict")
        subjects = report_of(request.asked, ErasureAsked).subjects
        return opening_of(request, subjects, self.key, max(here, there))

    def _refuse(self) -> None:
        if not self.key.secret:
            why = "set ERASURE_KEY first: its key hashes the subjects that stay forgotten (docs/erasure.md)"
            raise RequestRefused("", why, "conflict")
        if any(one.key_hash not in self.key.names for one in self.store.read_keys()):
            why = "subjects were erased with a key that the settings do not have: give it in ERASURE_KEY_BEFORE"
            raise RequestRefused("", f"{why} (docs/erasure.md)", "conflict")
        tables = list(map(row_table, self.store.row_classes))
        if not any(one.subject for one in tables):
            named = next((one.name for one in tables if not one.key), tables[0].name if tables else "TABLE")
            why = "no table of the room declares its subject, so rows of a subject cannot be found: name the column, as"
            raise RequestRefused("", f'{why} in @appended_to("{named}", subject="COLUMN")', "conflict")

    def report(self, task: Task, *, is_listed: bool) -> dict[str, Any]:
        """Return the counts so far, or those of a dry run."""
        asked, total = asked_of(task), erased_by(task)
        parts = [(*place_of_part(one), one, one.span) for one in task.parts if one.span is not None]
        names = self.store.read_other_streams({stream_id for stream_id, *_ in parts})
        letters = [
            FoundLetterAnswer(stream=names.get(stream_id), partition_id=id, sequence_number=str(number))
            for stream_id, id, one, _ in ([] if is_listed else parts)
            for number in erasing_of(one).first_letters
        ]
        return {
            "total": len(task.parts),
            "subjects": asked.count,
            "most_rows": asked.most_rows,
            "rows": total.row_count,
            **{name: getattr(total, name) for name in COUNTS},
            "tables": dict(total.rows),
            "letters_found": letters[:MOST_NAMED],
            "partitions": [
                ErasedPartitionAnswer(
                    stream_id=stream_id,
                    stream=names.get(stream_id),
                    partition_id=id,
                    next=str(one.position),
                    last=str(span.last),
                )
                for stream_id, id, one, span in parts
            ],
            "notes": [*total.notes],
        }

    def advance(self, task: Task, part: TaskPart, until: datetime) -> Done:
        """Erase the next piece of a partition, or count it in a dry run. At the end, erase in the lake."""
        piece = _PieceOfErasure(self, task, part)
        return piece.close() if part.name == LAKE else piece.go_on()


@dataclass(frozen=True, slots=True)
class _PieceOfErasure:
    """One piece of an erasure."""

    kind: ErasureKind
    task: Task
    part: TaskPart

    def go_on(self) -> Done:
        """Erase the next numbers of a partition."""
        store, (stream_id, id) = self.kind.store, place_of_part(self.part)
        assert self.part.span is not None  # a part of a partition has one
        last = self.part.span.last
        first = store.find_next(stream_id, id, self.part.position)
        if first > last:
            return self._settle(FoundPiece(span(last + 1, last), {}))
        reach = span(first, min(last, first + self.kind.numbers - 1))
        return self._settle(store.find_piece(stream_id, id, reach, self._subjects))

    def close(self) -> Done:
        """Erase in the lake, order repairs, and reword what people wrote. The task forgets the subjects as it ends."""
        task = self.task
        notes: tuple[str, ...] = ()
        if not task.is_dry_run:
            until = {place_of_part(part): part.span.last for part in task.parts if part.span is not None}
            closed = [part.closed_at for part in task.parts if part.closed_at is not None]
            rows = ErasedRows(  # the database has already erased its own rows of these subjects
                task_id=task.task_id,
                by=task.requested_by,
                at=task.requested_at,
                subjects=self._subjects,
                until=until,
                days=erased_by(task).plus(Erasing(days=self.kind.store.read_unrepaired())).days,
                since=max(closed, default=self.kind.clock.now()),
            )
            notes = self.kind.erase_lake(rows)
            self.kind.store.forget_states(self._subjects)
            self.kind.store.reword(self._subjects)
        report = report_text(replace(erasing_of(self.part), notes=notes))
        ahead = Advance(self.part.name, self.part.step, self.part.position, report, is_last=True)
        self.kind.tasks.advance(self.kind.ending(self.task), ahead)
        return ONE_PIECE

    def _settle(self, found: FoundPiece) -> Done:
        """Commit a piece and advance its part."""
        assert self.part.span is not None
        rows, most = erased_by(self.task).plus(found.figures).row_count, asked_of(self.task).most_rows
        if most is not None and rows > most and not self.task.is_dry_run:
            why = f"it would erase at least {rows} rows, and most_rows is {most}: begin a dry run, and look at its rows"
            move_task(self.task.task_id, "fail", self.kind, why)
            return ONE_PIECE
        is_last = found.span.last >= self.part.span.last
        report = report_text(erasing_of(self.part).plus(found.figures))
        ahead = Advance(self.part.name, self.part.step, found.span.last + 1, report, is_last)
        stream_id, id = place_of_part(self.part)
        erase = Erase(
            stream_id=stream_id,
            partition=self.kind.stream.partition(id),
            piece=FoundPiece(found.span, {}) if self.task.is_dry_run else found,
            subjects=self._subjects,
            by=self.task.requested_by,
        )
        self.kind.store.erase(erase, self.kind.ending(self.task), ahead)
        return Done(1, max(0, found.span.length))

    @property
    def _subjects(self) -> tuple[str, ...]:
        return asked_of(self.task).subjects
