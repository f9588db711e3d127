"""The second aggregate, whose windows are days and whose time is a date, by the same job and the same commit."""

import json
from datetime import date, datetime, timedelta

from core.model.aggregates import aggregate_table
from examples.flight_info.aggregates.flight_punctuality import FlightPunctuality
from examples.flight_info.transform import FlightChange
from jobs.rebuild_aggregate import rebuild
from tests.fakes.builders import EPOCH
from tests.spark.readings import NOON
from tests.spark.world import FAR, World

JOB = "flight_punctuality"
MONDAY, TUESDAY = date(2026, 2, 9), date(2026, 2, 10)


def change(carrier: str, number: int, day: date, status: str, at: datetime = NOON) -> FlightChange:
    return FlightChange(carrier, number, day, status, None, None, None, at)


def stored(world: World) -> list[FlightPunctuality]:
    return [one for key in ("AA", "LH") for one in world.store.read_windows(FlightPunctuality, key, EPOCH, FAR)]


def retract(world: World, number: int) -> None:
    """Take a row away as a replay does."""
    sql = world.sqlite.sql
    place = "partition_id = '0' AND sequence_number = ?"
    columns = ("carrier", "flight_number", "departure_date", "status", "changed_at")
    (values,) = sql(f"SELECT {', '.join(columns)} FROM flight_change WHERE {place}", number)
    sql(f"DELETE FROM flight_change WHERE {place}", number)
    sql("UPDATE event_hub_checkpoint SET commit_number = commit_number + 1 WHERE partition_id = '0'")
    ((commit_number,),) = sql("SELECT commit_number FROM event_hub_checkpoint WHERE partition_id = '0'")
    row = json.dumps(dict(zip(columns, values, strict=True)))
    sql(
        "INSERT INTO retracted_row (stream_id, partition_id, commit_number, table_name, sequence_number, ordinal,"
        " row_commit_number, row) VALUES (1, '0', ?, 'flight_change', ?, 0, 1, ?)",
        *(commit_number, number, row),
    )
    sql(
        "INSERT INTO batch_ledger VALUES (1, '0', ?, 'replay', ?, ?, 0, 0, 0, 0, 0, 0, 0, 't', 'i',"
        " '2026-01-01T00:00:00Z', 0, 0, 0, 0, 0, 0)",
        *(commit_number, number, number),
    )


def test_changes_are_counted_by_carrier_and_day_and_a_retracted_one_is_taken_back(world: World) -> None:
    late = NOON + timedelta(hours=3, microseconds=7)
    world.commit([change("LH", 1, MONDAY, "delayed"), change("LH", 1, MONDAY, "departed", late)])
    world.commit([change("AA", 2, TUESDAY, "cancelled"), change("LH", 3, TUESDAY, "arrived")], of="4")
    world.run_once(JOB)
    american, monday, tuesday = stored(world)
    assert (american.cancelled, american.window_start.date()) == (1, TUESDAY)
    assert (monday.changes, monday.delayed, monday.departed, monday.last_changed_at) == (2, 1, 1, late)
    assert (tuesday.arrived, tuesday.window_start.hour) == (1, 0)
    assert stored(world) == world.recounted(FlightPunctuality)
    retract(world, 1)
    world.commit([change("LH", 1, MONDAY, "diverted")])
    world.run_once(JOB)
    assert [one.changes for one in stored(world)] == [1, 2, 1]
    assert stored(world) == world.recounted(FlightPunctuality)
    comparison = rebuild(world.tables, aggregate_table(FlightPunctuality))
    assert (comparison.differing, comparison.compared) == (0, 3)
