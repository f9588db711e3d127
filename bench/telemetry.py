"""Telemetry: the share of an ingest that it takes, off and on, and with links to 32 producers."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time

from msgspec import structs

from bench.figures import Figure
from bench.ingest import ROUNDS, STAMPS, ready_rows
from bench.samples import ROOMS, SIZE, batch
from core.ingest.ingest import Means, ingest_batch
from core.model.events import EventBatch
from core.model.transform import Transform
from core.remote.telemetry.work import PLAIN, Work
from core.settle.store.partitions import Partitions
from core.store.memory import Memory
from core.store.observed import observed
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite

CALLS = 100_000


def measure() -> Iterator[Figure]:
    """Measure the attribute that a batch reads while telemetry is off, then the spans and metrics of a batch."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        more, whole = _pairs(Path(folder), _observed())
    off = _lookup()
    share = 100 * off / whole
    yield Figure(
        "telemetry off, share of an ingest", share, "%", "<= 0.01", share <= 0.01, f"{off * 1e9:.0f} ns a batch"
    )
    share = 100 * more / whole
    note = f"{more * 1e6:,.0f} us a batch of {SIZE}"
    yield Figure("telemetry on, with links, share of an ingest", share, "%", "<= 10", share <= 10, note)


def _observed() -> Work:
    """Return the work with the SDK's own providers, whose spans and metrics nobody reads."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider

    from core.remote.telemetry.opening import work_of

    return work_of(TracerProvider(), MeterProvider([InMemoryMetricReader()]))


def _lookup() -> float:
    """Return the seconds that a handler needs to find the use case behind the attribute, beyond a plain name."""
    assert PLAIN.ingest is ingest_batch
    own, began = PLAIN, perf_counter()
    for _ in range(CALLS):
        own.ingest  # noqa: B018 - the attribute is what is measured
    return (perf_counter() - began) / CALLS


def _pairs(folder: Path, work: Work) -> tuple[float, float]:
    """Ingest batches with and without telemetry in turn; return the processor's seconds more, and all seconds."""
    ingests: list[Callable[[EventBatch], object]] = []
    for name, own in (("with", work), ("without", PLAIN)):
        migrate_sqlite(folder / f"{name}.db", ROOMS)
        means = _means(folder / f"{name}.db", own)
        ingests.append(lambda given, own=own, means=means: own.ingest(given, means))  # type: ignore[misc]
    taken, whole = ([0.0] * ROUNDS, [0.0] * ROUNDS), [0.0] * ROUNDS
    for number in range(ROUNDS):
        given = _traced(batch(number))
        for place in (0, 1) if number % 2 else (1, 0):
            started, began = thread_time(), perf_counter()
            ingests[place](given)
            taken[place][number] = thread_time() - started
            whole[number] = perf_counter() - began
    warm = ROUNDS // 10
    return median(taken[0][warm:]) - median(taken[1][warm:]), median(whole[warm:])


def _means(path: Path, work: Work) -> Means:
    database = SqliteDatabase(path)
    store = Partitions(observed(database, work.noting(f"sqlite:{path}")), Memory(timedelta(seconds=600)))
    return Means(store, Transform("bench", ready_rows()), STAMPS)


def _traced(given: EventBatch) -> EventBatch:
    """Return the batch of 50 producers, each with a context of its own."""
    contexts = [{"Diagnostic-Id": f"00-{one + 1:032x}-{one + 1:016x}-01"} for one in range(50)]
    events = (structs.replace(event, properties=contexts[place % 50]) for place, event in enumerate(given.events))
    return replace(given, events=tuple(events))
