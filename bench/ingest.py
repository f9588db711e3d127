"""`ingest_batch` into SQLite against a bare executemany of the same rows, and our own Python per event."""

import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

from bench.counting import CountingDatabase, TakesAll
from bench.figures import Figure, paired
from bench.samples import ROOMS, SIZE, batch, decoded, reading
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import Event
from core.model.ports import Clock
from core.model.rows import LINEAGE, References, Row
from core.model.transforms import Transform
from core.settle.attempts import Attempts, StoredJournal
from core.settle.partition_store import Partitions
from core.settle.watchdog import Watchdog
from core.store.columns import compiled_values, instant_texts
from core.store.memory import Memory
from core.store.script import of_rows
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite, open_file
from core.store.sqlite.statements import rows_text
from examples.home_security.transform import SensorReading
from handlers.event_batches import to_batch

ROUNDS = 120
STAMPS = Clock(lambda: datetime.now(UTC), uuid.uuid4)


def here(transform: Transform, look_again: object) -> AbstractContextManager[Transform]:
    """Give the transform itself: no event of a bench is a suspect."""
    return nullcontext(transform)


def measure() -> Iterator[Figure]:
    """Measure throughput against bare SQL, calls per batch, and our own Python."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        yield from _against_bare_sql(Path(folder))
    yield _own_python()


def _against_bare_sql(folder: Path) -> Iterator[Figure]:
    migrate_sqlite(folder / "ours.db", ROOMS)
    migrate_sqlite(folder / "bare.db", ROOMS)
    counting = CountingDatabase(SqliteDatabase(folder / "ours.db"))
    store = Partitions(counting, Memory(timedelta(seconds=60)))
    batches, watchdog = [batch(number) for number in range(ROUNDS + 1)], Watchdog(timedelta(seconds=240))
    transform = Transform("bench", ready_rows(), watch=watchdog.over)
    journal = StoredJournal(Attempts(counting), STAMPS, here)
    means = Ingestion(store, transform, STAMPS, journal=journal)
    ingest_batch(batches[0], means)  # it opens the stream, anchors the partition and marks its attempt
    opening = counting.calls
    ours, bare = paired(lambda number: ingest_batch(batches[number + 1], means), _bare(folder / "bare.db"), ROUNDS)
    watchdog.close()
    calls = (counting.calls - opening) / ROUNDS
    counting.close()
    share, rate = 100 * bare / ours, f"{SIZE / ours:,.0f} rows/s against {SIZE / bare:,.0f}"
    yield Figure("ingest_batch of 500 into SQLite, share of bare executemany", share, "%", ">= 80", share >= 80, rate)
    yield Figure("calls to the store per batch, steady state", calls, "calls", "1", calls == 1)


def _bare(path: Path) -> Callable[[int], object]:
    connection = open_file(path, busy_timeout=5.0)
    text = rows_text(of_rows("append", SensorReading))
    values_of = compiled_values(SensorReading, LINEAGE, instant_texts)
    placed = [[(number * SIZE + n, 0, reading(n)) for n in range(SIZE)] for number in range(ROUNDS)]
    values = [values_of(rows, 1, "0", number + 1) for number, rows in enumerate(placed)]

    def write(number: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(text, values[number])
        connection.execute("COMMIT")

    return write


def ready_rows() -> Callable[[Event, References], Iterable[Row]]:
    """Return a transform whose rows are made already."""
    ready = [(reading(number),) for number in range(SIZE)]
    return lambda event, references: ready[event.sequence_number % SIZE]


def _own_python() -> Figure:
    transform = Transform("bench", ready_rows())
    store = Partitions(TakesAll(), Memory(timedelta(seconds=60)))
    times = []
    for number in range(ROUNDS):
        events = decoded(number)
        events[0].metadata  # noqa: B018 - azure.functions parses and stores it on first access: not our Python
        started = perf_counter()
        ingest_batch(to_batch(events, "bench"), Ingestion(store, transform, STAMPS))
        times.append(perf_counter() - started)
    each = sorted(times)[ROUNDS // 2] / SIZE * 1e6
    return Figure("our Python per event, without transform and driver", each, "us", "<= 3", each <= 3)
