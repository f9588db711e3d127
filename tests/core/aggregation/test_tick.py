"""core/aggregation/tick.py over the embedded store, with an engine that stages by hand and fails on demand."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from core.aggregation.orders import Pipelines
from core.aggregation.runs import AggregationRun, RunOrder, Standing
from core.aggregation.tick import AggregationReport, aggregate, report_facts
from core.errors import EngineRefused, EngineUnreachable, StoreUnavailable
from tests.fakes.aggregation_engines import HOME_ACTIVITY, AggregatingStore, ingest
from tests.fakes.builders import reading
from tests.fakes.ticks import World


def test_without_anything_new_nothing_happens(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.tick() == ("has nothing new",)
    assert world.engine.requests == []
    world.store.close()


def test_a_run_is_submitted_waited_for_committed_and_followed_by_the_next(world: World) -> None:
    assert world.tick() == ("submitted",)
    assert world.engine.requests[0].arguments == ("--run-id", world.run.run_id, "--attempt", "1")
    assert world.engine.requests[0].name == world.run.job_name
    assert world.tick() == ("waits",)
    world.finish()
    ingest(world.store, [reading()])
    assert world.tick() == ("committed", "submitted")
    assert (world.run.number, world.readings()) == (2, 1)


def test_the_staging_of_a_closed_run_is_cleared_once_no_run_is_open_and_a_fault_leaves_it_to_the_next_tick(
    world: World,
) -> None:
    world.tick()
    world.finish()
    with pytest.raises(StoreUnavailable):
        aggregate(replace(world.own, store=LittlePatience(world.database.sqlite.database())), HOME_ACTIVITY)
    assert (world.run.status, world.database.count("staged_result")) == ("committed", 1)
    assert world.tick() == ("has nothing new",)
    assert world.database.count("staged_result") == world.database.count("home_activity_staged") == 0
    assert world.readings() == 1


class LittlePatience(AggregatingStore):
    """It is away when the staging is to be cleared."""

    def clear_staging(self) -> None:
        self.close()
        raise StoreUnavailable("away")


class DyingStore(AggregatingStore):
    """Its process dies after the intent, before the engine is asked."""

    def open_run(self, run: AggregationRun, order: RunOrder | None = None) -> bool:
        super().open_run(run, order)
        raise StoreUnavailable("killed")


def test_the_intent_stands_before_the_engine_hears_of_the_run(world: World) -> None:
    dying = DyingStore(world.database.sqlite.database())
    with pytest.raises(StoreUnavailable):
        aggregate(replace(world.own, store=dying), HOME_ACTIVITY)
    dying.close()
    assert (world.run.status, world.engine.requests) == ("submitting", [])
    world.clock.advance(60)
    assert world.tick() == ("waits",)
    world.clock.advance(600)
    assert world.tick() == ("submitted",)


def test_a_submit_whose_answer_was_lost_is_adopted(world: World) -> None:
    world.engine.answers = [EngineUnreachable("lost")]
    assert world.tick() == ("submitted, without an answer",)
    assert world.tick() == ("adopted a job",)
    assert (world.run.status, world.run.engine_job_id) == ("submitted", f"id-{world.run.job_name}")
    assert len(world.engine.requests) == 1


def test_a_submit_that_did_not_come_through_is_repeated_under_the_same_name_after_the_grace(world: World) -> None:
    world.engine.answers, world.engine.accepts = [EngineUnreachable("503")], False
    assert [world.tick(), world.tick(), world.tick()] == [("submitted, without an answer",), ("waits",), ("waits",)]
    assert world.tick() == ("submitted",)
    assert len({request.name for request in world.engine.requests}) == 1
    assert (world.run.attempt, world.run.submits) == (1, 2)


def test_an_engine_that_refuses_is_an_error_and_the_submits_are_bounded(world: World) -> None:
    world.engine.answers, world.engine.accepts = [EngineRefused("400")] * 9, False
    for _ in range(5):
        with pytest.raises(EngineRefused):
            world.tick()
        world.clock.advance(660)
    assert world.tick()[0] == "gave up"
    assert "5 submits" in (world.run.failure or "")


def test_attempts_are_bounded_and_a_failed_run_rests_before_the_next_one_takes_over_its_commits(world: World) -> None:
    world.tick()
    world.fail()
    assert world.tick() == ("submitted",)
    assert (world.run.attempt, world.engine.requests[1].name[-2:]) == (2, "-2")
    world.fail()
    assert world.tick() == ("gave up", "pauses after a failed run")
    assert (world.run.status, world.run.failure) == (
        "failed",
        "no result after 2 attempts and 2 submits; the last one failed",
    )
    assert world.tick() == ("pauses after a failed run",)
    world.clock.advance(3600)
    assert world.tick() == ("submitted",)
    assert (world.run.number, world.run.cut_from) == (2, "{}")
    world.finish()
    assert world.tick()[0] == "committed"
    assert world.readings() == 1


def test_a_job_beyond_its_deadline_is_cancelled_and_tried_again(world: World) -> None:
    world.tick(121)
    first = world.run.engine_job_id
    assert world.tick() == ("submitted",)
    assert (world.engine.cancelled, world.run.attempt) == ([first], 2)


def test_a_result_that_was_changed_is_discarded_and_the_next_attempt_takes_its_place(world: World) -> None:
    world.tick()
    world.finish("changed")
    world.database.change("UPDATE {p}home_activity_staged SET readings = readings + 1")
    assert world.tick() == ("submitted",)
    assert (world.run.status, world.readings(), world.database.count("staged_result")) == ("submitted", 0, 0)
    (failure,) = Pipelines(world.store.database).read_failures(world.run.run_id)
    assert failure.why == "the database refused its result changed"
    assert "staging changed is refused: the windows of slices 0 to 255 are not" in (failure.reason or "")
    assert (world.run.attempt, len(world.engine.requests)) == (2, 2)
    world.finish("sound")
    assert world.tick()[0] == "committed"
    assert world.readings() == 1


def test_a_second_timer_changes_nothing(world: World) -> None:
    def tick_alone(_: int) -> AggregationReport:
        return aggregate(world.own, HOME_ACTIVITY)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tick_alone, range(8)))
        assert len(world.engine.requests) == 1
        world.finish()
        list(pool.map(tick_alone, range(8)))
    assert (world.readings(), len(world.engine.requests), world.run.number) == (1, 1, 1)


class BlindStore(AggregatingStore):
    """Sees the standing of a moment ago, as a timer does that was held up."""

    stale: Standing

    def read_standing(self, job: str) -> Standing:
        return self.stale


def test_a_timer_that_was_held_up_neither_plans_nor_submits_nor_commits_again(world: World) -> None:
    blind = BlindStore(world.database.sqlite.database())
    held_up = replace(world.own, store=blind)
    blind.stale = world.store.read_standing(HOME_ACTIVITY)
    world.tick()
    assert aggregate(held_up, HOME_ACTIVITY).did == ("another tick has planned the run",)
    blind.stale = world.store.read_standing(HOME_ACTIVITY)
    world.fail()
    world.tick()
    assert aggregate(held_up, HOME_ACTIVITY).did == ("another tick was first",)
    blind.stale = world.store.read_standing(HOME_ACTIVITY)
    world.finish()
    world.tick()
    assert aggregate(held_up, HOME_ACTIVITY).did[0] in ("another tick was first", "waits")
    assert (world.readings(), len(world.engine.requests)) == (1, 2)
    blind.close()


def test_a_report_is_one_line_of_facts(world: World) -> None:
    facts = report_facts(HOME_ACTIVITY, aggregate(world.own, HOME_ACTIVITY))
    assert facts == {
        "action": "aggregate",
        "job": "home_activity",
        "did": ["submitted"],
        "published": True,
        "run_id": world.run.run_id,
        "number": 1,
        "attempt": 1,
        "status": "submitted",
    }
