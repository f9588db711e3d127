"""core/aggregation/runs.py: cuts, plans, and the next step of an open run."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.aggregation.runs import (
    NO_CUT,
    AggregationRun,
    Cut,
    EngineAnswer,
    RunLimits,
    RunStep,
    Staged,
    Standing,
    cut_of,
    next_step,
    planned_run,
)
from core.aggregation.spark_engine import JobState
from tests.fakes.builders import EPOCH

PATIENCE = RunLimits(grace=timedelta(minutes=10), deadline=timedelta(hours=2), attempts=3, submits=5)
NO_ANSWER = EngineAnswer(None, None, answered=False)
NOT_SEEN = EngineAnswer(None, None)
STAGED = Staged("s", "r", 1, EPOCH)
SUBMITTING = AggregationRun("r", "job", 1, NO_CUT, Cut('{"1/0":1}'), "local", 1, 1, "submitting", EPOCH, EPOCH)
SUBMITTED = replace(SUBMITTING, status="submitted", engine_job_id="j", submitted_at=EPOCH)


def step(run: AggregationRun, sight: EngineAnswer, minutes: float = 1.0, staged: Staged | None = None) -> RunStep:
    return next_step(run, sight, staged, EPOCH + timedelta(minutes=minutes), PATIENCE)


def seen(state: JobState) -> EngineAnswer:
    return EngineAnswer("j", state)


@pytest.mark.parametrize("run", [SUBMITTING, SUBMITTED], ids=["submitting", "submitted"])
@pytest.mark.parametrize("sight", [NO_ANSWER, NOT_SEEN, *map(seen, JobState)])
def test_what_is_staged_whole_is_committed_whatever_the_engine_says(run: AggregationRun, sight: EngineAnswer) -> None:
    assert step(run, sight, 10_000, STAGED) is RunStep.COMMIT


def test_a_job_that_is_found_under_the_name_of_an_unanswered_submit_is_adopted() -> None:
    assert step(SUBMITTING, EngineAnswer("j", None)) is RunStep.ADOPT
    assert step(SUBMITTING, EngineAnswer("j", None), 10_000) is RunStep.ADOPT


def test_an_unanswered_submit_is_repeated_only_when_the_engine_shows_nothing_for_longer_than_the_grace() -> None:
    assert step(SUBMITTING, NOT_SEEN, 10) is RunStep.WAIT
    assert step(SUBMITTING, NOT_SEEN, 10.01) is RunStep.SUBMIT_AGAIN
    assert step(SUBMITTING, NO_ANSWER, 120) is RunStep.WAIT
    assert step(replace(SUBMITTING, submits=5), NOT_SEEN, 11) is RunStep.GIVE_UP


def test_an_engine_that_is_silent_about_a_submit_for_longer_than_the_deadline_gets_the_job_again() -> None:
    assert step(SUBMITTING, NO_ANSWER, 120.01) is RunStep.SUBMIT_AGAIN
    assert step(replace(SUBMITTING, submits=5), NO_ANSWER, 120.01) is RunStep.GIVE_UP


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.SUCCEEDED])
def test_a_job_that_ended_and_staged_nothing_is_tried_again_within_bounds(state: JobState) -> None:
    assert step(SUBMITTED, seen(state)) is RunStep.TRY_AGAIN
    assert step(replace(SUBMITTED, attempt=2), seen(state)) is RunStep.TRY_AGAIN
    assert step(replace(SUBMITTED, attempt=3), seen(state)) is RunStep.GIVE_UP
    assert step(replace(SUBMITTED, submits=5), seen(state)) is RunStep.GIVE_UP


def test_a_job_that_the_engine_lost_is_given_the_grace_before_it_is_tried_again() -> None:
    assert step(SUBMITTED, seen(JobState.LOST), 10) is RunStep.WAIT
    assert step(SUBMITTED, seen(JobState.LOST), 10.01) is RunStep.TRY_AGAIN


@pytest.mark.parametrize("sight", [seen(JobState.RUNNING), NO_ANSWER])
def test_a_job_may_run_until_its_deadline(sight: EngineAnswer) -> None:
    assert step(SUBMITTED, sight, 120) is RunStep.WAIT
    assert step(SUBMITTED, sight, 120.01) is RunStep.TRY_AGAIN


def test_a_cut_has_one_form_whatever_the_order() -> None:
    assert cut_of({(1, "2"): 5, (1, "10"): 7}) == cut_of({(1, "10"): 7, (1, "2"): 5}) == '{"1/10":7,"1/2":5}'


def test_a_plan_goes_from_the_cut_to_what_is_reached_and_its_id_follows_from_them() -> None:
    standing = Standing(Cut('{"1/0":1}'), 4, None, Cut('{"1/0":9}'))
    run = planned_run("job", standing, "livy", EPOCH)
    assert run is not None
    assert (run.number, run.cut_from, run.cut_to, run.attempt, run.status) == (
        5,
        '{"1/0":1}',
        '{"1/0":9}',
        1,
        "submitting",
    )
    assert run == planned_run("job", standing, "livy", EPOCH)
    assert run.job_name == f"agg-{run.run_id}-1"
    assert len(run.job_name) <= 64  # Databricks' limit for an idempotency token
    other = planned_run("job", replace(standing, number=5), "livy", EPOCH)
    assert other is not None
    assert other.run_id != run.run_id
