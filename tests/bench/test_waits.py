"""bench/waits.py: each event's seconds from its enqueued time to the time of its commit."""

import math
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.waits import percentile, waits
from local.event_hubs.events import Event
from local.event_hubs.log import Disk

NOON = int(datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp())


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    disk = Disk(tmp_path / "hub.db")
    disk.add("telemetry", "0", [Event(number, 0, 1000 * (NOON + number), b"") for number in range(4)])
    disk.add("telemetry", "1", [Event(0, 0, 1000 * NOON + 500, b"")])
    disk.add("other", "0", [Event(0, 0, 1000 * NOON, b"")])
    disk.commit()
    disk.close()
    return tmp_path / "hub.db"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE batch_ledger"
            " (partition_id TEXT, first_sequence_number, last_sequence_number, committed_at TEXT, kind TEXT)"
        )
        connection.executemany(
            "INSERT INTO batch_ledger VALUES (?, ?, ?, ?, ?)",
            [
                ("0", 0, 1, "2026-01-01T12:00:02.000000Z", "batch"),
                ("0", 2, 3, "2026-01-01T12:00:04.000000Z", "batch"),
                ("0", 0, 3, "2026-01-01T12:30:00.000000Z", "retry"),
                ("1", 0, 0, "2026-01-01T12:00:00.750000Z", "batch"),
            ],
        )
    return path


def test_a_wait_ends_with_the_batch_that_committed_the_event_and_without_one_never(hub: Path, store: Path) -> None:
    assert waits(hub, "telemetry", store, NOON) == [0.25, 1, 1, 2, 2]
    assert waits(hub, "telemetry", store, NOON + 2) == [1, 2]  # those that were enqueued before do not count
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("DELETE FROM batch_ledger WHERE first_sequence_number = 2")
    assert waits(hub, "telemetry", store, NOON) == [0.25, 1, 2, math.inf, math.inf]


@pytest.mark.parametrize(("percent", "value"), [(50, 50), (99, 99), (99.5, 100), (100, 100)])
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(percent: float, value: float) -> None:
    assert percentile([float(number) for number in range(1, 101)], percent) == value
    assert percentile([7.0], percent) == 7.0
