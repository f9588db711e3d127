"""No state stops the aggregation for ever: engines that refuse, results that are refused, jobs that cannot be ended."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.aggregation.orders import Pipelines
from core.aggregation.runs import AggregationRun, Failure, Order, Portion, Staged
from core.aggregation.spark_engine import JobReport, JobState
from core.aggregation.tick import aggregate
from core.errors import DataRefused, EngineRefused
from tests.fakes.aggregation_engines import HOME_ACTIVITY, AggregatingStore, finish, ingest, stage
from tests.fakes.builders import reading
from tests.fakes.ticks import WINDOW, World

REFUSED = EngineRefused("GET /batches answered 403: forbidden")


def failures(world: World) -> tuple[Failure, ...]:
    """Return the failures of the newest run, the newest first."""
    return Pipelines(world.store.database).read_failures(world.run.run_id)


@pytest.mark.parametrize("is_adopted", [True, False], ids=["submitted", "submitting"])
def test_a_staged_result_is_committed_although_the_engine_refuses_to_answer(world: World, is_adopted: bool) -> None:
    if not is_adopted:
        world.engine.answers = [REFUSED]
        with pytest.raises(EngineRefused):
            world.tick()
    else:
        world.tick()
    world.finish()
    world.engine.refusing = REFUSED
    assert world.tick()[0] == "committed"


def test_a_result_that_is_staged_while_the_engine_answers_is_committed_and_not_tried_again(world: World) -> None:
    world.tick()
    state = world.engine.state

    def staged_meanwhile(job_id: str) -> JobState:
        world.finish()
        return state(job_id)

    world.engine.state = staged_meanwhile  # type: ignore[method-assign]
    assert world.tick()[0] == "committed"


def test_an_engine_that_refuses_to_tell_the_state_is_waited_for_until_the_deadline_and_then_tried_again(
    world: World,
) -> None:
    world.tick()
    world.engine.refusing = REFUSED
    assert world.tick(121) == (f"waits: {REFUSED}",)
    assert world.tick() == ("submitted",)
    (failure,) = failures(world)
    assert (failure.attempt, failure.why, failure.reason) == (1, "the engine gave no answer about it", str(REFUSED))


def test_an_engine_that_refuses_to_list_its_jobs_gets_the_submit_again_after_the_deadline(world: World) -> None:
    world.engine.answers, world.engine.accepts = [EngineRefused("503 for now")], False
    with pytest.raises(EngineRefused):
        world.tick()
    world.engine.refusing = REFUSED
    assert world.tick(121) == (f"waits: {REFUSED}",)
    assert world.tick() == ("submitted",)
    world.finish()
    assert world.tick()[0] == "committed"


@pytest.mark.parametrize("deaf", [True, False])
def test_a_job_that_cannot_be_cancelled_does_not_stop_the_next_attempt(world: World, deaf: bool) -> None:
    world.tick(121)

    def no_end(job_id: str) -> None:
        world.engine.deaf, world.engine.refusing = deaf, None if deaf else REFUSED
        world.engine._hear()

    world.engine.cancel = no_end  # type: ignore[method-assign]
    assert world.tick() == ("submitted",)
    assert world.run.attempt == 2


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.SUCCEEDED])
def test_a_job_that_has_ended_is_not_cancelled(world: World, state: JobState) -> None:
    world.tick()
    world.engine.states[world.run.job_name] = state
    assert world.tick() == ("submitted",)
    assert world.engine.cancelled == []


def test_a_job_that_runs_when_its_run_is_given_up_is_cancelled(world: World) -> None:
    world.tick(121)
    world.tick(121)
    last = world.run.engine_job_id
    assert world.tick()[0] == "gave up"
    assert world.engine.cancelled[-1] == last


def test_a_sum_beyond_64_bits_ends_its_run_and_pauses_the_job_until_somebody_resumes_it(world: World) -> None:
    """A further run would end alike, so none is submitted; another job goes on."""
    largest = replace(WINDOW, ppm_hundredths=2**63 - 1)
    for number in ("1", "2"):
        world.tick()
        stage(world.database, number, world.run.run_id, [largest])
        finish(world.database, number, world.run.run_id, world.clock.now())
        did = world.tick()
        ingest(world.store, [reading()])
    assert did == ("stopped its job", "is paused")
    fault = "ppm_hundredths of a window of home_activity that begins at 2026-01-01T00:00:00Z is beyond 64 bits"
    told = f"{fault}: change the measure, then resume the job (docs/aggregation.md, A sum beyond 64 bits)"
    assert (world.run.status, world.run.failure, world.readings()) == ("failed", told, 1)
    assert [(one.why, one.reason) for one in failures(world)] == [("a value of its result fits no column", fault)]
    assert [world.tick(600) for _ in range(3)] == [("is paused",)] * 3
    assert len(world.engine.requests) == 2
    assert aggregate(world.own, "flight_punctuality").did == ("submitted",)
    again = Order(HOME_ACTIVITY, "resume", "somebody", "the measure is gone", world.clock.now())
    Pipelines(world.store.database).resume(again)
    assert world.tick() == ("submitted",)
    stage(world.database, "3", world.run.run_id, [WINDOW])
    finish(world.database, "3", world.run.run_id, world.clock.now())
    assert world.tick()[0] == "committed"
    assert world.readings() == 2


class RefusingStore(AggregatingStore):
    """Its database refuses the rows of the first result."""

    refused = "first"

    def commit_portion(self, run: AggregationRun, staged: Staged, portion: Portion) -> bool:
        if staged.staging_id == self.refused:
            raise DataRefused("8115: arithmetic overflow error")
        return super().commit_portion(run, staged, portion)


def test_a_result_that_the_database_refuses_is_taken_away_and_the_next_attempt_goes(world: World) -> None:
    store = RefusingStore(world.store.database)
    world.own = replace(world.own, store=store)
    world.tick()
    world.finish("first")
    assert world.tick() == ("submitted",)
    assert (world.run.attempt, store.read_staged(world.run.run_id)) == (2, None)
    (failure,) = failures(world)
    assert failure.why == "the database refused its result first"
    assert failure.reason == "8115: arithmetic overflow error"
    world.finish("second")
    assert world.tick()[0] == "committed"
    assert world.readings() == 1


def test_results_that_the_database_always_refuses_end_the_run_with_the_reason(world: World) -> None:
    store = RefusingStore(world.store.database)
    world.own = replace(world.own, store=store)
    world.tick()
    for name in ("a", "b"):
        store.refused = name
        world.finish(name)
        world.tick()
    assert world.run.status == "failed"
    assert world.run.failure == (
        "no result after 2 attempts and 2 submits; the last one was refused by the database:"
        " 8115: arithmetic overflow error"
    )
    world.clock.advance(3600)
    assert world.tick() == ("submitted",)


def test_a_run_of_an_engine_that_was_replaced_is_submitted_to_the_new_one(world: World) -> None:
    world.tick(11)
    world.engine.name = "livy"
    world.engine.refusing = EngineRefused("400: no such number")  # the new engine cannot even read the old id
    assert world.tick() == ("submitted",)
    assert (world.run.engine, world.run.attempt, world.engine.cancelled) == ("livy", 2, [])
    assert "SPARK_ENGINE is now livy" in (failures(world)[0].reason or "")


def test_a_failure_keeps_the_words_of_the_engine_the_end_of_its_log_and_a_link(world: World) -> None:
    world.tick()
    world.engine.words = JobReport("Container killed by YARN", "x" * 10_000 + "the end", "https://spark/1")
    world.fail()
    world.tick()
    (failure,) = failures(world)
    assert (failure.submit, failure.attempt, failure.why) == (1, 1, "its job failed")
    assert (failure.reason, failure.link) == ("Container killed by YARN", "https://spark/1")
    assert failure.log == ("x" * 4_000 + "the end")[-4_000:]
    world.fail()
    world.tick()
    assert world.run.failure is not None
    assert world.run.failure.endswith("the last one failed: Container killed by YARN")


def test_an_engine_that_does_not_explain_a_failure_does_not_stop_the_next_attempt(world: World) -> None:
    world.tick()
    world.fail()

    def silent(job_id: str) -> JobReport:
        raise REFUSED

    world.engine.report = silent  # type: ignore[method-assign]
    assert world.tick() == ("submitted",)
    assert failures(world)[0].reason == f"the engine did not explain it: {REFUSED}"


def test_a_refused_submit_keeps_the_reason_of_the_engine(world: World) -> None:
    world.engine.answers, world.engine.accepts = [EngineRefused("401: no token")], False
    with pytest.raises(EngineRefused):
        world.tick(11)
    world.tick()
    (failure,) = failures(world)
    assert (failure.submit, failure.why, failure.reason) == (1, "the engine refused the submit", "401: no token")


def test_a_run_is_bounded_halved_after_a_failure_and_doubled_after_a_success(world: World) -> None:
    for _ in range(39):
        ingest(world.store, [reading()])
    world.own = replace(world.own, limits=replace(world.own.limits, rows=8, rest=timedelta()))
    limits = []
    for number, ending in enumerate([world.finish, world.fail, world.fail, world.finish, world.finish, world.finish]):
        world.tick()
        limits.append((world.run.rows_limit, world.run.rows_planned, world.run.cut_to))
        if ending == world.finish:
            world.finish(f"s{number}")
        else:
            world.fail()
            world.tick()
            world.fail()
    assert [limit for limit, _, _ in limits] == [8, 8, 4, 2, 4, 8]
    assert [rows for _, rows, _ in limits] == [8, 8, 4, 2, 4, 8]
    assert limits[-1][2] == '{"1/0":22}'


def test_the_first_start_walks_the_history_in_steps(world: World) -> None:
    for of in ("0", "1", "1", "2", "2", "2"):
        ingest(world.store, [reading(), reading()], of=of)
    world.own = replace(world.own, limits=replace(world.own.limits, rows=5))
    cuts = []
    while world.tick()[-1] != "has nothing new":
        cuts.append(world.run.cut_to)
        world.finish(f"s{len(cuts)}")
    assert cuts == ['{"1/0":1,"1/1":1,"1/2":1}', '{"1/0":2,"1/1":2,"1/2":2}', '{"1/0":2,"1/1":2,"1/2":3}']
