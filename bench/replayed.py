"""A run over one replayed event: its time with ever more history, the start of the session excluded.

The event held the greatest value of its window, and the replay lowers it: the window is recomputed from its rows.
"""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from bench.figures import Figure
from bench.samples import ROOMS
from bench.spark import HOME_ACTIVITY, STREAM, open_spark, timed_run

SIZES = tuple(map(int, os.environ.get("BENCH_HISTORIES", "100000,1000000,5000000").split(",")))
ROUNDS, PARTITIONS, HOMES = 3, 16, 2_000
EACH, RATE = 500, 100  # readings of a commit, and of a second of event time
_FILL = f"""
INSERT INTO sensor_reading
WITH RECURSIVE n (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM n WHERE number + 1 < ?)
SELECT 1, CAST(number % {PARTITIONS} AS TEXT), number / {PARTITIONS}, 0, number / {PARTITIONS} / {EACH} + 1,
       printf('H%06d', number * 7919 % {HOMES}), 'S', 'carbon_monoxide', NULL, number * 31 % 90,
       strftime('%Y-%m-%dT%H:%M:%S', 1770000300 + number / {RATE}, 'unixepoch') || '.000000Z'
  FROM n
"""
_LEDGER = """
INSERT INTO batch_ledger
       (stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number, written, filtered,
        dead_lettered, held, absent, rows_written, rows_appended, transform_version, invocation_id, committed_at,
        total_commits, total_written, total_filtered, total_dead_lettered, total_held,
        total_absent)
SELECT 1, partition_id, commit_number, 'batch', MIN(sequence_number), MAX(sequence_number), COUNT(*), 0, 0, 0, 0,
       COUNT(*), COUNT(*), 'test/1', 'i', '2026-01-01T00:00:00.000000Z', commit_number, 0, 0, 0, 0, 0
  FROM sensor_reading
 GROUP BY partition_id, commit_number
"""
_CHECKPOINT = """
INSERT INTO event_hub_checkpoint
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, commit_number, commit_id, updated_at,
        first_sequence_number, commits, written, filtered, dead_lettered, held, absent, letters)
SELECT 1, partition_id, MAX(last_sequence_number), '0', 'at', MAX(commit_number), 'id', 'at', 0, 0, 0, 0, 0, 0, 0, 0
  FROM batch_ledger GROUP BY partition_id
"""
_WINDOWS = """
INSERT INTO {level}
       (home_id, window_start, kind, readings, active, ppm_hundredths, least_ppm_hundredths, most_ppm_hundredths,
        first_observed_at, last_observed_at, run_number, slice)
SELECT home_id,
       strftime('%Y-%m-%dT%H:%M:%S', unixepoch(observed_at) / {width} * {width}, 'unixepoch') || '.000000Z' AS start,
       kind, COUNT(*), 0, 100 * SUM(ppm), 100 * MIN(ppm), 100 * MAX(ppm), MIN(observed_at), MAX(observed_at), 0, 0
  FROM sensor_reading GROUP BY home_id, start, kind
"""
_GREATEST = """
SELECT partition_id, sequence_number FROM sensor_reading
 WHERE home_id = printf('H%06d', ?) ORDER BY ppm DESC LIMIT 1
"""
_RETRACT = """
INSERT INTO retracted_row
SELECT 1, partition_id, :commit_number, 'sensor_reading', sequence_number, 0, commit_number,
       json_object('home_id', home_id, 'sensor_id', sensor_id, 'kind', kind, 'state', state, 'ppm', ppm, 'observed_at',
                   observed_at)
  FROM sensor_reading WHERE stream_id = 1 AND partition_id = :partition_id AND sequence_number = :number
"""
_REPLACE = """
UPDATE sensor_reading SET ppm = 1, commit_number = :commit_number
 WHERE stream_id = 1 AND partition_id = :partition_id AND sequence_number = :number
"""
_REPLAY = """
INSERT INTO batch_ledger
VALUES (1, :partition_id, :commit_number, 'replay', :number, :number, 1, 0, 0, 0, 0, 1, 1, 'test/2', 'i',
        '2026-01-01T00:00:00.000000Z', 0, 0, 0, 0, 0, 0, 0, 0, NULL)
"""
_MOVE = "UPDATE event_hub_checkpoint SET commit_number = :commit_number WHERE partition_id = :partition_id"


def measure() -> Iterator[Figure]:
    """Measure the least time of three runs at each size, in turn."""
    spark = open_spark()
    if spark is None:
        return
    costs: dict[int, list[float]] = {size: [] for size in SIZES}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        stores = {size: Path(folder).resolve() / f"{size}.db" for size in SIZES}
        for size, path in stores.items():
            _fill(path, size)
        for turn in range(ROUNDS + 1):
            for size, path in stores.items():
                _replay(path, turn)
                costs[size].append(timed_run(spark, path))
    spark.stop()
    least = {size: min(taken[1:]) for size, taken in costs.items()}
    for size, seconds in least.items():
        ratio, note = seconds / least[SIZES[0]], f"{size:,} readings of history, {seconds:.2f} s; least of {ROUNDS}"
        met = None if size == SIZES[0] else ratio <= 1.5
        name = f"spark, a run over one replayed event at {size:,}"
        yield Figure(name, ratio, "x", "" if met is None else "<= 1.5 x", met, note)


def _fill(path: Path, readings: int) -> None:
    """Make a store with a number of readings, all of them aggregated."""
    from core.aggregation.runs import cut_of
    from core.aggregation.store import levels_text
    from core.store.sqlite.schema import migrate_sqlite
    from core.transforms.loading import find_aggregate

    migrate_sqlite(path, ROOMS)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(STREAM)
        connection.execute(_FILL, [readings])
        levels = find_aggregate(HOME_ACTIVITY).levels
        windows = [_WINDOWS.format(level=one.name, width=one.window // timedelta(seconds=1)) for one in levels]
        for statement in (_LEDGER, _CHECKPOINT, *windows):
            connection.execute(statement)
        numbers = connection.execute("SELECT partition_id, commit_number FROM event_hub_checkpoint").fetchall()
        cut = cut_of({(1, partition_id): number for partition_id, number in numbers})
        row = (HOME_ACTIVITY, cut, levels_text(HOME_ACTIVITY))
        connection.execute("INSERT INTO aggregation_cut (job, cut, run_number, levels) VALUES (?, ?, 0, ?)", row)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _replay(path: Path, home: int) -> None:
    """Replay the event with the greatest value of a home, as a commit does it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        ((partition_id, number),) = connection.execute(_GREATEST, (home,)).fetchall()
        select = "SELECT commit_number + 1 FROM event_hub_checkpoint WHERE partition_id = ?"
        ((commit_number,),) = connection.execute(select, (partition_id,)).fetchall()
        place = {"partition_id": partition_id, "number": number, "commit_number": commit_number}
        connection.execute("BEGIN IMMEDIATE")
        for statement in (_RETRACT, _REPLACE, _REPLAY, _MOVE):
            connection.execute(statement, place)
        connection.execute("COMMIT")
