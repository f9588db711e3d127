"""Several owners on one partition: whoever wins, each event is committed exactly once."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from core.errors import CheckpointConflict
from core.gaps import Healing
from core.ingest import ingest_batch
from core.store import Store
from core.store.remembered import RememberingStore
from core.transforms.home_security import HomeAlert, SensorReading
from tests.fakes.builders import batch, events, stamps
from tests.fakes.engines import SqliteEngine
from tests.fakes.kept import Engine
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.one_pass import assert_equals_one_pass
from tests.fakes.plain_transform import PLAIN

ROOT = Path(__file__).parents[2]
BATCHES, SIZE = 30, 10


def assert_each_event_once(engine: Engine, length: int) -> None:
    numbers = list(range(length))
    assert [kept.sequence_number for kept in engine.rows(SensorReading)] == numbers
    assert [kept.sequence_number for kept in engine.rows(HomeAlert)] == numbers
    accounted = [number for kept in engine.ledger() for number in range(kept.first, kept.last + 1)]
    assert accounted == numbers
    assert [kept.commit_number for kept in engine.ledger()] == list(range(1, len(engine.ledger()) + 1))


def ingest_all(store: Store, seed: int) -> None:
    own = stamps(seed)
    for number in range(BATCHES):
        given = batch(events(number * SIZE, number * SIZE + SIZE - 1, "double home-1"))
        while True:
            try:
                ingest_batch(given, store, PLAIN, own)
                break
            except CheckpointConflict:  # many in a row: the host hands the batch over again
                continue


def test_threads_that_race_the_same_batches_commit_each_once(make_store: Callable[[], Store], engine: Engine) -> None:
    stores = [make_store(), make_store()]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(ingest_all, stores[seed % 2], seed) for seed in range(4)]:
            done.result(timeout=60)
    assert_each_event_once(engine, BATCHES * SIZE)
    assert [books.balanced for books in stores[0].read_ledgers()] == [True]


def test_threads_that_heal_one_gap_commit_each_event_once(make_store: Callable[[], Store], engine: Engine) -> None:
    log = events(0, 2_999, "double home-1")
    hub = MemoryHub({"0": log})
    hub.lose("0", 1_000, 1_001, 2_500)

    def heal(store: Store, seed: int) -> None:
        while True:
            try:
                ingest_batch(batch(log[-10:]), store, PLAIN, stamps(seed), Healing(hub))
                break
            except CheckpointConflict:
                continue

    stores = [RememberingStore(make_store(), timedelta(hours=1)) for _ in range(3)]
    ingest_batch(batch(log[:5]), stores[0], PLAIN, stamps(9), Healing(hub))
    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(heal, stores[seed], seed) for seed in range(3)]:
            done.result(timeout=60)
    held = [each for each in log if each.sequence_number not in (1_000, 1_001, 2_500)]
    assert_equals_one_pass(engine, {"0": held}, absent={"0": {1_000, 1_001, 2_500}})
    assert [books.balanced for books in stores[0].read_ledgers()] == [True]


def test_threads_that_open_one_stream_agree_on_it(make_store: Callable[[], Store]) -> None:
    stores = [make_store() for _ in range(4)]
    place = batch(events(0, 0)).partition
    with ThreadPoolExecutor(4) as pool:
        assert len({state.stream_id for state in pool.map(lambda store: store.read_partition(place), stores)}) == 1


def owner(sqlite: SqliteEngine, seed: int, batches: int, size: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.contract.owner_process", str(sqlite.path), *map(str, (seed, batches, size))]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_that_race_the_same_batches_commit_each_once(sqlite: SqliteEngine) -> None:
    owners = [owner(sqlite, seed, BATCHES, SIZE) for seed in range(2)]
    for each in owners:
        _, fault = each.communicate(timeout=60)
        assert each.returncode == 0, fault
    assert_each_event_once(sqlite, BATCHES * SIZE)


@pytest.mark.parametrize("commits", [1, 7, 40])
def test_a_process_killed_in_the_middle_leaves_balanced_books(sqlite: SqliteEngine, commits: int) -> None:
    killed = owner(sqlite, seed=1, batches=10_000, size=200)
    assert killed.stdout is not None
    for _ in range(commits):
        killed.stdout.readline()
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=60)

    store = sqlite.open()
    (books,) = store.read_ledgers()
    store.close()
    assert books.balanced
    assert books.commits >= commits
    assert_each_event_once(sqlite, books.checkpoint + 1)
