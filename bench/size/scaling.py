"""The growth of a batch's cost with the partitions, and with the rows that stand."""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from statistics import fmean
from time import perf_counter, thread_time

from bench.figures import Cell, Figure, Result, Table
from bench.large_store import PARTITIONS
from bench.samples import ROOMS, SIZE
from bench.size.batches import partition, ready_batch, ready_means
from bench.size.standing import fill_rows
from core.ingest.ingest import Ingestion, ingest_batch
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite

COUNTS = (1, 4, 16, 64)  # of partitions
ROWS = tuple(10**power for power in range(5, 8) if 10**power <= int(os.environ.get("BENCH_ROWS", "1000000")))
BATCHES = int(os.environ.get("BENCH_BATCHES", "256"))  # of each line, in each table
STRAIGHT = 1.15


@dataclass(slots=True)
class Line:
    """Batches into one store, one partition after the other, and the time of each."""

    means: Ingestion
    database: SqliteDatabase
    partitions: int
    first: int = 0  # the next number of every partition at the start
    cpu: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)
    turns: Iterator[int] = field(default_factory=count)

    def warm(self) -> None:
        """Ingest one batch into each partition: its first commit is a different one."""
        for _ in range(self.partitions):
            self.ingest()
        self.cpu.clear()
        self.clock.clear()

    def ingest(self) -> None:
        """Ingest the next batch, and note its time."""
        turn = next(self.turns)
        batch = ready_batch(partition(turn % self.partitions), turn // self.partitions, self.first)
        cpu, clock = thread_time(), perf_counter()
        ingest_batch(batch, self.means)
        self.cpu.append(thread_time() - cpu)
        self.clock.append(perf_counter() - clock)


def measure() -> Iterator[Result]:
    """Measure batches of 500 readings into SQLite."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        yield from with_partitions(Path(folder), COUNTS, BATCHES)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        yield from with_rows(Path(folder), ROWS, BATCHES)


def with_partitions(folder: Path, counts: Sequence[int], batches: int) -> Iterator[Result]:
    """Measure the cost of a batch by the number of partitions that take turns."""
    lines = [_line(folder / f"{number}.db", number) for number in counts]
    _in_turn(lines, batches)
    yield _table("Cost per batch by partitions", "partitions", counts, lines)
    yield _straight(f"scaling, CPU per batch with {counts[-1]} partitions against {counts[0]}", lines)


def with_rows(folder: Path, rows: Sequence[int], batches: int) -> Iterator[Result]:
    """Measure the cost of a batch by the number of rows that stand in the table."""
    lines = []
    for number in rows:
        path = folder / f"{number}.db"
        print(f"  filling a store with {number:,} rows", file=sys.stderr, flush=True)
        lines.append(_line(path, PARTITIONS, fill_rows(path, number)))
    _in_turn(lines, batches)
    yield _table("Cost per batch by rows that stand", "rows", rows, lines)
    for number, line in zip(rows[1:], lines[1:], strict=True):
        yield _straight(f"scaling, CPU per batch with {number:,} rows against {rows[0]:,}", [lines[0], line])


def _line(path: Path, partitions: int, first: int = 0) -> Line:
    migrate_sqlite(path, ROOMS)
    means, database = ready_means(path)
    line = Line(means, database, partitions, first)
    line.warm()
    return line


def _in_turn(lines: list[Line], batches: int) -> None:
    chance = Random(1)
    for _ in range(batches):
        for line in chance.sample(lines, len(lines)):
            line.ingest()
    for line in lines:
        line.database.close()


def _table(name: str, first: str, values: Sequence[int], lines: list[Line]) -> Table:
    columns = (first, "CPU per batch, ms", "of the first, x", "clock per batch, ms", "of the first, x", "events/s")
    return Table(name, columns, tuple(_row(value, line, lines[0]) for value, line in zip(values, lines, strict=True)))


def _row(value: int, line: Line, first: Line) -> tuple[Cell, ...]:
    cpu, clock = fmean(line.cpu), fmean(line.clock)
    shares = (cpu / fmean(first.cpu), clock / fmean(first.clock))
    return (value, 1e3 * cpu, shares[0], 1e3 * clock, shares[1], SIZE / clock)


def _straight(name: str, lines: list[Line]) -> Figure:
    ratio = fmean(lines[-1].cpu) / fmean(lines[0].cpu)
    return Figure(name, ratio, "x", f"<= {STRAIGHT}", ratio <= STRAIGHT)
