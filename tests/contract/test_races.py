"""Several owners on one partition: whoever wins, each event is committed exactly once."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.errors import CheckpointConflict
from core.events import SequenceNumber
from core.store import AppStore
from core.store.patient import PatientStore
from core.transforms.home_security import HomeAlert, SensorReading
from tests.contract.owner_process import handed_over
from tests.contract.separate import output, start
from tests.fakes.builders import PATIENCE, batch, commit, events, partition, stamps
from tests.fakes.kept import Engine, PersistentEngine

BATCHES, SIZE = 30, 10


def assert_each_event_once(engine: Engine, length: int, filtered: int = 0) -> None:
    numbers = list(range(length))
    assert [kept.sequence_number for kept in engine.rows(SensorReading)] == numbers
    assert [kept.sequence_number for kept in engine.rows(HomeAlert)] == numbers
    accounted = [number for kept in engine.ledger() for number in range(kept.first, kept.last + 1)]
    assert accounted == list(range(length + filtered))
    assert [kept.commit_number for kept in engine.ledger()] == list(range(1, len(engine.ledger()) + 1))


def ingest_all(store: AppStore, seed: int) -> None:
    own, patient = stamps(seed), PatientStore(store, PATIENCE)
    for number in range(BATCHES):
        handed_over(batch(events(number * SIZE, number * SIZE + SIZE - 1, "double home-1")), patient, own)


def test_threads_that_race_the_same_batches_commit_each_once(
    make_store: Callable[[], AppStore], engine: Engine
) -> None:
    stores = [make_store(), make_store()]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(ingest_all, stores[seed % 2], seed) for seed in range(4)]:
            done.result(timeout=120)
    assert_each_event_once(engine, BATCHES * SIZE)
    assert [books.balanced for books in stores[0].read_ledgers()] == [True]


def test_threads_that_open_one_stream_agree_on_it(make_store: Callable[[], AppStore]) -> None:
    stores = [make_store() for _ in range(4)]
    place = batch(events(0, 0)).partition
    with ThreadPoolExecutor(4) as pool:
        assert len({state.stream_id for state in pool.map(lambda store: store.read_partition(place), stores)}) == 1


def test_processes_that_race_the_same_batches_commit_each_once(persistent: PersistentEngine) -> None:
    owners = [start("owner_process", persistent, seed, BATCHES, SIZE) for seed in range(3)]
    for each in owners:
        output(each)
    assert_each_event_once(persistent, BATCHES * SIZE)


def commit_after_all(store: AppStore) -> SequenceNumber:
    """Commit one more event, behind whatever the killed process had on its way; return its number.

    Only then is the killed process sure to commit nothing more: its checkpoint has moved.
    """
    while True:
        state = store.read_partition(partition())
        assert state.checkpoint is not None
        following = SequenceNumber(state.checkpoint.sequence_number + 1)
        try:
            store.commit_batch(commit(state, following, following))
            return following
        except CheckpointConflict:
            continue


@pytest.mark.parametrize("commits", [1, 7, 40])
def test_a_process_killed_in_the_middle_leaves_balanced_books(persistent: PersistentEngine, commits: int) -> None:
    killed = start("owner_process", persistent, 1, 10_000, 200)
    assert killed.stdout is not None
    for _ in range(commits):
        killed.stdout.readline()
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=60)

    store = PatientStore(persistent.open(), PATIENCE)
    last = commit_after_all(store)
    (books,) = store.read_ledgers()
    store.close()
    assert books.balanced
    assert books.commits > commits
    assert_each_event_once(persistent, last, filtered=1)
