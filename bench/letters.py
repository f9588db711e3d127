"""A hundred thousand letters that are due at once, settled into SQLite by one keeper, and the cost of an idle round."""

import os
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from time import perf_counter

from bench.counting import CountingDatabase
from bench.figures import Figure
from bench.samples import ROOMS, START
from bench.usage import READABLE, resident_of
from core.letters.retry import Keeper, claim_due, next_due_at, retry_chunk
from core.letters.store import Letters
from core.model.commits import BatchCommit, DeadLetter, Settled
from core.model.events import Event, Partition, PartitionId, SequenceNumber, Stream
from core.model.ports import Clock
from core.model.rows import PlacedRow
from core.model.transforms import Transform
from core.settle.partition_store import Partitions
from core.store.memory import Memory
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite
from examples.home_security.transform import Home, references, transform

LETTERS = int(os.environ.get("BENCH_LETTERS", "100000"))
PARTITIONS, BATCH, HOMES = 16, 500, 1_000
EARLY = 0.2  # of the letters: the point at which the memory has reached its steady size
STREAM = Stream("bench/telemetry", "hubledger")
NOW = START + timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Round:
    """The state after one claim: seconds so far, letters settled, resident bytes."""

    seconds: float
    settled: int
    resident: int


def measure() -> Iterator[Figure]:
    """Measure letters per second, memory over the run, and the calls of an idle round."""
    if not READABLE:
        print("letters: skipped, this part reads memory from /proc")
        return
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "letters.db"
        migrate_sqlite(path, ROOMS)
        counting = CountingDatabase(SqliteDatabase(path))
        partitions = Partitions(counting, Memory(timedelta(seconds=60)))
        home_security = Transform("bench", transform, references)
        keeper = Keeper(
            STREAM,
            Letters(counting, partitions),
            home_security,
            lambda place, number: None,
            Clock(lambda: NOW, uuid.uuid4),
        )
        _fill(partitions)
        rounds = list(_rounds(keeper))
        yield from _figures(rounds)
        counting.calls = 0
        next_due_at(keeper)
        yield Figure("calls to the store per idle round", counting.calls, "calls", "1", counting.calls == 1)
        counting.close()


def _rounds(keeper: Keeper) -> Iterator[Round]:
    started, settled = perf_counter(), 0
    while (due := next_due_at(keeper)) is not None and due <= NOW:
        for chunk in claim_due(keeper):
            settled += retry_chunk(chunk, keeper, "bench").resolved
        yield Round(perf_counter() - started, settled, resident_of(os.getpid()))


def _figures(rounds: list[Round]) -> Iterator[Figure]:
    last = rounds[-1]
    if last.settled != LETTERS:
        raise RuntimeError(f"{last.settled} of {LETTERS} letters were settled")
    rate = last.settled / last.seconds
    yield Figure(f"{LETTERS:,} letters due at once, settled into SQLite", rate, "letters/s", ">= 5000", rate >= 5_000)
    early = next(one for one in rounds if one.settled >= EARLY * LETTERS)
    growth = last.resident / early.resident
    size = f"{early.resident >> 20} MB, then {last.resident >> 20} MB"
    name = f"memory after all of them, against after {early.settled:,}"
    yield Figure(name, growth, "x", "<= 1.15", growth <= 1.15, size)


def _fill(store: Partitions) -> None:
    """Store readings as letters that waited for their homes, which are registered now."""
    homes = [Home(_home(number), "Europe/Berlin", number % 2 == 0) for number in range(HOMES)]
    placed: dict[type, list[PlacedRow]] = {Home: [(number, 0, home) for number, home in enumerate(homes)]}
    _commit(store, STREAM.partition(PartitionId("0")), HOMES, Settled(placed, [], HOMES, 0))
    numbers = iter(range(LETTERS))
    turn = 0
    while some := list(islice(numbers, BATCH)):
        place = STREAM.partition(PartitionId(str(1 + turn % PARTITIONS)))
        state = store.read_partition(place)
        first = 0 if state.checkpoint is None else state.checkpoint.sequence_number + 1
        letters = [_letter(first + at, number) for at, number in enumerate(some)]
        _commit(store, place, len(letters), Settled({}, letters, 0, 0))
        turn += 1


def _commit(store: Partitions, place: Partition, events: int, settled: Settled) -> None:
    state = store.read_partition(place)
    first = 0 if state.checkpoint is None else state.checkpoint.sequence_number + 1
    last = _event(first + events - 1, 0)
    commit = BatchCommit(state, uuid.uuid4(), SequenceNumber(first), last, settled, "bench", "bench", datetime.now(UTC))
    store.commit_batch(commit)


def _letter(number: int, home: int) -> DeadLetter:
    error = ("core.errors.MissingReference", f"home {_home(home % HOMES)} is not registered", "0123456789abcdef")
    return DeadLetter(_event(number, home), "reference", *error, "waiting", START)


def _event(number: int, home: int) -> Event:
    body = (
        b'{"home_id":"%s","sensor_id":"S1","kind":"motion","state":"active","observed_at":"2026-01-01T12:00:00.5Z"}'
        % _home(home % HOMES).encode()
    )
    return Event(SequenceNumber(number), str(number * 200), START, _home(home % HOMES), {}, body)


def _home(number: int) -> str:
    return f"H{number:06}"
