"""core/store/patient.py: wait while nothing was written, within a set patience, and never otherwise."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from core.errors import CheckpointConflict, CommitOutcomeUnknown, DataRefused, StoreUnavailable
from core.model.commits import BatchCommit
from core.model.letters import LetterMove, LetterOutcome, RetryCommit
from core.model.rows import ReferenceKey
from core.store.patient import FIRST_PAUSE, LONGEST_PAUSE, PatientStore, Waiting
from core.transforms.home_security import Home
from tests.fakes.builders import NOON, FakeClock, claim, commit, hold, home, keep_letters, partition, reading, settled
from tests.fakes.faulty_store import Fault, FaultyStore
from tests.fakes.memory_store import MemoryStore

P = partition()
OUTAGE = [Fault.NOT_REACHED] * 500  # longer than any patience here


class World:
    """A patient store over a faulty one, on a fake clock."""

    def __init__(self, faults: Sequence[Fault | None], patience: float = 20.0, chance: float = 1.0) -> None:
        self.clock = FakeClock()
        self.inner = MemoryStore()
        self.faulty = FaultyStore(self.inner, on_commit=faults, on_read=faults)
        waiting = Waiting(self.clock.monotonic, self.clock.sleep, lambda: chance)
        self.store = PatientStore(self.faulty, timedelta(seconds=patience), waiting)

    def commit(self) -> int:
        return self.store.commit_batch(commit(self.inner.read_partition(P), 0, 0))


def test_a_call_that_succeeds_does_not_wait() -> None:
    world = World([])
    assert world.commit() == 1
    assert world.clock.slept == []


def test_each_pause_is_twice_the_one_before_up_to_the_longest() -> None:
    world = World([Fault.NOT_REACHED] * 8, patience=60)
    assert world.commit() == 1
    assert world.clock.slept == [min(FIRST_PAUSE * 2**at, LONGEST_PAUSE) for at in range(8)]


def test_pauses_are_shortened_by_chance() -> None:
    world = World([Fault.NOT_REACHED] * 3, chance=0.5)
    world.commit()
    assert world.clock.slept == [FIRST_PAUSE / 2, FIRST_PAUSE, FIRST_PAUSE * 2]


@pytest.mark.parametrize("patience", [1.0, 5.0, 20.0])
def test_patience_ends_and_the_fault_goes_on(patience: float) -> None:
    world = World(OUTAGE, patience)
    with pytest.raises(StoreUnavailable):
        world.commit()
    assert patience - LONGEST_PAUSE <= world.clock.seconds <= patience


def test_without_patience_a_fault_goes_on_at_once() -> None:
    world = World([Fault.NOT_REACHED], patience=0)
    with pytest.raises(StoreUnavailable):
        world.commit()
    assert (world.clock.slept, world.faulty.calls) == ([], ["commit_batch"])


def test_each_call_has_a_patience_of_its_own() -> None:
    world = World(OUTAGE, patience=5)
    for _ in range(2):
        began = world.clock.seconds
        with pytest.raises(StoreUnavailable):
            world.commit()
        assert world.clock.seconds - began > 5 - LONGEST_PAUSE


def test_every_reading_call_is_patient() -> None:
    world = World([Fault.NOT_REACHED, None] * 3)
    world.inner.commit_batch(commit(world.inner.read_partition(P), 0, 0, settled({0: [home("a")]})))
    assert world.store.read_partition(P).checkpoint is not None
    keys = (ReferenceKey(Home, (id,)) for id in ("a", "b"))
    assert list(world.store.read_references(keys)) == [ReferenceKey(Home, ("a",))]
    assert len(world.store.read_ledgers()) == 1
    calls = ["read_partition", "read_references", "read_ledgers"]
    assert world.faulty.calls == [call for call in calls for _ in range(2)]


def test_every_call_of_letters_is_patient() -> None:
    world = World([])
    keep_letters(world.inner, {0: "a"})
    world.faulty = FaultyStore(world.inner, on_letters=[Fault.NOT_REACHED, None] * 7)
    waiting = Waiting(world.clock.monotonic, world.clock.sleep, lambda: 1.0)
    store = PatientStore(world.faulty, timedelta(seconds=20), waiting)
    asked = hold(world.inner, [0])
    assert len(store.claim_letters(claim())) == 1
    assert len(store.read_claimed(asked)) == 1
    store.begin_lone_try(asked, NOON, NOON)
    resolved = LetterOutcome(asked.sequence_numbers[0], "resolved")
    retry = RetryCommit(asked.state, "claim-1", (resolved,), settled({}, filtered=1), "test/1", "retry-1", NOON)
    assert store.commit_retry(retry) == 2
    assert [one.status for one in store.find_letters(asked)] == ["resolved"]
    move = LetterMove("discard", P, asked.sequence_numbers, "move-1", NOON, NOON, "somebody", "because")
    assert [one.status for one in store.move_letters(move)] == ["resolved"]
    assert store.next_due_at(P.stream) is None
    assert world.faulty.calls == [
        call
        for call in (
            *("claim_letters", "read_claimed", "begin_lone_try", "commit_retry"),
            *("find_letters", "move_letters", "next_due_at"),
        )
        for _ in range(2)
    ]


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNANSWERED])
def test_an_unknown_outcome_of_a_retry_is_not_tried_again(fault: Fault) -> None:
    world = World([])
    keep_letters(world.inner, {0: "a"})
    world.inner.claim_letters(claim())
    faulty = FaultyStore(world.inner, on_letters=[fault])
    asked = hold(world.inner, [0])
    resolved = LetterOutcome(asked.sequence_numbers[0], "resolved")
    retry = RetryCommit(asked.state, "claim-1", (resolved,), settled({}, filtered=1), "test/1", "retry-1", NOON)
    with pytest.raises(CommitOutcomeUnknown):
        PatientStore(faulty, timedelta(seconds=20)).commit_retry(retry)
    assert faulty.calls == ["commit_retry"]


def test_an_unknown_outcome_is_not_tried_again() -> None:
    for fault in (Fault.LOST, Fault.UNANSWERED):
        world = World([fault])
        with pytest.raises(CommitOutcomeUnknown):
            world.commit()
        assert (world.faulty.calls, world.clock.slept) == (["commit_batch"], [])


def test_a_conflict_is_not_tried_again() -> None:
    world = World([Fault.RIVAL])
    with pytest.raises(CheckpointConflict):
        world.commit()
    assert (world.faulty.calls, world.clock.slept) == (["commit_batch"], [])


def test_refused_data_is_not_tried_again() -> None:
    world = World([])
    refused: BatchCommit = commit(world.inner.read_partition(P), 0, 0, settled({0: [reading(ppm=2**64)]}))
    with pytest.raises(DataRefused):
        world.store.commit_batch(refused)
    assert (world.faulty.calls, world.clock.slept) == (["commit_batch"], [])


def test_closing_is_passed_on() -> None:
    world = World([])
    world.store.close()
    assert world.faulty.calls == ["close"]
