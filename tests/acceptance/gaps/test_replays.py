"""Replays over a hub that has let go of numbers, and while the store is away: over HTTP, driven by the host."""

import json
import sqlite3
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core.transforms.home_security import SensorReading
from tests.acceptance.gaps.apps import DEADLINE, HUB, App, new_hub
from tests.fakes.engines import SqliteEngine
from tests.fakes.kept import KeptRow

pytestmark = pytest.mark.slow

SELDOM = {"GAP_CHECK_SCHEDULE": "0 0 0 1 1 *"}  # the timer does not come within the test
LOCKED = 7.0  # seconds, of which the store waits for 5 by itself
GONE = {"0": 170, "1": 220}  # numbers that the hub has let go of at the beginning of each partition


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    emulator = new_hub()
    with emulator.running():
        started = App(emulator, tmp_path, SqliteEngine(tmp_path / "store.db"))
        yield started
        started.end()


def ask(app: App, path: str, body: object = None) -> Any:
    octets = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": path}
    asked = urllib.request.Request(f"{app.address}/api/{path}", octets, headers)
    with urllib.request.urlopen(asked, timeout=DEADLINE) as answer:
        return json.load(answer)


def replayed(app: App, *, dry_run: bool) -> Any:
    """A job over all that is committed, when it has ended."""
    job = ask(app, "replays", {"reason": "to be seen", "dry_run": dry_run})["job_id"]
    app.until(lambda: ask(app, f"replays/{job}")["status"] not in ("planned", "running"))
    return ask(app, f"replays/{job}")


def cut(app: App) -> None:
    """120 events of each partition are committed; of the next hundred, which the host lost, some leave the hub."""
    app.start(**SELDOM)
    app.publish(120)
    app.until_all_accounted()
    app.publish_skipped()
    for id, first in GONE.items():
        app.emulator.expire_before(HUB, id, first)
    app.publish(30)
    app.until_all_accounted()


def books(app: App) -> tuple[object, ...]:
    return app.engine.ledger(), app.engine.gaps(), app.accounted()


def rows_of_gone(app: App) -> list[KeptRow]:
    return [kept for kept in app.engine.rows(SensorReading) if kept.sequence_number < GONE[kept.partition_id]]


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry run", "for good"])
def test_a_replay_lists_the_numbers_that_are_gone_and_changes_nothing_of_them(app: App, dry_run: bool) -> None:
    cut(app)
    before, rows = books(app), rows_of_gone(app)
    absent = sum(kept.absent for kept in app.engine.ledger())
    assert (absent, len(rows)) == (50 + 100, 120 + 120)
    job = replayed(app, dry_run=dry_run)
    assert (job["status"], job["fault"]) == ("done", None)
    assert {one["partition_id"]: one["gone"] for one in job["partitions"]} == {
        id: [{"first": "0", "last": str(first - 1)}] for id, first in GONE.items()
    }
    assert {one["partition_id"]: one["counts"]["gone"] for one in job["partitions"]} == GONE
    assert job["counts"]["events"] == job["counts"]["written"] == 250 - 170 + 250 - 220
    assert books(app) == before
    assert rows_of_gone(app) == rows
    app.end()
    app.assert_each_number_once({"0": set(range(120, 170)), "1": set(range(120, 220))})
    done_again = [kept for kept in app.engine.rows(SensorReading) if kept.commit_number > last_commit(app, kept)]
    assert len(done_again) == (0 if dry_run else 110), "what the hub holds is done again, and only for good"


def last_commit(app: App, row: KeptRow) -> int:
    """The newest commit of a batch in the partition of a row."""
    return max(kept.commit_number for kept in app.engine.ledger() if kept.partition_id == row.partition_id)


def test_a_replay_outlasts_a_store_that_is_away_for_some_seconds(app: App) -> None:
    app.start(**SELDOM)
    app.publish(120)
    app.until_all_accounted()
    locked = threading.Event()

    def lock() -> None:
        with closing(sqlite3.connect(app.engine.path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            locked.set()
            threading.Event().wait(LOCKED)
            connection.execute("ROLLBACK")

    app.emulator.freeze()  # so that it cannot be over before the store is away
    job = ask(app, "replays", {"reason": "to be locked out", "dry_run": False})["job_id"]
    locking = threading.Thread(target=lock)
    locking.start()
    assert locked.wait(DEADLINE)
    app.emulator.thaw()
    app.until(lambda: ask(app, f"replays/{job}")["status"] == "done")
    locking.join()
    assert [line for line in app.lines("replay") if "error" in line] == [], "a slice failed, and the job had to wait"
    assert ask(app, f"replays/{job}")["counts"]["written"] == 240
    app.end()
    app.assert_each_number_once()
