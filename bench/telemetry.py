"""Telemetry: the share of an ingest that it takes, off and on, and with links to 32 producers."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time

from msgspec import structs

from bench.figures import Figure
from bench.ingest import ROUNDS, STAMPS, ready_rows
from bench.samples import ROOMS, SIZE, batch
from core.ingest.ingest import Ingestion, ingest_batch
from core.measured import Recorder, measured, record_with
from core.model.events import EventBatch
from core.model.transforms import Transform
from core.settle.partition_store import Partitions
from core.store.memory import Memory
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite

CALLS = 100_000


def measure() -> Iterator[Figure]:
    """Measure the call around a use case while telemetry is off, then the span of a batch."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        more, whole = _pairs(Path(folder), _recorder())
    off = _call()
    share = 100 * off / whole
    yield Figure(
        "telemetry off, share of an ingest", share, "%", "<= 0.01", share <= 0.01, f"{off * 1e9:.0f} ns a batch"
    )
    share = 100 * more / whole
    note = f"{more * 1e6:,.0f} us a batch of {SIZE}"
    yield Figure("telemetry on, with links, share of an ingest", share, "%", "<= 10", share <= 10, note)


def _recorder() -> Recorder:
    """Return the recorder with the SDK's own providers, whose spans and metrics nobody reads."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider

    from core.remote.telemetry.opening import signals_of

    return signals_of(TracerProvider(), MeterProvider([InMemoryMetricReader()]))


def _call() -> float:
    """Return the seconds that a measured function needs without a recorder, beyond a plain one."""

    def plain(batch: int, means: int) -> None:
        pass

    taken: list[float] = []
    for function in (plain, measured("nothing")(plain)):
        began = perf_counter()
        for _ in range(CALLS):
            function(1, 2)
        taken.append((perf_counter() - began) / CALLS)
    return taken[1] - taken[0]


def _pairs(folder: Path, recorder: Recorder) -> tuple[float, float]:
    """Ingest batches with and without telemetry in turn. Return the processor's seconds more, and all seconds."""
    pair: list[tuple[Recorder | None, Ingestion]] = []
    for name, own in (("with", recorder), ("without", None)):
        migrate_sqlite(folder / f"{name}.db", ROOMS)
        pair.append((own, _means(folder / f"{name}.db")))
    taken, whole = ([0.0] * ROUNDS, [0.0] * ROUNDS), [0.0] * ROUNDS
    for number in range(ROUNDS):
        given = _traced(batch(number))
        for place in (0, 1) if number % 2 else (1, 0):
            own, means = pair[place]
            record_with(own)
            started, began = thread_time(), perf_counter()
            ingest_batch(given, means)
            taken[place][number] = thread_time() - started
            whole[number] = perf_counter() - began
    record_with(None)
    warm = ROUNDS // 10
    return median(taken[0][warm:]) - median(taken[1][warm:]), median(whole[warm:])


def _means(path: Path) -> Ingestion:
    store = Partitions(SqliteDatabase(path), Memory(timedelta(seconds=600)))
    return Ingestion(store, Transform("bench", ready_rows()), STAMPS)


def _traced(given: EventBatch) -> EventBatch:
    """Return the batch of 50 producers, each with a context of its own."""
    contexts = [{"Diagnostic-Id": f"00-{one + 1:032x}-{one + 1:016x}-01"} for one in range(50)]
    events = (structs.replace(event, properties=contexts[place % 50]) for place, event in enumerate(given.events))
    return replace(given, events=tuple(events))
