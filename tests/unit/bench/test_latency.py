"""bench/latency.py: every event has the time of the batch that accounts for it, and none is left out."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bench.latency import latencies
from core.store.sqlite.schema import migrate_sqlite

BEGAN = 1_767_268_800  # 2026-01-01T12:00:00Z
LEDGER = """
INSERT INTO batch_ledger (stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number,
                          written, filtered, dead_lettered, held, absent, rows_written, transform_version,
                          invocation_id, committed_at)
VALUES (1, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 'test', 'test', ?)
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A hub with five events, one of them early and one of a different hub; three commits, one of them a retry."""
    events, store = tmp_path / "hub.db", tmp_path / "store.db"
    with closing(sqlite3.connect(events)) as connection, connection:
        connection.execute("CREATE TABLE event (hub, partition_id, sequence_number, enqueued_at)")
        rows = [("h", "0", 0, -5_000), ("h", "0", 1, 0), ("h", "0", 2, 900), ("h", "7", 0, 250), ("other", "0", 9, 0)]
        moved = [(*place, 1_000 * BEGAN + at) for *place, at in rows]
        connection.executemany("INSERT INTO event VALUES (?, ?, ?, ?)", moved)
    migrate_sqlite(store, ())
    with closing(sqlite3.connect(store)) as connection, connection:
        commits = [
            ("0", 1, "batch", 0, 2, 3, "2026-01-01T12:00:01.000000Z"),
            ("0", 2, "retry", 1, 1, 1, "2026-01-01T12:59:00.000000Z"),
            ("7", 1, "batch", 0, 0, 1, "2026-01-01T12:00:02.500000Z"),
        ]
        connection.executemany(LEDGER, commits)
    return events, store


def test_the_time_of_an_event_ends_with_its_batch(files: tuple[Path, Path]) -> None:
    assert latencies(*files, "h", BEGAN) == pytest.approx([0.1, 1.0, 2.25])


def test_an_event_without_a_commit_has_no_time_and_is_not_left_out(files: tuple[Path, Path]) -> None:
    with pytest.raises(RuntimeError, match="1 events are in no commit"):
        latencies(*files, "other", BEGAN)
