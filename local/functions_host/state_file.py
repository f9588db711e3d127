"""Store host checkpoints and the status of timers in one SQLite file, so that they outlive the host.

The real host stores both in blobs of AzureWebJobsStorage. Host checkpoints are hints: a killed process loses none, a
power cut may lose the last ones. Durable has its own tables in the same file.
"""

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from local.functions_host.event_source import HubAddress, StartAt

TABLES = """
CREATE TABLE IF NOT EXISTS host_checkpoint (
    namespace TEXT NOT NULL, hub TEXT NOT NULL, consumer_group TEXT NOT NULL, partition_id TEXT NOT NULL,
    offset_token TEXT NOT NULL, sequence_number INTEGER NOT NULL,
    PRIMARY KEY (namespace, hub, consumer_group, partition_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS timer_status (
    function_name TEXT NOT NULL PRIMARY KEY, last_at TEXT, next_at TEXT NOT NULL, updated_at TEXT NOT NULL
) WITHOUT ROWID;
"""
READ_CHECKPOINT = """
SELECT offset_token, sequence_number FROM host_checkpoint
WHERE namespace = ? AND hub = ? AND consumer_group = ? AND partition_id = ?
"""
WRITE_CHECKPOINT = """
INSERT OR REPLACE INTO host_checkpoint
    (namespace, hub, consumer_group, partition_id, offset_token, sequence_number)
VALUES (?, ?, ?, ?, ?, ?)
"""
READ_TIMER = "SELECT last_at, next_at, updated_at FROM timer_status WHERE function_name = ?"
WRITE_TIMER = "INSERT OR REPLACE INTO timer_status (function_name, last_at, next_at, updated_at) VALUES (?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class TimerStatus:
    """The last run of a timer (None: never), its next run, and the time of this status, as aware instants."""

    last_at: datetime | None
    next_at: datetime
    updated_at: datetime


class StateFile:
    """The state in the file at `path`, or in memory without one. One thread uses it."""

    def __init__(self, path: Path | None) -> None:
        self._database = sqlite3.connect(path or ":memory:", isolation_level=None)
        self._database.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;" + TABLES)

    def read_checkpoint(self, address: HubAddress, partition_id: str) -> StartAt | None:
        key = (address.namespace, address.hub, address.consumer_group, partition_id)
        row = self._database.execute(READ_CHECKPOINT, key).fetchone()
        return StartAt(offset=row[0], sequence_number=row[1]) if row else None

    def write_checkpoint(self, address: HubAddress, partition_id: str, position: StartAt) -> None:
        key = (address.namespace, address.hub, address.consumer_group, partition_id)
        self._database.execute(WRITE_CHECKPOINT, (*key, position.offset, position.sequence_number))

    def read_timer(self, function_name: str) -> TimerStatus | None:
        row = self._database.execute(READ_TIMER, (function_name,)).fetchone()
        if row is None:
            return None
        last_at, next_at, updated_at = (datetime.fromisoformat(text) if text else None for text in row)
        return TimerStatus(last_at, next_at, updated_at)  # type: ignore[arg-type]

    def write_timer(self, function_name: str, status: TimerStatus) -> None:
        last_at = status.last_at.isoformat() if status.last_at else None
        stamps = (last_at, status.next_at.isoformat(), status.updated_at.isoformat())
        self._database.execute(WRITE_TIMER, (function_name, *stamps))

    def close(self) -> None:
        self._database.close()
