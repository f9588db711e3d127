"""Aggregate the commits since the last run, one step of a run in each tick. Spark computes, this module commits.

A run covers exactly the commits between two cuts, so late events, resolved letters and replays belong to the run of
their commit. The run's row, with the intent to submit, is committed before the engine is called, and the name of the
job follows from the row: a later tick finds the job by its name or submits it again. A job that runs twice stages two
complete results, of which one is committed. So a tick may be lost, run twice or be interrupted at any point.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

from core.aggregation.attempts import ask, end_job, failure_of, refusal_of
from core.aggregation.commit import commit_run
from core.aggregation.lake import Lake
from core.aggregation.ordered import NotYet, RowSource, ordered_run
from core.aggregation.publish import commit_rows, hand_over, publish
from core.aggregation.quality import Quality, quality_from
from core.aggregation.retention import remove_old_windows
from core.aggregation.runs import (
    AggregationRun,
    EngineAnswer,
    Failure,
    RunLimits,
    RunStep,
    Staged,
    Standing,
    next_step,
    planned_run,
)
from core.aggregation.silver import is_rows_job, rows_job
from core.aggregation.spark import JobRequest, SparkEngine
from core.aggregation.store.commits import Aggregations
from core.errors import DataRefused, EngineRefused, EngineUnreachable, LakeUnreachable, StagingRefused
from core.measured import measured

PROGRAM = "aggregate.py"
NOT_ASKED = EngineAnswer(None, None)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The means of a tick. `lake` is None where results stay in SQL; every job gets the `arguments`.

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
class AggregationReport:
    """The steps of a tick, in words, and the last run after it. `published`: the lake's tables are up to date; `fault`
    has the words of a lake that does not answer; `removed` counts the old windows that were removed, by level. `closed`
    is the run that this tick committed whole."""

    did: tuple[str, ...]
    run: AggregationRun | None
    published: bool = True
    fault: str | None = None
    removed: Mapping[str, int] = field(default_factory=dict)
    closed: AggregationRun | None = None

    @property
    def quality(self) -> Quality | None:
        """The quality of the run that this tick committed whole."""
        return None if self.closed is None else quality_from(self.closed.quality)

    def facts(self) -> dict[str, str]:
        """Return the steps without the text of a fault, which stands after a colon."""
        return {"steps": "; ".join(one.partition(":")[0] for one in self.did)}


@measured("aggregation tick")
def aggregate(own: Aggregation, job: str) -> AggregationReport:
    """Take the open run one step further, and begin the next run when none is open.

    Raises InfrastructureFault; the writes before the fault remain, and the next tick continues from there.
    """
    did: list[str] = []
    standing = own.store.read_standing(job)
    if standing.pause is None and standing.open_run is not None:
        did.append(_go_on(own, standing.open_run))
        standing = own.store.read_standing(job)
    closed = standing.last_run if did == ["committed"] else None
    published, fault = _published(own, job)
    removed: Mapping[str, int] = {}
    if standing.pause is not None:
        did.append("is paused")
    elif standing.open_run is None:
        if not is_rows_job(job):
            removed = remove_old_windows(own.store, job, own.now)  # an open run may still add to them
        did.append(_begin(own, job, standing))
        standing = own.store.read_standing(job)
    return AggregationReport(tuple(did), standing.last_run, published, fault, removed, closed)


def _published(own: Aggregation, job: str) -> tuple[bool, str | None]:
    """Publish closed runs. A lake that does not answer stops no run: a later run writes the whole table there."""
    if own.lake is None:
        return True, None
    try:
        return publish(own.store, own.lake, job), None
    except LakeUnreachable as fault:
        return False, str(fault)


def _begin(own: Aggregation, job: str, standing: Standing) -> str:
    own.store.clear_staging()  # no run is open; a fault leaves it to the next tick
    last, now = standing.last_run, own.now()
    if last is not None and last.status == "failed" and now - (last.closed_at or now) < own.limits.rest:
        return "pauses after a failed run"
    ordered = _begin_ordered(own, job, standing)
    if ordered is None:
        return _begin_increment(own, job, standing)
    if not isinstance(ordered, NotYet):
        return ordered
    return ordered.why if ordered.holds else f"{ordered.why}; {_begin_increment(own, job, standing)}"


def _begin_ordered(own: Aggregation, job: str, standing: Standing) -> str | NotYet | None:
    """Begin the run that a person ordered; while it waits, increments may go on."""
    order = standing.order
    if order is None:
        return None
    planned = ordered_run(job, standing, _source(own, job, standing), own.engine.name, own.now())
    if isinstance(planned, AggregationRun):
        run = replace(planned, rows_limit=own.limits.rows_after(standing.last_run))  # of the increment after it
        return _submit(own, run) if own.store.open_run(run, order) else "another tick has planned the run"
    if planned is not None and planned.ends:
        own.store.drop_order(job, order, planned.why, own.now())
    return planned


def _source(own: Aggregation, job: str, standing: Standing) -> RowSource:
    """Return the lake, if it keeps the rows of the aggregate."""
    rows = rows_job(job)
    if own.lake is None or rows not in own.jobs:
        return RowSource("sql", standing.reached)
    return RowSource("lake", own.store.read_standing(rows).cut)


def _begin_increment(own: Aggregation, job: str, standing: Standing) -> str:
    last, now = standing.last_run, own.now()
    reach = own.store.read_reach(standing.cut, own.limits.rows_after(last))
    run = None if reach is None else planned_run(job, standing, own.engine.name, now, reach)
    if run is None:
        return "has nothing new"
    if not own.store.open_run(run):
        return "another tick has planned the run"
    return _submit(own, run)


def _go_on(own: Aggregation, run: AggregationRun) -> str:
    """Take an open run one step further. The engine is asked only while no result is staged."""
    staged, answer = own.store.read_staged(run.run_id), NOT_ASKED
    if staged is None:
        answer = ask(own.engine, run)
        staged = own.store.read_staged(run.run_id)  # again after the answer: a job stages before it ends
    step = next_step(run, answer, staged, own.now(), own.limits)
    if step is RunStep.COMMIT and staged is not None:
        return _commit(own, run, staged)
    if step is RunStep.ADOPT and answer.job_id is not None:
        return _done(own.store.note_submitted(run, answer.job_id, own.now()), "adopted a job")
    if step is RunStep.WAIT:
        return "waits" if answer.fault is None else f"waits: {answer.fault}"
    failure = failure_of(own.engine, run, answer, own.now())
    end_job(own.engine, run, answer)
    if step is RunStep.GIVE_UP:
        return _give_up(own, run, failure, _state(answer))
    return _submit_again(own, run, run.attempt + (step is RunStep.TRY_AGAIN), failure)


def _commit(own: Aggregation, run: AggregationRun, staged: Staged) -> str:
    """Commit a result as far as the time goes. A refused one is taken away, because it would be refused again."""
    try:
        if is_rows_job(run.job):
            return commit_rows(own.store, own.lake, run, staged, own.now())
        if (overflow := own.store.find_overflow(run, staged)) is not None:
            return _stop(own, run, staged, overflow)
        return commit_run(own.store, run, staged, own.now, own.now() + own.limits.commit)
    except LakeUnreachable as fault:
        return f"waits: {fault}"
    except (DataRefused, StagingRefused) as refused:
        why = f"the database refused its result {staged.staging_id}"
        failure = refusal_of(run, why, str(refused), own.now())
    own.store.note_failure(failure)
    own.store.discard_staged(staged)
    left = own.store.read_standing(run.job).open_run  # some slices may be committed
    if own.limits.spent(left or run):
        return _give_up(own, run, failure, "was refused by the database")
    return _submit_again(own, run, run.attempt + 1, failure)


def _stop(own: Aggregation, run: AggregationRun, staged: Staged, overflow: str) -> str:
    failure = refusal_of(run, "a value of its result fits no column", overflow, own.now())
    why = f"{overflow}: change the measure, then resume the job (docs/aggregation.md, A sum beyond 64 bits)"
    return _done(own.store.stop_run(run, staged, why, failure), "stopped its job")


def _give_up(own: Aggregation, run: AggregationRun, failure: Failure, state: str) -> str:
    why = f"no result after {run.attempt} attempts and {run.submits} submits; the last one {state}"
    why = why if failure.reason is None else f"{why}: {failure.reason}"
    return _done(own.store.fail_run(run, why, own.now(), failure), "gave up")


def _submit_again(own: Aggregation, run: AggregationRun, attempt: int, failure: Failure) -> str:
    now = own.now()
    following = replace(run, engine=own.engine.name, engine_job_id=None)
    if not own.store.renew_intent(following, attempt, now, failure):
        return "another tick was first"
    return _submit(own, replace(following, attempt=attempt, submits=run.submits + 1, intent_at=now))


def _submit(own: Aggregation, run: AggregationRun) -> str:
    """Submit a job whose intent is stored. If no answer comes, a later tick looks for the job's name."""
    try:
        arguments = ("--run-id", run.run_id, "--attempt", str(run.attempt), *own.arguments)
        job_id = own.engine.submit(JobRequest(run.job_name, PROGRAM, (*arguments, *lake_arguments(own, run))))
    except EngineUnreachable:
        return "submitted, without an answer"
    except LakeUnreachable as fault:
        return f"waits: {fault}"
    except EngineRefused as refused:
        own.store.note_failure(refusal_of(run, "the engine refused the submit", str(refused), own.now()))
        raise
    own.store.note_submitted(run, job_id, own.now())
    return "submitted"


def lake_arguments(own: Aggregation, run: AggregationRun) -> tuple[str, ...]:
    """Return the arguments about the lake. Without an answer of it, windows go to SQL only, and runs of rows wait."""
    if own.lake is None:
        return ()
    try:
        return hand_over(own.store, own.lake, run)
    except LakeUnreachable:
        if is_rows_job(run.job) or run.rows_from == "lake":
            raise
        return ()


def _state(answer: EngineAnswer) -> str:
    return answer.state.value if answer.state is not None else "was not answered"


def _done(done: bool, what: str) -> str:
    return what if done else "another tick was first"


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
