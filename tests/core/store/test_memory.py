"""core/store/memory.py and its verbs: one call per batch in the steady state, and no memory that may be wrong."""

from collections.abc import Iterable
from datetime import timedelta
from itertools import count, islice
from typing import Any

import pytest

from core.errors import CheckpointConflict, CommitOutcomeUnknown, DataRefused, StoreUnavailable
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.commits import Settled
from core.model.events import SequenceNumber
from core.model.letters import LetterOutcome, RetryCommit
from core.model.rows import ReferenceKey, Row
from core.store.memory import MOST_REFERENCES, SHARES, Memory
from core.store.script import Named
from examples.home_security.transform import Home
from tests.fakes.builders import (
    NOON,
    FakeClock,
    batch,
    claim,
    commit,
    event,
    events,
    home,
    keep_letters,
    partition,
    reading,
    settled,
    stamps,
)
from tests.fakes.faulty_database import Fault, FaultyDatabase, Killed
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store

P, Q = partition("0"), partition("1")
KEEP = 60.0
MOST = MOST_REFERENCES // SHARES  # of one share


def key(home_id: str = "a") -> ReferenceKey:
    return ReferenceKey(Home, (home_id,))


class World:
    """A store with a memory over a watched database of a MemoryStore, on a fake clock."""

    def __init__(self, *faults: Fault | None, on_letters: Iterable[Fault | None] = ()) -> None:
        self.clock = FakeClock()
        self.inner = MemoryStore()
        memory = Memory(timedelta(seconds=KEEP), self.clock.monotonic)
        self.faulty = FaultyDatabase(
            self.inner.database,
            on_commit=faults,
            on_letters=on_letters,
            rival=lambda: self.elsewhere(home("rival"), place="0"),
        )
        self.store = Store(self.faulty, memory)

    def calls(self) -> list[str]:
        """Return the calls since this was last asked."""
        made = list(self.faulty.calls)
        self.faulty.calls.clear()
        return made

    def elsewhere(self, *rows: Row, place: str = "9") -> None:
        """Another process commits rows on a partition of its own."""
        state = self.inner.read_partition(partition(place))
        at = 0 if state.checkpoint is None else state.checkpoint.sequence_number + 1
        self.inner.commit_batch(commit(state, at, at, settled({at: rows})))

    def look(self, home_id: str = "a") -> Row | None:
        return self.store.read_references([key(home_id)]).get(key(home_id))


class TestThePartition:
    def test_is_read_once_and_then_remembered(self) -> None:
        world = World()
        assert world.store.read_partition(P) == world.store.read_partition(P) == world.inner.read_partition(P)
        assert world.calls() == ["read_partition"]

    def test_is_known_after_a_commit_as_the_store_has_it(self) -> None:
        world = World()
        for at in range(3):
            assert world.store.commit_batch(commit(world.store.read_partition(P), at, at)) == at + 1
            assert world.store.read_partition(P) == world.inner.read_partition(P)
        assert world.calls() == ["read_partition", *["commit_batch"] * 3]

    def test_is_remembered_apart_from_others(self) -> None:
        world = World()
        world.store.commit_batch(commit(world.store.read_partition(P), 0, 0))
        assert world.store.read_partition(Q).checkpoint is None
        assert world.store.read_partition(partition("0", group="other")).checkpoint is None

    def test_in_the_steady_state_a_batch_is_one_call(self) -> None:
        world = World()
        for at in range(10):
            ingest_batch(batch(events(at * 5, at * 5 + 4, "reading a")), Ingestion(world.store, PLAIN, stamps(at)))
        assert world.calls() == ["read_partition", "anchor_partition", "read_partition", *["commit_batch"] * 10]

    @pytest.mark.parametrize(
        ("fault", "raised"),
        [
            (Fault.NOT_REACHED, StoreUnavailable),
            (Fault.LOST, CommitOutcomeUnknown),
            (Fault.UNANSWERED, CommitOutcomeUnknown),
            (Fault.RIVAL, CheckpointConflict),
            (Fault.KILLED, Killed),
            (Fault.KILLED_AFTER, Killed),
        ],
    )
    def test_is_forgotten_after_any_fault_of_a_commit(self, fault: Fault, raised: type[BaseException]) -> None:
        world = World(None, fault)
        world.store.commit_batch(commit(world.store.read_partition(P), 0, 0))
        with pytest.raises(raised):
            world.store.commit_batch(commit(world.store.read_partition(P), 1, 1))
        world.calls()
        assert world.store.read_partition(P) == world.inner.read_partition(P)
        assert world.calls() == ["read_partition"]

    def test_stays_remembered_after_refused_data_for_nothing_was_written(self) -> None:
        world = World()
        refused = commit(world.store.read_partition(P), 0, 0, settled({0: [reading(ppm=2**64)]}))
        with pytest.raises(DataRefused):
            world.store.commit_batch(refused)
        world.calls()
        assert world.store.read_partition(P).checkpoint is None
        assert world.calls() == []

    def test_of_others_stays_remembered_after_a_fault(self) -> None:
        world = World(Fault.NOT_REACHED)
        world.store.read_partition(Q)
        with pytest.raises(StoreUnavailable):
            world.store.commit_batch(commit(world.store.read_partition(P), 0, 0))
        world.calls()
        world.store.read_partition(Q)
        assert world.calls() == []

    def test_a_stale_memory_is_harmless(self) -> None:
        world = World()
        world.store.read_partition(P)
        world.elsewhere(home("a"), place="0")
        with pytest.raises(CheckpointConflict):
            world.store.commit_batch(commit(world.store.read_partition(P), 0, 0))
        assert world.store.read_partition(P) == world.inner.read_partition(P)


class TestReferences:
    def test_are_read_once_while_they_are_young(self) -> None:
        world = World()
        world.elsewhere(home("a"))
        for _ in range(3):
            assert world.look() == home("a")
            world.clock.advance(KEEP / 4)
        assert world.calls() == ["read_references"]

    def test_grow_old_and_are_read_again(self) -> None:
        world = World()
        world.elsewhere(home("a", armed=False))
        world.look()
        world.elsewhere(home("a", armed=True))
        world.clock.advance(KEEP - 0.001)
        assert world.look() == home("a", armed=False)
        world.clock.advance(0.001)
        assert world.look() == home("a", armed=True)
        assert world.calls() == ["read_references"] * 2

    def test_that_were_absent_are_asked_for_each_time(self) -> None:
        world = World()
        assert world.look() is None
        world.elsewhere(home("a"))
        assert world.look() == home("a")
        assert world.calls() == ["read_references"] * 2

    def test_known_and_unknown_ones_are_one_call_for_the_unknown(self) -> None:
        inner = MemoryStore()
        homes = settled({0: [home("a"), home("b"), home("c")]})
        inner.commit_batch(commit(inner.read_partition(Q), 0, 0, homes))
        asking = Asking(inner)
        store = Store(asking, Memory(timedelta(seconds=KEEP), FakeClock().monotonic))
        store.read_references([key("a")])
        found = store.read_references(key(id) for id in ("a", "b", "c", "nobody"))
        assert dict(found) == {key(id): home(id) for id in ("a", "b", "c")}
        assert asking.keys == ['[["a"]]', '[["b"], ["c"], ["nobody"]]']

    def test_that_a_commit_of_ours_wrote_are_read_again(self) -> None:
        world = World()
        world.elsewhere(home("a", armed=False), home("b"))
        world.look("a")
        world.look("b")
        state = world.store.read_partition(P)
        world.look("a")
        world.look("b")
        world.store.commit_batch(commit(state, 0, 0, settled({0: [home("a", armed=True)]})))
        world.calls()
        assert (world.look("a"), world.look("b")) == (home("a", armed=True), home("b"))
        assert world.calls() == ["read_references"]

    @pytest.mark.parametrize("fault", [Fault.UNANSWERED, Fault.KILLED_AFTER])
    def test_that_a_commit_in_doubt_wrote_are_read_again(self, fault: Fault) -> None:
        world = World(fault)
        state = world.store.read_partition(P)
        world.elsewhere(home("a", armed=False))
        world.look()
        with pytest.raises((CommitOutcomeUnknown, Killed)):
            world.store.commit_batch(commit(state, 0, 0, settled({0: [home("a", armed=True)]})))
        assert world.look() == home("a", armed=True)

    def test_are_forgotten_when_a_partition_is_read_again_because_others_may_have_written(self) -> None:
        world = World()
        world.elsewhere(home("a", armed=False))
        world.look()
        world.elsewhere(home("a", armed=True))
        world.store.read_partition(P)
        assert world.look() == home("a", armed=True)

    def test_a_memory_of_no_length_and_a_missing_memory_remember_nothing(self) -> None:
        for memory in (Memory(timedelta(0), FakeClock().monotonic), None):
            inner = MemoryStore()
            watched = FaultyDatabase(inner.database)
            store = Store(watched, memory)
            inner.commit_batch(commit(inner.read_partition(Q), 0, 0, settled({0: [home("a")]})))
            for _ in range(2):
                assert store.read_references([key()]) == {key(): home("a")}
            assert watched.calls == ["read_references"] * 2

    def test_no_keys_are_no_call(self) -> None:
        world = World()
        assert world.store.read_references([]) == {}
        assert world.calls() == []

    def test_beyond_the_bound_the_oldest_are_forgotten_first(self) -> None:
        clock = FakeClock()
        memory = Memory(timedelta(seconds=KEEP), clock.monotonic)
        any_key = (key(f"home-{number}") for number in count())
        keys = list(islice((each for each in any_key if hash(each) % SHARES == 0), MOST + 2))

        def remember(*wanted: ReferenceKey) -> None:
            memory.remember_references({each: home(each.key[0]) for each in wanted})

        remember(keys[0])
        clock.advance(KEEP - 1)
        remember(*keys[1:MOST])
        clock.advance(1)
        assert memory.known(keys[:1]) == ({}, keys[:1])  # too old: read again, and so the youngest
        remember(keys[0])
        remember(*keys[MOST:])
        rows, unknown = memory.known(keys)
        assert (len(rows), unknown) == (MOST, keys[1:3])


class Asking:
    """A database that notes the keys that references are read by."""

    def __init__(self, store: MemoryStore) -> None:
        self._database = store.database
        self.keys: list[str] = []
        self.run, self.close = self._database.run, self._database.close

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        if "keys" in values:
            self.keys.append(values["keys"])
        return self._database.ask(statement, **values)


class TestARetry:
    def retry(self, world: World, rows: Settled) -> RetryCommit:
        """Of letter 0 of partition P, claimed."""
        keep_letters(world.inner, {0: "letter"})
        world.inner.claim_letters(claim())
        outcome = LetterOutcome(SequenceNumber(0), "resolved")
        state = world.store.read_partition(P)
        world.calls()
        return RetryCommit(state, "claim-1", (outcome,), rows, "test/1", "retry-1", NOON)

    def test_leaves_the_remembered_partition_as_it_is_and_a_batch_commits_on_it(self) -> None:
        world = World()
        retry = self.retry(world, settled({}, filtered=1))
        assert world.store.commit_retry(retry) == 2
        assert world.store.commit_batch(commit(world.store.read_partition(P), 1, 1)) == 3
        assert world.calls() == ["commit_retry", "commit_batch"]
        assert world.store.read_partition(P) == world.inner.read_partition(P)

    def test_has_the_states_that_it_wrote_read_again_and_no_others(self) -> None:
        world = World()
        world.elsewhere(home("a", armed=False), home("b"))
        retry = self.retry(world, settled({0: [home("a", armed=True)]}))
        world.look("a")
        world.look("b")
        world.store.commit_retry(retry)
        world.calls()
        assert (world.look("a"), world.look("b")) == (home("a", armed=True), home("b"))
        assert world.calls() == ["read_references"]

    def test_that_is_in_doubt_has_its_states_read_again(self) -> None:
        world = World(on_letters=[Fault.UNANSWERED])
        world.elsewhere(home("a", armed=False))
        retry = self.retry(world, settled({0: [home("a", armed=True)]}))
        world.look("a")
        with pytest.raises(CommitOutcomeUnknown):
            world.store.commit_retry(retry)
        assert world.look("a") == home("a", armed=True)


def test_a_look_in_the_steady_state_is_one_call_when_its_home_is_remembered() -> None:
    world = World()
    world.elsewhere(home("a"))
    for at in range(3):
        ingest_batch(batch([event(at, "look a")]), Ingestion(world.store, PLAIN, stamps(at)))
    assert world.calls() == [
        "read_partition",
        "anchor_partition",
        "read_partition",
        "read_references",
        *["commit_batch"] * 3,
    ]
