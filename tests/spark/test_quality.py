"""The quality of a run: each figure is that of a recount in plain Python, and lost and foreign rows are found."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from core.model.aggregates import Aggregate
from core.model.rows import appended_to
from examples.home_security.transform import HomeAlert, SensorReading
from jobs.aggregate import Execution, aggregate
from jobs.quality import ReadingDiffers, appended_tables
from jobs.ranges import Slice
from jobs.sqlite_tables import SqliteTables
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.fakes.builders import EPOCH
from tests.spark.readings import NOON, gas, switch
from tests.spark.stream import Stream, as_they_are, gas_event, motion_event, registered, twice
from tests.spark.world import Fate, World

COMMITTED_AT = EPOCH + timedelta(days=1)  # of the builders' commits
WINDOW = timedelta(minutes=15)


@appended_to("declared_elsewhere")
@dataclass(frozen=True, slots=True)
class DeclaredElsewhere:
    """A row of no transform of the app: the database has no such table."""

    note: str


def quality(world: World) -> dict[str, Any]:
    """Return the quality of the last run that was committed."""
    run = world.store.read_runs(HOME_ACTIVITY, 10**9, 1)[0]
    assert (run.status, run.quality is None) == ("committed", False)
    return dict(json.loads(run.quality or ""))


def rows_of(world: World) -> dict[str, Any]:
    return counts(quality(world))


def counts(found: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("rows_"): count for name, count in found.items() if name not in ("fault", "rows_late")}


def test_only_the_appended_tables_of_the_app_s_transform_are_counted() -> None:
    assert appended_tables("examples.home_security") == ("home_alert", "sensor_reading")
    assert appended_tables("examples.flight_info") == ("flight_change",)


def test_every_figure_is_that_of_a_recount(world: World) -> None:
    late, last, on_time = (COMMITTED_AT + timedelta(minutes=minutes) for minutes in (-31, -30, 0))
    rows: list[SensorReading] = [gas("hot", at=on_time, ppm=ppm) for ppm in (0, 7)]
    rows += [switch("hot", at=late), switch("home-2", at=late), gas("home-2", at=last, ppm=3)]
    world.commit(rows)
    world.settle()
    windows = [at - (at - EPOCH) % WINDOW for at in (row.observed_at for row in rows)]
    assert quality(world)["rows_late"] == sum(start + 2 * WINDOW < COMMITTED_AT for start in windows) == 2
    assert rows_of(world) == {
        "ledger": 5, "read": 5, "removed": 0, "elsewhere": 0, "difference": 0, "partitions": [],
    }  # fmt: skip
    assert quality(world)["fault"] is None


def test_a_row_that_was_deleted_by_hand_is_a_fault_with_its_figures_and_the_run_is_committed(world: World) -> None:
    world.commit([switch(), gas()])
    world.commit([switch(), gas(), gas()], of="12")
    world.sqlite.sql("DELETE FROM sensor_reading WHERE partition_id = '12' AND sequence_number = 1")
    world.settle()
    differing = [{"partition": "1/12", "ledger": 3, "found": 2}]
    assert rows_of(world) == {
        "ledger": 5, "read": 4, "removed": 0, "elsewhere": 0, "difference": -1, "partitions": differing,
    }  # fmt: skip
    assert quality(world)["fault"] == "the ledger counts 5 rows, and the tables have 4: partition 12 has 2 of its 3"
    world.prove()


def test_a_row_that_was_added_by_hand_is_a_fault(world: World) -> None:
    world.commit([switch(), gas()])
    world.sqlite.sql(
        "INSERT INTO sensor_reading SELECT stream_id, partition_id, sequence_number, 1, commit_number, home_id,"
        " sensor_id, kind, state, ppm, observed_at FROM sensor_reading WHERE sequence_number = 1"
    )
    world.settle()
    assert (rows_of(world)["difference"], rows_of(world)["partitions"]) == (
        1,
        [{"partition": "1/0", "ledger": 2, "found": 3}],
    )
    world.prove()


def test_rows_of_other_tables_are_rows_of_the_ledger_and_a_lost_one_is_a_fault(world: World) -> None:
    alarm = HomeAlert("home-1", "co-1", "carbon_monoxide", 90, NOON)
    world.commit([switch(), alarm, gas(), alarm])
    world.settle()
    assert (rows_of(world)["read"], rows_of(world)["elsewhere"], rows_of(world)["difference"]) == (2, 2, 0)
    world.commit([switch(), alarm])
    world.sqlite.sql("DELETE FROM home_alert WHERE commit_number = 2")
    world.settle()
    assert (rows_of(world)["elsewhere"], rows_of(world)["difference"]) == (0, -1)


def test_rows_that_a_replay_removed_were_written_all_the_same(world: World) -> None:
    stream = Stream(world)
    stream.take(registered("home-1"), gas_event("home-1", 40), motion_event("home-1"), gas_event("home-1", 90))
    stream.deploy(twice, "twice/1")
    world.engine.fates = [Fate.KILLED_BEFORE]
    world.tick()
    stream.replay()  # after the cut of the open run: its rows are gone
    world.settle()
    newer, older = world.store.read_runs(HOME_ACTIVITY, 10**9, 2)
    for run in (older, newer):
        rows = counts(json.loads(run.quality or ""))
        assert (rows["difference"], rows["ledger"]) == (0, rows["read"] + rows["removed"] + rows["elsewhere"])
    stream.take(gas_event("home-1", 40), motion_event("home-1"))
    stream.deploy(as_they_are, "once/2")
    stream.replay()  # before the run: written and removed within it
    world.settle()
    found = rows_of(world)
    assert (found["difference"], found["removed"] > 0) == (0, True)
    world.prove()


def test_purged_commits_leave_the_number_of_rows_unknown(world: World) -> None:
    world.commit([switch(), gas()])
    world.commit([gas()])
    world.sqlite.sql(
        "UPDATE event_hub_checkpoint SET purged_commit = 1, purged_at = updated_at, purged_to ="
        " (SELECT last_sequence_number FROM batch_ledger WHERE commit_number = 1)"
    )
    world.sqlite.sql("DELETE FROM batch_ledger WHERE commit_number = 1")
    world.sqlite.sql("DELETE FROM sensor_reading WHERE sequence_number = 1")
    world.settle()
    assert (rows_of(world)["ledger"], rows_of(world)["difference"], quality(world)["fault"]) == (None, None, None)


def test_commits_without_a_row_start_no_run(world: World) -> None:
    world.commit([], letters=2)
    world.settle()
    assert world.store.read_runs(HOME_ACTIVITY, 10**9, 1) == ()


class Losing(SqliteTables):
    """Tables whose reader loses a row, which they hold."""

    def rows(self, of: Aggregate, slices: Sequence[Slice]) -> Any:
        return super().rows(of, slices).limit(1)


def test_an_attempt_that_read_a_different_number_than_ledger_and_tables_count_fails(world: World) -> None:
    world.commit([switch(), gas()])
    world.tick()
    run = world.store.read_runs(HOME_ACTIVITY, 10**9, 1)[0]
    losing = Losing(world.tables._spark, world.tables._path)
    with pytest.raises(ReadingDiffers, match="1 rows were read, and ledger and tables count 2"):
        aggregate(world.tables._spark, losing, Execution(run.run_id, run.attempt))
