"""A third transform and its aggregate, made by the scaffold and by nothing else, and run by Spark."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.spark.here import CONF, environment
from tests.unit.hubledger.cli.project import Project

pytestmark = pytest.mark.slow
RUN = """
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from core.aggregation.commit import commit_run
from core.aggregation.runs import planned_run
from core.aggregation.store.commits import Aggregations
from core.store.sqlite.database import SqliteDatabase
from core.transforms import load_transform
from core.transforms.aggregates import find_aggregate
from hubledger.cli.lines import EventFile
from hubledger.cli.trial.run import ingest_file, means_of
from jobs.aggregate import Execution, aggregate
from jobs.sqlite_tables import SqliteTables

transform = load_transform("apps.parcels")
database = SqliteDatabase(Path(sys.argv[1]), needed=transform.row_classes)
for report in ingest_file(EventFile(Path("samples.jsonl")), means_of(database, transform)):
    assert report.commits
store, one, now = Aggregations(database), find_aggregate("parcels_by_hour"), datetime.now(UTC)
spark = SparkSession.builder.master("local[2]").getOrCreate()
run = planned_run(one.name, store.read_standing(one.name), "local", now)
assert store.open_run(run)
aggregate(spark, SqliteTables(spark, sys.argv[1]), Execution(run.run_id, 1, transform="apps.parcels"))
said = commit_run(store, run, store.read_staged(run.run_id), lambda: now, now + timedelta(minutes=1))
span = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
windows = [each for key in ("P-1", "P-2") for each in store.read_windows(one.of, key, *span)]
shown = ("parcel_id", "window_start", "events", "sum_of_grams")
found = [[str(getattr(each, name)) for name in shown] for each in windows]
print("RESULT", json.dumps([said, found]))
spark.stop()
"""


def test_the_aggregate_of_a_scaffold_is_computed_committed_and_read(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.parcels()
    project.done("core.store.migrate", "--transform", "apps.parcels", "--store", "sqlite:store.db")
    (tmp_path / "run.py").write_text(RUN)
    place = {**environment(), "PYTHONPATH": f"{tmp_path}{os.pathsep}{CONF}"}
    done = project.python("run.py", "store.db", **place)
    assert done.returncode == 0, done.stderr
    (result,) = re.findall(r"^RESULT (.*)$", done.stdout, re.M)
    assert json.loads(result) == [
        "committed",
        [
            ["P-1", "2026-03-01 10:00:00+00:00", "1", "1200"],
            ["P-1", "2026-03-01 11:00:00+00:00", "1", "1250"],
            ["P-2", "2026-03-01 10:00:00+00:00", "1", "300"],
        ],
    ]
