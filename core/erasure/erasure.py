"""Decide what an erasure forgets: the rows, letters and texts that name a subject."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, timedelta

from core.aggregation.lake_tables import FILES_KEPT
from core.model.events import PartitionId, SequenceNumber, Span
from core.model.rows import row_table
from core.tasks.task import PartRequest, Task, TaskOrder, TaskPart, TaskRequest, report_of, report_text

MOST_SUBJECTS = 1_000
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
    """The number of letters, staged events, retracted rows and events of dry runs that belong to the subjects."""

    letters: int = 0
    staged: int = 0
    retracted: int = 0
    diffs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasing(ErasedCounts):
    """The figures of a part: erased so far, or found by a dry run. `rows` counts the rows of each table. `days` has the
    first and the last day of the rows for each aggregate. `notes` are for the operator."""

    rows: Mapping[str, int] = field(default_factory=dict)
    days: Mapping[str, tuple[date, date]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def plus(self, other: "Erasing") -> "Erasing":
        """Return these figures and others."""
        counts = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        rows = {name: self.rows.get(name, 0) + other.rows.get(name, 0) for name in {**self.rows, **other.rows}}
        days = {**self.days}
        for name, (first, last) in other.days.items():
            since, until = days.get(name, (first, last))
            days[name] = (min(first, since), max(last, until))
        return replace(self, rows=rows, days=days, notes=tuple(dict.fromkeys((*self.notes, *other.notes))), **counts)

    @property
    def row_count(self) -> int:
        """The number of rows of all tables."""
        return sum(self.rows.values())


COUNTS = tuple(one.name for one in fields(ErasedCounts))
NOTHING_ERASED = Erasing()


def asked_of(task: Task) -> ErasureAsked:
    """Return the request of an erasure."""
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


def erasure_request(
    order: TaskOrder,
    subjects: Sequence[str],
    spans: Mapping[PartitionId, Span],
    *,
    is_dry_run: bool = True,
    most_rows: int | None = None,
) -> TaskRequest:
    """Return the task of an erasure of these numbers of each partition."""
    asked = ErasureAsked(tuple(subjects), len(subjects), most_rows)
    begun = report_text(NOTHING_ERASED)
    parts = [PartRequest(id, one.first, one, report=begun) for id, one in spans.items()]
    parts.append(PartRequest(LAKE, report=begun))
    return TaskRequest(
        order, "erasure", "", report_text(asked), tuple(parts), len(parts), is_dry_run=is_dry_run, holds_numbers=True
    )


RetractedPlace = tuple[int, str, int, int]  # commit that took the row away, table, sequence number, ordinal
Diff = tuple[str, int]  # task of a dry run, and the event that it has stored a difference for


@dataclass(frozen=True, slots=True)
class FoundPiece:
    """Everything of the subjects in a range of a partition. `rows` counts the rows of each table."""

    span: Span
    rows: Mapping[type, int]
    letters: tuple[SequenceNumber, ...] = ()
    staged: tuple[SequenceNumber, ...] = ()
    retracted: tuple[RetractedPlace, ...] = ()
    diffs: tuple[Diff, ...] = ()
    days: Mapping[str, tuple[date, date]] = field(default_factory=dict)

    @property
    def figures(self) -> Erasing:
        """The counts of this piece."""
        return Erasing(
            rows={row_table(row_class).name: count for row_class, count in self.rows.items()},
            letters=len(self.letters),
            staged=len(self.staged),
            retracted=len(self.retracted),
            diffs=len(self.diffs),
            days=self.days,
        )


ERASED_WORD = "erased"


def without_subjects(text: str, subjects: Sequence[str]) -> str:
    """Return a text, or a JSON text, in which `erased` stands for each subject. Part of a longer word is none."""
    if not text:
        return text
    for subject in subjects:
        for written in dict.fromkeys((subject, json.dumps(subject)[1:-1])):
            text = re.sub(rf"(?<![\w-]){re.escape(written)}(?![\w-])", ERASED_WORD, text)
    return text


def left_elsewhere(now: datetime, retention: timedelta | None, *, has_lake: bool) -> tuple[str, ...]:
    """Say what an erasure cannot reach, and until when it stays."""
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
