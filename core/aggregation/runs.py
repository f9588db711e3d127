"""The runs of an aggregate: plan the next one, take it one step further, and do the orders for repairs and backfills.

An increment adds the commits after the cut. A repair replaces the windows of some days at the cut. A backfill begins an
aggregate at a later cut, so that its increments begin there.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import Enum, auto
from typing import Literal, NewType

from core.aggregation.spark_engine import NO_REPORT, JobReport, JobState
from core.errors import StagingRefused
from core.model.shapes import reader_of

HELD = "another tick was first, or a person has paused the job"

RunKind = Literal["increment", "repair", "backfill"]
OrderedKind = Literal["repair", "backfill"]
Move = Literal["pause", "resume", "cancel", "discard_run", "discard_result", "repair", "backfill", "withdraw"]
RowsFrom = Literal["sql", "lake"]  # the place from which a job reads the rows of a repair or a backfill


@dataclass(frozen=True, slots=True)
class Days:
    """Days of event time in UTC, from `since` to `until`, both included. None is no end."""

    since: date | None = None
    until: date | None = None

    def __str__(self) -> str:
        if self.since is None and self.until is None:
            return "all days"
        return f"{self.since or 'the first day'} to {self.until or 'the last day'}"

    @property
    def is_sound(self) -> bool:
        """The days are in order."""
        return self.since is None or self.until is None or self.since <= self.until

    def holds(self, other: "Days") -> bool:
        """Return True when every one of the other days is one of these."""
        begins = (self.since or date.min) <= (other.since or date.min)
        return begins and (other.until or date.max) <= (self.until or date.max)


ALL_DAYS = Days()


def overflow_text(level: str, measure: str, begin: str) -> str:
    """Return the fault of a window with a value that no column holds. Its key can name a person, so it is left out."""
    return f"{measure} of a window of {level} that begins at {begin} is beyond 64 bits"


@dataclass(frozen=True, slots=True)
class RunOrder:
    """A person's order of a repair or a backfill, which waits for its run."""

    kind: OrderedKind
    days: Days
    at: datetime
    who: str
    reason: str


@dataclass(frozen=True, slots=True)
class Order:
    """An order about a job, or about one of its runs, with its author and reason.

    The client makes the id, and an order of the app has none. A repair and a backfill have their days.
    """

    job: str
    move: Move
    who: str
    reason: str
    at: datetime
    run_id: str | None = None
    order_id: str = ""
    days: Days | None = None


RunStatus = Literal["submitting", "submitted", "committed", "failed"]

# A commit number for each partition, as canonical JSON: {"1/0":17}. Cuts are compared as text, so there is one form.
Cut = NewType("Cut", str)
NO_CUT = Cut("{}")
MOST_COMMITS = 50_000  # of a partition in a run, whatever the number of their rows


def cut_of(commit_numbers: Mapping[tuple[int, str], int], begun: Cut = NO_CUT) -> Cut:
    """Return the cut at these commit numbers, by stream id and partition id. The other partitions are as in `begun`."""
    named = {f"{stream_id}/{partition_id}": number for (stream_id, partition_id), number in commit_numbers.items()}
    return Cut(json.dumps({**json.loads(begun), **named}, sort_keys=True, separators=(",", ":")))


@dataclass(frozen=True, slots=True)
class AggregationRun:
    """One run: the commits after `cut_from` up to `cut_to`.

    `intent_at` is the time of the last decision to submit it, and `submits` counts the submits of all attempts.
    `engine_job_id` is None until the engine's answer is known. The counts and the place in the lake are known when the
    run is closed. `rows_limit` bounded the rows of the run when it was planned, and the ledger counts `rows_planned` in
    its commits. The slices of its windows before `committed_slices` are committed. `quality` is JSON:
    `core/aggregation/runs.py` reads it. A repair or a backfill stages the windows of its `days` whole, from the rows
    that its job finds at `rows_from`.
    """

    run_id: str
    job: str
    number: int
    cut_from: Cut
    cut_to: Cut
    engine: str
    attempt: int
    submits: int
    status: RunStatus
    planned_at: datetime
    intent_at: datetime
    engine_job_id: str | None = None
    submitted_at: datetime | None = None
    closed_at: datetime | None = None
    failure: str | None = None
    readings: int | None = None
    windows: int | None = None
    lake_path: str | None = None
    is_snapshot: bool = False
    committed_slices: int = 0
    rows_limit: int | None = None
    rows_planned: int | None = None
    quality: str | None = None
    kind: RunKind = "increment"
    days: Days = ALL_DAYS
    rows_from: RowsFrom = "sql"

    @property
    def is_open(self) -> bool:
        """It is neither committed nor failed."""
        return self.status in ("submitting", "submitted")

    @property
    def may_fail(self) -> bool:
        """It may be closed without a result: the slices of a repair are right without the others, ADR 34 and 37."""
        return not self.committed_slices or self.kind == "repair"

    @property
    def job_name(self) -> str:
        """The name of this attempt in the engine: the same in every process that submits it."""
        return f"agg-{self.run_id}-{self.attempt}"

    def failed_submit(self, at: datetime, why: str, report: JobReport = NO_REPORT) -> "Failure":
        """Return the failure of the last submit, with the engine's words about its job."""
        place = (self.run_id, self.submits, self.attempt, at, why, self.engine_job_id)
        return Failure(*place, report.reason, report.log, report.link)


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of a job: nothing of it is planned, submitted or committed until an operator resumes it."""

    at: datetime
    who: str
    reason: str


@dataclass(frozen=True, slots=True)
class Standing:
    """The progress of a job: its cut, the number of its last run, that run, and the cut that the checkpoints allow.

    `stale` has its tables in the lake that are not up to date, each with the time since which a tick has seen so."""

    cut: Cut
    number: int
    last_run: AggregationRun | None
    reached: Cut
    pause: Pause | None = None
    order: RunOrder | None = None
    stale: Mapping[str, str] = field(default_factory=dict)

    @property
    def open_run(self) -> AggregationRun | None:
        """The run that is neither committed nor failed. There is at most one."""
        run = self.last_run
        return run if run is not None and run.is_open else None


@dataclass(frozen=True, slots=True)
class Staged:
    """A complete result of a run: each execution of its job stages one under a different id.

    `levels` has the number of windows of each level by the name of its table. `overflow` is the fault of a job that
    found a value beyond 64 bits, and so staged no windows.
    """

    staging_id: str
    run_id: str
    attempt: int
    staged_at: datetime
    levels: Mapping[str, int] = field(default_factory=dict)
    overflow: str | None = None

    def refusal(self, what: str) -> StagingRefused:
        """Return the error of this result, which is not what its job staged."""
        return StagingRefused(
            f"staging {self.staging_id} is refused: {what}; the next attempt of the run stages it again"
        )


@dataclass(frozen=True, slots=True)
class StagedSlice:
    """One slice of a level: the number of its staged windows, and of those that replace the stored ones."""

    number: int
    windows: int
    whole_windows: int
    level: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A submit of a run that gave no result: what happened, and the engine's words about its job."""

    run_id: str
    submit: int
    attempt: int
    at: datetime
    why: str
    engine_job_id: str | None = None
    reason: str | None = None
    log: str | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of a run: its times, its tries and its rows.

    `grace`: how long to wait before a submit without an answer, or a job that the engine does not list, counts as lost.
    `deadline`: the longest time of a job, and of an engine's silence about a submit. `rest`: the pause between a failed
    run and the next one. `commit`: how long one tick commits slices. `rows`: the rows of the ledger's commits after
    which a run ends.
    """

    grace: timedelta = timedelta(minutes=10)
    deadline: timedelta = timedelta(hours=2)
    rest: timedelta = timedelta(hours=1)
    commit: timedelta = timedelta(minutes=3)
    attempts: int = 5
    submits: int = 10
    rows: int = 10_000_000

    def spent(self, run: AggregationRun) -> bool:
        """Return True when a run has no further attempt. One that may not fail always has."""
        return run.may_fail and (run.attempt >= self.attempts or run.submits >= self.submits)

    def rows_after(self, last: AggregationRun | None) -> int:
        """Return the limit of the next run: half the limit of a failed run, and twice the limit of a committed one.

        It never falls below a thousandth of `rows`, so that it is soon back after an engine was away. A repair or a
        backfill leaves it as it is.
        """
        if last is None or last.rows_limit is None:
            return self.rows
        if last.kind != "increment":
            return min(last.rows_limit, self.rows)
        following = last.rows_limit // 2 if last.status == "failed" else 2 * last.rows_limit
        return min(max(following, self.rows // 1000, 1), self.rows)


@dataclass(frozen=True, slots=True)
class Reach:
    """The end of a run: its cut, the rows of its commits, and the limit of its rows."""

    cut_to: Cut
    rows: int
    limit: int


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """The engine's answer about an attempt of a run.

    `job_id` is None when the engine lists no job of this name, and `state` when the engine was not asked for it. Both
    are None when the engine did not answer, or refused to. Then `fault` has its words.
    """

    job_id: str | None
    state: JobState | None
    answered: bool = True
    fault: str | None = None


class RunStep(Enum):
    """The next step of an open run."""

    COMMIT = auto()  # its result is staged completely
    ADOPT = auto()  # a submit whose answer was lost started a job
    SUBMIT_AGAIN = auto()  # a submit whose answer was lost started no job
    TRY_AGAIN = auto()  # this attempt failed
    GIVE_UP = auto()  # the last attempt failed
    WAIT = auto()


def next_step(
    run: AggregationRun, answer: EngineAnswer, staged: Staged | None, now: datetime, limits: RunLimits
) -> RunStep:
    """Return the next step of an open run. A complete result is committed, whatever the engine says.

    A run that has committed slices is not given up, because the next run would count them again. A repair may be.
    """
    if staged is not None:
        return RunStep.COMMIT
    if run.status == "submitting":
        if answer.job_id is not None:
            return RunStep.ADOPT
        patience = limits.grace if answer.answered else limits.deadline
        if now - run.intent_at <= patience:
            return RunStep.WAIT
        is_spent = run.submits >= limits.submits and run.may_fail
        return RunStep.GIVE_UP if is_spent else RunStep.SUBMIT_AGAIN
    waited = now - (run.submitted_at or run.intent_at)
    goes_on = answer.state in (JobState.RUNNING, None) and waited <= limits.deadline
    if answer.state is JobState.LOST:
        goes_on = waited <= limits.grace  # engines list a new job late
    if goes_on:
        return RunStep.WAIT
    return RunStep.GIVE_UP if limits.spent(run) else RunStep.TRY_AGAIN


def planned_run(
    job: str, standing: Standing, engine: str, now: datetime, reach: Reach | None = None
) -> AggregationRun | None:
    """Return the run from the job's cut, by default to the cut that the checkpoints allow. None: no new commits."""
    cut_to = standing.reached if reach is None else reach.cut_to
    if cut_to == standing.cut:
        return None
    run = next_run(job, standing, cut_to, engine, now)
    return run if reach is None else replace(run, rows_limit=reach.limit, rows_planned=reach.rows)


def next_run(job: str, standing: Standing, cut_to: Cut, engine: str, now: datetime) -> AggregationRun:
    """Return the next run of a job, which ends at `cut_to`. Its id follows from its job, number and cuts."""
    number = standing.number + 1
    source = json.dumps([job, number, standing.cut, cut_to])
    run_id = hashlib.sha256(source.encode()).hexdigest()[:16]
    return AggregationRun(run_id, job, number, standing.cut, cut_to, engine, 1, 1, "submitting", now, now)


@dataclass(frozen=True, slots=True)
class Portion:
    """The slices from `first` to `last`, of each level that has windows there."""

    first: int
    last: int
    slices: tuple[StagedSlice, ...]


HOLD = timedelta(hours=2)  # the longest time that a repair which waits for rows keeps increments from moving the cut


@dataclass(frozen=True, slots=True)
class RowSource:
    """The place from which jobs read the rows of a repair or a backfill, and the cut up to which it has them."""

    name: RowsFrom
    cut: Cut

    def __str__(self) -> str:
        return "the lake" if self.name == "lake" else "the database"


@dataclass(frozen=True, slots=True)
class NotYet:
    """The state of an order without a run, and why. `ends`: it never gets one. `holds`: no increment begins before."""

    what: str
    why: str | None = None
    ends: bool = False
    holds: bool = False


def covers(cut: Cut, other: Cut) -> bool:
    """Return True when a cut has every commit of a different one."""
    numbers: Mapping[str, int] = json.loads(cut)
    return all(number <= numbers.get(name, 0) for name, number in json.loads(other).items())


def fitting(cut: Cut) -> OrderedKind:
    """Return the kind of order that a job at a cut takes."""
    return "backfill" if cut == NO_CUT else "repair"


def ordered_run(
    job: str, standing: Standing, source: RowSource, engine: str, now: datetime
) -> AggregationRun | NotYet | None:
    """Return the run of the order that waits, or the reason why it has none, or None without an order."""
    order = standing.order
    if order is None:
        return None
    if order.kind != fitting(standing.cut):
        return NotYet(f"the {order.kind} was dropped", order_misfit(job, order.kind), ends=True)
    if order.kind == "repair" and not covers(source.cut, standing.cut):
        return NotYet(f"the repair waits until the rows in {source} reach the cut", holds=now - order.at < HOLD)
    cut_to = standing.cut if order.kind == "repair" else source.cut
    if cut_to == NO_CUT:
        return NotYet(f"the backfill waits until {source} has rows", holds=True)
    run = next_run(job, standing, cut_to, engine, now)
    return replace(run, kind=order.kind, days=order.days, rows_from=source.name)


def order_misfit(job: str, kind: OrderedKind) -> str:
    """Return the reason why a job does not take an order of a kind."""
    if kind == "backfill":
        return f"{job} already has commits: order a repair, which replaces the windows of its days"
    return f"{job} has no commit yet: order a backfill"


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """A partition in which the tables have a different number of rows than the ledger counts."""

    partition: str
    ledger: int
    found: int


@dataclass(frozen=True, slots=True)
class Quality:
    """The rows that a run added up.

    `rows_ledger` are the appended rows that the ledger counts for the commits of the run, or None after a purge.
    The run read `rows_read`. A replay removed `rows_removed` of its table since, and `rows_elsewhere` are in other
    tables. `fault` says in words that they differ. `rows_late` were read long after the end of their window.
    """

    fault: str | None
    rows_ledger: int | None
    rows_read: int
    rows_removed: int
    rows_elsewhere: int
    rows_difference: int | None
    rows_late: int
    partitions: tuple[PartitionRows, ...]


def quality_from(text: str | None) -> Quality | None:
    """Return the quality in the JSON of a run, or None."""
    return None if text is None else reader_of(Quality).decode(text)
