"""Aggregation in SQL: cuts, runs, staged results, and the windows of each level."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypeVar

from core.aggregation.lake_tables import is_rows_job
from core.aggregation.runs import (
    MOST_COMMITS,
    NO_CUT,
    AggregationRun,
    Cut,
    Days,
    Failure,
    Order,
    Pause,
    Portion,
    Reach,
    RunOrder,
    Staged,
    StagedSlice,
    Standing,
    cut_of,
    overflow_text,
)
from core.errors import SchemaMismatch
from core.model.aggregates import SLICES, Aggregate
from core.model.commits import ROWS_AT_ONCE
from core.store.columns import (
    WHO_LENGTH,
    WHY_LENGTH,
    cut,
    decoded,
    decoder,
    instant_of,
    instant_text,
    storable,
    subjects_json,
)
from core.store.database import Database, write
from core.store.script import OfRows, Script, Step, of_rows
from core.store.window_statements import window_reader
from core.transforms.loading import find_aggregate, load_aggregates


def levels_text(job: str) -> str:
    """Return the names of the levels that this code declares for a job, as its row in `aggregation_cut` holds them."""
    return job if is_rows_job(job) else " ".join(one.name for one in find_aggregate(job).levels)


def level_mismatch(job: str) -> SchemaMismatch:
    """Return the error of a database that has different levels of a job than this code."""
    return SchemaMismatch(
        f"the database has levels of {job} that this code does not declare, or lacks some of {levels_text(job)}: deploy"
        " the app that belongs to the last migration, or add a migration (`bin/hubledger migrate-diff`)"
    )


def read_staged(database: Database, run_id: str) -> Staged | None:
    """Return the first complete result of a run, or None."""
    found = database.ask("read_staged", run_id=run_id)
    if not found:
        return None
    staging_id, of_run, attempt, staged_at, levels, overflow = found[0]
    return Staged(staging_id, of_run, attempt, instant_of(staged_at), json.loads(levels), overflow)


class MovedOn(Exception):
    """Another tick was first, and nothing was written."""


def plan_script(run: AggregationRun, order: RunOrder | None = None) -> Script:
    """Return the transaction of a plan, which ends the order of the run: the row of the cut is its lock."""
    values = {
        "run_id": run.run_id,
        "job": run.job,
        "run_number": run.number,
        "expected_number": run.number - 1,
        "cut_from": run.cut_from,
        "cut_to": run.cut_to,
        "engine": run.engine,
        "attempt": run.attempt,
        "submits": run.submits,
        "planned_at": instant_text(run.planned_at),
        "intent_at": instant_text(run.intent_at),
        "rows_limit": -1 if run.rows_limit is None else run.rows_limit,
        "rows_planned": -1 if run.rows_planned is None else run.rows_planned,
        "kind": run.kind,
        "rows_from": run.rows_from,
        **days_values(run.days),
    }
    steps = [Step("number_run", values, expect=1, otherwise=MovedOn)]
    if order is not None:
        ended = {"job": run.job, "ordered_at": instant_text(order.at), "entry": ""}
        steps.append(Step("end_order", ended, expect=1, otherwise=MovedOn))
    return Script(f"plan of {run.run_id}", (*steps, Step("open_run", values)))


def days_values(days: Days) -> dict[str, str]:
    """Return days as parameters. A missing end is an empty text."""
    names = {"since_day": days.since, "until_day": days.until}
    return {name: "" if day is None else day.isoformat() for name, day in names.items()}


def order_values(order: Order, days: Days) -> dict[str, str]:
    """Return an order of a repair or a backfill as the columns of its job."""
    who, why = cut(order.who, WHO_LENGTH), cut(order.reason, WHY_LENGTH)
    told = {"ordered_at": instant_text(order.at), "ordered_by": who, "ordered_why": why}
    return {"kind": order.move, **days_values(days), **told}


def pause_values(order: Order) -> dict[str, str]:
    """Return a pause as the columns of its job."""
    who, why = cut(order.who, WHO_LENGTH), cut(order.reason, WHY_LENGTH)
    return {"paused_at": instant_text(order.at), "paused_by": who, "paused_why": why}


def entry_values(order: Order) -> dict[str, str]:
    """Return the job of an order, and its line in the history."""
    who, why = cut(order.who, WHO_LENGTH), cut(order.reason, WHY_LENGTH)
    line = {"at": instant_text(order.at), "move": order.move, "by": who, "why": why, "run_id": order.run_id}
    line["order_id"] = order.order_id
    if order.days is not None:
        line["days"] = str(order.days)
    return {"job": order.job, "entry": json.dumps(line) + "\n"}


def open_cut(database: Database, job: str) -> None:
    """Open the row of a job, which is before every commit, unless it has one."""
    write(database, job, "open_cut", job=job, levels=levels_text(job))


def is_first(database: Database, script: Script) -> bool:
    """Run a transaction, and return False when another tick was first."""
    try:
        database.run(script)
    except MovedOn:
        return False
    return True


FAILURE_LENGTH = 2_000  # characters that are stored of the reason of a failed run
LOG_LENGTH, LINK_LENGTH = 4_000, 1_000  # characters that are stored of the end of a job's log, and of its address
APP = "the app"  # withdraws an order that never has a run, and pauses a job whose runs would all end alike

Window = TypeVar("Window")


@dataclass(frozen=True, slots=True)
class _CutRow:
    cut: Cut
    number: int
    pause: Pause | None
    order: RunOrder | None
    stale: str | None


class Aggregations:
    """Runs and the aggregates in a database. It needs no patience: the next tick of the timer tries again.

    Any method may raise StoreUnavailable. A method that returns a bool is a compare and set: it returns False, with
    nothing written, when another process was first.

    The database has the tables of these row classes' aggregates. None: of all that are declared.
    """

    row_classes: tuple[type, ...] | None = None

    def __init__(self, database: Database, row_classes: tuple[type, ...] | None = None) -> None:
        self._database = database
        self.row_classes = row_classes

    def read_standing(self, job: str) -> Standing:
        """Return the progress of a job, and the cut that the checkpoints of one moment allow."""
        cut = self._database.ask("read_cut", job=job)
        found = decoder(_CutRow)(cut[0]) if cut else _CutRow(NO_CUT, 0, None, None, None)
        last = self.read_runs(job, found.number + 1, 1)
        numbers = self._database.ask("read_commit_numbers")
        reached = cut_of({(stream_id, partition_id): commits for stream_id, partition_id, commits in numbers})
        stale = json.loads(found.stale or "{}")
        return Standing(found.cut, found.number, last[0] if last else None, reached, found.pause, found.order, stale)

    def note_stale(self, job: str, stale: Mapping[str, str]) -> None:
        """Write which tables of a job in the lake are not up to date, each with the time since which that is so."""
        write(self._database, job, "note_stale", job=job, stale=json.dumps(stale, sort_keys=True))

    def read_reach(self, cut: Cut, most_rows: int) -> Reach | None:
        """Return the end of a run that begins at a cut, after about `most_rows` rows. None: no new commit changed rows.
        So batches and retries that only make letters start no job, until they are as many as one run takes.

        The commits of all partitions are taken side by side, and one commit at least.
        """
        begun = begun_json(cut)
        found = self._database.ask("read_reach", begun=begun, most_rows=most_rows, most_commits=MOST_COMMITS)
        numbers = {(stream_id, partition_id): number for stream_id, partition_id, number, *_ in found}
        first = {(stream_id, partition_id): number for stream_id, partition_id, number in json.loads(begun)}
        is_full = any(number - first.get(place, 0) >= MOST_COMMITS for place, number in numbers.items())
        if not is_full and not any(has_changes for *_, has_changes in found):
            return None
        return Reach(cut_of(numbers, cut), sum(row[3] for row in found), most_rows)

    def open_run(self, run: AggregationRun, order: RunOrder | None = None) -> bool:
        """Write a run and the intent to submit it. The first run opens the job's cut.

        False: the run does not begin at the job's cut, a run is open, the job is paused, or its order waits no more.
        """
        if run.number == 1:
            open_cut(self._database, run.job)
        return is_first(self._database, plan_script(run, order))

    def drop_order(self, job: str, order: RunOrder, why: str, at: datetime) -> bool:
        """End an order that never has a run, and write the reason into the history of its job."""
        dropped = entry_values(Order(job, "withdraw", APP, why, at))
        return bool(write(self._database, job, "end_order", **dropped, ordered_at=instant_text(order.at)))

    def renew_intent(
        self, run: AggregationRun, attempt: int, intent_at: datetime, failure: Failure | None = None
    ) -> bool:
        """Write the intent to submit an open run again, as the same attempt or the next, and why it is submitted."""
        expected = {"expected_attempt": run.attempt, "expected_intent_at": instant_text(run.intent_at)}
        values = {"engine": run.engine, "attempt": attempt, "intent_at": instant_text(intent_at), **expected}
        return is_first(
            self._database, Script(f"submit of {run.run_id}", ending_steps("renew_intent", run, values, failure))
        )

    def note_submitted(self, run: AggregationRun, engine_job_id: str, submitted_at: datetime) -> bool:
        """Write the id that the engine gave to this attempt."""
        at = instant_text(submitted_at)
        return self._touched("note_submitted", run, attempt=run.attempt, engine_job_id=engine_job_id, submitted_at=at)

    def note_failure(self, failure: Failure) -> None:
        """Write why a submit gave no result, if nothing is written of it yet."""
        is_first(self._database, Script(f"failure of {failure.run_id}", (failure_step(failure),)))

    def fail_run(self, run: AggregationRun, failure: str, closed_at: datetime, last: Failure | None = None) -> bool:
        """Close an open run without a result, and write why its last submit gave none. The cut does not move."""
        return is_first(self._database, Script(f"end of {run.run_id}", fail_steps(run, failure, closed_at, last)))

    def stop_run(self, run: AggregationRun, staged: Staged, why: str, last: Failure) -> bool:
        """Close a run without a result and pause its job, in one transaction: every further run would end alike.

        A run that may not fail stays open without this result, and goes on when an operator resumes the job.
        """
        return is_first(self._database, stop_script(run, staged, why, last))

    def find_overflow(self, run: AggregationRun, staged: Staged) -> str | None:
        """Return the fault of a value of a result that no column holds. None when every value fits.

        Only this run adds to the stored windows, so one look before its first slice is enough.
        """
        if staged.overflow is not None or run.committed_slices:
            return staged.overflow
        for level in find_aggregate(run.job).levels:
            statement = of_rows("find_overflow", level.of)
            for measure, begin in self._database.ask(statement, staging_id=staged.staging_id):
                return overflow_text(level.name, measure, f"{begin[:19]}Z")
        return None

    def read_staged(self, run_id: str) -> Staged | None:
        """Return a complete staged result of this run, or None."""
        return read_staged(self._database, run_id)

    def read_slices(self, staged: Staged) -> tuple[StagedSlice, ...]:
        """Return the slices of a staged result as its job described them: by number, and one for each level."""
        return decoded(StagedSlice, self._database.ask("read_slices", staging_id=staged.staging_id))

    def commit_portion(self, run: AggregationRun, staged: Staged, portion: Portion) -> bool:
        """Compare the staged windows of some slices with the facts of their job, and add them, in one transaction.

        Raises StagingRefused when they differ, and SchemaMismatch when the database has different levels of the job.
        """
        return is_first(self._database, portion_script(run, staged, portion))

    def mark_lake(self, run: AggregationRun) -> bool:
        """Mark an open run, whose whole result is in the lake, as committed there: it can no longer be given up."""
        return self._touched("mark_slices", run, expected_slices=run.committed_slices, committed_slices=SLICES)

    def close_run(self, run: AggregationRun, staged: Staged, closed_at: datetime) -> bool:
        """Move the cut and close the run, whose slices are all committed, in one transaction."""
        return is_first(self._database, close_run_script(run, staged, closed_at))

    def discard_staged(self, staged: Staged) -> bool:
        """Take a staged result away, so that it is never committed."""
        return bool(self._remove(staged.staging_id, "remove_staging"))

    def clear_staging(self) -> None:
        """Delete the staged rows of closed runs, in small transactions, so that no commit waits."""
        for level in (level for one in load_aggregates(self.row_classes) for level in one.levels):
            remove = of_rows("remove_staged", level.of)
            for (staging_id,) in self._database.ask(of_rows("find_staging", level.of)):
                while self._removed(remove, durable=False, staging_id=staging_id, most=ROWS_AT_ONCE) == ROWS_AT_ONCE:
                    pass
        for (staging_id,) in self._database.ask("find_closed_staging"):
            self._remove(staging_id, "remove_slices")
            self._remove(staging_id, "remove_staging")

    def remove_windows(self, level: type, before: datetime, most: int) -> int:
        """Delete windows of a level that begin before an instant, in one transaction, and return their number.

        A number below `most` means that none is left.
        """
        return self._removed(of_rows("remove_windows", level), until_at=instant_text(before), most=most)

    def find_days(self, of: Aggregate, subjects: Sequence[str]) -> tuple[date, date] | None:
        """Return the first and the last day of the windows of subjects in any level. None: it keeps none of theirs."""
        days: list[date] = []
        for level in of.levels if of.subject is not None else ():
            ((*found,),) = self._database.ask(
                of_rows("find_subject_windows", level.of), subjects=subjects_json(subjects)
            )
            days += [instant_of(one).date() for one in found if one is not None]
        return (min(days), max(days)) if days else None

    def remove_subjects(self, of: Aggregate, subjects: Sequence[str]) -> int:
        """Delete the windows of subjects in every level, also staged ones, in small transactions. Return the number of
        those that counted. A run whose staged windows are incomplete stages them again."""
        removed = 0
        values: dict[str, Any] = {"subjects": subjects_json(subjects), "most": ROWS_AT_ONCE}
        for level in of.levels if of.subject is not None else ():
            while self._removed(of_rows("remove_subject_staged", level.of), **values) == ROWS_AT_ONCE:
                pass
            while count := self._removed(of_rows("remove_subject_windows", level.of), **values):
                removed += count
        return removed

    def read_runs(self, job: str, before: int, limit: int) -> tuple[AggregationRun, ...]:
        """Return runs with a number below `before`, the newest first."""
        return decoded(AggregationRun, self._database.ask("read_runs", job=job, before_number=before, most=limit))

    def read_committed_runs(self, job: str, after: int) -> tuple[AggregationRun, ...]:
        """Return committed runs with a number above `after`, the oldest first."""
        return decoded(AggregationRun, self._database.ask("read_committed_runs", job=job, after_number=after))

    def read_windows(
        self, aggregate: type[Window], key: str | int, since: datetime, until: datetime
    ) -> tuple[Window, ...]:
        """Return the windows of a value of the first column of the key that begin in [since, until), in order."""
        values = {"key_value": key, "since_at": instant_text(since), "until_at": instant_text(until)}
        found = self._database.ask(of_rows("read_windows", aggregate), **values)
        return tuple(map(window_reader(aggregate), found))

    def close(self) -> None:
        """Close every connection."""
        self._database.close()

    def _remove(self, staging_id: str, statement: str) -> list[tuple[Any, ...]]:
        return write(self._database, f"staging {staging_id}", statement, staging_id=staging_id)

    def _removed(self, remove: OfRows, durable: bool = True, **values: Any) -> int:
        step = Step(remove, values, counts="removed")
        script = Script(str(remove), (step,), may_repeat=True, durable=durable, gives_way=True)
        return self._database.run(script).kept["removed"]

    def _touched(self, statement: str, run: AggregationRun, **values: Any) -> bool:
        return bool(write(self._database, f"run {run.run_id}", statement, run_id=run.run_id, **values))


def portion_script(run: AggregationRun, staged: Staged, portion: Portion) -> Script:
    """Return the transaction of a portion of slices: its mark, which is its lock, its checks, and its windows.

    It is not durable: a loss of power takes mark and windows back together, and the run continues from the mark that
    is left. The transaction that closes the run is durable, and makes all before it durable.
    """
    values = {
        "run_id": run.run_id,
        "job": run.job,
        "levels": levels_text(run.job),
        "expected_slices": run.committed_slices,
        "committed_slices": portion.last + 1,
        "staging_id": staged.staging_id,
        "first_slice": portion.first,
        "last_slice": portion.last,
        "run_number": run.number,
    }
    steps = [
        Step("hold_levels", values, expect=1, otherwise=lambda: level_mismatch(run.job)),
        Step("mark_slices", values, expect=1, otherwise=MovedOn),
    ]
    refusal = staged.refusal(f"the windows of slices {portion.first} to {portion.last} are not those of its job")
    adding: list[Step] = []
    for level in find_aggregate(run.job).levels:
        if slices := [one for one in portion.slices if one.level == level.name]:
            verify = of_rows("verify_slices", level.of)
            steps.append(Step(verify, values, expect=len(slices), otherwise=lambda: refusal))
            if any(one.whole_windows for one in slices):
                adding.append(Step(of_rows("replace_windows", level.of), values))
            adding.append(Step(of_rows("add_windows", level.of), values))
    subject = f"slices {portion.first} to {portion.last} of {run.run_id}"
    return Script(subject, (*steps, *adding), durable=False, gives_way=True)


def close_run_script(run: AggregationRun, staged: Staged, closed_at: datetime) -> Script:
    """Return the transaction after the last slice: move the cut, and close the run."""
    values = {
        "run_id": run.run_id,
        "job": run.job,
        "cut_from": run.cut_from,
        "cut_to": run.cut_to,
        "staging_id": staged.staging_id,
        "expected_slices": run.committed_slices,
        "closed_at": instant_text(closed_at),
    }
    steps = (
        Step("move_cut", values, expect=1, otherwise=MovedOn),
        Step("close_run", values, expect=1, otherwise=MovedOn),
    )
    return Script(f"result of {run.run_id}", steps, gives_way=True)


def stop_script(run: AggregationRun, staged: Staged, why: str, last: Failure) -> Script:
    """Return the transaction that pauses a job, and closes its run, or takes away the result where it may not fail."""
    order = Order(run.job, "pause", APP, why, last.at, run.run_id)
    paused = Step("pause_job", {**entry_values(order), **pause_values(order)}, expect=1, otherwise=MovedOn)
    ended = fail_steps(run, why, last.at, last) if run.may_fail else removal_steps(staged, last)
    return Script(f"stop of {run.run_id}", (paused, *ended))


def begun_json(cut: Cut) -> str:
    """Return a cut in the form that both engines read: a JSON array of stream, partition and commit number."""
    places = ((name.partition("/"), number) for name, number in json.loads(cut).items())
    return json.dumps([[int(stream_id), partition_id, number] for (stream_id, _, partition_id), number in places])


def ending_steps(
    statement: str, run: AggregationRun, values: Mapping[str, Any], failure: Failure | None
) -> tuple[Step, ...]:
    """Return the steps that end an attempt: the compare and set of its run, and why it gave no result."""
    moved = Step(statement, {"run_id": run.run_id, **values}, expect=1, otherwise=MovedOn)
    return (moved,) if failure is None else (moved, failure_step(failure))


def fail_steps(run: AggregationRun, why: str, closed_at: datetime, last: Failure | None) -> tuple[Step, ...]:
    """Return the steps that close a run without a result."""
    closed = {"attempt": run.attempt, "failure": cut(why, FAILURE_LENGTH), "closed_at": instant_text(closed_at)}
    return ending_steps("fail_run", run, closed, last)


def removal_steps(staged: Staged, failure: Failure) -> tuple[Step, ...]:
    """Return the steps that take a staged result away, and say why."""
    return (
        Step("remove_staging", {"staging_id": staged.staging_id}, expect=1, otherwise=MovedOn),
        failure_step(failure),
    )


def failure_step(failure: Failure) -> Step:
    """Return the step that writes why a submit gave no result. SQL Server counts the UTF-16 units of its log."""
    log = storable(failure.log or "").encode("utf-16-le")[-2 * LOG_LENGTH :]
    values = {
        "run_id": failure.run_id,
        "submit_number": failure.submit,
        "failed_attempt": failure.attempt,
        "failed_at": instant_text(failure.at),
        "engine_job_id": failure.engine_job_id or "",
        "why": cut(failure.why, FAILURE_LENGTH),
        "reason": cut(failure.reason or "", FAILURE_LENGTH),
        "log_tail": log.decode("utf-16-le", "ignore"),
        "link": cut(failure.link or "", LINK_LENGTH),
    }
    return Step("record_failure", values, otherwise=MovedOn, races=("pk_aggregation_failure",))
