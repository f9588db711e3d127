"""The commit of an aggregation run into SQLite: verified, slice by slice, against a bare upsert of the same rows."""

import json
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from zlib import crc32

from bench.figures import Figure
from bench.samples import ROOMS
from bench.writer import second_writer
from core.aggregation.runs import planned_run
from core.aggregation.store import Aggregations
from core.aggregation.tick import commit_run
from core.model.aggregates import SLICES, Aggregate
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite
from core.transforms.loading import find_aggregate
from hubledger.cli.ddl.tables import tables_text

WINDOWS = int(os.environ.get("BENCH_WINDOWS", "1000000"))
KINDS = ("carbon_monoxide", "door", "glass_break", "motion", "window")
QUARTERS = 10  # of each kind of each home: 1,000,000 windows are 20,000 homes, as in the part `spark`
AT = datetime(2026, 2, 10, tzinfo=UTC)
RUNS = {"that open windows": 0, "that add to windows": 1}
_MARK = "UPDATE event_hub_checkpoint SET commit_number = commit_number + 1"
_CHECKPOINT = (
    "INSERT INTO event_hub_checkpoint"
    " (stream_id, partition_id, sequence_number, offset_token, enqueued_at, commit_number, commit_id, updated_at,"
    " first_sequence_number, commits, written, filtered, dead_lettered, held, absent, letters)"
    " VALUES (1, '0', 1, '0', 'at', 0, 'id', 'at', 0, 0, 0, 0, 0, 0, 0, 0)"
)
_STREAM = (
    "INSERT INTO event_stream (stream_id, event_hub, consumer_group, incarnation, anchored_at)"
    " VALUES (1, 'bench/telemetry', 'hubledger', 1, 'at')"
)
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """The time that something took: on the clock, which a loaded machine makes longer, and of this process's CPU."""

    seconds: float
    of_cpu: float


def _taken(act: Callable[[], object]) -> Taken:
    started, cpu = perf_counter(), process_time()
    act()
    return Taken(perf_counter() - started, process_time() - cpu)


def measure() -> Iterator[Figure]:
    """Measure a run whose windows are new, and one whose windows exist."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        yield from _measured(Path(folder).resolve() / "store.db", find_aggregate("home_activity"))


def _measured(path: Path, of: Aggregate) -> Iterator[Figure]:
    migrate_sqlite(path, ROOMS)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        for statement in (
            _STREAM,
            _CHECKPOINT,
            tables_text(of, "sqlite").partition("\n\n")[0].replace(of.name, "bare"),
        ):
            connection.execute(statement)
        rows = sorted(_rows(of))
        facts = [_facts(of, number, list(each)) for number, each in groupby(rows, key=lambda row: row[0])]
        for what, at in RUNS.items():
            _stage(connection, of, f"s{at}", rows, facts)
            bare = _bare(connection, of, f"s{at}")
            total, longest = _committed(path, connection, of, f"s{at}")
            rate, note = len(rows) / total.seconds, f"{len(rows) / bare.seconds:,.0f}/s by the bare upsert"
            yield Figure(f"aggregation, windows committed a second, {what}", rate, "/s", ">= 100000", rate >= 1e5, note)
            ratio, note = bare.seconds / total.seconds, f"{bare.of_cpu / total.of_cpu:.2f} x by the time of the CPU"
            yield Figure(f"aggregation, commit against a bare upsert, {what}", ratio, "x", ">= 0.6", ratio >= 0.6, note)
            yield Figure(f"aggregation, longest wait to write, {what}", longest, "s", "<= 0.25", longest <= 0.25, "")


def _rows(of: Aggregate) -> Iterator[Row]:
    """Return staged windows: slice, home, window, kind, whole or not, and the measures."""
    for number in range(WINDOWS // (len(KINDS) * QUARTERS)):
        home = f"home-{number:06}"
        part = crc32(home.encode()) % SLICES
        for quarter in range(QUARTERS):
            at = (AT + quarter * of.window).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            for kind in KINDS:
                yield part, home, at, kind, 0, 3, 1, 1_200, 300, 500, at, at


def _facts(of: Aggregate, number: int, rows: Sequence[Row]) -> Row:
    return number, len(rows), 0, sum(map(_row_hash, rows))


def _row_hash(row: Row) -> int:
    _, home, at, kind, *others = row
    text = "|".join(map(str, (home, kind, others[0], at, *others[1:])))
    return crc32(text.encode())


def _stage(
    connection: sqlite3.Connection, of: Aggregate, staging: str, rows: Sequence[Row], facts: Sequence[Row]
) -> None:
    columns = ", ".join(("staging_id", "run_id", "slice", *of.key, "is_whole", *of.values))
    given = ", ".join("?" * (3 + len(of.columns) + 1))
    connection.execute("BEGIN")
    connection.executemany(
        f"INSERT INTO {of.staged} ({columns}) VALUES ({given})", ((staging, "r", *row) for row in rows)
    )
    connection.executemany(
        "INSERT INTO staged_slice (staging_id, run_id, level, slice, windows, whole_windows, rows_hash)"
        " VALUES (?, 'r', ?, ?, ?, ?, ?)",
        ((staging, of.name, *one) for one in facts),
    )
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _bare(connection: sqlite3.Connection, of: Aggregate, staging: str) -> Taken:
    """Return the time of one transaction that adds up the staged windows, in the order in which they stand."""
    names = ", ".join(of.columns)
    added = ", ".join(f"{name} = {name} + excluded.{name}" for name in of.values[:3])
    extremes = ", ".join(
        f"{name} = {function}({name}, excluded.{name})"
        for name, function in zip(of.values[3:], ("min", "max", "min", "max"), strict=True)
    )
    upsert = (
        f"INSERT INTO bare ({names}, run_number, slice) SELECT {names}, 1, slice FROM {of.staged} WHERE staging_id = ?"
        f" ON CONFLICT ({', '.join(of.key)}) DO UPDATE SET {added}, {extremes}"
    )

    def run() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(upsert, [staging])
        connection.execute("COMMIT")

    taken = _taken(run)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return taken


def _committed(path: Path, connection: sqlite3.Connection, of: Aggregate, staging: str) -> tuple[Taken, float]:
    """Return the time of the whole commit, and of the longest wait of another process that wants to write.

    The other process also waits for the deletion of the staged rows, which follows.
    """
    connection.execute(_MARK)
    store, now = Aggregations(SqliteDatabase(path)), datetime.now(UTC)
    run = planned_run(of.name, store.read_standing(of.name), "local", now)
    if run is None or not store.open_run(run):
        raise RuntimeError("nothing to aggregate")
    connection.execute(
        "INSERT INTO staged_result (staging_id, run_id, attempt, windows, levels, rows_read, is_snapshot, staged_at)"
        " SELECT ?, ?, 1, COUNT(*), json_set(?, '$.' || ?, COUNT(*)), 0, 0, '2026-02-10T00:00:00.000000Z'"
        f" FROM {of.staged} WHERE staging_id = ?",
        (staging, run.run_id, json.dumps({one.name: 0 for one in of.levels}), of.name, staging),
    )
    staged = store.read_staged(run.run_id)
    if staged is None:
        raise RuntimeError("nothing is staged")
    with second_writer(path) as wait:
        said: list[str] = []
        until = now + timedelta(minutes=9)

        def committed() -> str:
            return store.find_overflow(run, staged) or commit_run(store, run, staged, lambda: datetime.now(UTC), until)

        taken = _taken(lambda: said.append(committed()))
        store.clear_staging()
    store.close()
    if said != ["committed"]:
        raise RuntimeError(*said)
    return taken, wait.longest
