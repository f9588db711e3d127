"""The driver's memory for a ledger of 2,000,000 commits: its ranges and slices, read in a process of their own."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from bench.figures import Figure
from bench.samples import ROOMS

COMMITS, PARTITIONS, ROWS = int(os.environ.get("BENCH_COMMITS", "2000000")), 16, 500
LIMIT = 300.0  # MB
_READ = """
import json, resource, sys, time
from jobs.ranges import slices_of, spans_between
from jobs.sqlite_tables import SqliteTables

def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

before, started = used(), time.perf_counter()
spans = spans_between("{}", sys.argv[2])
slices = slices_of(spans, SqliteTables(None, sys.argv[1]).read_ledger(spans))
print(json.dumps([used(), before, len(slices), time.perf_counter() - started]))
"""
_FILL = """
INSERT INTO batch_ledger
       (stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number, written, filtered,
        dead_lettered, held, absent, rows_written, rows_appended, transform_version, invocation_id, committed_at,
        total_commits, total_written, total_filtered, total_dead_lettered, total_held, total_absent)
WITH RECURSIVE n (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n WHERE number < :commits)
SELECT 1, :partition_id, number, 'batch', (number - 1) * :rows, number * :rows - 1, :rows, 0, 0, 0, 0, :rows, :rows,
       'test/1', 'i', '2026-01-01T00:00:00.000000Z', number, number * :rows, 0, 0, 0, 0
  FROM n
"""


def measure() -> Iterator[Figure]:
    """Measure the peak memory of the process that reads the ledger, and the number of its tasks."""
    if find_spec("pyspark") is None:
        print("history: skipped, it needs jobs/requirements.txt")
        return
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder).resolve() / "store.db"
        _fill(path)
        each = COMMITS // PARTITIONS
        cut = json.dumps({f"1/{partition}": each for partition in range(PARTITIONS)})
        done = subprocess.run(
            [sys.executable, "-c", _READ, str(path), cut],
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
            capture_output=True,
            text=True,
            check=True,
        )
    peak, before, slices, seconds = json.loads(done.stdout)
    note = (
        f"{COMMITS:,} commits of {ROWS} rows, {before:.0f} MB of them are the imports; {slices} tasks, {seconds:.1f} s"
    )
    yield Figure("spark, memory of the driver for a long ledger", peak, "MB", f"< {LIMIT:.0f}", peak < LIMIT, note)


def _fill(path: Path) -> None:
    from core.store.sqlite.schema import migrate_sqlite

    migrate_sqlite(path, ROOMS)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        for partition in range(PARTITIONS):
            values = {"partition_id": str(partition), "commits": COMMITS // PARTITIONS, "rows": ROWS}
            connection.execute(_FILL, values)
