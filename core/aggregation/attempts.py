"""The attempts of a run in its engine: the engine's answer, its words about a failure, and the end of a job."""

from contextlib import suppress
from datetime import datetime

from core.aggregation.runs import AggregationRun, EngineAnswer, Failure
from core.aggregation.spark import JobReport, JobState, SparkEngine
from core.errors import EngineRefused, EngineUnreachable

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


def end_job(engine: SparkEngine, run: AggregationRun, answer: EngineAnswer) -> None:
    """Ask the engine to end the job of an attempt, if it may still run. A fault leaves the job to its own end.

    A job that runs on is harmless: its result counts only while its run is open.
    """
    if run.engine_job_id is not None and answer.state in (JobState.RUNNING, None):
        with suppress(EngineUnreachable, EngineRefused):
            engine.cancel(run.engine_job_id)


def failure_of(engine: SparkEngine, run: AggregationRun, answer: EngineAnswer, at: datetime) -> Failure:
    """Return the failure of the current attempt, with the engine's reason, the end of its log and a link."""
    report = _report(engine, run, answer)
    return Failure(
        run.run_id,
        run.submits,
        run.attempt,
        at,
        run.engine_job_id,
        _why(run, answer),
        answer.fault or report.reason,
        report.log,
        report.link,
    )


def refusal_of(run: AggregationRun, why: str, reason: str, at: datetime) -> Failure:
    """Return the failure of an attempt that something else than its job ended."""
    return Failure(run.run_id, run.submits, run.attempt, at, run.engine_job_id, why, reason)


def _why(run: AggregationRun, answer: EngineAnswer) -> str:
    if answer.state is not None:
        return _WHY[answer.state]
    if not answer.answered:
        return "the engine gave no answer about it"
    return "its submit started no job" if run.engine_job_id is None else "its job ended"


def _report(engine: SparkEngine, run: AggregationRun, answer: EngineAnswer) -> JobReport:
    if run.engine_job_id is None or run.engine != engine.name or not answer.answered:
        return JobReport()
    try:
        return engine.report(run.engine_job_id)
    except (EngineUnreachable, EngineRefused) as fault:
        return JobReport(f"the engine did not explain it: {fault}")
