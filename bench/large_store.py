"""A large SQLite store, made by SQL instead of events: ranges that tile the log, and letters of many causes."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.samples import ROOMS
from core.letters.store import Letters
from core.model.events import PartitionId, Stream
from core.settle.partition_store import Partitions
from core.store.database import Database
from core.store.memory import Memory
from core.store.sqlite.schema import migrate_sqlite
from core.worker.ownership import Ownerships

PARTITIONS, EVENTS, CAUSES = 16, 10, 40  # events of a range, causes of letters
RARE = 7  # the one letter of each partition with a rare cause and a rare status
STREAM = Stream("bench/telemetry", "hubledger")
MOMENT = "strftime('%Y-%m-%dT%H:%M:%S', 1767225600 + {} % 10000000, 'unixepoch') || '.000000Z'"

_STREAM = """
INSERT INTO event_stream (stream_id, event_hub, consumer_group, incarnation, anchored_at)
VALUES (1, :event_hub, :consumer_group, 1, '2026-01-01T00:00:00.000000Z')
"""
_ANCHOR = "INSERT INTO partition_anchor VALUES (1, :partition_id, 0, '2026-01-01T00:00:00.000000Z')"
_RANGES = f"""
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :ranges - 1)
INSERT INTO batch_ledger
       (stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number,
        written, filtered, dead_lettered, held, absent, rows_written, rows_appended, transform_version, invocation_id,
        committed_at,
        total_commits, total_written, total_filtered, total_dead_lettered, total_held, total_absent)
SELECT 1, :partition_id, i + 1, 'batch', i * {EVENTS}, i * {EVENTS} + {EVENTS - 1},
       {EVENTS} - (i < :letters), 0, i < :letters, 0, 0, {EVENTS}, 0, 'v', 'i', '2026-01-01T00:00:00.000000Z',
       i + 1, {EVENTS} * (i + 1) - MIN(i + 1, :letters), 0, MIN(i + 1, :letters), 0, 0
  FROM n
"""
_CHECKPOINT = f"""
INSERT INTO event_hub_checkpoint
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, commit_number, commit_id, updated_at,
        first_sequence_number, commits, written, filtered, dead_lettered, held, absent, letters)
SELECT 1, :partition_id, :ranges * {EVENTS} - 1, 'o', '2026-01-01T00:00:00.000000Z', :ranges,
       '00000000-0000-0000-0000-000000000001', '2026-01-01T00:00:00.000000Z',
       0, :ranges, :ranges * {EVENTS} - :letters, 0, :letters, 0, 0, :letters
"""
_LETTERS = f"""
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :letters - 1)
INSERT INTO event_hub_dead_letter
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, partition_key, properties, body,
        error_class, error_type, error, fingerprint, cause, transform_version, status, attempts, failed_at)
SELECT 1, :partition_id, i * {EVENTS}, 'o', '2026-01-01T00:00:00.000000Z', 'home-' || (i % 1000), '{{}}',
       randomblob(200), 'poison', 'core.errors.PoisonEvent', 'no such kind ' || (i % {CAUSES}),
       CASE i WHEN {RARE} THEN 'rare' ELSE printf('%016x.%08x', i % {CAUSES}, i % 7) END,
       CASE i WHEN {RARE} THEN 'rare' ELSE printf('%016x', i % {CAUSES}) END, 'v',
       CASE WHEN i = {RARE} THEN 'retrying' WHEN i % 5 = 0 THEN 'waiting' ELSE 'exhausted' END, 0,
       {MOMENT.format("(i * 7919 + :partition_id)")}
  FROM n
"""


@dataclass(frozen=True, slots=True)
class Size:
    """The ranges and the letters of all partitions together."""

    ranges: int
    letters: int

    @property
    def ranges_each(self) -> int:
        """The ranges of one partition."""
        return self.ranges // PARTITIONS

    @property
    def letters_each(self) -> int:
        """The letters of one partition: one in each of its first ranges."""
        return self.letters // PARTITIONS

    @property
    def last(self) -> int:
        """The last sequence number of each partition."""
        return self.ranges_each * EVENTS - 1


def fill(path: Path, size: Size) -> None:
    """Create a store whose books balance. No audit has read it yet."""
    migrate_sqlite(path, ROOMS)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(_STREAM, {"event_hub": STREAM.event_hub, "consumer_group": STREAM.consumer_group})
        for number in range(PARTITIONS):
            values = {"partition_id": str(number), "ranges": size.ranges_each, "letters": size.letters_each}
            connection.execute("BEGIN")
            for statement in (_ANCHOR, _RANGES, _CHECKPOINT, *((_LETTERS,) if size.letters_each else ())):
                connection.execute(statement, {name: values[name] for name in values if f":{name}" in statement})
            connection.execute("COMMIT")


def start_worker(database: Database) -> None:
    """Ask what a worker asks of the store until it receives: its stream, its partitions, and when letters are due."""
    store = Partitions(database, Memory(timedelta(seconds=60)))
    owners = Ownerships(database, store)
    store.open_stream(STREAM)
    store.read_incarnation(STREAM)
    owners.read_ownerships(STREAM)
    owners.read_checkpoints(STREAM)
    for number in range(PARTITIONS):
        store.read_partition(STREAM.partition(PartitionId(str(number))))
    Letters(database, store).next_due_at(STREAM, datetime.now(UTC))
