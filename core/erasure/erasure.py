"""Decide what an erasure forgets: the rows, letters and texts that name a subject."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, timedelta
from typing import Any
from unicodedata import normalize

from core.aggregation.lake_tables import FILES_KEPT
from core.model.events import Partition, PartitionId, SequenceNumber, Span
from core.model.rows import row_table, texts_of
from core.settle.mentions import composed, without_subjects
from core.store.columns import cut, fields_of, storable, types_of, whole_number
from core.tasks.task import Task, TaskPart, report_of

MOST_SUBJECTS = 1_000
LEAST_WIDTH = 400  # of a column with a text of people or errors
MOST_NAMED = 100  # letters in an answer
LAKE = "lake"  # the part for the lake and the aggregates


@dataclass(frozen=True, slots=True)
class ErasureAsked:
    """The stored request: the values of the subjects while the task is open, and then only their number. The task fails
    before it erases more than `most_rows` rows, if that is given."""

    subjects: tuple[str, ...]
    count: int
    most_rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedCounts:
    """The number of letters, of attempts at other letters with a reason or an error that mentions a subject, and of
    staged events, retracted rows and events of dry runs that belong to the subjects."""

    letters: int = 0
    reasons: int = 0
    staged: int = 0
    retracted: int = 0
    diffs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasing(ErasedCounts):
    """The figures of a part: erased so far, or found by a dry run. `rows` counts the rows of each table. `days` has the
    first and the last day of the rows for each aggregate. `first_letters` are those of a part, MOST_NAMED at most.
    `notes` are for the operator."""

    rows: Mapping[str, int] = field(default_factory=dict)
    days: Mapping[str, tuple[date, date]] = field(default_factory=dict)
    first_letters: tuple[SequenceNumber, ...] = ()
    notes: tuple[str, ...] = ()

    def plus(self, other: "Erasing") -> "Erasing":
        """Return these figures and others."""
        counts = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        rows = {name: self.rows.get(name, 0) + other.rows.get(name, 0) for name in {**self.rows, **other.rows}}
        days = {**self.days}
        for name, (first, last) in other.days.items():
            since, until = days.get(name, (first, last))
            days[name] = (min(first, since), max(last, until))
        notes = tuple(dict.fromkeys((*self.notes, *other.notes)))
        letters = (*self.first_letters, *other.first_letters)[:MOST_NAMED]
        return replace(self, rows=rows, days=days, first_letters=letters, notes=notes, **counts)

    @property
    def row_count(self) -> int:
        return sum(self.rows.values())


COUNTS = tuple(one.name for one in fields(ErasedCounts))
NOTHING_ERASED = Erasing()


def asked_of(task: Task) -> ErasureAsked:
    return report_of(task.asked, ErasureAsked)


def erasing_of(part: TaskPart) -> Erasing:
    """Return what a part has erased so far."""
    return report_of(part.report, Erasing)


def erased_by(task: Task) -> Erasing:
    """Return what all parts of an erasure have erased so far."""
    total = NOTHING_ERASED
    for part in task.parts:
        total = total.plus(erasing_of(part))
    return total


def forms_of(subject: str, row_classes: Sequence[type]) -> tuple[str, ...]:
    """Return the texts that a subject has: its own as a partition key and in a column of texts, composed and decomposed
    too, and in a column of numbers that of the number, so `007` is 7. Raises ValueError with the reason when no column
    can have it."""
    if "\0" in subject or subject != storable(subject):
        raise ValueError("no column can have U+0000 or half of a character")
    forms, why, fits = [subject, composed(subject), normalize("NFD", subject)], "", False
    for row_class in (one for one in row_classes if row_table(one).subject):
        table = row_table(row_class)
        column, text = f"{table.name}.{table.subject}", texts_of(row_class).get(table.subject)
        if str not in types_of(dict(fields_of(row_class))[table.subject]):
            number = whole_number(subject)
            forms += [] if number is None else [str(number)]
            why, can_have = f"{column} has whole numbers of 64 bits", number is not None
        else:
            can_have = text is None or (cut(subject, text.length) == subject and (subject.isascii() or not text.ascii))
            why = why if text is None else f"{column} has texts of at most {text.length} characters"
        fits = fits or can_have
    if not fits:
        raise ValueError(why)
    return tuple(dict.fromkeys(forms))


def place_of_part(part: TaskPart) -> tuple[int, PartitionId]:
    """Return the stream and the partition of a part."""
    return report_of(part.asked, int), PartitionId(part.name.rpartition("/")[2])


RetractedPlace = tuple[int, str, int, int]  # commit that took the row away, table, sequence number, ordinal
Diff = tuple[str, int]  # task of a dry run, and the event that it has stored a difference for


@dataclass(frozen=True, slots=True)
class FoundPiece:
    """All data of the `sought` subjects in a range of one partition, of any stream. `rows_of` counts the rows of each
    table."""

    stream_id: int
    partition: Partition
    sought: tuple[str, ...]
    span: Span
    rows_of: Mapping[type, int]
    letters: tuple[SequenceNumber, ...] = ()
    reasons: tuple[tuple[SequenceNumber, int], ...] = ()
    staged: tuple[SequenceNumber, ...] = ()
    retracted: tuple[RetractedPlace, ...] = ()
    diffs: tuple[Diff, ...] = ()
    days: Mapping[str, tuple[date, date]] = field(default_factory=dict)

    @property
    def figures(self) -> Erasing:
        counts: dict[str, Any] = {name: len(getattr(self, name)) for name in COUNTS}
        rows = {row_table(row_class).name: count for row_class, count in self.rows_of.items()}
        return replace(Erasing(rows=rows, days=self.days, first_letters=self.letters[:MOST_NAMED]), **counts)


# The fields of requests and histories with texts of people, or with names. No other value can be a subject.
PEOPLE_WROTE = frozenset({"why", "reason", "keys", "partition_key"})


def values_without_subjects(text: str, subjects: Sequence[str]) -> str:
    """Return the JSON of a request or of a history, one value a line, without subjects in what people wrote. A line
    without one stays to the letter."""
    lines = []
    for line in text.split("\n"):
        value = json.loads(line) if line else None
        changed = _value_without(value, subjects, is_text=False)
        lines.append(line if changed == value else json.dumps(changed))
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Worded:
    """A table with texts of people and errors, and the statements that read and replace them. A row has the columns of
    the key, then the texts."""

    read: str
    reword: str
    key: tuple[str, ...]
    texts: tuple[str, ...]

    def without(self, row: Mapping[str, Any], subjects: Sequence[str]) -> Mapping[str, Any]:
        """Return a row without subjects in its texts."""
        changed = dict(row)
        for name in self.texts:
            if text := row[name]:
                is_json = name in ("asked", "history")
                changed[name] = (
                    values_without_subjects(text, subjects)
                    if is_json
                    else cut(without_subjects(text, subjects), max(len(text), LEAST_WIDTH))  # as wide as its column
                )
        return changed


WORDED = (
    Worded("read_tasks_to_search", "reword_task", ("task_id",), ("asked", "reason", "fault", "history")),
    Worded("read_jobs_to_search", "reword_job", ("job",), ("paused_why", "ordered_why", "history")),
    Worded("read_streams_to_search", "reword_stream", ("stream_id",), ("opened_why",)),
    Worded("read_stops_to_search", "reword_stop", ("stream_id", "partition_id", "reason"), ("detail",)),
    Worded("read_runs_to_search", "reword_run", ("run_id",), ("failure",)),
    Worded("read_failures_to_search", "reword_failure", ("run_id", "submit_number"), ("why", "reason", "log_tail")),
    Worded("read_unknown_to_search", "reword_unknown", ("stream_id", "partition_id"), ("unknown_fields",)),
)


def _value_without(value: Any, subjects: Sequence[str], *, is_text: bool) -> Any:
    if isinstance(value, dict):
        return {
            name: values_without_subjects(inner, subjects)
            if name == "asked" and isinstance(inner, str)  # a request within a request
            else _value_without(inner, subjects, is_text=is_text or name in PEOPLE_WROTE)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_value_without(inner, subjects, is_text=is_text) for inner in value]
    return without_subjects(value, subjects) if is_text and isinstance(value, str) else value


def left_elsewhere(
    now: datetime, retention: timedelta | None, *, has_lake: bool, without_key: int = 0
) -> tuple[str, ...]:
    """Return a note for each copy that an erasure cannot reach, and until when the copy stays. `without_key` counts the
    events without a readable key."""
    until = "until its retention ends" if retention is None else f"until {(now + retention):%Y-%m-%d}"
    left = [
        f"the event hub keeps its events {until}; they are not taken again",
        "to do: do other apps write to this database? Order the erasure there too, for rows of their tables",
        "to do: does the hub use Event Hubs Capture? Take these events out of its files, or let the files expire",
        "backups of the database keep the rows until their retention ends",
        "the log of the app and the logs of Spark jobs may name a subject in an error, until their retention ends",
    ]
    if without_key:
        instead = "their partition keys, rows and texts were searched instead"
        left.append(f"the key of {without_key:,} events could not be read: {instead}")
    if has_lake:
        left.append(
            f"replaced files of the lake stay for readers until {(now + FILES_KEPT):%Y-%m-%d}, then VACUUM goes"
        )
    return tuple(left)
