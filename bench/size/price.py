"""The price of each safety feature: ingest with all of them, and without one of them, of the same batches in turn."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median, quantiles
from time import perf_counter, thread_time

from bench.figures import Cell, Figure, Result, Table
from bench.ingest import STAMPS, here
from bench.samples import ROOMS, SIZE
from bench.size.batches import EVERY, story_batches
from bench.size.features import FEATURES, Feature, Without
from core.ingest.ingest import Means, ingest_batch
from core.model.events import EventBatch
from core.settle.attempts import Attempts, Flight, StoredJournal
from core.settle.isolate import NOT_JOURNALED
from core.settle.partition_store import Partitions
from core.store.memory import Memory
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite
from core.transforms.loading import load_transform
from local.feed.businesses import HOMES

BATCHES = int(os.environ.get("BENCH_BATCHES", "400"))
WARM = 10  # batches that are not measured


@dataclass(slots=True)
class Variant:
    """A store that ingests without some features, and its time per batch: of the processor, and of the clock."""

    path: Path
    without: tuple[Feature, ...]
    means: Means
    database: SqliteDatabase
    cpu: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)

    def ingest(self, batch: EventBatch) -> None:
        """Ingest a batch, and note its time."""
        cpu, clock = thread_time(), perf_counter()
        ingest_batch(batch, self.means)
        self.cpu.append(thread_time() - cpu)
        self.clock.append(perf_counter() - clock)

    def bytes_per_event(self) -> float:
        """Return the size of its file per event, after a copy of the log into it."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return self.path.stat().st_size / (len(self.cpu) * SIZE)


def measure() -> Iterator[Result]:
    """Measure what each feature takes of an ingest of the story's events into SQLite, and all of them together."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        variants = ingested(Path(folder), BATCHES)
        whole, *_, bare = variants
        yield _table(variants)
        share, spread = share_of(whole.cpu, bare.cpu)
        note = f"± {spread:.1f}; {BATCHES} batches of {SIZE} in turn"
        yield Figure("price, all safety features, share of the CPU of an ingest", share, "%", "", None, note)
        each = 1e6 * (median(whole.cpu[WARM:]) - median(bare.cpu[WARM:])) / SIZE
        yield Figure("price, all safety features, CPU per event", each, "us", "", None)
        size = whole.bytes_per_event() - bare.bytes_per_event()
        yield Figure("price, all safety features, bytes per event", size, "B", "", None)


def ingested(folder: Path, batches: int) -> list[Variant]:
    """Ingest batches with all features, without each one, and without any, in a new order for each batch."""
    chosen = [(), *((feature,) for feature in FEATURES), FEATURES]
    variants = [_variant(folder / f"{number}.db", without) for number, without in enumerate(chosen)]
    chance = Random(1)
    for batch in story_batches(batches):
        for variant in chance.sample(variants, len(variants)):
            variant.ingest(batch)
    for variant in variants:
        variant.database.close()
    return variants


def share_of(whole: Sequence[float], less: Sequence[float]) -> tuple[float, float]:
    """Return by how many percent the whole costs more in the middle batch, and how certain that is.

    The spread is half of the 95 % interval of a median: 1.57 times the middle half, by the root of the number.
    """
    shares = [100 * (one - other) / one for one, other in zip(whole[WARM:], less[WARM:], strict=True)]
    low, middle, high = quantiles(shares, n=4)
    return middle, 1.57 * (high - low) / len(shares) ** 0.5


def _variant(path: Path, without: tuple[Feature, ...]) -> Variant:
    migrate_sqlite(path, ROOMS)
    own = SqliteDatabase(path)
    database = Without(own, tuple(feature.change for feature in without)) if without else own
    is_journaled = not any(feature.is_journal for feature in without)
    flight = Flight(path.with_suffix(".flight"))
    journal = StoredJournal(Attempts(database), STAMPS, flight, here, here) if is_journaled else NOT_JOURNALED
    store = Partitions(database, Memory(EVERY))
    return Variant(path, without, Means(store, load_transform(HOMES.transform, 100), STAMPS, journal=journal), own)


def _table(variants: list[Variant]) -> Table:
    whole = variants[0]
    columns = (
        "without",
        "CPU, % of an ingest",
        "±",
        "clock, % of an ingest",
        "±",
        "CPU, µs per event",
        "bytes per event",
    )
    return Table("The price of each safety feature", columns, tuple(_row(whole, variant) for variant in variants))


def _row(whole: Variant, variant: Variant) -> tuple[Cell, ...]:
    each = 1e6 * median(variant.cpu[WARM:]) / SIZE
    if variant is whole:
        return ("nothing", None, None, None, None, each, variant.bytes_per_event())
    name = variant.without[0].name if len(variant.without) == 1 else "any of them"
    shares = (*share_of(whole.cpu, variant.cpu), *share_of(whole.clock, variant.clock))
    return (name, *shares, each, variant.bytes_per_event())
