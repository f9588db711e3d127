"""A purge as a task: a part for each table. Each piece is one transaction that also advances its part."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import accumulate, takewhile
from typing import Annotated, Any

import msgspec

from core.errors import RequestRefused
from core.model.commits import ROWS_AT_ONCE
from core.model.events import PartitionId
from core.model.policies import DEFAULT_DAYS, MOST_DAYS
from core.model.ports import Clock
from core.model.shapes import Answered, Reason, written
from core.purge.purge import (
    BY_PARTITION,
    BY_STREAM,
    NOTHING_FOUND,
    Found,
    Purge,
    PurgeReach,
    PurgeTarget,
    SettledLetter,
    purge_of,
    purge_request,
    target_of,
)
from core.purge.store import Purges
from core.tasks.run import ONE_PIECE, Done, TaskKind
from core.tasks.store import Ending, Tasks
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

VERIFYING = timedelta(minutes=5)  # of one partition, in one piece
DEADLINE = timedelta(days=2)  # an open purge keeps all others out
LEDGER_ROW, LETTER, ATTEMPT = 273, 595, 330  # bytes of a row, a letter without its body: docs/capacity.md measures them
ROW_BYTES = {  # the last three are assumed
    "retracted_row": 340,
    "staged_event": 230,
    "replay_diff": 510,
    "task_part": 1_000,
    "task": 1_000,
    "aggregation_failure": 3_000,
}

Verify = Callable[[PartitionId, datetime], tuple[int, int]]  # the number of faults, and the last commit that was read


Days = Annotated[int, msgspec.Meta(ge=0, le=MOST_DAYS)]
_NAMED = msgspec.Meta(extra_json_schema={"propertyNames": {"enum": list(DEFAULT_DAYS)}})


class PurgeShape(TaskShape, tag="purge"):
    """A request for a purge. A table that `older_than_days` leaves out has the days of the settings. Only a request
    with `dry_run` = false deletes anything."""

    reason: Reason
    older_than_days: Annotated[dict[str, Days], _NAMED] | None = None
    dry_run: bool = True


class PurgedTableAnswer(Answered):
    """The rows of a table that a purge deleted, or that a dry run counted, and an estimate of their bytes. Letters
    count with their attempts. `notes` say what keeps old rows."""

    table: str
    rows: int
    bytes: int
    oldest: datetime | None
    newest: datetime | None
    notes: list[str]


class PurgeAnswer(TaskAnswer, tag_field="kind", tag="purge"):
    """A purge so far: `done` of `total` parts, one for each table, or for each table of a partition."""

    older_than_days: dict[str, int]
    rows: int
    tables: list[PurgedTableAnswer]


@dataclass(frozen=True, slots=True)
class PurgeKind(TaskKind):
    """The purges of one stream. `jobs` are the aggregates that the app runs, and `days` those that each table keeps. A
    transaction has at most `rows_of_piece` rows of a table, attempts included, and at most `letters_of_piece` letters.
    """

    store: Purges
    verify: Verify
    jobs: tuple[str, ...]
    clock: Clock
    days: Mapping[str, int] = field(default_factory=lambda: DEFAULT_DAYS)
    rows_of_piece: int = ROWS_AT_ONCE
    letters_of_piece: int = ROWS_AT_ONCE

    name = "purge"
    asked = PurgeShape
    answer = PurgeAnswer
    deadline = DEADLINE

    @property
    def tasks(self) -> Tasks:
        return Tasks(self.store.stream.database)

    def request(self, order: TaskOrder, asked: PurgeShape) -> TaskRequest:
        """Return the task of a purge with the days that are given, and those of the settings."""
        given = asked.older_than_days or {}
        if unknown := sorted(set(given) - set(DEFAULT_DAYS)):
            why = f"there is no table {unknown[0]}: name some of {', '.join(DEFAULT_DAYS)}"
            raise RequestRefused("older_than_days", why)
        partitions = self.store.read_purge_partitions()
        return purge_request(order, {**self.days, **given}, partitions, is_dry_run=asked.dry_run)

    def report(self, task: Task, *, is_listed: bool) -> dict[str, Any]:
        """Return the figures of each table so far."""
        purge = purge_of(task)
        found = purge.found
        return {
            "older_than_days": dict(purge.days),
            "rows": sum(one.rows for one in found.values()),
            "tables": [
                written(PurgedTableAnswer, found[name], table=name, notes=[*found[name].notes])
                for name in (*BY_PARTITION, *BY_STREAM)
                if name in found
            ],
        }

    def advance(self, task: Task, part: TaskPart, until: datetime) -> Done:
        """Purge the next piece of a table, or count its old rows. An audit comes before the ledger of a partition."""
        piece, target = _PieceOfPurge(self, purge_of(task), part), target_of(part.name)
        id = target.partition_id
        own = {
            "event_hub_checkpoint": piece.verify,
            "batch_ledger": piece.purge_ledger,
            "event_hub_dead_letter": piece.purge_letters,
        }
        if id is not None and piece.purge.found_in(id).is_left:
            return piece.note(NOTHING_FOUND)
        return own[target.table](id) if id is not None and target.table in own else piece.purge_rows(target)


@dataclass(frozen=True, slots=True)
class _PieceOfPurge:
    """One piece of a purge."""

    kind: PurgeKind
    purge: Purge
    part: TaskPart

    def verify(self, id: PartitionId) -> Done:
        """Audit a partition. If it has faults, nothing of it is purged, so that their cause can still be found."""
        faults, until = self.kind.verify(id, self.kind.clock.now() + VERIFYING)
        if not faults:
            return self.note(Found(audited_to=until))
        why = f"partition {id} has {faults} faults: nothing of it is purged until an audit finds none"
        return self.note(Found(notes=(why,), is_left=True))

    def purge_ledger(self, id: PartitionId) -> Done:
        """Purge the next old ledger rows that nothing needs any more.

        An audit that is opened after this look at the open ones reads the partition again.
        """
        store, is_dry_run = self.kind.store, self.purge.task.is_dry_run
        reach = store.read_reach(id)
        last, why, before = self._limit(id, reach)
        after = reach.purged.commit_number
        if is_dry_run or reach.audit_is_open or last <= after:
            found = store.count_ledger(id, after, last, before)[0] if last > after else NOTHING_FOUND
            wait = "an audit is open" if reach.audit_is_open else why
            counted = replace(found, bytes=LEDGER_ROW * found.rows) if is_dry_run else NOTHING_FOUND
            return self.note(replace(counted, notes=(f"partition {id}: {wait}",)))
        read = store.read_ledger_rows(id, after, self.kind.rows_of_piece)
        rows = tuple(takewhile(lambda row: row.commit_number <= last and row.committed_at < before, read))
        if not rows:
            return self.note(NOTHING_FOUND)
        numbers = [row.last for row in rows if row.kind == "batch"]
        times = [row.committed_at for row in rows]
        found = Found(len(rows), LEDGER_ROW * len(rows), min(times), max(times))
        last_number = max(numbers, default=reach.purged.last)
        store.purge_ledger(id, rows, last_number, *self._end(found, is_last=len(rows) < self.kind.rows_of_piece))
        return Done(1, len(rows))

    def purge_letters(self, id: PartitionId) -> Done:
        """Purge the next settled letters of numbers whose ledger rows are gone."""
        store, before = self.kind.store, self.purge.before("event_hub_dead_letter")
        reach = store.read_reach(id)
        if self.purge.task.is_dry_run:
            (last, _, of_ledger), after, reached = self._limit(id, reach), reach.purged.commit_number, reach.purged
            if last > after:  # as far as a purge of the ledger would reach
                reached = store.count_ledger(id, after, last, of_ledger)[1]
            counted = store.count_letters(id, reached, before)
            size = counted.bytes + (LETTER + ATTEMPT) * counted.rows  # one attempt each
            return self.note(replace(counted, bytes=size))
        read = store.read_settled_letters(id, reach.purged, before, self.kind.letters_of_piece)
        letters = _within(read, self.kind.rows_of_piece)
        if reach.audit_is_open or not letters:
            return self.note(NOTHING_FOUND)
        times = [one.settled_at for one in letters]
        bytes_ = sum(LETTER + one.body_bytes + ATTEMPT * one.attempts for one in letters)
        found = Found(len(letters), bytes_, min(times), max(times))
        is_last = len(letters) == len(read) < self.kind.letters_of_piece
        store.purge_letters(id, letters, *self._end(found, is_last=is_last))
        return Done(1, len(letters))

    def purge_rows(self, target: PurgeTarget) -> Done:
        """Purge the next old rows of a table that no total counts."""
        store, before, size = self.kind.store, self.purge.before(target.table), ROW_BYTES[target.table]
        if self.purge.task.is_dry_run:
            counted = store.count_rows(target, before)
            return self.note(replace(counted, bytes=max(counted.bytes, size * counted.rows)))
        piece = store.find_rows(target, before, self.kind.rows_of_piece)
        found = Found(piece.rows, size * piece.rows)
        store.purge_rows(piece, *self._end(found, is_last=piece.is_last))
        return Done(1, piece.rows)

    def note(self, found: Found) -> Done:
        """Record what was found, change nothing else, and close the part."""
        self.kind.tasks.advance(*self._end(found, is_last=True))
        return ONE_PIECE

    def _end(self, found: Found, *, is_last: bool) -> tuple[Ending, Advance]:
        report = report_text(report_of(self.part.report, Found).plus(found))
        ahead = Advance(self.part.name, self.part.step, self.part.position, report, is_last)
        return self.kind.ending(self.purge.task), ahead

    def _limit(self, id: PartitionId, reach: PurgeReach) -> tuple[int, str, datetime]:
        """Return the last ledger row that may go, why none after it may, and the time before which rows are old. Rows
        since an open replay's request may be its own."""
        cuts, old = self.kind.store.read_cuts(id), self.purge.before("batch_ledger")
        last, why = ledger_limit(reach, self.purge.found_in(id).audited_to, cuts, self.kind.jobs)
        return last, why, old if reach.replay_at is None else min(old, reach.replay_at)


def _within(letters: tuple[SettledLetter, ...], most: int) -> tuple[SettledLetter, ...]:
    """Return the first of these letters that have no more attempts together than this number, and at least one."""
    sums = accumulate(one.attempts for one in letters)
    return letters[: max(1, sum(attempts <= most for attempts in sums))]


def ledger_limit(reach: PurgeReach, audited_to: int, cuts: Mapping[str, int], jobs: tuple[str, ...]) -> tuple[int, str]:
    """Return the last commit of a partition whose ledger row may go, and the reason why none after it may."""
    limits = [
        (reach.newest_batch - 1, "its newest batch stays"),
        (audited_to, f"its audit read the ledger up to commit {audited_to}"),
        *((cuts.get(job, 0), f"{job} has passed commit {cuts.get(job, 0)}") for job in {**dict.fromkeys(jobs), **cuts}),
    ]
    if reach.replay_from is not None:
        limits.append((reach.replay_from - 1, f"an open replay begins at commit {reach.replay_from}"))
    last, why = min(limits, key=lambda one: one[0])
    return last, f"{why}: its ledger rows after commit {last} stay"
