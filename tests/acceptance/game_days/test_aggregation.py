"""Game days of the alarms about the aggregation, with a local engine that needs no Java."""

import sys

import pytest

from tests.acceptance.game_days.day import Day
from tests.acceptance.game_days.spark_submit import SCRIPT

pytestmark = pytest.mark.slow
ENGINE = {"SPARK_ENGINE": "local", "AGGREGATION_SCHEDULE": "* * * * * *", "AGGREGATION_GRACE_SECONDS": "5"}


@pytest.fixture
def spark(day: Day) -> str:
    """Return the command of an engine that works."""
    return command(day, "spark-submit", SCRIPT.format(python=sys.executable))


def command(day: Day, name: str, script: str) -> str:
    path = day.app.folder / name
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def committed(day: Day) -> list[str]:
    """Return the ids of the runs that are committed."""
    return [one["run_id"] for one in day.app.request("api/aggregations")["runs"] if one["status"] == "committed"]


def test_an_engine_that_fails_is_mended_and_the_next_attempt_is_committed(day: Day, spark: str) -> None:
    broken = command(day, "broken-submit", "#!/bin/sh\necho JAVA_HOME is not set >&2; exit 1\n")
    day.start(**ENGINE, SPARK_SUBMIT=broken)
    day.app.publish(10)
    day.until_it_fires("aggregation-failed")
    day.start(SPARK_SUBMIT=spark)
    day.until(lambda: committed(day) != [], "a run is committed")
    day.until_healthy(but=frozenset({"aggregation-failed"}))


def test_an_aggregation_that_somebody_paused_goes_on(day: Day, spark: str) -> None:
    day.limits["aggregation_lag_seconds"] = 1
    day.start(**ENGINE, SPARK_SUBMIT=spark)
    day.post("api/aggregations/pause", reason="the database is restored")
    day.app.publish(10)
    day.until_it_fires("aggregation-lag")


def test_rows_that_somebody_deleted_are_replayed_and_the_windows_repaired(day: Day, spark: str) -> None:
    day.start(**ENGINE, SPARK_SUBMIT=spark)
    day.post("api/aggregations/pause", reason="so that the rows are deleted first")
    day.app.publish(10)
    day.until_quiet()
    day.app.engine.sql("DELETE FROM sensor_reading WHERE partition_id = '0' AND sequence_number BETWEEN 3 AND 5")
    day.post("api/aggregations/resume", reason="they are deleted")
    day.until_it_fires("aggregation-quality")
