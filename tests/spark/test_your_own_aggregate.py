"""A third aggregate, made in a copy of the app by the steps of docs/your-own-aggregate.md and nothing else."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from core.store.sqlite.database import SqliteDatabase
from examples.home_security.transform import HomeAlert
from tests.acceptance.tutorial.page import Command, Written, steps_of
from tests.fakes.aggregation_engines import AggregatingStore, ingest
from tests.patience import allowed
from tests.spark.here import CONF, ROOT, environment
from tests.spark.readings import NOON

pytestmark = pytest.mark.slow
PAGE = (ROOT / "docs" / "your-own-aggregate.md").read_text(encoding="utf-8")
COPIED = ("core", "examples", "hubledger", "jobs", "local", "sql")
RUN = """
import json
import sys
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from core.aggregation.tick import commit_run
from core.aggregation.runs import planned_run
from core.aggregation.store import Aggregations
from core.store.sqlite.database import SqliteDatabase
from examples.home_security.aggregates.alerts_by_day import AlertsByDay
from jobs.aggregate import Execution, aggregate
from jobs.rebuild_aggregate import rebuild
from jobs.sqlite_tables import SqliteTables
from core.transforms.loading import find_aggregate
from pathlib import Path

store, path = Aggregations(SqliteDatabase(Path(sys.argv[1]))), sys.argv[1]
spark = SparkSession.builder.master("local[2]").getOrCreate()
now = datetime.now(UTC)
run = planned_run("alerts_by_day", store.read_standing("alerts_by_day"), "local", now)
assert store.open_run(run)
aggregate(spark, SqliteTables(spark, path), Execution(run.run_id, 1))
staged = store.read_staged(run.run_id)
said = commit_run(store, run, staged, lambda: now, now + timedelta(minutes=1))
differing = rebuild(SqliteTables(spark, path), find_aggregate("alerts_by_day")).differing
since, until = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
windows = [one for home in ("home-1", "home-2") for one in store.read_windows(AlertsByDay, home, since, until)]
print("RESULT", json.dumps([said, differing, [[str(getattr(one, name)) for name in one.__slots__] for one in windows]]))
spark.stop()
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    copied = tmp_path / "app"
    for name in COPIED:
        shutil.copytree(ROOT / name, copied / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copied


def run(app: Path, *command: str, shell: str = "") -> str:
    """Run a command in the copy, with `python` as the Python of the tests. Return its output."""
    python = app.parent / "bin" / "python"
    if not python.exists():
        python.parent.mkdir()
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    place = {**os.environ, **environment(), "PATH": path, "PYTHONPATH": f"{app}{os.pathsep}{CONF}"}
    place["STORE_CONNECTION"] = f"sqlite:{app / 'store.db'}"
    words: Sequence[str] = ("sh", "-c", shell) if shell else command
    done = subprocess.run(words, cwd=app, env=place, capture_output=True, text=True, timeout=allowed(600), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def alert(home_id: str, kind: str, ppm: int | None, at: datetime) -> HomeAlert:
    return HomeAlert(home_id, f"{home_id}-{kind}", kind, ppm, at)


def test_an_aggregate_that_follows_the_page_is_staged_committed_and_read(app: Path) -> None:
    for step in steps_of(PAGE):
        match step:
            case Written(name, text):
                (app / name).write_text(text, encoding="utf-8")
            case Command(line):
                run(app, shell=line.replace("bin/hubledger", "python -m hubledger").replace(".venv/bin/", ""))
    (migration,) = (app / "examples/home_security/migrations/sqlserver").glob("*_alerts_by_day.sql")
    assert "CREATE TABLE hubledger.alerts_by_day_staged" in migration.read_text(encoding="utf-8")
    rights = run(app, sys.executable, "-m", "local.explain", "rights")
    assert re.search(r"^alerts_by_day +INSERT ", rights, re.M)
    store = AggregatingStore(SqliteDatabase(app / "store.db"))
    tomorrow = NOON + timedelta(days=1)
    ingest(store, [alert("home-1", "carbon_monoxide", 70, NOON), alert("home-1", "motion", None, NOON)])
    ingest(store, [alert("home-1", "carbon_monoxide", 90, tomorrow), alert("home-2", "door", None, NOON)], of="4")
    store.close()
    (app.parent / "run.py").write_text(RUN)
    out = run(app, sys.executable, str(app.parent / "run.py"), str(app / "store.db"))
    (result,) = re.findall(r"^RESULT (.*)$", out, re.M)
    noon, later = str(NOON), str(tomorrow)
    day = timedelta(hours=12)
    assert json.loads(result) == [
        "committed",
        0,
        [
            ["home-1", str(NOON - day), "2", "1", "70", noon, noon],
            ["home-1", str(tomorrow - day), "1", "1", "90", later, later],
            ["home-2", str(NOON - day), "1", "0", "None", noon, noon],
        ],
    ]
