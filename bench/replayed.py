"""A run over one replayed event: its time with ever more history, the start of the session excluded.

The event held the greatest value of its window, and the replay lowers it: the window is recomputed from its rows.
"""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.figures import Figure
from bench.spark import HOME_ACTIVITY, open_spark

SIZES = tuple(map(int, os.environ.get("BENCH_HISTORIES", "100000,1000000,5000000").split(",")))
ROUNDS, PARTITIONS, EACH, HOMES, RATE = (
    3,
    16,
    500,
    2_000,
    100,
)  # readings of a commit; readings of a second of event time
KIND = "carbon_monoxide"
_AT = "strftime('%Y-%m-%dT%H:%M:%S', 1770000300 + number / {rate}, 'unixepoch') || '.000000Z'"
_NUMBERS = "WITH RECURSIVE n (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM n WHERE number + 1 < {most})"
_FILL = f"""
INSERT INTO sensor_reading
{_NUMBERS}
SELECT 1, CAST(number % {PARTITIONS} AS TEXT), number / {PARTITIONS}, 0, number / {PARTITIONS} / {EACH} + 1,
       printf('H%06d', number * 7919 % {HOMES}), 'S', '{KIND}', NULL, number * 31 % 90, {_AT}
  FROM n
"""
_LEDGER = """
INSERT INTO batch_ledger
       (stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number, written, filtered,
        dead_lettered, held, absent, rows_written, transform_version, invocation_id, committed_at)
SELECT 1, partition_id, commit_number, 'batch', MIN(sequence_number), MAX(sequence_number), COUNT(*), 0, 0, 0, 0,
       COUNT(*), 'test/1', 'i', '2026-01-01T00:00:00.000000Z'
  FROM sensor_reading
 GROUP BY partition_id, commit_number
"""
_CHECKPOINT = """
INSERT INTO event_hub_checkpoint
SELECT 1, partition_id, MAX(last_sequence_number), '0', 'at', MAX(commit_number), 'id', 'at'
  FROM batch_ledger GROUP BY partition_id
"""
_WINDOWS = """
INSERT INTO {table}
       (home_id, window_start, kind, readings, active, ppm_hundredths, least_ppm_hundredths, most_ppm_hundredths,
        first_observed_at, last_observed_at, run_number, slice)
SELECT home_id, strftime('%Y-%m-%dT%H:%M:%S', unixepoch(observed_at) / {seconds} * {seconds}, 'unixepoch')
           || '.000000Z' AS start,
       kind, COUNT(*), 0, 100 * SUM(ppm), 100 * MIN(ppm), 100 * MAX(ppm), MIN(observed_at), MAX(observed_at), 0, NULL
  FROM sensor_reading GROUP BY home_id, start, kind
"""
_GREATEST = """
SELECT partition_id, sequence_number, commit_number, home_id, observed_at FROM sensor_reading
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
VALUES (1, :partition_id, :commit_number, 'replay', :number, :number, 1, 0, 0, 0, 0, 1, 'test/2', 'i',
        '2026-01-01T00:00:00.000000Z', NULL, NULL, NULL)
"""
_MOVE = "UPDATE event_hub_checkpoint SET commit_number = :commit_number WHERE partition_id = :partition_id"


@dataclass
class History:
    """A store with a number of readings, all of them aggregated; `costs` are the seconds of its runs."""

    path: Path
    readings: int
    costs: list[float] = field(default_factory=list)


def measure() -> Iterator[Figure]:
    """Measure the least time of three runs at each size, in turn."""
    spark = open_spark()
    if spark is None:
        return
    with tempfile.TemporaryDirectory(dir=".") as folder:
        made = [_filled(Path(folder).resolve() / f"{size}.db", size) for size in SIZES]
        for turn in range(ROUNDS + 1):
            for one in made:
                _replay(one, turn)
                one.costs.append(_run(spark, one))
    spark.stop()
    first = min(made[0].costs[1:])
    for one in made:
        least = min(one.costs[1:])
        ratio, note = least / first, f"{one.readings:,} readings of history, {least:.2f} s; least of {ROUNDS}"
        is_first = one is made[0]
        name = f"spark, a run over one replayed event at {one.readings:,}"
        yield Figure(name, ratio, "x", "" if is_first else "<= 1.5 x", None if is_first else ratio <= 1.5, note)


def _filled(path: Path, readings: int) -> History:
    from core.aggregation.runs import cut_of
    from core.store.levels import levels_text
    from core.store.sqlite.schema import migrate_sqlite
    from core.transforms.aggregates import find_aggregate

    migrate_sqlite(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(
            "INSERT OR IGNORE INTO event_stream (stream_id, event_hub, consumer_group, incarnation, anchored_at)"
            " VALUES (1, 'bench/telemetry', 'hubledger', 1, 'at')"
        )
        connection.execute(_FILL.format(most=readings, rate=RATE))
        for statement in (_LEDGER, _CHECKPOINT):
            connection.execute(statement)
        for level in find_aggregate(HOME_ACTIVITY).levels:
            connection.execute(_WINDOWS.format(table=level.name, seconds=level.window // timedelta(seconds=1)))
        numbers = connection.execute(
            "SELECT stream_id, partition_id, commit_number FROM event_hub_checkpoint"
        ).fetchall()
        cut = cut_of({(stream_id, partition_id): number for stream_id, partition_id, number in numbers})
        connection.execute(
            "INSERT INTO aggregation_cut (job, cut, run_number, levels) VALUES (?, ?, 0, ?)",
            (HOME_ACTIVITY, cut, levels_text(HOME_ACTIVITY)),
        )
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return History(path, readings)


def _replay(one: History, home: int) -> None:
    """Replay the event with the greatest value of a home, as a commit does it."""
    with closing(sqlite3.connect(one.path, isolation_level=None)) as connection:
        ((partition_id, number, _, _, _),) = connection.execute(_GREATEST, (home,)).fetchall()
        place: dict[str, Any] = {"partition_id": partition_id, "number": number}
        select = "SELECT commit_number + 1 FROM event_hub_checkpoint WHERE partition_id = ?"
        ((place["commit_number"],),) = connection.execute(select, (partition_id,)).fetchall()
        connection.execute("BEGIN IMMEDIATE")
        for statement in (_RETRACT, _REPLACE, _REPLAY, _MOVE):
            connection.execute(statement, place)
        connection.execute("COMMIT")


def _run(spark: Any, one: History) -> float:
    from core.aggregation.commit import commit_run
    from core.aggregation.runs import planned_run
    from core.store.aggregation import Aggregations
    from core.store.sqlite.database import SqliteDatabase
    from jobs.aggregate import Execution, aggregate
    from jobs.sqlite_tables import SqliteTables

    store, tables = Aggregations(SqliteDatabase(one.path)), SqliteTables(spark, str(one.path))
    run = planned_run(HOME_ACTIVITY, store.read_standing(HOME_ACTIVITY), "local", datetime.now(UTC))
    if run is None or not store.open_run(run):
        raise RuntimeError("nothing to aggregate")
    started = perf_counter()
    aggregate(spark, tables, Execution(run.run_id, 1))
    staged = store.read_staged(run.run_id)
    until = datetime.now(UTC) + timedelta(hours=1)
    if staged is None or commit_run(store, run, staged, lambda: datetime.now(UTC), until) != "committed":
        raise RuntimeError("the run was not committed")
    took = perf_counter() - started
    store.close()
    return took
