"""Replay jobs: the request of a person, the states that a job passes through, and its progress.

A job works through a range of each partition, piece by piece. Each piece is one transaction that also moves the
progress of the job, by compare and set: so a piece is done once, however many workers drive the job, and a job that is
not `running` does not proceed. The ranges of planned, running and paused jobs do not overlap, except dry runs.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec

from core.model.events import PartitionId
from core.model.spans import SequenceNumber, Span
from core.tasks.task import PartRequest, Task, TaskOrder, TaskPart, TaskRequest, report_of, report_text

# The limit of planned, running and paused jobs of a stream. Each open job has an orchestration with links of its own to
# the hub, and dry runs store diffs: without a limit, one caller in a loop could use up the hub's links and the store.
MOST_OPEN = 20
MOST_KEYS = 1_000  # of a replay: they are stored with its request, and each event is compared with them


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """The numbers of one partition to replay; `note` says which requested numbers were left out."""

    partition_id: PartitionId
    span: Span
    note: str | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A requested partition in which nothing can be replayed."""

    partition_id: PartitionId
    why: str


@dataclass(frozen=True, slots=True)
class ReplayCounts:
    """The counts of a replay so far. A dry run counts the events, letters and rows that a replay would change.

    `gone` counts numbers that are not in the hub and have no letter. Nobody knows the partition keys of their events,
    so a replay by key counts all those of its range. `states_left` counts states of the range that their event did not
    write again: they stay as they are. A replay by key does not count them. Those of `states_lowered` count too: their
    event wrote an older value of `newest_by` than before. Rows of other events, which are not stored, may be newer.
    """

    events: int = 0
    written: int = 0
    filtered: int = 0
    dead_lettered: int = 0
    held: int = 0
    gone: int = 0
    letters_added: int = 0
    letters_resolved: int = 0
    rows_written: int = 0
    rows_retracted: int = 0
    events_changed: int = 0
    rows_added: int = 0
    rows_removed: int = 0
    rows_changed: int = 0
    states_rewritten: int = 0
    states_lowered: int = 0
    states_left: int = 0

    def plus(self, other: "ReplayCounts") -> "ReplayCounts":
        return ReplayCounts(*(getattr(self, name) + getattr(other, name) for name in COUNTS))


COUNTS: tuple[str, ...] = tuple(ReplayCounts.__dataclass_fields__)
COUNTED = ("letters_added", "letters_resolved", "rows_retracted")  # only the transaction of a piece knows them
MOST_GONE_RANGES = 1_000  # ranges that a partition lists; `gone` counts the numbers of all ranges


@dataclass(frozen=True, slots=True)
class ReplayReport(ReplayCounts):
    """The stored report of a partition: its counts, the first ranges that are gone, how much was counted by commits
    that a purge has removed since, and the versions of the transform that did its pieces, in order."""

    gone_ranges: tuple[Span, ...] = ()
    purged_written: int = 0
    purged_rows_written: int = 0
    purged_rows_retracted: int = 0
    transform_versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """The stored request for one partition: a note on the requested numbers that were left out."""

    note: str | None


class ReplayAsked(msgspec.Struct, frozen=True, omit_defaults=True):
    """The stored request of a replay. `asked` is the range as JSON, as the person requested it; in the partitions
    `left_out`, nothing can be replayed. With `keys`, only the events of these partition keys are replayed."""

    asked: str
    left_out: tuple[LeftOut, ...]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """The progress of a job in one partition: its next piece begins at `next_number`."""

    range: PartitionRange
    next_number: SequenceNumber
    report: ReplayReport = field(default_factory=ReplayReport)
    step: int = 0
    closed_at: datetime | None = None

    @property
    def others(self) -> int:
        """The events that were read and left alone, because they have none of the job's partition keys."""
        return self.next_number - self.range.span.first - self.report.events - self.report.gone

    def report_after(self, counts: ReplayCounts, gone_ranges: tuple[Span, ...], version: str) -> ReplayReport:
        """Return the report after a piece of a version with these counts, and with all ranges that are gone by then."""
        counted = {name: getattr(self.report, name) + getattr(counts, name) for name in COUNTS}
        versions = tuple(dict.fromkeys((*self.report.transform_versions, version)))
        return replace(self.report, **counted, gone_ranges=gone_ranges, transform_versions=versions)

    def after(self, next_number: SequenceNumber, report: ReplayReport) -> "PartitionProgress":
        """Return the progress after a piece."""
        return replace(self, next_number=next_number, report=report, step=self.step + 1)

    @property
    def is_through(self) -> bool:
        """True when no piece is left; the partition may still have to be closed."""
        return self.next_number > self.range.span.last


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """A job as it is now: its task, its request, and its progress in each partition."""

    task: Task
    asked: ReplayAsked
    partitions: tuple[PartitionProgress, ...]

    @property
    def counts(self) -> ReplayCounts:
        total = ReplayCounts()
        for one in self.partitions:
            total = total.plus(one.report)
        return total

    @property
    def others(self) -> int:
        """The events that were read and left alone, because they have none of the job's partition keys."""
        return sum(one.others for one in self.partitions)


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
            PartRequest(
                one.partition_id, one.span.first, one.span, report_text(Note(one.note)), report_text(ReplayReport())
            )
            for one in ranges
        ),
        total=sum(one.span.length for one in ranges),
        is_dry_run=is_dry_run,
        holds_numbers=True,
        most_open=MOST_OPEN,
        transform_version=version,
    )


def replay_of(task: Task) -> ReplayJob:
    """Return the replay of a task."""
    return ReplayJob(task, report_of(task.asked, ReplayAsked), tuple(map(progress_of, task.parts)))


def progress_of(part: TaskPart) -> PartitionProgress:
    """Return the progress of a replay in the partition of a part."""
    assert part.span is not None  # each part of a replay has a range
    ranged = PartitionRange(PartitionId(part.name), part.span, report_of(part.asked, Note).note)
    report = report_of(part.report, ReplayReport)
    return PartitionProgress(ranged, SequenceNumber(part.position), report, part.step, part.closed_at)


@dataclass(frozen=True, slots=True)
class Replayable:
    """The numbers of a partition that can be replayed: from the first of its ledger to the checkpoint."""

    partition_id: PartitionId
    first: SequenceNumber
    checkpoint: SequenceNumber
