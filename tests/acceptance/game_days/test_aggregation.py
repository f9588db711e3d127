import sys

import pytest

from tests.acceptance.game_days.day import Day
from tests.acceptance.game_days.spark_submit import SCRIPT

pytestmark = pytest.mark.soak
ENGINE = {"SPARK_ENGINE": "local", "AGGREGATION_SCHEDULE": "* * * * * *", "AGGREGATION_GRACE_SECONDS": "5"}
RUN = {"RUN": r"([0-9a-f]{16,32}) "}
DELETED = "DELETE FROM sensor_reading WHERE partition_id = '0' AND sequence_number BETWEEN 23 AND 25"


def command(day: Day, name: str, script: str) -> str:
    path = day.app.folder / name
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_an_engine_that_fails_a_pause_and_rows_that_were_deleted_are_mended(day: Day) -> None:
    def committed() -> int:
        return sum(one["status"] == "committed" for one in day.app.request("api/aggregations")["runs"])

    def summed() -> int:
        return int(day.app.engine.sql("SELECT COALESCE(SUM(readings), 0) FROM home_activity")[0][0])

    broken = command(day, "broken-submit", "#!/bin/sh\necho JAVA_HOME is not set >&2; exit 1\n")
    spark = command(day, "spark-submit", SCRIPT.format(python=sys.executable))
    day.start(**ENGINE, SPARK_SUBMIT=broken)
    day.app.publish(10)
    day.until_it_fires("aggregation-failed")
    day.until(lambda: {one["status"] for one in day.app.request("api/aggregations")["runs"]} == {"failed"})
    shown = day.follow("aggregation-failed", "runs list", "runs show", **RUN)
    assert (shown[0].code, shown[1].code) == (0, 1), shown
    assert "JAVA_HOME is not set" in shown[1].output
    changed = day.follow("aggregation-failed", "appsettings", "runs step", SETTING="=SPARK_SUBMIT", VALUE=f"={spark}")
    assert [ran.code for ran in changed] == [0, 0], changed
    day.until(lambda: committed() == 1 and summed() == 20, "a run is committed")
    day.until_healthy(but=frozenset({"aggregation-failed"}))
    day.limits["aggregation_lag_seconds"] = 1
    day.post("api/aggregations/pause", reason="the database is restored")
    day.app.publish(10)
    day.until_it_fires("aggregation-lag")
    listed, resumed, _ = day.follow("aggregation-lag")
    assert (listed.code, resumed.code) == (0, 0), resumed
    assert "the database is restored" in listed.output
    day.until_healthy(but=frozenset({"aggregation-failed"}))
    day.until(lambda: summed() == 40, "the run after the pause")
    day.limits["aggregation_lag_seconds"] = 3_600
    day.post("api/aggregations/pause", reason="so that the rows are deleted first")
    day.app.publish(10)
    day.until_quiet()
    runs = committed()
    day.app.engine.sql(DELETED)
    day.post("api/aggregations/resume", reason="they are deleted")
    day.until_it_fires("aggregation-quality")
    assert summed() == 57
    newest = day.app.request("api/aggregations")["runs"][0]["run_id"]
    _, run, audit, _ = day.follow("aggregation-quality", "runs list", "runs show", "audit", RUN=f"={newest}")
    assert (run.code, audit.code) == (0, 1), audit
    assert "the run read 17 rows, and the ledger counts 20" in run.output
    place = {"PARTITION": r"(\d+) +rows_missing", "FIRST": r"rows_missing +(\d+)", "LAST": r"rows_missing +\d+ +(\d+)"}
    mended = day.follow("aggregation-quality", "replay", "repair", **place, DAY=r"planned +(\d{4}-\d\d-\d\d)")
    assert [ran.code for ran in mended] == [0, 0, 0], mended
    day.until(lambda: summed() == 60 and committed() == runs + 3, "the increments and the repair")
    day.until_healthy(but=frozenset({"aggregation-failed", "aggregation-quality"}))
    (again,) = day.follow("aggregation-quality", "audit")
    assert "rows_missing" in again.output, "the page says that the audit goes on naming the commit"
