"""Aggregation runs: the commits between two cuts, the progress of a run, and the next step of an open one."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Literal, NewType

from core.aggregation.spark import JobState

RunStatus = Literal["submitting", "submitted", "committed", "failed"]

# A commit number for each partition, as canonical JSON: {"1/0":17}. Cuts are compared as text, so there is one form.
Cut = NewType("Cut", str)
NO_CUT = Cut("{}")


def cut_of(commit_numbers: Mapping[tuple[int, str], int]) -> Cut:
    """Return the cut at these commit numbers, by stream id and partition id."""
    named = {f"{stream_id}/{partition_id}": number for (stream_id, partition_id), number in commit_numbers.items()}
    return Cut(json.dumps(named, sort_keys=True, separators=(",", ":")))


@dataclass(frozen=True, slots=True)
class AggregationRun:
    """One run: the commits after `cut_from` up to `cut_to`.

    `intent_at`: the time of the last decision to submit it; `submits`: the number of submits over all attempts.
    `engine_job_id` is None until the engine's answer is known. The counts and the place in the lake are known when the
    run is closed. The slices of its windows before `committed_slices` are committed.
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

    @property
    def job_name(self) -> str:
        """The name of this attempt in the engine: the same in every process that submits it."""
        return f"agg-{self.run_id}-{self.attempt}"


@dataclass(frozen=True, slots=True)
class Standing:
    """The progress of a job: its cut, the number of its last run, that run, and the cut that the checkpoints allow."""

    cut: Cut
    number: int
    last_run: AggregationRun | None
    reached: Cut

    @property
    def open_run(self) -> AggregationRun | None:
        """The run that is neither committed nor failed; there is at most one."""
        run = self.last_run
        return run if run is not None and run.status in ("submitting", "submitted") else None


@dataclass(frozen=True, slots=True)
class Staged:
    """A complete result of a run: each execution of its job stages one under a different id."""

    staging_id: str
    run_id: str
    attempt: int
    staged_at: datetime
    windows: int = 0


@dataclass(frozen=True, slots=True)
class StagedSlice:
    """One slice of a staged result: the number of its windows, and of those that replace the stored ones."""

    number: int
    windows: int
    whole_windows: int


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of a run: its times and its tries.

    `grace`: how long to wait before a submit without an answer, or a job that the engine does not list, counts as lost.
    `deadline`: the longest time of a job. `rest`: the pause between a failed run and the next one. `commit`: how long
    one tick commits slices.
    """

    grace: timedelta = timedelta(minutes=10)
    deadline: timedelta = timedelta(hours=2)
    rest: timedelta = timedelta(hours=1)
    commit: timedelta = timedelta(minutes=3)
    attempts: int = 5
    submits: int = 10


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """The engine's answer about an attempt of a run.

    `job_id` is None when the engine lists no job of this name, `state` when the engine was not asked for it; both are
    None when the engine did not answer.
    """

    job_id: str | None
    state: JobState | None
    answered: bool = True


class Step(Enum):
    """The next step of an open run."""

    COMMIT = auto()  # its result is staged completely
    ADOPT = auto()  # a submit whose answer was lost started a job
    SUBMIT_AGAIN = auto()  # a submit whose answer was lost started no job
    TRY_AGAIN = auto()  # this attempt failed
    GIVE_UP = auto()  # the last attempt failed
    WAIT = auto()


def next_step(
    run: AggregationRun, answer: EngineAnswer, staged: Staged | None, now: datetime, limits: RunLimits
) -> Step:
    """Return the next step of an open run; a complete result is committed, whatever the engine says.

    A run that has committed slices is not given up, because the next run would count them again.
    """
    if staged is not None:
        return Step.COMMIT
    if run.status == "submitting":
        return _step_after_submit(run, answer, now, limits)
    if _goes_on(run, answer, now, limits):
        return Step.WAIT
    spent = run.attempt >= limits.attempts or run.submits >= limits.submits
    return Step.GIVE_UP if spent and not run.committed_slices else Step.TRY_AGAIN


def _step_after_submit(run: AggregationRun, answer: EngineAnswer, now: datetime, limits: RunLimits) -> Step:
    if answer.job_id is not None:
        return Step.ADOPT
    if not answer.answered or now - run.intent_at <= limits.grace:
        return Step.WAIT
    is_spent = run.submits >= limits.submits and not run.committed_slices
    return Step.GIVE_UP if is_spent else Step.SUBMIT_AGAIN


def _goes_on(run: AggregationRun, answer: EngineAnswer, now: datetime, limits: RunLimits) -> bool:
    waited = now - (run.submitted_at or run.intent_at)
    if answer.state is JobState.LOST:
        return waited <= limits.grace  # engines list a new job late
    return answer.state in (JobState.RUNNING, None) and waited <= limits.deadline


def planned_run(job: str, standing: Standing, engine: str, now: datetime) -> AggregationRun | None:
    """Return the run from the job's cut to the cut that the checkpoints allow; None when there are no new commits."""
    if standing.reached == standing.cut:
        return None
    number = standing.number + 1
    source = json.dumps([job, number, standing.cut, standing.reached])
    run_id = hashlib.sha256(source.encode()).hexdigest()[:16]
    return AggregationRun(run_id, job, number, standing.cut, standing.reached, engine, 1, 1, "submitting", now, now)
