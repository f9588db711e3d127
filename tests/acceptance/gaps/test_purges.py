"""A purge by the command line, whose app is killed in the middle: it ends, and the ledger accounts for all events."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.large_store import EVENTS, Size, fill
from tests.acceptance.cli.terminal import environment, hubledger
from tests.acceptance.gaps.apps import SELDOM, STREAM, App, working
from tests.repo.product import ROOT

RANGES = 5_000  # of each partition that the hub does not have: three pieces of a purge
PLACES = [str(100 + number) for number in range(16)]
SETTINGS = {
    **SELDOM,
    "TASK_SCHEDULE": "* * * * * *",
    "AzureFunctionsJobHost__extensions__eventHubs__minEventBatchSize": "1",
}
OLD = ("--older-than", "batch_ledger=0", "--older-than", "event_hub_dead_letter=0", "--reason", "the disk is full")


def fill_other_partitions(app: App) -> None:
    """Add old ranges of partitions that the hub does not have."""
    fill(app.engine.path, Size(RANGES * len(PLACES), 0))
    with closing(sqlite3.connect(app.engine.path)) as connection, connection:
        connection.execute("UPDATE event_stream SET event_hub = ?", (STREAM.event_hub,))
        for table in ("partition_anchor", "batch_ledger", "event_hub_checkpoint"):
            connection.execute(f"UPDATE {table} SET partition_id = 100 + partition_id")


def ingest_and_settle(app: App) -> None:
    """Ingest two batches of each partition of the hub, and discard the letter of the first one."""
    for bodies in ([b"reading home-1", b"poison"], [b"reading home-1"]):
        for id in list(app.published):
            app.send(id, bodies)
        app.until(lambda: {id: app.accounted()[id] for id in app.published} == app.published)
    called(app, "letters", "discard", *(f"{id}/1" for id in app.published), "--reason", "never an event", "--yes")


def called(app: App, *command: str) -> Any:
    """Run a command that ends well, and return its last line as JSON."""
    done = hubledger(app.address, *command, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def begin_real_purge(app: App) -> "subprocess.Popen[str]":
    """Start the command; it shows the dry run first."""
    command = [sys.executable, "-m", "hubledger", "purge", "start", "--for-real", "--yes", *OLD]
    given = environment(app.address)
    return subprocess.Popen(command, cwd=ROOT, env=given, stdout=subprocess.DEVNULL, text=True)


def count(app: App, table: str, condition: str = "TRUE") -> int:
    return int(app.engine.sql(f"SELECT COUNT(*) FROM {table} WHERE {condition}")[0][0])


def rows(app: App, purge_id: str) -> dict[str, int]:
    return {one["table"]: one["rows"] for one in called(app, "tasks", "show", purge_id)["tables"]}


def assert_healthy(app: App) -> None:
    """Check the books, and the audit of what they remember."""
    app.request("api/health/ledger")  # an error unless its status is 200
    found = called(app, "ledger", "audit")
    assert (found["balanced"], found["faults"]) == (True, [])
    assert found["accounted"] == sum(app.published.values()) + RANGES * EVENTS * len(PLACES)


def test_a_purge_goes_on_after_its_app_was_killed_and_every_event_stays_accounted_for(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        fill_other_partitions(app)
        app.start(**SETTINGS)
        ingest_and_settle(app)
        with begin_real_purge(app) as command:
            app.until(lambda: count(app, "event_hub_checkpoint", "purged_commit > 0") >= 6)
            app.end_host()
            command.kill()  # it would wait ten seconds for the app to come back
        jobs = app.engine.sql("SELECT task_id, status FROM task WHERE kind = 'purge' ORDER BY requested_at")
        (dry_id, purge_id), statuses = zip(*jobs, strict=True)
        assert statuses == ("done", "running")
        assert 0 < count(app, "batch_ledger", "partition_id >= '100'") < RANGES * len(PLACES)
        app.start(**SETTINGS)
        assert_healthy(app)
        app.until(lambda: called(app, "tasks", "show", purge_id)["status"] == "done")
        assert rows(app, purge_id) == rows(app, dry_id)
        assert count(app, "batch_ledger") == len(PLACES) + len(app.published)
        assert (count(app, "event_hub_dead_letter"), count(app, "dead_letter_attempt")) == (0, 0)
        assert_healthy(app)
        for place, number in (("0", "1"), (PLACES[0], "7")):
            assert called(app, "ledger", "explain", place, number)["purged"]["commits"] > 0
