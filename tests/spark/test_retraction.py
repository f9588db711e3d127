"""Retraction is arithmetic, and a run has the same result at whatever moment it is computed."""

import random
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from core.aggregation import tick as commit
from core.aggregation.runs import AggregationRun
from core.aggregation.tick import commit_run
from core.model.aggregates import DAY, SLICES, Aggregate, Count, Key, Sum, aggregate_table
from core.model.rows import Text
from examples.home_security.aggregates.home_activity import HomeActivity
from jobs.rebuild_aggregate import DIFFERING, VERDICT, differences, judged, side_by_side, targets
from jobs.retraction import IS_LOST, delta_of, subtracted, windows_after
from jobs.tables import Run
from jobs.transforms import LEVEL, SliceFacts, at_level, in_windows, leveled, partial_sums, slice_facts, sliced
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.fakes.declared import appended, forgotten, windows
from tests.fakes.replaying import order
from tests.fakes.rollups import rolled
from tests.spark.readings import NOON, gas, switch
from tests.spark.stream import Stream, fewer, gas_event, motion_event, moved, registered, twice
from tests.spark.world import World

OF = aggregate_table(HomeActivity)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Reading = tuple[Any, ...]  # home, kind, microseconds, state, parts per million
WINDOWS = 600


def micros(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def windows_of(spark: Any, readings: Sequence[Reading]) -> DataFrame:
    schema = "home_id string, kind string, at bigint, state string, ppm bigint"
    rows = spark.createDataFrame(readings, schema)
    found = partial_sums(OF, rows.withColumn("observed_at", F.timestamp_micros("at")))
    return found.withColumn(LEVEL, F.lit(OF.name))


def by_chance(chance: random.Random, home: str, least: int, most: int) -> list[Reading]:
    """Return readings of few different values, so that many of them tie."""
    return [
        (
            home,
            "gas",
            micros(NOON) + chance.randrange(4),
            chance.choice(["active", "idle"]),
            chance.choice([None, 0, 5, 9]),
        )
        for _ in range(chance.randrange(least, most))
    ]


def values_of(readings: Sequence[Reading]) -> tuple[Any, ...]:
    """Return the measures of readings in plain Python."""
    if not readings:
        return (0, 0, None, None, None, None, None)
    ppm = [100 * one[4] for one in readings if one[4] is not None]
    gas = (sum(ppm), min(ppm), max(ppm)) if ppm else (None, None, None)
    times = [one[2] for one in readings]
    return (len(readings), sum(one[3] == "active" for one in readings), *gas, min(times), max(times))


def test_arithmetic_gives_the_values_of_a_recount_or_says_that_it_cannot(spark: Any) -> None:
    chance = random.Random(5)
    stood, gone, new, after = (defaultdict[str, list[Reading]](list) for _ in range(4))
    for number in range(WINDOWS):
        home = f"home-{number}"
        stood[home] = by_chance(chance, home, 1, 6)
        gone[home] = chance.sample(stood[home], chance.randrange(1, len(stood[home]) + 1))
        new[home] = by_chance(chance, home, 0, 3)
        left = list(stood[home])
        for one in gone[home]:
            left.remove(one)
        after[home] = left + new[home]
    stored, removed, added = (
        windows_of(spark, [one for some in each.values() for one in some]) for each in (stood, gone, new)
    )
    found = subtracted(OF, stored.withColumn("run_number", F.lit(6)), added, removed, 7)
    times = [F.unix_micros(name).alias(name) for name in ("first_observed_at", "last_observed_at")]
    rows = found.select("home_id", IS_LOST, *OF.values[:5], *times).collect()
    assert len(rows) == WINDOWS
    sound = {row[0]: tuple(row[2:]) for row in rows if not row[1]}
    assert sound == {home: values_of(after[home]) for home in sound}
    lost = {row[0] for row in rows} - set(sound)
    assert {home for home in lost if not is_open(stood[home], gone[home], new[home])} == set()
    assert min(len(sound), len(lost)) > WINDOWS // 10


def is_open(stood: list[Reading], gone: list[Reading], new: list[Reading]) -> bool:
    """Return True when a removed reading held an extreme that no new one restores, or the sum comes to nothing."""
    for place in (2, 4):
        was, took, got = ([one[place] for one in each if one[place] is not None] for each in (stood, gone, new))
        if took and (min(took) == min(was) and (not got or min(got) > min(was))):
            return True
        if took and (max(took) == max(was) and (not got or max(got) < max(was))):
            return True
    values = [[one[4] or 0 for one in each] for each in (stood, gone, new)]
    return sum(values[0]) - sum(values[1]) + sum(values[2]) == 0 and any(one[4] is not None for one in gone)


def test_a_window_that_the_run_has_touched_or_that_lacks_removed_rows_is_not_computed_from_itself(spark: Any) -> None:
    at = micros(NOON)
    reading: Reading = ("home-1", "gas", at, "active", 5)
    many = [reading, ("home-1", "gas", at + 5, "idle", 7), ("home-1", "gas", at - 5 + 1_000_000, None, 3)]
    delta = windows_of(spark, []), windows_of(spark, [reading])

    def outcome(stood: Sequence[Reading], run_number: int) -> list[tuple[bool, int]]:
        stored = windows_of(spark, stood).withColumn("run_number", F.lit(run_number))
        return [tuple(row) for row in subtracted(OF, stored, *delta, 7).select(IS_LOST, "readings").collect()]

    assert outcome(many, 7) == [(False, 3)]
    assert outcome([reading], 6) == [(False, 0)]
    assert [is_lost for is_lost, _ in outcome([], 6)] == [True]
    assert [is_lost for is_lost, _ in outcome([("home-1", "gas", at, "idle", 5)], 6)] == [True]


def facts_of(world: World, run: AggregationRun) -> list[SliceFacts]:
    read = world.tables.read_run(run.run_id)
    assert isinstance(read, Run)
    windows = windows_after(world.tables, OF, delta_of(world.tables, OF, read), read)
    levels = [(level, sliced(level, at_level(windows, level))) for level in OF.levels]
    return slice_facts(levels, world.tables.row_hash)


@pytest.fixture
def stream(world: World) -> Stream:
    made = Stream(world)
    made.take(registered("home-1"), registered("home-9"), *(gas_event("home-1", ppm) for ppm in (90, 10, 30, 30)))
    made.take(motion_event("home-1"), motion_event("home-9", NOON - timedelta(days=8)), gas_event("home-9", 7))
    made.take(registered("home-3"), gas_event("home-3", 60), motion_event("home-3"), of="4")
    world.settle()
    return made


def test_a_run_has_the_same_result_before_and_after_replays_and_commits_of_its_own_slices(
    stream: Stream, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = stream.world
    stream.deploy(fewer, "mended/1")
    stream.replay()
    stream.take(gas_event("home-1", 70), gas_event("home-3", 20), of="4")
    run = world.planned()
    before = facts_of(world, run)
    assert sum(one.whole_windows for one in before) > 2
    stream.deploy(moved, "mended/2")
    stream.replay()  # it removes rows that the run adds, and rows that counted before
    assert facts_of(world, run) == before
    stream.deploy(twice, "mended/3")
    stream.replay()
    staged = world.executed(run)
    monkeypatch.setattr(commit, "PORTION", 1)
    half = iter([world.clock.now(), world.clock.now(), world.clock.now() + timedelta(hours=1)])
    said = commit_run(world.store, run, staged, lambda: next(half), world.clock.now() + timedelta(minutes=1))
    assert said.startswith("committed ")
    assert said.endswith(f" of {SLICES} slices")
    assert facts_of(world, run) == before
    world.store.discard_staged(staged)
    world.settle()
    assert world.store.read_standing(HOME_ACTIVITY).number == 3
    world.prove()


def levels_read(world: World, patched: pytest.MonkeyPatch) -> list[str]:
    """Record the levels whose rows are read. Return their list, which grows in the order of the reads."""
    asked, read = list[str](), world.tables.rows_of_windows

    def rows_of_windows(of: Aggregate, *more: Any) -> DataFrame:
        asked.append(of.name)
        return read(of, *more)

    patched.setattr(world.tables, "rows_of_windows", rows_of_windows)
    return asked


def test_a_lost_hour_and_day_are_computed_from_finer_windows_and_only_the_finest_from_its_rows(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, asked = stream.world, levels_read(stream.world, monkeypatch)
    earlier = NOON - timedelta(hours=3)
    stream.take(gas_event("home-1", 99, earlier), gas_event("home-1", 12, earlier), gas_event("home-1", 5), of="4")
    world.settle()
    stream.deploy(fewer, "mended/1")
    stream.take(gas_event("home-1", 80, earlier + timedelta(minutes=15)), gas_event("home-1", 70))
    stream.replay()
    world.settle()
    world.prove()
    assert asked == [OF.name]


def test_a_lost_day_is_computed_from_its_rows_where_retention_removed_its_hours(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, asked = stream.world, levels_read(stream.world, monkeypatch)
    hour, day = OF.rollups
    stream.take(gas_event("home-1", 55, NOON - timedelta(hours=3)), of="4")
    world.settle()
    for level in (OF, hour):
        world.sqlite.sql(f"DELETE FROM {level.name} WHERE home_id = 'home-1' AND window_start < ?", NOON.isoformat())
    stream.deploy(fewer, "mended/1")
    stream.replay(order(["0"]))
    world.settle()
    assert asked == [OF.name, day.name]
    assert world.activity(day.of) == rolled(world.recounted(), day)


def test_slices_that_a_different_attempt_commits_during_a_computation_count_once(
    stream: Stream, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = stream.world
    stream.deploy(fewer, "mended/1")
    stream.replay()
    stream.take(gas_event("home-1", 70, NOON - timedelta(hours=2)), gas_event("home-3", 80), of="4")
    run = world.planned()
    before = facts_of(world, run)
    staged = world.executed(run)
    slices = world.store.read_slices(staged)
    portion = commit.next_portion(slices, 0, 10**6)
    assert portion is not None
    levels, read = list[str](), world.tables.standing

    def standing(of: Aggregate, windows: Any) -> DataFrame:
        if levels == [one.name for one in OF.levels]:  # each was read once; finer windows follow
            assert world.store.commit_portion(run, staged, portion)
        levels.append(of.name)
        return read(of, windows)

    monkeypatch.setattr(world.tables, "standing", standing)
    assert facts_of(world, run) == before
    assert levels[3:] == [OF.name, OF.rollups[0].name]


def test_a_replay_between_the_plan_of_a_run_and_its_job_belongs_to_the_next_run_alone(stream: Stream) -> None:
    world = stream.world
    stream.take(gas_event("home-1", 99), gas_event("home-9", 1))
    stream.deploy(fewer, "mended/1")
    world.engine.meanwhile = stream.replay
    world.settle()
    second, first = world.store.read_runs(HOME_ACTIVITY, 10, 2)
    assert (first.number, first.readings, second.number) == (2, 2, 3)
    world.prove()


def test_a_window_without_a_value_left_has_no_sum_and_one_that_lost_its_last_row_is_gone(world: World) -> None:
    half = switch("home-5", kind="carbon_monoxide")  # a reading without parts per million
    first = world.commit([gas("home-5", ppm=0), half, gas("home-6", ppm=4)], of="1")
    world.settle()
    world.remove([first, first + 2], "1")
    world.settle()
    (window,) = [one for one in world.activity() if one.home_id in ("home-5", "home-6")]
    assert (window.home_id, window.readings, window.ppm_hundredths) == ("home-5", 1, None)
    world.prove()


def test_columns_named_as_those_of_a_job_are_added_up_retracted_and_compared(spark: Any) -> None:
    """A key `level` is common, and none of these names is refused."""
    keys = ("level", "verdict", "right", "n_lines", "up_to")
    sums = ("stored", "is_lost", "is_sound", "is_done", "is_empty", "begin", "rows")
    with forgotten():
        fields = {**dict.fromkeys(keys, Annotated[str, Text(20)]), **dict.fromkeys(sums, int), "placed": datetime}
        line = appended("a_line", **fields)
        measures = {"lines": Annotated[int, Count()], **{name: Annotated[int, Sum(name)] for name in sums}}
        keyed = {**dict.fromkeys(keys, Annotated[str, Key(20)]), "window_start": datetime}
        of = windows(line, "a_sale", "placed", **keyed, **measures, window=timedelta(hours=1), rollups={"day": DAY})
        schema = ", ".join([*(f"{one} string" for one in keys), *(f"{one} bigint" for one in sums), "placed timestamp"])
        rows = [(*("warn", "v", "r", "n", "u"), *range(7), NOON), (*("info", "v", "r", "n", "u"), *range(7), NOON)]
        frames = [spark.createDataFrame(some, schema) for some in (rows * 2, rows, [])]
        stood, gone, none = (leveled(of, partial_sums(of, each)) for each in frames)
        after = subtracted(of, stood.withColumn("run_number", F.lit(6)), none, gone, 7)
        hour = at_level(after.where(~F.col(IS_LOST)).drop(IS_LOST), of)
        found = {tuple(row) for row in hour.select(*keys, "lines", *sums).collect()}
        assert found == {(*row[:5], 1, *range(7)) for row in rows}
        assert in_windows(of, frames[0], hour).count() == 4
        right, stored = at_level(stood, of), at_level(stood, of).withColumn("run_number", F.lit(1))
        judgement = judged(side_by_side(of, right, stored), targets(None, []), [])
        assert [one[1:] for one in judgement.groupBy(VERDICT).count().collect()] == [(2,)]
        (shown,) = differences(of, judgement.withColumn(VERDICT, F.lit(DIFFERING)).limit(1), 1)
        assert shown["stored"] == shown["right"]
