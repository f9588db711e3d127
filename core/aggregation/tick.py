"""One step of an aggregate's run: plan, submit, look, commit, or delete old windows.

Each portion of slices is one short transaction with its mark, the number of slices that the run has committed. So a
tick that dies, or whose time is over, leaves whole slices, and the next tick continues after them. The slices of a run
may come from results of different attempts, because every complete result has the same right to be committed. The cut
moves when all slices are in.

Old windows are removed by level. A run leaves such windows out too, by the time of its plan. So a late event opens no
window that lacks its other events.

A run covers exactly the commits between two cuts, so late events, resolved letters and replays belong to the run of
their commit. The run's row, with the intent to submit, is committed before the engine is called, and the name of the
job follows from the row: a later tick finds the job by its name or submits it again. A job that runs twice stages two
complete results, of which one is committed. So a tick may be lost, run twice or be interrupted at any point.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby

from core.aggregation.lake_publication import commit_rows, find_remake, hand_over, publish, states_of
from core.aggregation.lake_tables import OF_FILES, OF_REMAKE, Lake, is_rows_job, rows_job, table_of
from core.aggregation.runs import (
    HELD,
    AggregationRun,
    EngineAnswer,
    Failure,
    NotYet,
    Portion,
    Quality,
    RowSource,
    RunLimits,
    RunOrder,
    RunStep,
    Staged,
    StagedSlice,
    Standing,
    next_run,
    next_step,
    ordered_run,
    planned_run,
    quality_from,
)
from core.aggregation.spark_engine import JobReport, JobRequest, JobState, SparkEngine
from core.aggregation.store import Aggregations
from core.errors import DataRefused, EngineRefused, EngineUnreachable, LakeDamaged, LakeUnreachable, StagingRefused
from core.measured import measured
from core.model.aggregates import SLICES
from core.model.commits import ROWS_AT_ONCE
from core.store.columns import instant_text
from core.transforms.loading import find_aggregate

_WHY = {
    JobState.RUNNING: "its job ran longer than AGGREGATION_DEADLINE_SECONDS",
    JobState.SUCCEEDED: "its job ended well, but staged no result",
    JobState.FAILED: "its job failed",
    JobState.LOST: "the engine does not know its job",
}


def ask(engine: SparkEngine, run: AggregationRun) -> EngineAnswer:
    """Return the engine's answer about the current attempt. A refusal is an answer without a job or a state."""
    if run.engine != engine.name:
        fault = f"the job was submitted to the engine {run.engine}, and SPARK_ENGINE is now {engine.name}"
        return EngineAnswer(None, JobState.LOST, fault=fault)
    try:
        if run.engine_job_id is None:
            return EngineAnswer(engine.find(run.job_name), None)
        return EngineAnswer(run.engine_job_id, engine.state(run.engine_job_id))
    except (EngineUnreachable, EngineRefused) as fault:
        return EngineAnswer(None, None, answered=False, fault=str(fault))


def failure_of(engine: SparkEngine, run: AggregationRun, answer: EngineAnswer, at: datetime) -> Failure:
    """Return the failure of the current attempt, with the engine's reason, the end of its log and a link."""
    report = JobReport()
    if run.engine_job_id is not None and run.engine == engine.name and answer.answered:
        try:
            report = engine.report(run.engine_job_id)
        except (EngineUnreachable, EngineRefused) as fault:
            report = JobReport(f"the engine did not explain it: {fault}")
    if answer.state is not None:
        why = _WHY[answer.state]
    else:
        why = "its submit started no job" if answer.answered else "the engine gave no answer about it"
    return run.failed_submit(at, why, replace(report, reason=answer.fault or report.reason))


PORTION = ROWS_AT_ONCE  # windows of a transaction at most, unless its only slice has more
LEAST = 500  # windows, on the slowest disk
SLOW = timedelta(milliseconds=150)  # a transaction that took longer is followed by one of half as many windows
FAST = SLOW / 3  # a transaction that took less is followed by one of twice as many


def commit_run(
    store: Aggregations, run: AggregationRun, staged: Staged, now: Callable[[], datetime], until: datetime
) -> str:
    """Commit the slices of a run that are not in yet, as far as the time goes, and close it after the last.

    Returns the result in words. Raises StagingRefused for a result that is not what its job staged.
    """
    slices = store.read_slices(staged)
    _check(run, staged, slices)
    size, at = PORTION, now()
    while portion := next_portion(slices, run.committed_slices, size):
        if at >= until:
            return f"committed {run.committed_slices} of {SLICES} slices"
        if not store.commit_portion(run, staged, portion):
            return HELD
        run, begun, at = replace(run, committed_slices=portion.last + 1), at, now()
        size = size_after(size, at - begun)
    return "committed" if store.close_run(run, staged, now()) else HELD


def size_after(size: int, taken: timedelta) -> int:
    """Return the number of windows of the next transaction, so that no writer waits long. The last one took `taken`."""
    wanted = size // 2 if taken > SLOW else 2 * size if taken < FAST else size
    return min(PORTION, max(LEAST, wanted))


def _check(run: AggregationRun, staged: Staged, slices: Sequence[StagedSlice]) -> None:
    """Refuse a result of a job that knew different levels, and one whose facts are incomplete."""
    declared = {one.name for one in find_aggregate(run.job).levels}
    if declared != staged.levels.keys():
        found, wanted = (", ".join(sorted(one)) or "none" for one in (staged.levels, declared))
        raise staged.refusal(f"it has the levels {found} and not {wanted}")
    counted: Counter[str] = Counter()
    for one in slices:
        counted[one.level] += one.windows
    if +counted != +Counter(staged.levels) or any(one.number >= SLICES for one in slices):
        raise staged.refusal("the facts of some slices are missing or changed")


def next_portion(slices: Sequence[StagedSlice], first: int, size: int) -> Portion | None:
    """Return the next portion of ordered slices, which begins at the number `first`, or None.

    A portion has at most `size` windows, unless its only slice has more. The last portion ends with the last slice.
    """
    windows, members = 0, list[StagedSlice]()
    left = (one for one in slices if one.number >= first)
    for _, levels in groupby(left, key=lambda one: one.number):
        of_slice = list(levels)
        windows += sum(one.windows for one in of_slice)
        if members and windows > size:
            return Portion(first, members[-1].number, tuple(members))
        members += of_slice
    return Portion(first, SLICES - 1, tuple(members)) if members else None


TIME = timedelta(minutes=1)  # of one tick; the next one continues


def remove_old_windows(store: Aggregations, job: str, now: Callable[[], datetime]) -> Mapping[str, int]:
    """Remove the windows before the horizon of each level, and return the number of each level that lost some."""
    began, removed = now(), Counter[str]()
    for level in find_aggregate(job).levels:
        horizon = level.horizon(began)
        while horizon is not None and now() - began < TIME:
            count = store.remove_windows(level.of, horizon, ROWS_AT_ONCE)
            removed[level.name] += count
            if count < ROWS_AT_ONCE:
                break
    return +removed


PROGRAM = "aggregate.py"
NOT_ASKED = EngineAnswer(None, None)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The means of a tick. `lake` is None where results stay in SQL. Every job gets the `arguments`.

    `jobs` are the aggregates of the app's transform, and the jobs that keep their rows in the lake.
    """

    store: Aggregations
    engine: SparkEngine
    lake: Lake | None
    now: Callable[[], datetime]
    limits: RunLimits = RunLimits()  # noqa: RUF009 - it is frozen
    arguments: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TickStep:
    """A step of a tick in words. `why` can quote a fault, so no telemetry has it."""

    what: str
    why: str | None = None

    def __str__(self) -> str:
        return self.what if self.why is None else f"{self.what}: {self.why}"


OVERTAKEN, COMMITTED = TickStep("another tick was first"), TickStep("committed")


@dataclass(frozen=True, slots=True)
class AggregationReport:
    """The steps of a tick, and the last run after it. `published`: the lake's tables are up to date.

    `fault` has the words of a lake that does not answer. `removed` counts the old windows that were removed, by level.
    `closed` is the run that this tick committed whole.
    """

    steps: tuple[TickStep, ...]
    run: AggregationRun | None
    published: bool = True
    fault: str | None = None
    removed: Mapping[str, int] = field(default_factory=dict)
    closed: AggregationRun | None = None

    @property
    def did(self) -> tuple[str, ...]:
        """The steps in words."""
        return tuple(map(str, self.steps))

    @property
    def quality(self) -> Quality | None:
        """The quality of the run that this tick committed whole."""
        return None if self.closed is None else quality_from(self.closed.quality)

    def facts(self) -> dict[str, str]:
        """Return the steps without the text of a fault."""
        return {"steps": "; ".join(one.what for one in self.steps)}


@measured("aggregation tick")
def aggregate(own: Aggregation, job: str) -> AggregationReport:
    """Take the open run one step further, and begin the next run when none is open.

    Raises InfrastructureFault: the writes before the fault remain, and the next tick continues from there.
    """
    did: list[TickStep] = []
    standing = own.store.read_standing(job)
    if standing.pause is None and standing.open_run is not None:
        did.append(_go_on(own, standing.open_run))
        standing = own.store.read_standing(job)
    closed = standing.last_run if did == [COMMITTED] else None
    stale = {} if own.lake is None else stale_tables(own, own.lake, job, standing)
    fault = next(filter(None, stale.values()), None)
    if standing.stale:
        standing = own.store.read_standing(job)  # without what is no longer stale
    removed: Mapping[str, int] = {}
    if standing.pause is not None:
        did.append(TickStep("is paused"))
    elif standing.open_run is None:
        if not is_rows_job(job):
            removed = remove_old_windows(own.store, job, own.now)  # an open run may still add to them
        did += _begin_run(own, job, standing)
        standing = own.store.read_standing(job)
    return AggregationReport(tuple(did), standing.last_run, not stale, fault, removed, closed)


def stale_tables(own: Aggregation, lake: Lake, job: str, standing: Standing) -> Mapping[str, str | None]:
    """Publish what is closed. Return the tables that are not up to date with their faults, and note since when.

    No fault of the lake stops a run: a later run writes the whole table there. Rows whose last run failed are stale.
    """
    stale, last = dict(publish(own.store, lake, job)), standing.last_run
    if is_rows_job(job) and last is not None:
        table = table_of(job)
        if last.status == "failed" or (last.is_open and table in standing.stale):
            stale.setdefault(table, last.failure)
    now = instant_text(own.now())
    since = {table: standing.stale.get(table, now) for table in stale}
    since |= {table: at for table, at in standing.stale.items() if _is_noted(own, lake, job, table)}
    if since != standing.stale:
        own.store.note_stale(job, since)
    return stale


def _is_noted(own: Aggregation, lake: Lake, job: str, stale: str) -> bool:
    """Return True for a note that only the nightly maintenance or an order makes of a table, while the note is true."""
    table = stale.removesuffix(OF_REMAKE)
    if table == stale:
        return stale.endswith(OF_FILES)
    with suppress(LakeUnreachable):
        return find_remake(own.store, lake, table, job, lake.read_table(table, job)) is not None
    return True


def _begin_run(own: Aggregation, job: str, standing: Standing) -> list[TickStep]:
    """Begin the run that a person ordered, or an increment. While an order waits, increments may go on."""
    own.store.clear_staging()  # no run is open; a fault leaves it to the next tick
    last, now = standing.last_run, own.now()
    if last is not None and last.status == "failed" and now - (last.closed_at or now) < own.limits.rest:
        return [TickStep("pauses after a failed run")]
    source, rows = RowSource("sql", standing.reached), None if is_rows_job(job) else rows_job(job)
    if standing.order is not None and own.lake is not None and rows in own.jobs:
        source = RowSource("lake", own.store.read_standing(rows).cut)
    ordered = ordered_run(job, standing, source, own.engine.name, now)
    limit, did = own.limits.rows_after(last), list[TickStep]()
    if isinstance(ordered, AggregationRun) and (damage := _unreadable(own, rows, ordered)) is not None:
        ordered = NotYet(f"the {ordered.kind} waits for the lake", damage, holds=ordered.kind == "backfill")
    if isinstance(ordered, AggregationRun):
        return [_open(own, replace(ordered, rows_limit=limit), standing.order)]  # of the increment after it
    if ordered is not None:
        did.append(TickStep(ordered.what, ordered.why))
        if ordered.ends and standing.order is not None:
            own.store.drop_order(job, standing.order, str(did[0]), now)
        if ordered.holds:
            return did
    reach = own.store.read_reach(standing.cut, limit)
    run = None if reach is None else planned_run(job, standing, own.engine.name, now, reach)
    if run is None and any(table.endswith(OF_REMAKE) for table in standing.stale):
        run = next_run(job, standing, standing.cut, own.engine.name, now)  # takes no commits, and makes the table anew
    return [*did, TickStep("has nothing new") if run is None else _open(own, run, None)]


def _unreadable(own: Aggregation, rows: str | None, run: AggregationRun) -> str | None:
    """Return the fault of the rows in the lake that a run has to read, so that no increment waits for such a run."""
    try:
        if own.lake is not None and rows is not None and run.rows_from == "lake":
            states_of(own.store, own.lake, rows)
    except LakeUnreachable as fault:
        return str(fault)
    return None


def _open(own: Aggregation, run: AggregationRun, order: RunOrder | None) -> TickStep:
    return _submit(own, run) if own.store.open_run(run, order) else TickStep("another tick has planned the run")


def _go_on(own: Aggregation, run: AggregationRun) -> TickStep:
    """Take an open run one step further. The engine is asked only while no result is staged."""
    staged, answer = own.store.read_staged(run.run_id), NOT_ASKED
    if staged is None:
        answer = ask(own.engine, run)
        staged = own.store.read_staged(run.run_id)  # again after the answer: a job stages before it ends
    step = next_step(run, answer, staged, own.now(), own.limits)
    if step is RunStep.COMMIT and staged is not None:
        return _commit(own, run, staged)
    if step is RunStep.ADOPT and answer.job_id is not None:
        is_first = own.store.note_submitted(run, answer.job_id, own.now())
        return TickStep("adopted a job") if is_first else OVERTAKEN
    if step is RunStep.WAIT:
        return TickStep("waits", answer.fault)
    failure = failure_of(own.engine, run, answer, own.now())
    if run.engine_job_id is not None and answer.state in (JobState.RUNNING, None):
        with suppress(EngineUnreachable, EngineRefused):  # it is harmless: its result counts only while its run is open
            own.engine.cancel(run.engine_job_id)
    if step is RunStep.GIVE_UP:
        return _give_up(own, run, failure, "was not answered" if answer.state is None else answer.state.value)
    return _submit_again(own, run, run.attempt + (step is RunStep.TRY_AGAIN), failure)


def _commit(own: Aggregation, run: AggregationRun, staged: Staged) -> TickStep:
    """Commit a result as far as the time goes. A refused one is taken away, because it would be refused again."""
    try:
        if is_rows_job(run.job):
            if staged.overflow is not None:
                failure = run.failed_submit(own.now(), "rows would be lost", JobReport(staged.overflow))
                stopped = own.store.stop_run(run, staged, staged.overflow, failure)
                return TickStep("stopped its job") if stopped else OVERTAKEN
            return TickStep(commit_rows(own.store, own.lake, run, staged, own.now()))
        if (overflow := own.store.find_overflow(run, staged)) is not None:
            failure = run.failed_submit(own.now(), "a value of its result fits no column", JobReport(overflow))
            why = f"{overflow}: change the measure, then resume the job (docs/aggregation.md, A sum beyond 64 bits)"
            return TickStep("stopped its job") if own.store.stop_run(run, staged, why, failure) else OVERTAKEN
        return TickStep(commit_run(own.store, run, staged, own.now, own.now() + own.limits.commit))
    except LakeUnreachable as fault:
        return TickStep("waits", str(fault))
    except (DataRefused, StagingRefused) as refused:
        why = f"the database refused its result {staged.staging_id}"
        failure = run.failed_submit(own.now(), why, JobReport(str(refused)))
    own.store.note_failure(failure)
    own.store.discard_staged(staged)
    left = own.store.read_standing(run.job).open_run  # some slices may be committed
    if own.limits.spent(left or run):
        return _give_up(own, run, failure, "was refused by the database")
    return _submit_again(own, run, run.attempt + 1, failure)


def _give_up(own: Aggregation, run: AggregationRun, failure: Failure, state: str) -> TickStep:
    why = f"no result after {run.attempt} attempts and {run.submits} submits; the last one {state}"
    why = why if failure.reason is None else f"{why}: {failure.reason}"
    return TickStep("gave up") if own.store.fail_run(run, why, own.now(), failure) else OVERTAKEN


def _submit_again(own: Aggregation, run: AggregationRun, attempt: int, failure: Failure) -> TickStep:
    now = own.now()
    following = replace(run, engine=own.engine.name, engine_job_id=None)
    if not own.store.renew_intent(following, attempt, now, failure):
        return OVERTAKEN
    return _submit(own, replace(following, attempt=attempt, submits=run.submits + 1, intent_at=now))


def _submit(own: Aggregation, run: AggregationRun) -> TickStep:
    """Submit a job whose intent is stored. If no answer comes, a later tick looks for the job's name.

    Without an answer of the lake, windows go to SQL only, and runs that need it wait.
    """
    lake: tuple[str, ...] = ()
    try:
        if own.lake is not None:
            lake = hand_over(own.store, own.lake, run)
    except LakeUnreachable as fault:
        if isinstance(fault, LakeDamaged) and run.rows_from == "lake" and run.may_fail:
            failure = run.failed_submit(own.now(), "the rows in the lake are damaged", JobReport(str(fault)))
            return _give_up(own, run, failure, "found damaged rows in the lake")
        if is_rows_job(run.job) or run.rows_from == "lake":
            return TickStep("waits", str(fault))
    arguments = ("--run-id", run.run_id, "--attempt", str(run.attempt), *own.arguments, *lake)
    try:
        job_id = own.engine.submit(JobRequest(run.job_name, PROGRAM, arguments))
    except EngineUnreachable:
        return TickStep("submitted, without an answer")
    except EngineRefused as refused:
        failure = run.failed_submit(own.now(), "the engine refused the submit", JobReport(str(refused)))
        own.store.note_failure(failure)
        raise
    own.store.note_submitted(run, job_id, own.now())
    return TickStep("submitted")


def report_facts(job: str, report: AggregationReport) -> dict[str, object]:
    """Return the fields of the one log line of a tick."""
    run = report.run
    facts: dict[str, object] = {
        "action": "aggregate",
        "job": job,
        "did": list(report.did),
        "published": report.published,
    }
    if report.removed:
        facts["removed"] = dict(report.removed)
    if report.fault is not None:
        facts["fault"] = report.fault
    if run is not None:
        facts |= {"run_id": run.run_id, "number": run.number, "attempt": run.attempt, "status": run.status}
    if report.closed is not None and report.quality is not None:
        figures = {"run_id": report.closed.run_id, **asdict(report.quality), "partitions": None}
        facts |= {f"quality_{name}": value for name, value in figures.items() if value is not None}
    return facts
