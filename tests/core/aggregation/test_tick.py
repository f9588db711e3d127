from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from core.aggregation import runs
from core.aggregation import tick as aggregation_tick
from core.aggregation.orders import Pipelines
from core.aggregation.runs import AggregationRun, Cut, Failure, Order, Portion, RunOrder, Staged, StagedSlice, Standing
from core.aggregation.spark_engine import JobReport
from core.aggregation.store import Aggregations
from core.aggregation.tick import PORTION, Aggregation, aggregate, commit_run, remove_old_windows, report_facts
from core.errors import DataRefused, EngineRefused, EngineUnreachable, StoreUnavailable
from core.model.aggregates import SLICES
from core.model.commits import ROWS_AT_ONCE
from core.store.columns import instant_text
from tests.fakes.aggregation_engines import HOME_ACTIVITY, AggregatingStore, finish, ingest, levels_of, stage
from tests.fakes.builders import EPOCH, FakeClock, reading
from tests.fakes.engines import SqliteEngine
from tests.fakes.kept_activity import KEEP, KEPT_ACTIVITY, OF, KeptActivity, create_tables
from tests.fakes.ticks import WINDOW, FakeEngine, World


def test_a_run_is_submitted_waited_for_committed_and_followed_by_the_next(world: World) -> None:
    facts = report_facts(HOME_ACTIVITY, aggregate(world.own, HOME_ACTIVITY))
    about = {"run_id": world.run.run_id, "number": 1, "attempt": 1, "status": "submitted"}
    assert facts == {"action": "aggregate", "job": "home_activity", "did": ["submitted"], "published": True, **about}
    assert world.engine.requests[0].arguments == ("--run-id", world.run.run_id, "--attempt", "1")
    assert world.engine.requests[0].name == world.run.job_name
    assert world.tick() == ("waits",)
    world.finish()
    ingest(world.store, [reading()])
    assert world.tick() == ("committed", "submitted")
    assert (world.run.number, world.readings()) == (2, 1)
    world.finish("second")
    assert world.tick()[0] == "committed"
    assert world.tick() == ("has nothing new",)
    assert world.database.count("staged_result") == world.database.count("home_activity_staged") == 0


def test_the_intent_stands_before_the_engine_hears_of_the_run(world: World) -> None:
    class DyingStore(AggregatingStore):
        def open_run(self, run: AggregationRun, order: RunOrder | None = None) -> bool:
            super().open_run(run, order)
            raise StoreUnavailable("killed")

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
    told = [(one.submit, one.why, one.reason) for one in failures(world)]
    assert told == [(submit, "the engine refused the submit", "400") for submit in (5, 4, 3, 2, 1)]


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
    assert world.engine.cancelled == []  # its jobs had ended
    world.finish()
    assert world.tick()[0] == "committed"
    assert world.readings() == 1


def test_a_timer_that_was_held_up_neither_plans_nor_submits_nor_commits_again(world: World) -> None:
    class BlindStore(AggregatingStore):
        """A store that shows the standing of a moment ago."""

        stale: Standing

        def read_standing(self, job: str) -> Standing:
            return self.stale

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


REFUSED = EngineRefused("GET /batches answered 403: forbidden")


def failures(world: World) -> tuple[Failure, ...]:
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


def test_an_engine_that_refuses_to_tell_the_state_is_waited_for_until_the_deadline(world: World) -> None:
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


def test_a_job_beyond_its_deadline_is_cancelled_and_tried_again_until_its_run_is_given_up(world: World) -> None:
    world.tick(121)
    first = world.run.engine_job_id
    assert world.tick(121) == ("submitted",)
    assert (world.engine.cancelled, world.run.attempt) == ([first], 2)
    second = world.run.engine_job_id
    assert world.tick()[0] == "gave up"
    assert world.engine.cancelled == [first, second]


def test_a_sum_beyond_64_bits_ends_its_run_and_pauses_the_job_until_somebody_resumes_it(world: World) -> None:
    """A further run would end alike, so none is submitted. Another job goes on."""
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


def test_a_result_that_the_database_refuses_is_taken_away_and_the_next_attempt_goes(world: World) -> None:
    """The rows of the first result fit no column. The second result was changed in the staging, which ends the run."""

    class RefusingStore(AggregatingStore):
        def commit_portion(self, run: AggregationRun, staged: Staged, portion: Portion) -> bool:
            if staged.staging_id == "first":
                raise DataRefused("8115: arithmetic overflow error")
            return super().commit_portion(run, staged, portion)

    store = RefusingStore(world.store.database)
    world.own = replace(world.own, store=store)
    world.tick()
    world.finish("first")
    assert world.tick() == ("submitted",)
    assert (world.run.attempt, store.read_staged(world.run.run_id), len(world.engine.requests)) == (2, None, 2)
    (failure,) = failures(world)
    assert failure.why == "the database refused its result first"
    assert failure.reason == "8115: arithmetic overflow error"
    world.finish("second")
    world.database.change("UPDATE {p}home_activity_staged SET readings = readings + 1")
    world.tick()
    changed = "staging second is refused: the windows of slices 0 to 255 are not"
    assert (world.run.status, world.readings(), world.database.count("staged_result")) == ("failed", 0, 0)
    assert "no result after 2 attempts and 2 submits; the last one was refused by the database: " + changed in (
        world.run.failure or ""
    )
    world.clock.advance(3600)
    assert world.tick() == ("submitted",)
    world.finish("third")
    assert world.tick()[0] == "committed"
    assert world.readings() == 1


def test_a_run_of_an_engine_that_was_replaced_is_submitted_to_the_new_one(world: World) -> None:
    world.tick(11)
    world.engine.name = "livy"
    world.engine.refusing = EngineRefused("400: no such number")  # the new engine cannot even read the old id
    assert world.tick() == ("submitted",)
    assert (world.run.engine, world.run.attempt, world.engine.cancelled) == ("livy", 2, [])
    assert "SPARK_ENGINE is now livy" in (failures(world)[0].reason or "")


def test_a_failure_keeps_the_words_of_the_engine_the_end_of_its_log_and_a_link_to_its_reasons(world: World) -> None:
    def silent(job_id: str) -> JobReport:
        raise REFUSED

    words, world.engine.report = world.engine.report, silent  # type: ignore[method-assign]
    world.tick()
    world.fail()
    assert world.tick() == ("submitted",)
    (unexplained,) = failures(world)
    assert unexplained.reason == f"the engine did not explain it: {REFUSED}"
    world.engine.report = words  # type: ignore[method-assign]
    world.engine.words = JobReport("Container killed by YARN", "x" * 10_000 + "the end", "https://spark/1")
    world.fail()
    world.tick()
    failure, _ = failures(world)
    assert (failure.submit, failure.attempt, failure.why) == (2, 2, "its job failed")
    assert (failure.reason, failure.link) == ("Container killed by YARN", "https://spark/1")
    assert failure.log == ("x" * 4_000 + "the end")[-4_000:]
    assert (world.run.failure or "").endswith("the last one failed: Container killed by YARN")


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


OF_SLICE = PORTION // 8  # of each slice
DISK_RUN = AggregationRun("r", HOME_ACTIVITY, 1, Cut("{}"), Cut("{}"), "local", 1, 1, "submitted", EPOCH, EPOCH)


class Disk(Aggregations):
    """A store whose transactions take some time for each window, and a clock that shows it."""

    def __init__(self, cost: timedelta, better_after: int = SLICES) -> None:
        self.cost, self.better_after = cost, better_after
        self.at = EPOCH
        self.committed: list[int] = []

    def now(self) -> datetime:
        return self.at

    def read_slices(self, staged: Staged) -> tuple[StagedSlice, ...]:
        return tuple(StagedSlice(number, OF_SLICE, 0, HOME_ACTIVITY) for number in range(SLICES))

    def commit_portion(self, run: AggregationRun, staged: Staged, portion: Portion) -> bool:
        assert run.committed_slices == portion.first == sum(self.committed) // OF_SLICE
        cost = self.cost if portion.first < self.better_after else timedelta(0)
        windows = OF_SLICE * len(portion.slices)
        self.at += cost * windows
        self.committed.append(windows)
        return True

    def close_run(self, run: AggregationRun, staged: Staged, closed_at: datetime) -> bool:
        return run.committed_slices == SLICES


def committed(disk: Disk) -> list[int]:
    levels = {**levels_of([]), HOME_ACTIVITY: OF_SLICE * SLICES}
    staged = Staged("s", "r", 1, EPOCH, levels)
    assert commit_run(disk, DISK_RUN, staged, disk.now, EPOCH + timedelta(hours=1)) == "committed"
    assert sum(disk.committed) == OF_SLICE * SLICES
    return disk.committed


DAY, QUARTER = timedelta(days=1), timedelta(minutes=15)
MIDNIGHT = FakeClock().now().replace(hour=0, minute=0, second=0, microsecond=0)
FAR = EPOCH + 900 * DAY


@dataclass
class Kept:
    sqlite: SqliteEngine
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self.store = AggregatingStore(self.sqlite.database())
        create_tables(self.sqlite)
        self.own = Aggregation(self.store, FakeEngine(), None, self.clock.now, runs.RunLimits())

    def put(self, *starts: datetime, level: str = OF.name) -> None:
        for number, at in enumerate(starts):
            row = (f"home-{number % 7}", instant_text(at), 1, instant_text(at), 1, 0)
            self.sqlite.sql(f"INSERT INTO {level} VALUES (?, ?, ?, ?, ?, ?)", *row)

    def starts(self, level: type[KeptActivity] = KeptActivity) -> list[datetime]:
        homes = [f"home-{number}" for number in range(7)]
        found = (self.store.read_windows(level, home, MIDNIGHT - 900 * DAY, FAR) for home in homes)
        return sorted(one.window_start for windows in found for one in windows)

    def tick(self) -> aggregation_tick.AggregationReport:
        return aggregate(self.own, KEPT_ACTIVITY)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(SqliteEngine(tmp_path / "store.db"))
    yield made
    made.store.close()


def test_a_tick_removes_the_windows_of_a_level_after_their_time_and_logs_their_number(kept: Kept) -> None:
    horizon = MIDNIGHT - KEEP
    kept.put(horizon - 30 * DAY, horizon - QUARTER, horizon, horizon + QUARTER, MIDNIGHT)
    kept.put(horizon - 30 * DAY, horizon, level=OF.rollups[0].name)
    report = kept.tick()
    assert kept.starts() == [horizon, horizon + QUARTER, MIDNIGHT]
    assert kept.starts(OF.rollups[0].of) == [horizon - 30 * DAY, horizon]
    assert report_facts(KEPT_ACTIVITY, report)["removed"] == {"kept_activity": 2}
    assert "removed" not in report_facts(KEPT_ACTIVITY, kept.tick())
    kept.clock.advance(DAY.total_seconds())
    assert kept.tick().removed == {"kept_activity": 2}


def test_nothing_is_removed_while_a_run_is_open_because_it_may_add_to_old_windows(kept: Kept) -> None:
    ingest(kept.store, [reading()])
    assert kept.tick().did == ("submitted",)
    kept.put(MIDNIGHT - 30 * DAY)
    assert kept.tick().removed == {}
    assert kept.starts() == [MIDNIGHT - 30 * DAY]


def test_many_old_windows_are_removed_in_small_transactions_as_far_as_the_time_of_a_tick_goes(kept: Kept) -> None:
    old = MIDNIGHT - 900 * DAY
    kept.put(*(old + number * QUARTER for number in range(ROWS_AT_ONCE + 1)))
    now = kept.clock.now()
    times = iter([now, now, *[now + timedelta(hours=1)] * 9])
    assert remove_old_windows(kept.store, KEPT_ACTIVITY, lambda: next(times)) == {"kept_activity": ROWS_AT_ONCE}
    assert len(kept.starts()) == 1
    assert remove_old_windows(kept.store, KEPT_ACTIVITY, kept.clock.now) == {"kept_activity": 1}
