"""A third transform and its aggregate, made by the scaffold and by nothing else, and run by Spark."""

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

from hubledger.cli.scaffold.design import LONGEST_ROOM
from tests.fakes.lengths import enforce_lengths
from tests.hubledger.cli.project import Project
from tests.spark.here import CONF, environment

ROOM = "meters_of_all_houses_of_the_whole_city_1"  # the longest name of a room
METERS = (
    '{"meter_id": "M-1", "reading": 10, "at": "2026-03-01T10:00:00Z", "serial": 9223372036854775807}',
    '{"meter_id": "M-2", "reading": 12, "at": "2026-03-01T10:20:00Z", "serial": 4000000000000000000}',
)
LATER = (
    '{"meter_id": "M-1", "reading": 11, "at": "2026-03-01T10:10:00Z", "serial": 9223372036854775807}',
    '{"meter_id": "M-2", "reading": 12, "at": "2026-03-01T10:30:00Z", "serial": 4000000000000000000}',
)
TICKS = """
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from core.aggregation.runs import ALL_DAYS, Order
from core.aggregation.runs import RunLimits
from core.aggregation.spark_engine import JobReport, JobState
from core.aggregation.store import Aggregations
from core.aggregation.orders import Pipelines
from core.aggregation.tick import Aggregation, aggregate
from core.store.sqlite.database import SqliteDatabase
from core.transforms.loading import load_transform
from core.transforms.loading import find_aggregate
from hubledger.cli.trial import EventFile
from hubledger.cli.trial import ingest_file, means_of
from jobs import aggregate as job
from jobs.sqlite_tables import SqliteTables

JOB = "meters_by_hour"


class Engine:
    name = "local"

    def submit(self, request):
        given = dict(zip(request.arguments[::2], request.arguments[1::2]))
        execution = job.Execution(given["--run-id"], int(given["--attempt"]), transform="apps.meters")
        job.aggregate(spark, SqliteTables(spark, sys.argv[1]), execution)
        return request.name

    def state(self, job_id):
        return JobState.SUCCEEDED

    def report(self, job_id):
        return JobReport()


transform, now = load_transform("apps.meters"), datetime.now(UTC)
database = SqliteDatabase(Path(sys.argv[1]), needed=transform.row_classes)
store, pipelines = Aggregations(database), Pipelines(database)
spark = SparkSession.builder.master("local[2]").getOrCreate()
limits = RunLimits(rest=timedelta())
own = Aggregation(store, Engine(), None, lambda: datetime.now(UTC), limits)
for step in sys.argv[2:]:
    if step == "repair":
        order = Order(JOB, "repair", "somebody", "the measure changed", now, days=ALL_DAYS)
        pipelines.place(order, store.read_standing(JOB))
    elif step == "resume":
        pipelines.resume(Order(JOB, "resume", "somebody", "the measure changed", now))
    else:
        assert all(report.commits for report in ingest_file(EventFile(Path(step)), means_of(database, transform)))
for _ in range(12):
    if aggregate(own, JOB).did[-1] in ("has nothing new", "is paused"):
        break
one, standing = find_aggregate(JOB), store.read_standing(JOB)
span = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
windows = [each for key in ("M-1", "M-2") for each in store.read_windows(one.of, key, *span)]
found = {each.meter_id: [each.events, each.sum_of_serial] for each in windows}
print("RESULT", json.dumps([standing.last_run.status, standing.pause and standing.pause.reason, found]))
spark.stop()
"""


def test_a_sum_of_a_scaffold_beyond_64_bits_ends_its_run_and_the_documented_way_leads_on(tmp_path: Path) -> None:
    assert len(ROOM) == LONGEST_ROOM
    project = Project(tmp_path)
    project.write("first.jsonl", *METERS)
    project.write("later.jsonl", *METERS, *LATER)  # the first two are redelivered
    project.done("hubledger", "new", ROOM, "--from", "first.jsonl", "--key", "meter_id")
    declared = tmp_path / "apps" / ROOM / "aggregates" / f"{ROOM}_by_hour.py"
    text = declared.read_text()
    assert "serial" not in text, "a number that names something is not summed"
    by_hand = text.replace('Sum("reading")', 'Sum("serial")').replace("sum_of_reading", "sum_of_serial")
    declared.write_text(by_hand)
    for file in (tmp_path / "apps" / ROOM / "migrations").rglob("*.sql"):
        file.write_text(file.read_text().replace("sum_of_reading", "sum_of_serial"))
    project.done("core.store.migrate", "--transform", f"apps.{ROOM}", "--store", "sqlite:store.db")
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        enforce_lengths(connection)
    (tmp_path / "run.py").write_text(TICKS.replace("meters", ROOM))
    place = {**environment(), "PYTHONPATH": f"{tmp_path}{os.pathsep}{CONF}"}

    def after(*steps: str) -> object:
        done = project.python("run.py", "store.db", *steps, **place)
        assert done.returncode == 0, done.stderr
        (result,) = re.findall(r"^RESULT (.*)$", done.stdout, re.M)
        return json.loads(result)

    largest, each = 2**63 - 1, 4 * 10**18
    assert after("first.jsonl") == ["committed", None, {"M-1": [1, largest], "M-2": [1, each]}]
    fault = (
        f"sum_of_serial of a window of {ROOM}_by_hour that begins at 2026-03-01T10:00:00Z is beyond 64 bits:"
        " change the measure, then resume the job (docs/aggregation.md, A sum beyond 64 bits)"
    )
    assert after("later.jsonl") == ["failed", fault, {"M-1": [1, largest], "M-2": [1, each]}]
    declared.write_text(by_hand.replace("Sum", "Most").replace("Most, Most", "Most"))
    assert after("repair", "resume") == ["committed", None, {"M-1": [2, largest], "M-2": [2, each]}]
