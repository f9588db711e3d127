from collections.abc import Iterable
from datetime import timedelta
from itertools import count, islice

import pytest

from core.errors import CheckpointConflict, CommitOutcomeUnknown, DataRefused, StoreUnavailable
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.commits import Settled
from core.model.events import SequenceNumber
from core.model.letters import LetterOutcome, RetryCommit
from core.model.rows import ReferenceKey, Row
from core.store.memory import MOST_REFERENCES, SHARES, Memory
from examples.home_security.transform import Home
from tests.fakes import builders
from tests.fakes.builders import NOON, FakeClock, batch, claim, commit, event, home, partition, reading, settled, stamps
from tests.fakes.faulty_database import Fault, FaultyDatabase, Killed
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import MemoryStore, Store

P, Q = partition("0"), partition("1")
KEEP = 60.0
MOST = MOST_REFERENCES // SHARES  # of one share
OFF, ON = home("a", armed=False), home("a", armed=True)


def key(home_id: str = "a") -> ReferenceKey:
    return ReferenceKey(Home, (home_id,))


class World:
    """A store with a memory over a watched database of a MemoryStore, on a fake clock."""

    def __init__(self, *faults: Fault | None, on_letters: Iterable[Fault | None] = (), keep: float = KEEP) -> None:
        self.clock = FakeClock()
        self.inner = MemoryStore()
        self.faulty = FaultyDatabase(
            self.inner.database,
            on_commit=faults,
            on_letters=on_letters,
            rival=lambda: self.elsewhere(home("rival"), place="0"),
        )
        self.store = Store(self.faulty, Memory(timedelta(seconds=keep), self.clock.monotonic))

    def calls(self) -> list[str]:
        """Return the calls since this was last asked."""
        made = list(self.faulty.calls)
        self.faulty.calls.clear()
        return made

    def elsewhere(self, *rows: Row, place: str = "9") -> None:
        state = self.inner.read_partition(partition(place))
        at = 0 if state.checkpoint is None else state.checkpoint.sequence_number + 1
        self.inner.commit_batch(commit(state, at, at, settled({at: rows})))

    def look(self, home_id: str = "a") -> Row | None:
        return self.store.read_references([key(home_id)]).get(key(home_id))

    def commit(self, at: int = 0, outcome: Settled | None = None) -> int:
        return self.store.commit_batch(commit(self.store.read_partition(P), at, at, outcome))


def test_a_partition_is_read_once_and_known_after_a_commit_as_the_store_has_it_apart_from_others() -> None:
    world = World()
    assert world.store.read_partition(P) == world.store.read_partition(P) == world.inner.read_partition(P)
    assert world.calls() == ["read_partition"]
    for at in range(3):
        assert world.commit(at) == at + 1
        assert world.store.read_partition(P) == world.inner.read_partition(P)
    assert world.calls() == ["commit_batch"] * 3
    assert world.store.read_partition(Q).checkpoint is None
    assert world.store.read_partition(partition("0", group="other")).checkpoint is None


def test_in_the_steady_state_a_batch_is_one_call_also_when_its_home_is_remembered() -> None:
    world = World()
    world.elsewhere(home("a"))
    for at in range(10):
        given = [event(at * 2, "reading a"), event(at * 2 + 1, "look a")]
        ingest_batch(batch(given), Ingestion(world.store, PLAIN, stamps(at)))
    first = ["read_partition", "anchor_partition", "read_partition", "read_references"]
    assert world.calls() == [*first, *["commit_batch"] * 10]


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
def test_a_partition_is_forgotten_after_any_fault_of_a_commit_alone(fault: Fault, raised: type[BaseException]) -> None:
    world = World(None, fault)
    world.commit()
    world.store.read_partition(Q)
    world.calls()
    with pytest.raises(raised):
        world.commit(1)
    world.calls()
    assert world.store.read_partition(P) == world.inner.read_partition(P)
    world.store.read_partition(Q)
    assert world.calls() == ["read_partition"]


def test_a_partition_stays_remembered_after_refused_data_and_a_stale_memory_is_harmless() -> None:
    world = World()
    with pytest.raises(DataRefused):
        world.commit(0, settled({0: [reading(ppm=2**64)]}))
    world.calls()
    assert world.store.read_partition(P).checkpoint is None
    assert world.calls() == []
    world.elsewhere(home("a"), place="0")
    with pytest.raises(CheckpointConflict):
        world.commit()
    assert world.store.read_partition(P) == world.inner.read_partition(P)


def test_references_are_read_once_while_they_are_young_and_absent_ones_each_time() -> None:
    world = World()
    assert world.store.read_references([]) == {}
    assert world.calls() == []
    assert world.look() is None
    world.elsewhere(OFF)
    assert world.look() == OFF
    world.elsewhere(ON)
    world.clock.advance(KEEP - 0.001)
    assert world.look() == OFF
    assert world.calls() == ["read_references"] * 2
    world.clock.advance(0.001)
    assert world.look() == ON
    assert world.calls() == ["read_references"]
    forgetful = World(keep=0)
    forgetful.elsewhere(OFF)
    assert (forgetful.look(), forgetful.look(), forgetful.calls()) == (OFF, OFF, ["read_references"] * 2)


def test_references_are_forgotten_when_a_partition_is_read_again_because_others_may_have_written() -> None:
    world = World()
    world.elsewhere(OFF)
    world.look()
    world.elsewhere(ON)
    world.store.read_partition(P)
    assert world.look() == ON


def retry_of(world: World, rows: Settled) -> RetryCommit:
    builders.keep_letters(world.inner, {0: "letter"})
    world.inner.claim_letters(claim())
    outcome = LetterOutcome(SequenceNumber(0), "resolved")
    return RetryCommit(world.store.read_partition(P), "claim-1", (outcome,), rows, "test/1", "retry-1", NOON)


def test_a_retry_leaves_the_remembered_partition_as_it_is_and_a_batch_commits_on_it() -> None:
    world = World()
    retry = retry_of(world, settled({}, filtered=1))
    world.calls()
    assert world.store.commit_retry(retry) == 2
    assert world.commit(1) == 3
    assert world.calls() == ["commit_retry", "commit_batch"]
    assert world.store.read_partition(P) == world.inner.read_partition(P)


@pytest.mark.parametrize("fault", [None, Fault.UNANSWERED, Fault.KILLED_AFTER])
@pytest.mark.parametrize("what", ["a batch", "a retry"])
def test_references_that_our_commit_wrote_or_may_have_written_are_read_again(what: str, fault: Fault | None) -> None:
    world = World(*[fault] * (what == "a batch"), on_letters=[fault] * (what == "a retry"))
    world.elsewhere(OFF, home("b"))
    written = settled({0: [ON]})
    retry = retry_of(world, written) if what == "a retry" else None
    state = world.store.read_partition(P)
    world.look("a")
    world.look("b")
    try:
        world.store.commit_retry(retry) if retry else world.store.commit_batch(commit(state, 0, 0, written))
        assert fault is None
    except (CommitOutcomeUnknown, Killed):
        assert fault is not None
    world.calls()
    assert (world.look("a"), world.look("b")) == (ON, home("b"))
    assert fault or world.calls() == ["read_references"]  # of the states that were written, and no others


def test_beyond_the_bound_the_oldest_references_are_forgotten_first() -> None:
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
