"""Aggregation runs: what lies between two cuts, how far a run has come, and the next step of one that is open."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Literal, NewType

from core.aggregation.spark import JobState

RunStatus = Literal["submitting", "submitted", "committed", "failed"]

# A commit number for each partition, as canonical JSON: {"1/0":17}. Compared as text, so there is one form only.
Cut = NewType("Cut", str)
NO_CUT = Cut("{}")


def cut_of(commit_numbers: Mapping[tuple[int, str], int]) -> Cut:
    """The cut at these commit numbers, by stream id and partition id."""
    named = {f"{stream_id}/{partition_id}": number for (stream_id, partition_id), number in commit_numbers.items()}
    return Cut(json.dumps(named, sort_keys=True, separators=(",", ":")))


@dataclass(frozen=True, slots=True)
class AggregationRun:
    """One run: the commits after `cut_from` up to `cut_to`.

    `intent_at`: when its last submit was decided; `submits`: how often one was, over all attempts. `engine_job_id` is
    None until the engine's answer is known. What it added, and its place in the lake, are known when it is closed.
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

    @property
    def job_name(self) -> str:
        """The name under which the engine gets this attempt: the same whoever submits it."""
        return f"agg-{self.run_id}-{self.attempt}"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a job stands: its cut, the number of its last run, that run, and the cut that the checkpoints allow."""

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
    """A whole result of a run: staged under an id of its own by one execution of its job."""

    staging_id: str
    run_id: str
    attempt: int
    staged_at: datetime


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often a run is tried.

    `grace`: until a submit without an answer, or a job that the engine does not show, counts as lost. `deadline`: the
    longest that a job may take. `rest`: before a failed run is followed by another one by itself.
    """

    grace: timedelta = timedelta(minutes=10)
    deadline: timedelta = timedelta(hours=2)
    rest: timedelta = timedelta(hours=1)
    attempts: int = 5
    submits: int = 10


@dataclass(frozen=True, slots=True)
class Sight:
    """What the engine says of a run's attempt; both None when it was not asked, or did not answer."""

    job_id: str | None
    state: JobState | None
    answered: bool = True


class Step(Enum):
    """What to do with an open run."""

    COMMIT = auto()  # its result is staged whole
    ADOPT = auto()  # a submit whose answer was lost had come through
    SUBMIT_AGAIN = auto()  # it had not
    TRY_AGAIN = auto()  # this attempt comes to nothing
    GIVE_UP = auto()  # neither does the last one
    WAIT = auto()


def next_step(run: AggregationRun, sight: Sight, staged: Staged | None, now: datetime, patience: Patience) -> Step:
    """The next step of an open run; what is staged whole is committed, whatever the engine says."""
    if staged is not None:
        return Step.COMMIT
    if run.status == "submitting":
        return _step_without_answer(run, sight, now, patience)
    if _goes_on(run, sight, now, patience):
        return Step.WAIT
    spent = run.attempt >= patience.attempts or run.submits >= patience.submits
    return Step.GIVE_UP if spent else Step.TRY_AGAIN


def _step_without_answer(run: AggregationRun, sight: Sight, now: datetime, patience: Patience) -> Step:
    if sight.job_id is not None:
        return Step.ADOPT
    if not sight.answered or now - run.intent_at <= patience.grace:
        return Step.WAIT
    return Step.SUBMIT_AGAIN if run.submits < patience.submits else Step.GIVE_UP


def _goes_on(run: AggregationRun, sight: Sight, now: datetime, patience: Patience) -> bool:
    waited = now - (run.submitted_at or run.intent_at)
    if sight.state is JobState.LOST:
        return waited <= patience.grace  # engines show a new job late
    return sight.state in (JobState.RUNNING, None) and waited <= patience.deadline


def planned_run(job: str, standing: Standing, engine: str, now: datetime) -> AggregationRun | None:
    """The run from where the job stands to what the checkpoints allow; None when nothing was committed since."""
    if standing.reached == standing.cut:
        return None
    number = standing.number + 1
    source = json.dumps([job, number, standing.cut, standing.reached])
    run_id = hashlib.sha256(source.encode()).hexdigest()[:16]
    return AggregationRun(run_id, job, number, standing.cut, standing.reached, engine, 1, 1, "submitting", now, now)
