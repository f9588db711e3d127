"""handlers/operations/status.py: each cause makes the health bad, and a result is remembered for seconds."""

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import InfrastructureFault
from core.model.events import PartitionId
from handlers.app import HUB_ENDS, app
from handlers.operations import status as health
from handlers.remembered import Remembered
from tests.fakes.builders import events
from tests.fakes.memory_hub import MemoryHub
from tests.handlers.running import HOME, MOTION, Running, forget_health


def test_books_that_do_not_balance_are_unhealthy_although_no_partition_is_stopped(running: Running) -> None:
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    running.sqlite.sql("DELETE FROM batch_ledger")
    found = running.get("health_ledger")
    assert (found.status, found.body["healthy"], found.body["stops"]) == (503, False, [])
    assert (found.body["dead_lettered"], found.body["letters_open"]) == (1, 1)


def test_the_health_of_the_books_is_read_once_in_five_seconds(running: Running) -> None:
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    before = running.get("health_ledger")
    running.ingest([3], [MOTION])
    assert (before.status, running.get("health_ledger").body) == (200, before.body)
    health.BOOKS.forget()
    assert running.get("health_ledger").body["numbers"] == before.body["numbers"] + 1


def test_an_app_that_cannot_read_its_settings_is_alive_and_not_ready(running: Running) -> None:
    running.restart(OPERATOR_ROLE="Mine")
    assert running.get("health_live").status == 200
    ready = running.get("health_ready")
    assert (ready.status, ready.body) == (503, {"healthy": False, "fault": "SettingsRefused"})


def test_a_database_that_can_be_read_and_not_written_is_not_ready(running: Running) -> None:
    running.ingest([0], [HOME])
    before = running.sqlite.sql("SELECT * FROM replay_diff")
    assert running.get("health_ready").body == {"healthy": True, "fault": None}
    with closing(sqlite3.connect(running.sqlite.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        health.READINESS.forget()
        assert running.get("health_ready").status == 200, "a write is tried every thirty seconds"
        forget_health()
        found = running.get("health_ready")
        assert (found.status, found.body) == (503, {"healthy": False, "fault": "StoreUnavailable"})
        other.execute("ROLLBACK")
    forget_health()
    assert running.get("health_ready").status == 200
    assert running.sqlite.sql("SELECT * FROM replay_diff") == before


@contextmanager
def full_disk(path: Path) -> Iterator[None]:
    """Let no file of this process grow beyond the length of a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_database_on_a_full_disk_is_not_ready(running: Running) -> None:
    running.ingest([0], [HOME])
    assert running.get("health_ready").status == 200
    forget_health()
    with full_disk(running.sqlite.path.with_name(f"{running.sqlite.path.name}-wal")):
        found = running.get("health_ready")
    assert (found.status, found.body) == (503, {"healthy": False, "fault": "StoreUnavailable"})
    forget_health()
    assert running.get("health_ready").status == 200


def test_a_partition_that_stands_is_named_with_its_fault_by_health_and_status(running: Running) -> None:
    running.ingest([0, 1], [HOME, MOTION])
    long_ago = "2026-01-01T00:00:00.000000Z"
    running.sqlite.sql("UPDATE event_hub_checkpoint SET enqueued_at = ?", long_ago)
    running.sqlite.sql("UPDATE batch_ledger SET committed_at = ?", long_ago)
    hub = MemoryHub({"1": events(0, 5)})
    ends = {PartitionId("1"): 4}
    with closing(sqlite3.connect(running.sqlite.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InfrastructureFault):
            running.ingest([2], [MOTION])
        other.execute("ROLLBACK")
    app.value = replace(app(), hub=hub, hub_ends=Remembered(lambda: ends, HUB_ENDS))  # type: ignore[arg-type]
    found, status = running.get("health_ledger"), running.get("status").body
    assert (found.status, found.body["healthy"], found.body["stops"]) == (503, False, [])
    assert found.body["standing"] == [
        {"partition_id": "1", "since": "2026-01-01T00:00:02Z", "fault": "StoreUnavailable"}
    ]
    assert status["standing"] == found.body["standing"]
    running.ingest([2, 3, 4], [MOTION] * 3)
    forget_health()
    assert (running.get("health_ledger").body["standing"], running.get("status").body["standing"]) == ([], [])
    assert app().batch_log.faults == {}
