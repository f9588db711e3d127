"""A store in which many rows stand, made by SQL: batches continue after them."""

import sqlite3
from contextlib import closing
from pathlib import Path

from bench.large_store import EVENTS, PARTITIONS, Size, fill
from bench.samples import SIZE

_ROWS = """
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :last)
INSERT INTO sensor_reading
       (stream_id, partition_id, sequence_number, ordinal, commit_number, home_id, sensor_id, kind, state, ppm,
        observed_at)
SELECT 1, :partition_id, i, 0, i / :events + 1, printf('H%06d', i % 100000), 'S' || (i % 7), 'motion', 'active', NULL,
       strftime('%Y-%m-%dT%H:%M:%S', 1735689600 + i / 10, 'unixepoch') || '.123456Z'
  FROM n
"""


def fill_rows(path: Path, rows: int) -> int:
    """Create a store with about so many rows, and ranges that tile them. Return the next number of a partition."""
    each = max(1, rows // (PARTITIONS * SIZE)) * SIZE  # so that the numbers continue with a whole batch
    fill(path, Size(ranges=PARTITIONS * each // EVENTS, letters=0))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for number in range(PARTITIONS):
            connection.execute(_ROWS, {"partition_id": str(number), "last": each - 1, "events": EVENTS})
    return each
