from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import CheckpointConflict
from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.retry import Keeper, claim_due, next_due_at, retry_chunk
from core.model.events import Event, PartitionId, SequenceNumber
from core.model.letters import ClaimedLetter, LetterPolicy, LetterPosition, RetryReport
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.settle.settle import OpenLetter
from examples.home_security.transform import SensorReading
from tests.fakes.builders import NOON, STREAM, FakeClock, batch, commit, event, letter, partition, settled, stamps
from tests.fakes.kept import Engine
from tests.fakes.replaying import discard
from tests.fakes.store import Store

HOLDING = LetterPolicy(order="hold_key")
KEYS = ("a", "A", "a ", "ä", "", None)  # six that a careless comparison takes for fewer


class World:
    """A partition whose events fail while they are `broken`."""

    def __init__(self, store: Store, policy: LetterPolicy = HOLDING) -> None:
        self.store = store
        self.policy = policy
        self.clock = FakeClock()
        self.own = stamps(3, self.clock)
        self.broken: set[int] = set()
        self.transform = Transform("test/1", self._rows_of, None, (SensorReading,))

    def ingest(self, events: Iterable[Event]) -> None:
        ingest_batch(batch(events), Ingestion(self.store, self.transform, self.own, letters=self.policy))

    @property
    def keeper(self) -> Keeper:
        return Keeper(STREAM, self.store, self.transform, lambda *_: None, self.own, self.policy)

    def retry(self) -> list[RetryReport]:
        self.clock.advance(3_600)
        return [retry_chunk(chunk, self.keeper, "retry-1") for chunk in claim_due(self.keeper)]

    def discard(self, *numbers: int) -> tuple[LetterPosition, ...]:
        return discard(positions(*numbers), self.keeper)

    def _rows_of(self, given: Event, references: References) -> Iterable[Row]:
        if given.sequence_number in self.broken:
            raise KeyError("broken")
        return [SensorReading("home", "sensor", "kind", None, 1, given.enqueued_at)]


def positions(*numbers: int) -> list[LetterPosition]:
    return [LetterPosition(PartitionId("0"), SequenceNumber(number)) for number in numbers]


def of_key(*numbers: int, key: str | None = "a") -> list[Event]:
    return [event(number, "body", key=key) for number in numbers]


def statuses(engine: Engine) -> dict[int, str]:
    return {kept.sequence_number: kept.status for kept in engine.letters()}


def written(engine: Engine) -> list[int]:
    return [kept.sequence_number for kept in engine.rows(SensorReading)]


@pytest.fixture
def world(store: Store) -> World:
    """A partition whose event 0 has failed, with 1 to 3 held after it."""
    world = World(store)
    world.broken = {0}
    world.ingest(of_key(0, 1, 2, 3))
    return world


def test_later_events_of_a_key_are_held_whole_and_untried(world: World, engine: Engine) -> None:
    first, *held = engine.letters()
    assert (first.status, first.attempts) == ("waiting", 1)
    assert [(one.status, one.attempts, one.due_at, one.body) for one in held] == [("held", 0, None, b"body")] * 3
    assert {one.error_class for one in held} == {first.error_class}
    assert "event 2 of the same partition key" in held[2].error
    assert written(engine) == []
    (ledger,) = world.store.read_ledgers()
    assert (ledger.dead_lettered, ledger.held, ledger.letters, ledger.balanced) == (1, 3, 4, True)


def test_keys_that_look_alike_are_different_keys_and_no_key_is_never_held(store: Store, engine: Engine) -> None:
    world = World(store)
    world.broken = {0}
    world.ingest(of_key(0, key="a"))
    world.ingest(event(number, "body", key=key) for number, key in enumerate(KEYS, 1))
    assert statuses(engine) == {0: "waiting", 1: "held"}
    state = store.read_partition(partition())
    found = store.find_open_letters(state, frozenset(key for key in KEYS if key is not None), SequenceNumber(9))
    assert found == {"a": OpenLetter(SequenceNumber(1), "unknown")}


def test_held_letters_are_never_claimed_and_go_in_order_once_the_first_is_done(world: World, engine: Engine) -> None:
    (report,) = world.retry()
    assert (report.resolved, report.waiting, written(engine)) == (0, 1, [])
    world.broken = set()
    (report,) = world.retry()
    assert (report.resolved, report.commits) == (4, 4)
    numbered = [(kept.sequence_number, kept.commit_number) for kept in engine.rows(SensorReading)]
    assert numbered == [(0, 3), (1, 4), (2, 5), (3, 6)]
    made = [(one.kind, one.done_by) for one in engine.attempts() if one.sequence_number == 1]
    assert made == [("free", "retry-1"), ("retry", "retry-1")]


def test_an_exhausted_letter_holds_its_key_until_a_person_discards_it(world: World, engine: Engine) -> None:
    world.policy = replace(HOLDING, backoff=replace(HOLDING.backoff, attempts=2))
    world.retry()
    assert statuses(engine) == {0: "exhausted", 1: "held", 2: "held", 3: "held"}
    world.ingest(of_key(4))
    assert len(world.discard(0)) == 1
    assert statuses(engine) == {0: "discarded", 1: "waiting", 2: "held", 3: "held", 4: "held"}
    (made,) = [one for one in engine.attempts() if one.sequence_number == 1]
    assert (made.kind, made.status, made.done_by) == ("free", "waiting", "somebody")
    world.retry()
    assert written(engine) == [1, 2, 3, 4]


def test_a_discard_in_the_middle_leaves_the_others_in_line_and_one_that_fails_when_it_is_freed_too(
    world: World, engine: Engine
) -> None:
    world.discard(2)
    assert statuses(engine) == {0: "waiting", 1: "held", 2: "discarded", 3: "held"}
    world.broken = {1}
    world.retry()
    assert statuses(engine) == {0: "resolved", 1: "waiting", 2: "discarded", 3: "held"}
    world.broken = set()
    world.retry()
    assert written(engine) == [0, 1, 3]


def test_letters_that_several_commits_free_are_tried_in_order_of_their_numbers(store: Store, engine: Engine) -> None:
    world = World(store)
    world.broken = {0, 1}
    world.ingest([event(number, "body", key=key) for number, key in enumerate("abba")])
    world.clock.advance(3_600)
    claim_due(world.keeper)  # its process dies, so each letter is tried alone, in a separate commit
    world.broken.clear()
    world.retry()
    assert statuses(engine) == dict.fromkeys(range(4), "resolved")
    assert [(kept.first, kept.last) for kept in engine.retries()] == [(0, 0), (1, 1), (2, 3)]


def test_freed_letters_are_tried_at_once_when_their_claim_is_sent_again(world: World, engine: Engine) -> None:
    """The first answer was lost. Without this, the letters stay claimed and untried until the lease ends."""

    class Repeating(Store):
        def take_freed(self, *given: object) -> tuple[ClaimedLetter, ...]:
            super().take_freed(*given)  # type: ignore[arg-type]
            return super().take_freed(*given)  # type: ignore[arg-type]

    world.broken, world.store = set(), Repeating(world.store.database)
    world.retry()
    assert statuses(engine) == dict.fromkeys(range(4), "resolved")
    assert written(engine) == [0, 1, 2, 3]


def test_a_freed_letter_that_another_claim_takes_is_not_taken(world: World) -> None:
    world.broken = set()
    (chunk,) = claim_due(replace(world.keeper, clock=replace(world.own, now=lambda: NOON + timedelta(hours=2))))
    taken: list[int] = []

    class Racing(Store):
        def take_freed(self, *given: object) -> tuple[()]:
            taken.append(len(claim_due(world.keeper)))
            return super().take_freed(*given)  # type: ignore[arg-type, return-value]

    world.clock.advance(3_600)
    report = retry_chunk(chunk, replace(world.keeper, store=Racing(world.store.database)), "retry-1")
    assert (report.resolved, taken) == (1, [1])


def test_a_batch_holds_what_comes_after_an_open_letter(world: World, engine: Engine) -> None:
    state = world.store.read_open_keys(world.store.read_partition(partition()))
    held = replace(letter(event(4, "body", key="a")), status="held", held_behind=SequenceNumber(3))
    world.discard(3)
    world.store.commit_batch(commit(state, 4, 4, settled({}, letters=[held])))
    assert statuses(engine)[4] == "held"
    world.discard(2)
    world.discard(0, 1)
    assert statuses(engine)[4] == "waiting"
    state = world.store.read_open_keys(world.store.read_partition(partition()))
    world.discard(4)
    later = replace(held, event=event(5, "body", key="a"), held_behind=SequenceNumber(4))
    world.store.commit_batch(commit(state, 5, 5, settled({}, letters=[later])))
    assert statuses(engine)[5] == "waiting"


def test_a_batch_that_does_not_know_of_a_stop_is_refused_so_that_it_clears_it(world: World) -> None:
    state = world.store.read_open_keys(world.store.read_partition(partition()))
    world.store.note_stop(state, "held", "too many", NOON)
    with pytest.raises(CheckpointConflict):
        world.store.commit_batch(commit(state, 4, 4))
    known = world.store.read_open_keys(world.store.read_partition(partition()))
    world.store.commit_batch(replace(commit(known, 4, 4), ends=("held",)))
    assert world.store.read_partition(partition()).stops == ()


def test_a_chunk_leaves_freed_letters_to_the_next_round_when_its_time_is_up(world: World, engine: Engine) -> None:
    world.broken = set()

    def slowly(given: Event, references: References) -> Iterable[Row]:
        world.clock.advance(5)
        return world.transform.rows_of(given, references)

    slow = replace(world.transform, rows_of=slowly)
    world.clock.advance(60)
    (chunk,) = claim_due(world.keeper)
    assert retry_chunk(chunk, replace(world.keeper, transform=slow), "retry-1").resolved == 2
    assert statuses(engine) == {0: "resolved", 1: "resolved", 2: "waiting", 3: "held"}


def test_without_the_order_held_letters_are_freed_one_of_each_key_at_a_time(world: World, engine: Engine) -> None:
    world.policy = LetterPolicy(backoff=replace(HOLDING.backoff, attempts=2))
    assert next_due_at(world.keeper) == NOON  # now
    world.retry()
    assert statuses(engine)[0] == "exhausted"
    for number in (1, 2, 3):
        assert written(engine) == list(range(1, number))
        world.retry()
    assert (written(engine), next_due_at(world.keeper)) == ([1, 2, 3], None)
