"""An erasure as a task: it forgets subjects in each partition, then in the lake and in windows. One is open at once."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import chain
from typing import Annotated, Any

import msgspec

from core.aggregation.lake_publication import publish, tables_of
from core.aggregation.lake_tables import OF_REMAKE, Lake, is_rows_job, lake_rows
from core.aggregation.orders import Pipelines
from core.aggregation.runs import Days, Order, Standing, fitting
from core.aggregation.store import Aggregations
from core.aggregation.tick import Aggregation
from core.erasure.erasure import (
    COUNTS,
    MOST_NAMED,
    MOST_SUBJECTS,
    Erasing,
    ErasureAsked,
    asked_of,
    erased_by,
    erasing_of,
    forms_of,
    place_of_part,
)
from core.erasure.store import Erasures, opening_of
from core.errors import AggregationConflict, ErasureWaits, RequestRefused
from core.model.aggregates import Aggregate
from core.model.events import Stream, span
from core.model.policies import SubjectKey
from core.model.ports import Clock
from core.model.rows import row_table
from core.model.shapes import Answered, Reason
from core.settle.mentions import without_subjects
from core.store.columns import fields_of, types_of, whole_number
from core.store.database import read_time
from core.tasks.run import ONE_PIECE, Done, TaskKind, move_task
from core.tasks.store import TaskOpening, Tasks
from core.tasks.task import (
    Advance,
    PartRequest,
    Task,
    TaskAnswer,
    TaskOrder,
    TaskPart,
    TaskRequest,
    TaskShape,
    report_of,
    report_text,
)
from core.transforms.loading import find_aggregate

NUMBERS = 10_000  # of one piece
RUNS = 1_000  # of a job that are looked at for a repair
CLOCKS_APART = timedelta(seconds=10)  # at most: a clock far ahead forgets new events too, and one behind too few

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
class ErasedRows:
    """An erasure whose rows are gone from SQL. `days` has the first and the last day of the erased rows for each
    aggregate, and of rows that replays had taken away."""

    task: Task
    days: Mapping[str, tuple[date, date]]

    @property
    def subjects(self) -> tuple[str, ...]:
        return asked_of(self.task).subjects

    @property
    def since(self) -> datetime:
        """The time after which a job reads none of the rows."""
        return max((one.closed_at for one in self.task.parts if one.closed_at), default=self.task.requested_at)

    def days_of(self, job: str, store: Aggregations) -> tuple[date, date] | None:
        """Return the first and the last day of an aggregate that may count the subjects. None: no window does."""
        if is_rows_job(job):
            return None
        found = [each for each in (self.days.get(job), store.find_days(find_aggregate(job), self.subjects)) if each]
        return (min(one for one, _ in found), max(one for _, one in found)) if found else None


# Erases in the lake, and orders the repair of aggregates. Returns notes for the report. Raises ErasureWaits while a run
# is open or missing that has to end first.
EraseLake = Callable[[ErasedRows], tuple[str, ...]]


def erase_rows(erased: ErasedRows, own: Aggregation, pipelines: Pipelines) -> tuple[str, ...]:
    """Delete the rows of subjects from the lake, and return what was done, in words.

    The windows of their days are computed again, and those of every day on which an aggregate has windows of theirs.
    Raises ErasureWaits while a run is open or missing that has to end first, and LakeUnreachable."""
    task, standings = erased.task, _read_standings(erased, own.jobs, own.store)
    remade = sorted(one for each in standings.values() for one in each.stale if one.endswith(OF_REMAKE))
    if remade:  # the files that they are made from may have the rows
        raise ErasureWaits(f"tables of the lake are made anew: {', '.join(remade)}")
    notes, missing = _delete_rows(erased, own.lake, own.jobs, own.store), list[str]()
    for job, standing in standings.items():
        runs = (one for one in own.store.read_runs(job, standing.number + 1, RUNS) if one.planned_at > erased.since)
        repaired = [one.days for one in runs if (one.kind, one.status) == ("repair", "committed")]
        notes += [f"{job}: the windows of {days} were computed again" for days in repaired]
        wanted = erased.days_of(job, own.store)
        if wanted is None or fitting(standing.cut) != "repair" or any(one.holds(Days(*wanted)) for one in repaired):
            continue  # the aggregate has no windows of these days, or new ones
        missing.append(f"{job}{_held(standing)}")
        is_repaired = standing.open_run is not None and standing.open_run.kind == "repair"
        if standing.order is None and not is_repaired:  # else the next call looks again
            why, at = f"erasure {task.task_id}", task.requested_at
            with suppress(AggregationConflict):  # another order was first, or the state has moved on
                pipelines.place(Order(job, "repair", task.requested_by, why, at, days=Days(*wanted)), standing)
    if missing:
        raise ErasureWaits(f"the windows of its days are computed again: {', '.join(missing)}")
    stale = sorted(chain(*(own.store.read_standing(job).stale for job in own.jobs)))
    if stale:  # such a table may still have windows that the repair deleted from SQL
        raise ErasureWaits(f"tables of the lake are stale: {', '.join(stale)}")
    aggregates = [find_aggregate(job) for job in own.jobs if not is_rows_job(job)]
    return (*notes, *_delete_windows(erased, own.lake, aggregates, own.store))


def erase_windows(
    erased: ErasedRows, aggregates: Sequence[Aggregate], store: Aggregations, lake: Lake | None
) -> tuple[str, ...]:
    """Delete the windows of subjects where no engine can compute windows again, and their rows and windows from the
    lake. Return what was done, and a note for each aggregate with windows that stay. Raises as `erase_rows` does."""
    jobs = (*(of.name for of in aggregates), *(rows.job for rows in lake_rows(aggregates)))
    standings = _read_standings(erased, jobs, store, ": set SPARK_ENGINE, or discard the run")
    notes = _delete_rows(erased, lake, jobs, store)
    for of in aggregates:
        days, has_windows = erased.days_of(of.name, store), fitting(standings[of.name].cut) == "repair"
        count = store.remove_subjects(of, erased.subjects)
        notes += [f"{of.name}: {count} windows were deleted"] if count else []
        if days is not None and has_windows and of.subject is None:
            until = "a repair of these days, which needs SPARK_ENGINE"
            notes.append(f"{of.name}: windows of {Days(*days)} may count the subjects until {until}")
        if days is not None and has_windows and lake is None:
            left = "Name the lake in the setting LAKE, restart, and erase again"
            notes.append(f"to do: if {of.name} is also kept in a lake, this app has not searched it. {left}")
    return (*notes, *_delete_windows(erased, lake, aggregates, store))


def _read_standings(
    erased: ErasedRows, jobs: Sequence[str], store: Aggregations, way: str = ""
) -> Mapping[str, Standing]:
    """Return the standings of jobs. Raises ErasureWaits for an open run whose job may have read rows of subjects."""
    found = {job: store.read_standing(job) for job in jobs}
    for job, standing in found.items():
        run = standing.open_run
        if run is not None and run.planned_at <= erased.since:
            raise ErasureWaits(f"run {run.run_id} of {job} began before it{_held(standing)}{way}")
    return found


def _held(standing: Standing) -> str:
    """Return why a job does not go on, if a person has paused it."""
    return "" if standing.pause is None else f" (paused by {standing.pause.who}: resume it)"


def _delete_rows(erased: ErasedRows, lake: Lake | None, jobs: Sequence[str], store: Aggregations) -> list[str]:
    """Delete the rows of subjects from the lake, also from tables that no job writes any more. Return what was done."""
    notes: list[str] = []
    for rows in lake_rows(find_aggregate(job) for job in jobs if not is_rows_job(job)):
        if lake is not None and row_table(rows.source).subject:
            notes += _delete(lake, rows.job, condition_of(rows.source, erased), store)
    return notes


def _delete_windows(
    erased: ErasedRows, lake: Lake | None, aggregates: Sequence[Aggregate], store: Aggregations
) -> list[str]:
    """Delete the windows of subjects from the lake where SQL has none, because a repair knows only the windows of SQL.
    Closed runs are published first: published later, they would bring windows back. Return what was done."""
    notes: list[str] = []
    for of in aggregates:
        if lake is not None and of.subject is not None and store.find_days(of, erased.subjects) is None:
            publish(store, lake, of.name)
            notes += _delete(lake, of.name, _any_of(of.source, erased.subjects), store)
    return notes


def _delete(lake: Lake, job: str, condition: str, store: Aggregations) -> list[str]:
    """Delete rows from the tables of a job, except from tables that its next run makes anew."""
    stale = store.read_standing(job).stale
    counts = {table: lake.delete(table, condition) for table in tables_of(job) if f"{table}{OF_REMAKE}" not in stale}
    return [f"lake: {count} rows were deleted from {table}" for table, count in counts.items() if count]


def condition_of(row_class: type, erased: ErasedRows) -> str:
    """Return the condition, in the SQL of delta-rs, of the rows of subjects up to the last number of each partition."""
    places = " OR ".join(
        f"(stream_id = {stream_id} AND partition_id = {_quoted(id)} AND sequence_number <= {part.span.last})"
        for part in erased.task.parts
        if part.span is not None
        for stream_id, id in [place_of_part(part)]
    )
    return f"{_any_of(row_class, erased.subjects)} AND ({places or '1 = 0'})"


def _any_of(row_class: type, subjects: Sequence[str]) -> str:
    """Return the condition, in the SQL of delta-rs, that a row or a window has one of some subjects."""
    name = row_table(row_class).subject
    is_text = str in types_of(dict(fields_of(row_class))[name])
    numbers = (whole_number(one) for one in subjects)
    known = map(_quoted, subjects) if is_text else (str(one) for one in numbers if one is not None)
    return f'"{name}" IN ({", ".join(known) or "NULL"})'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


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
        """Return the task of an erasure. It and replays of the numbers of this stream keep each other out. Raises
        RequestRefused for a subject that no column can have."""
        self._refuse()
        forms: dict[str, None] = {}
        for at, one in enumerate(asked.subjects):
            try:
                forms |= dict.fromkeys(forms_of(one, self.store.row_classes))
            except ValueError as fault:  # no name in the log: the place tells it
                raise RequestRefused(f"subjects[{at}]", f"this is no subject: {fault}") from None
        if without_subjects(asked.reason, tuple(forms)) != asked.reason:
            raise RequestRefused("reason", "the reason is stored, so it must not name a subject")
        held = tuple(PartRequest(id, span=span(0, last)) for id, last in sorted(self.store.read_checkpoints().items()))
        stored = report_text(ErasureAsked(tuple(forms), len(set(asked.subjects)), asked.most_rows))
        return TaskRequest(order, self.name, "", stored, held, is_dry_run=asked.dry_run, holds_numbers=True)

    def opening(self, request: TaskRequest) -> TaskOpening:
        """Return the steps that note the subjects and add the parts. The later one of the two clocks tells the time.
        Raises RequestRefused when the clocks of the database and of the app are too far apart."""
        here, there = self.app_time(), read_time(self.store.database)
        if (apart := abs(there - here)) > CLOCKS_APART:
            word = "fast" if there > here else "slow"
            why = f"compared with the app, the database's clock is {apart.total_seconds():,.0f} s {word}"
            raise RequestRefused("", f"{why}: correct the wrong clock before an erasure (docs/erasure.md)", "conflict")
        subjects = report_of(request.asked, ErasureAsked).subjects
        return opening_of(request, subjects, self.key, max(here, there))

    def _refuse(self) -> None:
        if not self.key.secret:
            why = "set ERASURE_KEY first: its key hashes the subjects that stay forgotten (docs/erasure.md)"
            raise RequestRefused("", why, "conflict")
        if self.store.read_lost_keys(self.key.names):
            why = "subjects were erased with a key that the settings do not have: give it in ERASURE_KEY_BEFORE"
            raise RequestRefused("", f"{why} (docs/erasure.md)", "conflict")
        tables = list(map(row_table, self.store.row_classes))
        if not any(one.subject for one in tables):
            named = next((one.name for one in tables if not one.key), tables[0].name if tables else "TABLE")
            why = "no table of the room declares its subject, so rows of a subject cannot be found: name the column, as"
            raise RequestRefused("", f'{why} in @appended_to("{named}", subject="COLUMN")', "conflict")

    def report(self, task: Task, *, is_listed: bool) -> dict[str, Any]:
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
        if part.span is None:
            return self._close(task, part)
        (stream_id, id), last, asked = place_of_part(part), int(part.span.last), asked_of(task)
        first = min(self.store.find_next(stream_id, id, part.position), last + 1)
        reach = span(first, min(last, first + self.numbers - 1))
        piece = self.store.find_piece(stream_id, self.stream.partition(id), reach, asked.subjects)
        rows = erased_by(task).plus(piece.figures).row_count
        if asked.most_rows is not None and rows > asked.most_rows and not task.is_dry_run:
            why = f"it would erase at least {rows} rows, and most_rows is {asked.most_rows}: begin a dry run, and look"
            move_task(task.task_id, "fail", self, f"{why} at its rows")
            return ONE_PIECE
        report = report_text(erasing_of(part).plus(piece.figures))
        ahead = Advance(part.name, part.step, piece.span.last + 1, report, piece.span.last >= last)
        if task.is_dry_run:
            self.tasks.advance(self.ending(task), ahead)
        else:
            self.store.erase(piece, task.requested_by, self.ending(task), ahead)
        return Done(1, piece.span.length)

    def _close(self, task: Task, part: TaskPart) -> Done:
        """Erase in the lake, order repairs, and reword what people wrote. The task forgets the subjects as it ends."""
        notes: tuple[str, ...] = ()
        if not task.is_dry_run:
            days = erased_by(task).plus(Erasing(days=self.store.read_unrepaired())).days
            notes = self.erase_lake(ErasedRows(task, days))
            self.store.forget_states(asked_of(task).subjects)
            self.store.reword(asked_of(task).subjects)
        report = report_text(replace(erasing_of(part), notes=notes))
        self.tasks.advance(self.ending(task), Advance(part.name, part.step, part.position, report, is_last=True))
        return ONE_PIECE
