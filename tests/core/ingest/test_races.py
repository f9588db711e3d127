import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import CheckpointConflict, InfrastructureFault
from core.ingest.gaps import GapReading
from core.model.events import Event, SequenceNumber
from core.store.database import write
from examples.home_security.transform import HomeAlert, SensorReading
from tests.core.ingest.conftest import World
from tests.fakes.builders import PATIENCE, FakeClock, batch, commit, event, events, partition, stamps
from tests.fakes.faulty_database import Fault
from tests.fakes.kept import Engine, PersistentEngine
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.one_pass import assert_equals_one_pass
from tests.fakes.separate import handed_over, output, start
from tests.fakes.store import Store
from tests.patience import allowed, ended

BATCHES, SIZE = 30, 10
BODIES = ["reading a", "double b", "quiet", "poison", "bug", "home a 0", "home a 1", "look a", "look b", "home b 1"]
BODIES += ["huge a"]  # no database takes this
COMMIT_FAULTS = [None, Fault.NOT_REACHED, Fault.UNANSWERED, Fault.LOST, Fault.RIVAL]
LOGS = st.lists(st.sampled_from(BODIES), min_size=1, max_size=25).map(
    lambda bodies: [event(number, body) for number, body in enumerate(bodies)]
)
DELIVERIES = st.lists(st.tuples(st.integers(0, 10), st.integers(1, 12), st.integers(0, 1)), min_size=1, max_size=20)


@pytest.mark.slow
@given(LOGS, DELIVERIES, st.lists(st.sampled_from(COMMIT_FAULTS), max_size=30))
@settings(max_examples=250)
def test_any_redelivery_with_any_fault_ends_as_one_pass_would(
    log: list[Event], deliveries: list[tuple[int, int, int]], faults: list[Fault | None]
) -> None:
    world = World(log)
    faulty = world.faulty(*faults)
    owners = [faulty.remembering(timedelta(days=1), FakeClock().monotonic) for _ in range(2)]
    for back, length, owner in [*deliveries, *[(0, len(log), 0)] * 40]:
        first = max(0, world.next_number - back) if world.ranges() else 0
        given = log[first : first + length]
        if not given:
            continue
        try:
            world.take(*given, store=owners[owner])
        except InfrastructureFault:
            continue  # the host hands it over again
    assert_equals_one_pass(world.store, {"0": log})


@pytest.mark.slow
@given(LOGS, st.sets(st.integers(0, 24)), st.sets(st.integers(0, 24)), st.integers(0, 20))
@settings(max_examples=300)
def test_whatever_a_batch_lacks_comes_from_the_hub_or_is_absent(
    log: list[Event], not_in_hand: set[int], lost: set[int], beginning: int
) -> None:
    in_hand = [each for each in log if each.sequence_number not in not_in_hand and each.sequence_number >= beginning]
    if not in_hand:
        return
    world = World(log)
    if beginning:
        world.deliver(0, beginning - 1)
    world.hub.lose("0", *(lost & set(range(len(log)))))
    report = world.take(*in_hand)
    numbers = {each.sequence_number for each in in_hand}
    last = in_hand[-1].sequence_number
    since = beginning or min({0} if 0 in numbers else {min(world.hub.held["0"], default=99), min(numbers)})
    absent = (set(range(since, last + 1)) & lost) - numbers
    wanted = [each for each in log[: last + 1] if each.sequence_number not in absent]
    wanted = [each for each in wanted if beginning or each.sequence_number >= since]
    assert_equals_one_pass(world.store, {"0": wanted}, absent={"0": absent})
    assert (report.absent, report.redelivered) == (len(absent), 0)
    assert report.healed == len([each for each in wanted if each.sequence_number >= since]) - len(in_hand)
    assert [books.balanced for books in world.store.read_ledgers()] == [True]
    assert not [gap for gap in world.gaps() if gap[2] == "open"]


def assert_each_event_once(engine: Engine, length: int, filtered: int = 0) -> None:
    numbers = list(range(length))
    assert [kept.sequence_number for kept in engine.rows(SensorReading)] == numbers
    assert [kept.sequence_number for kept in engine.rows(HomeAlert)] == numbers
    accounted = [number for kept in engine.ledger() for number in range(kept.first, kept.last + 1)]
    assert accounted == list(range(length + filtered))
    assert [kept.commit_number for kept in engine.ledger()] == list(range(1, len(engine.ledger()) + 1))


def test_threads_that_heal_one_gap_commit_each_event_once(make_store: Callable[[], Store], engine: Engine) -> None:
    log = events(0, 2_999, "double home-1")
    hub = MemoryHub({"0": log})
    hub.lose("0", 1_000, 1_001, 2_500)
    stores = [make_store().patient(PATIENCE).remembering(timedelta(hours=1)) for _ in range(3)]
    handed_over(batch(log[:5]), stores[0], stamps(9), GapReading(hub))
    with ThreadPoolExecutor(3) as pool:
        healed = [
            pool.submit(handed_over, batch(log[-10:]), store, stamps(seed), GapReading(hub))
            for seed, store in enumerate(stores)
        ]
        for done in healed:
            done.result(timeout=allowed(60))
    held = [each for each in log if each.sequence_number not in (1_000, 1_001, 2_500)]
    assert_equals_one_pass(engine, {"0": held}, absent={"0": {1_000, 1_001, 2_500}})
    assert [books.balanced for books in stores[0].read_ledgers()] == [True]


@pytest.mark.slow
def test_processes_that_race_the_same_batches_commit_each_once(persistent: PersistentEngine) -> None:
    owners = [start(persistent, seed, BATCHES, SIZE) for seed in range(3)]
    for each in owners:
        output(each)
    assert_each_event_once(persistent, BATCHES * SIZE)


def commit_after_all(store: Store) -> SequenceNumber:
    """Commit one more event, behind whatever the killed process had on its way. Return its number.

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


def test_cuts_that_two_open_at_once_are_opened_once_and_are_no_fault(make_store: Callable[[], Store]) -> None:
    databases = [make_store().database for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for turn in range(10):
            cut = {"job": f"job-{turn}", "levels": "level"}
            at_once = [pool.submit(write, each, "a cut", "open_cut", **cut) for each in databases]
            assert [one.result() for one in at_once] == [[]] * 4


@pytest.mark.slow
@pytest.mark.parametrize("commits", [1, 7, 40])
def test_a_process_killed_in_the_middle_leaves_balanced_books(persistent: PersistentEngine, commits: int) -> None:
    killed = start(persistent, 1, 10_000, 200)
    assert killed.stdout is not None
    for _ in range(commits):
        killed.stdout.readline()
    os.kill(killed.pid, signal.SIGKILL)
    ended(killed, 60)
    store = persistent.open().patient(PATIENCE)
    last = commit_after_all(store)
    (books,) = store.read_ledgers()
    store.close()
    assert books.balanced
    assert books.commits > commits
    assert_each_event_once(persistent, last, filtered=1)
