"""core/aggregation/runs.py and its place in the tick: a repair and a backfill are runs like others."""

import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from core.aggregation.orders import Pipelines
from core.aggregation.runs import (
    NO_CUT,
    AggregationRun,
    Cut,
    Days,
    EngineAnswer,
    NotYet,
    Order,
    OrderedKind,
    RowSource,
    RunLimits,
    RunOrder,
    RunStatus,
    RunStep,
    Standing,
    covers,
    next_step,
    ordered_run,
)
from core.aggregation.spark_engine import JobState
from core.remote.spark.delta import DeltaLake
from core.remote.spark.lake_storage import FolderStorage
from tests.fakes.aggregation_engines import HOME_ACTIVITY, ingest
from tests.fakes.builders import EPOCH, reading
from tests.fakes.ticks import World

CUT = Cut('{"1/0":5,"1/1":7}')
ROWS_JOB = "rows.sensor_reading"
DAYS = Days(date(2026, 2, 1), date(2026, 2, 3))


def order(kind: OrderedKind, days: Days = DAYS) -> RunOrder:
    return RunOrder(kind, days, EPOCH, "somebody", "because")


def standing_of(kind: OrderedKind, cut: Cut) -> Standing:
    return Standing(cut, 4, None, CUT, order=order(kind))


def planned(kind: OrderedKind, cut: Cut, lake: str) -> AggregationRun | NotYet | None:
    return ordered_run("job", standing_of(kind, cut), RowSource("lake", Cut(lake)), "local", EPOCH)


def test_a_cut_covers_another_when_it_has_every_commit_of_it() -> None:
    assert covers(CUT, CUT)
    assert covers(CUT, NO_CUT)
    assert covers(CUT, Cut('{"1/1":6}'))
    assert not covers(CUT, Cut('{"1/1":8}'))
    assert not covers(CUT, Cut('{"2/1":1}'))


def test_a_repair_is_at_the_cut_of_the_aggregate_and_waits_for_rows_that_reach_it() -> None:
    run = planned("repair", CUT, '{"1/0":5,"1/1":9}')
    assert isinstance(run, AggregationRun)
    assert (run.cut_from, run.cut_to, run.number, run.kind, run.days, run.rows_from) == (
        CUT,
        CUT,
        5,
        "repair",
        DAYS,
        "lake",
    )
    waits = planned("repair", CUT, '{"1/0":4,"1/1":9}')
    assert waits == NotYet("the repair waits until the rows in the lake reach the cut", holds=True)
    late = ordered_run(
        "job", standing_of("repair", CUT), RowSource("lake", NO_CUT), "local", EPOCH + timedelta(hours=2)
    )
    assert isinstance(late, NotYet)
    assert not late.holds


def test_a_backfill_ends_at_the_cut_of_its_rows_and_holds_the_first_increment_until_there_are_some() -> None:
    run = planned("backfill", NO_CUT, '{"1/0":4}')
    assert isinstance(run, AggregationRun)
    assert (run.cut_from, run.cut_to) == (NO_CUT, '{"1/0":4}')
    waits = planned("backfill", NO_CUT, "{}")
    assert isinstance(waits, NotYet)
    assert (waits.holds, waits.ends) == (True, False)


def test_a_backfill_of_an_aggregate_that_an_increment_began_never_has_a_run() -> None:
    dropped = planned("backfill", CUT, '{"1/0":9,"1/1":9}')
    assert isinstance(dropped, NotYet)
    assert dropped.ends
    assert "order a repair" in str(dropped.why)


def test_without_an_order_there_is_no_ordered_run() -> None:
    assert ordered_run("job", Standing(CUT, 4, None, CUT), RowSource("sql", CUT), "local", EPOCH) is None


def test_a_repair_with_committed_slices_is_given_up_after_its_last_attempt_and_a_backfill_goes_on() -> None:
    limits, failed = RunLimits(attempts=2), EngineAnswer("j", JobState.FAILED)
    run = AggregationRun("r", "job", 1, CUT, CUT, "local", 2, 2, "submitted", EPOCH, EPOCH, "j", EPOCH)
    repair = replace(run, kind="repair", committed_slices=7)
    assert next_step(repair, failed, None, EPOCH, limits) is RunStep.GIVE_UP
    assert next_step(replace(repair, kind="backfill"), failed, None, EPOCH, limits) is RunStep.TRY_AGAIN
    spent = replace(repair, status="submitting", engine_job_id=None, submits=limits.submits)
    late = EPOCH + timedelta(days=1)
    assert next_step(spent, EngineAnswer(None, None), None, late, limits) is RunStep.GIVE_UP
    assert next_step(replace(spent, kind="increment"), EngineAnswer(None, None), None, late, limits) is (
        RunStep.SUBMIT_AGAIN
    )


@pytest.mark.parametrize("status", ["committed", "failed"])
def test_a_repair_leaves_the_size_of_the_next_increment_as_it_was(status: RunStatus) -> None:
    limits = RunLimits(rows=1_000)
    run = AggregationRun("r", "job", 1, CUT, CUT, "local", 1, 1, "committed", EPOCH, EPOCH, rows_limit=300)
    last = replace(run, kind="repair", status=status)
    assert limits.rows_after(last) == 300


def ask(world: World, kind: OrderedKind, days: Days = DAYS) -> None:
    """Order a run as a person does."""
    given = Order(HOME_ACTIVITY, kind, "somebody", "because", world.clock.now(), days=days)
    Pipelines(world.store.database).place(given, world.store.read_standing(HOME_ACTIVITY))


def increment(world: World) -> None:
    """Commit an increment."""
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


def test_a_repair_that_gives_up_has_its_reason_and_increments_go_on_after_the_rest(world: World) -> None:
    increment(world)
    ask(world, "repair")
    ingest(world.store, [reading()])
    assert world.tick() == ("submitted",)
    limit = world.run.rows_limit
    world.fail()
    assert world.tick() == ("submitted",)
    world.fail()
    assert world.tick()[0] == "gave up"
    assert (world.run.kind, world.run.status) == ("repair", "failed")
    assert "no result after 2 attempts" in (world.run.failure or "")
    world.clock.advance(3_600)
    assert world.tick() == ("submitted",)
    assert (world.run.kind, world.run.rows_limit) == ("increment", limit)


def test_a_backfill_whose_aggregate_began_in_the_meantime_is_dropped_and_increments_go_on(world: World) -> None:
    assert world.tick() == ("submitted",)
    ask(world, "backfill")
    world.finish()
    ingest(world.store, [reading()])
    committed, told, began = world.tick()
    assert (committed, began, world.run.kind) == ("committed", "submitted", "increment")
    assert told.startswith("the backfill was dropped: home_activity already has commits: order a repair")
    assert world.store.read_standing(HOME_ACTIVITY).order is None


def test_a_backfill_without_any_row_waits(tmp_path: Path) -> None:
    world = World(tmp_path)
    ask(world, "backfill")
    assert world.tick() == ("the backfill waits until the database has rows",)
    ingest(world.store, [reading()])
    assert world.tick() == ("submitted",)
    assert world.run.kind == "backfill"
    world.store.close()


def lake_world(world: World, tmp_path: Path) -> None:
    """Give the world a lake that keeps the rows of the aggregate."""
    lake = DeltaLake(FolderStorage(tmp_path / "lake"))
    world.own = replace(world.own, lake=lake, jobs=(HOME_ACTIVITY, ROWS_JOB))


def advance_rows(world: World) -> None:
    """Set the cut of the rows in the lake to that of the checkpoints, as a run of them does."""
    reached = world.store.read_standing(HOME_ACTIVITY).reached
    opened = "INSERT INTO aggregation_cut (job, cut, run_number, levels) VALUES (?, ?, 1, '')"
    world.database.sqlite.sql(f"{opened} ON CONFLICT (job) DO UPDATE SET cut = excluded.cut", ROWS_JOB, reached)


def test_a_repair_reads_the_lake_and_no_increment_moves_the_cut_until_the_lake_reaches_it(
    world: World, tmp_path: Path
) -> None:
    increment(world)
    lake_world(world, tmp_path)
    ask(world, "repair")
    ingest(world.store, [reading()])
    waits = "the repair waits until the rows in the lake reach the cut"
    assert world.tick() == (waits,)
    advance_rows(world)
    assert world.tick() == ("submitted",)
    assert (world.run.kind, world.run.rows_from) == ("repair", "lake")
    place = Path(*world.engine.requests[-1].arguments[5::2])
    assert set(json.loads((tmp_path / "lake" / place).read_text())) == {
        "gold/home_activity",
        "gold/home_activity_hour",
        "gold/home_activity_day",
        "silver/sensor_reading",
        "silver/sensor_reading_removed",
    }


def test_a_repair_that_waits_for_the_lake_too_long_lets_increments_go_on(world: World, tmp_path: Path) -> None:
    increment(world)
    lake_world(world, tmp_path)
    ask(world, "repair")
    ingest(world.store, [reading()])
    world.clock.advance(7_200)
    waits = "the repair waits until the rows in the lake reach the cut"
    assert world.tick() == (waits, "submitted")
    assert world.run.kind == "increment"


def test_a_repair_waits_for_a_lake_that_does_not_answer(world: World, tmp_path: Path) -> None:
    increment(world)
    lake_world(world, tmp_path)
    advance_rows(world)
    ask(world, "repair")
    (tmp_path / "lake").write_text("no folder")
    (told,) = world.tick()
    assert told.startswith("waits: LAKE: ")
    (tmp_path / "lake").unlink()
    world.clock.advance(600)
    assert world.tick() == ("submitted",)
    assert world.engine.requests[-1].arguments[4] == "--lake"
