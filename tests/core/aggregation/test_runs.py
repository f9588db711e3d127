import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from core.aggregation import runs
from core.aggregation.orders import Pipelines
from core.aggregation.runs import NO_CUT, AggregationRun, Cut, EngineAnswer, NotYet, RunStep, covers, next_step
from core.aggregation.spark_engine import JobState
from core.remote.spark.delta import DeltaLake
from core.remote.spark.lake_storage import FolderStorage
from tests.fakes.aggregation_engines import HOME_ACTIVITY, ingest
from tests.fakes.builders import EPOCH, reading
from tests.fakes.ticks import World

PATIENCE = runs.RunLimits(grace=timedelta(minutes=10), deadline=timedelta(hours=2), attempts=3, submits=5)
NO_ANSWER = EngineAnswer(None, None, answered=False)
NOT_SEEN = EngineAnswer(None, None)
STAGED = runs.Staged("s", "r", 1, EPOCH)
ENDED = (JobState.FAILED, JobState.SUCCEEDED)
SUBMITTING = AggregationRun("r", "job", 1, NO_CUT, Cut('{"1/0":1}'), "local", 1, 1, "submitting", EPOCH, EPOCH)
SUBMITTED = replace(SUBMITTING, status="submitted", engine_job_id="j", submitted_at=EPOCH)


def step(run: AggregationRun, sight: EngineAnswer, minutes: float = 1.0, staged: runs.Staged | None = None) -> RunStep:
    return next_step(run, sight, staged, EPOCH + timedelta(minutes=minutes), PATIENCE)


def seen(state: JobState) -> EngineAnswer:
    return EngineAnswer("j", state)


STEPS: dict[RunStep, list[tuple[AggregationRun, EngineAnswer, float]]] = {
    RunStep.ADOPT: [(SUBMITTING, EngineAnswer("j", None), minutes) for minutes in (1, 10_000)],
    RunStep.WAIT: [
        (SUBMITTING, NOT_SEEN, 10),  # the grace
        (SUBMITTING, NO_ANSWER, 120),  # the deadline
        (SUBMITTED, seen(JobState.LOST), 10),
        (SUBMITTED, seen(JobState.RUNNING), 120),
        (SUBMITTED, NO_ANSWER, 120),
    ],
    RunStep.SUBMIT_AGAIN: [(SUBMITTING, NOT_SEEN, 10.01), (SUBMITTING, NO_ANSWER, 120.01)],
    RunStep.TRY_AGAIN: [
        *((replace(SUBMITTED, attempt=attempt), seen(state), 1) for attempt in (1, 2) for state in ENDED),
        (SUBMITTED, seen(JobState.LOST), 10.01),
        (SUBMITTED, seen(JobState.RUNNING), 120.01),
        (SUBMITTED, NO_ANSWER, 120.01),
    ],
    RunStep.GIVE_UP: [
        (replace(SUBMITTING, submits=5), NOT_SEEN, 11),
        (replace(SUBMITTING, submits=5), NO_ANSWER, 120.01),
        *((replace(SUBMITTED, attempt=3), seen(state), 1) for state in ENDED),
        *((replace(SUBMITTED, submits=5), seen(state), 1) for state in ENDED),
    ],
}


@pytest.mark.parametrize("expected", STEPS, ids=lambda step: step.name)
def test_the_next_step_follows_from_the_answer_of_the_engine_the_time_and_the_bounds(expected: RunStep) -> None:
    for run, sight, minutes in STEPS[expected]:
        assert step(run, sight, minutes) is expected, (run, sight, minutes)


def test_a_cut_has_one_form_whatever_the_order() -> None:
    assert runs.cut_of({(1, "2"): 5, (1, "10"): 7}) == runs.cut_of({(1, "10"): 7, (1, "2"): 5}) == '{"1/10":7,"1/2":5}'


def test_a_plan_goes_from_the_cut_to_what_is_reached_and_its_id_follows_from_them() -> None:
    standing = runs.Standing(Cut('{"1/0":1}'), 4, None, Cut('{"1/0":9}'))
    run = runs.planned_run("job", standing, "livy", EPOCH)
    assert run is not None
    assert (run.number, run.cut_from, run.cut_to) == (5, '{"1/0":1}', '{"1/0":9}')
    assert (run.attempt, run.status) == (1, "submitting")
    assert run == runs.planned_run("job", standing, "livy", EPOCH)
    assert run.job_name == f"agg-{run.run_id}-1"
    assert len(run.job_name) <= 64  # Databricks' limit for an idempotency token
    assert runs.planned_run("job", replace(standing, cut=standing.reached), "livy", EPOCH) is None
    other = runs.planned_run("job", replace(standing, number=5), "livy", EPOCH)
    assert other is not None
    assert other.run_id != run.run_id


CUT = Cut('{"1/0":5,"1/1":7}')
ROWS_JOB = "rows.sensor_reading"
DAYS = runs.Days(date(2026, 2, 1), date(2026, 2, 3))


def ordered(
    kind: runs.OrderedKind, cut: Cut, lake: str, after: timedelta = timedelta()
) -> AggregationRun | NotYet | None:
    standing = runs.Standing(cut, 4, None, CUT, order=runs.RunOrder(kind, DAYS, EPOCH, "somebody", "because"))
    return runs.ordered_run("job", standing, runs.RowSource("lake", Cut(lake)), "local", EPOCH + after)


def test_a_cut_covers_another_when_it_has_every_commit_of_it() -> None:
    assert covers(CUT, CUT)
    assert covers(CUT, NO_CUT)
    assert covers(CUT, Cut('{"1/1":6}'))
    assert not covers(CUT, Cut('{"1/1":8}'))
    assert not covers(CUT, Cut('{"2/1":1}'))


def test_an_ordered_run_is_at_the_cut_that_its_rows_reach_and_waits_for_them() -> None:
    repair = ordered("repair", CUT, '{"1/0":5,"1/1":9}')
    assert isinstance(repair, AggregationRun)
    assert (repair.cut_from, repair.cut_to, repair.number) == (CUT, CUT, 5)
    assert (repair.kind, repair.days, repair.rows_from) == ("repair", DAYS, "lake")
    waits = ordered("repair", CUT, '{"1/0":4,"1/1":9}')
    assert waits == NotYet("the repair waits until the rows in the lake reach the cut", holds=True)
    late = ordered("repair", CUT, "{}", timedelta(hours=2))
    assert isinstance(late, NotYet)
    assert not late.holds
    backfill = ordered("backfill", NO_CUT, '{"1/0":4}')
    assert isinstance(backfill, AggregationRun)
    assert (backfill.cut_from, backfill.cut_to) == (NO_CUT, '{"1/0":4}')
    empty, begun = ordered("backfill", NO_CUT, "{}"), ordered("backfill", CUT, '{"1/0":9,"1/1":9}')
    assert isinstance(empty, NotYet)
    assert isinstance(begun, NotYet)
    assert empty.what == "the backfill waits until the lake has rows"
    assert (empty.holds, empty.ends, begun.ends, "order a repair" in str(begun.why)) == (True, False, True, True)
    assert runs.ordered_run("job", runs.Standing(CUT, 4, None, CUT), runs.RowSource("sql", CUT), "local", EPOCH) is None


def ask(world: World, kind: runs.OrderedKind, days: runs.Days = DAYS) -> None:
    given = runs.Order(HOME_ACTIVITY, kind, "somebody", "because", world.clock.now(), days=days)
    Pipelines(world.store.database).place(given, world.store.read_standing(HOME_ACTIVITY))


def increment(world: World) -> None:
    assert world.tick() == ("submitted",)
    world.finish(f"s-{world.run.number}")
    assert world.tick()[0] == "committed"


def test_the_next_tick_without_an_open_run_begins_the_repair_and_increments_follow(world: World) -> None:
    assert world.tick() == ("submitted",)
    world.finish("first")
    assert world.tick()[0] == "committed"
    ingest(world.store, [reading()])
    assert world.tick() == ("submitted",)
    ask(world, "repair")
    assert world.tick() == ("waits",)
    world.finish("second")
    assert world.tick() == ("committed", "submitted")
    assert (world.run.number, world.run.kind, world.run.cut_from == world.run.cut_to) == (3, "repair", True)
    ingest(world.store, [reading()])
    assert world.tick() == ("waits",)
    world.finish("third")
    assert world.tick() == ("committed", "submitted")
    assert (world.run.kind, world.run.cut_to) == ("increment", world.store.read_standing(HOME_ACTIVITY).reached)


def test_a_backfill_whose_aggregate_began_in_the_meantime_is_dropped_and_increments_go_on(world: World) -> None:
    assert world.tick() == ("submitted",)
    ask(world, "backfill")
    world.finish()
    ingest(world.store, [reading()])
    committed, told, began = world.tick()
    assert (committed, began, world.run.kind) == ("committed", "submitted", "increment")
    assert told.startswith("the backfill was dropped: home_activity already has commits: order a repair")
    assert world.store.read_standing(HOME_ACTIVITY).order is None


def test_a_repair_reads_the_lake_and_holds_increments(world: World, tmp_path: Path) -> None:
    increment(world)
    folder = tmp_path / "lake"
    world.own = replace(world.own, lake=DeltaLake(FolderStorage(folder)), jobs=(HOME_ACTIVITY, ROWS_JOB))
    ask(world, "repair")
    ingest(world.store, [reading()])
    waits = "the repair waits until the rows in the lake reach the cut"
    assert world.tick() == (waits,)
    world.clock.advance(7_200)
    assert world.tick() == (waits, "submitted")
    assert world.run.kind == "increment"
    world.finish("late")
    assert world.tick() == ("committed", waits, "has nothing new")
    opened = "INSERT INTO aggregation_cut (job, cut, run_number, levels) VALUES (?, ?, 1, '')"
    world.database.sqlite.sql(opened, ROWS_JOB, world.store.read_standing(HOME_ACTIVITY).reached)
    folder.rename(folder.with_name("away"))
    folder.write_text("a file where the folder has to be")
    told, increments = world.tick(600)
    assert told.startswith("the repair waits for the lake: LAKE: ")
    assert increments == "has nothing new"
    folder.unlink()
    folder.with_name("away").rename(folder)
    assert world.tick() == ("submitted",)
    assert (world.run.kind, world.run.rows_from) == ("repair", "lake")
    assert world.engine.requests[-1].arguments[4] == "--lake"
    place = Path(*world.engine.requests[-1].arguments[5::2])
    levels = {f"gold/home_activity{name}" for name in ("", "_hour", "_day")}
    silver = {"silver/sensor_reading", "silver/sensor_reading_removed"}
    assert set(json.loads((folder / place).read_text())) == levels | silver
