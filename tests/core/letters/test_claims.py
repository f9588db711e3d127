import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import cycle

import pytest

from core.errors import CheckpointConflict
from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.retry import Keeper, claim_due, retry_chunk, wait_for_due
from core.model.commits import ROWS_AT_ONCE
from core.model.events import SequenceNumber
from core.model.letters import Backoff, LetterPolicy, LetterPosition
from core.model.ports import Clock
from core.store.database import store_clock
from examples.home_security.transform import SensorReading
from tests.fakes import builders
from tests.fakes.builders import LATEST, NOON, STREAM, batch, claim, event, hold, ids, keep_letters, partition, stamps
from tests.fakes.kept import Engine
from tests.fakes.plain_transform import PLAIN
from tests.fakes.replaying import discard
from tests.fakes.store import MemoryStore, Store
from tests.patience import allowed

LEASE = timedelta(seconds=300)
TICK = timedelta(microseconds=1)


def numbers(store: Store, by: str = "claim-1", **asked: object) -> list[int]:
    got = store.claim_letters(claim(by, **asked))  # type: ignore[arg-type]
    return sorted(one.position.sequence_number for one in got)


def test_what_is_due_is_claimed_once_from_that_moment_until_its_lease_ends(store: Store, engine: Engine) -> None:
    keep_letters(store, {3: "a"}, "0")
    keep_letters(store, {5: "b"}, "10")
    assert numbers(store, "claim-0", at=NOON - TICK) == []
    got = store.claim_letters(claim(at=NOON))
    assert sorted((one.position.partition_id, one.position.sequence_number, one.lost_claims) for one in got) == [
        ("0", 3, 0),
        ("10", 5, 0),
    ]
    for kept in engine.letters():
        assert (kept.status, kept.claimed_by, kept.attempts) == ("retrying", "claim-1", 1)
        assert kept.claimed_until == kept.due_at == NOON + LEASE
    assert numbers(store, "claim-2", at=NOON + LEASE - TICK) == []


@pytest.mark.parametrize("most", [3, 10])
def test_a_claim_that_is_sent_again_gets_what_it_holds_already_and_no_more(
    make_store: Callable[[], Store], engine: Engine, most: int
) -> None:
    """The answer to the first claim was lost. Without this, the letters of that claim wait for the end of its lease."""
    store, other = make_store(), make_store()
    keep_letters(store, dict.fromkeys(range(5), "a"))
    first = store.claim_letters(claim(most=most))
    letters = engine.letters()
    assert sorted(map(str, other.claim_letters(claim(most=most)))) == sorted(map(str, first))
    assert engine.letters() == letters
    assert len(first) == min(most, 5)
    assert len(numbers(store, "claim-2")) == 5 - len(first)
    begun = first[0].position.sequence_number
    store.begin_chunk(hold(store, [begun]), "run-1")
    assert numbers(store) == sorted(one.position.sequence_number for one in first[1:])


def test_letters_that_do_not_wait_or_are_of_another_stream_are_not_claimed(store: Store) -> None:
    for place, status in enumerate(("held", "resolved", "exhausted", "discarded")):
        keep_letters(store, {0: "a"}, str(place), status=status)
    assert store.next_due_at(STREAM, LATEST) is None
    other = partition(group="other")
    keep_letters(store, {0: "a"}, other)
    assert numbers(store) == []
    assert store.next_due_at(other.stream, LATEST) == NOON


@pytest.mark.parametrize(("alone", "counted"), [(False, [0, 1, 1, 1]), (True, [0, 1, 2, 3])])
def test_a_lease_that_ended_gives_the_letter_to_the_next_claim_and_counts_once_and_then_each_lone_try(
    store: Store, engine: Engine, alone: bool, counted: list[int]
) -> None:
    keep_letters(store, {0: "a"})
    counts = []
    for turn in range(4):
        began = NOON + turn * LEASE
        counts += [one.lost_claims for one in store.claim_letters(claim(f"claim-{turn}", at=began))]
        if alone:
            store.begin_lone_try(hold(store, [0], f"claim-{turn}"), began, began + LEASE)
    assert counts == counted
    (kept,) = engine.letters()
    assert (kept.claimed_by, kept.lost_claims, kept.attempts) == ("claim-3", counted[-1], 1)
    assert store.begin_chunk(hold(store, [0], "claim-2"), "run-1") == ()
    assert len(store.begin_chunk(hold(store, [0], "claim-3"), "run-2")) == 1


def test_a_chunk_begins_once_with_the_letters_that_its_claim_holds_in_order(store: Store, engine: Engine) -> None:
    keep_letters(store, dict.fromkeys((9, 1, 5), "a"))
    keep_letters(store, {10: "later"}, due_at=NOON + LEASE)
    numbers(store)
    asked = hold(store, [9, 5, 5, 1, 10, 77])
    assert store.begin_chunk(hold(store, [1, 5, 9], "claim-2"), "run-2") == ()
    assert store.begin_chunk(hold(store, []), "run-0") == ()
    assert [one.sequence_number for one in store.begin_chunk(hold(store, [5]), "run-3")] == [5]
    for _ in range(2):  # the same call, after a lost answer
        assert [one.sequence_number for one in store.begin_chunk(asked, "run-1")] == [1, 9]
    assert store.begin_chunk(asked, "run-4") == ()
    assert {kept.sequence_number: kept.claimed_by for kept in engine.letters()} == {
        1: "run-1",
        5: "run-3",
        9: "run-1",
        10: None,
    }


def test_a_lone_try_holds_the_letters_of_its_claim_on_and_changes_no_other(store: Store, engine: Engine) -> None:
    keep_letters(store, {0: "a"})
    numbers(store, "claim-1")
    before = engine.letters()
    store.begin_lone_try(hold(store, [0, 1, 7], "claim-2"), NOON, NOON + 9 * LEASE)
    assert engine.letters() == before
    later = NOON + timedelta(seconds=200)
    store.begin_lone_try(hold(store, [0]), later, later + LEASE)
    (kept,) = engine.letters()
    assert (kept.began_at, kept.claimed_until, kept.due_at) == (later, later + LEASE, later + LEASE)
    assert numbers(store, "claim-3", at=NOON + LEASE) == []


def test_the_next_one_due_is_the_earliest_of_all_partitions_or_the_end_of_a_lease(store: Store) -> None:
    for place, minutes in (("0", 7), ("1", 5), ("2", 9)):
        keep_letters(store, {0: "a"}, place, due_at=NOON + timedelta(minutes=minutes, microseconds=3))
    assert store.next_due_at(STREAM, LATEST) == NOON + timedelta(minutes=5, microseconds=3)
    assert len(store.claim_letters(claim(at=NOON + timedelta(minutes=10)))) == 3
    assert store.next_due_at(STREAM, LATEST) == NOON + timedelta(minutes=10) + LEASE


def test_held_letters_are_freed_in_parts_so_that_no_statement_locks_the_table(store: Store, engine: Engine) -> None:
    keep_letters(store, dict.fromkeys(range(ROWS_AT_ONCE + 1), "a"), status="held", due_at=None)
    for freed in (ROWS_AT_ONCE, ROWS_AT_ONCE + 1):
        store.free_letters(STREAM, "claim-1", NOON)
        assert sum(one.status == "waiting" for one in engine.letters()) == freed


LETTERS = 120


def keeper(store: Store, seed: int) -> Keeper:
    policy = LetterPolicy(chunk=7, fan_out=3)
    return Keeper(STREAM, store, PLAIN, lambda place, number: None, stamps(seed), policy)


def test_keepers_that_race_each_other_a_person_and_a_batch_settle_every_letter_once(
    make_store: Callable[[], Store], engine: Engine
) -> None:
    keep_letters(make_store(), dict.fromkeys(range(LETTERS), "double home-1"))

    def keep(number: int) -> None:
        own = keeper(make_store(), number)
        while chunks := claim_due(own):
            for chunk in chunks:
                retry_chunk(chunk, own, f"keeper-{number}")

    def give_up(number: int) -> list[LetterPosition]:
        own = keeper(make_store(), number)
        some = [LetterPosition(partition().partition_id, SequenceNumber(at)) for at in range(0, LETTERS, 3)]
        return [moved for one in some for moved in discard([one], own, "somebody", "because")]

    def ingest(number: int) -> None:
        store, own = make_store(), stamps(number)
        for at in range(10):
            given = batch(builders.events(LETTERS + 5 * at, LETTERS + 5 * at + 4, "reading home-1"))
            while True:
                try:
                    ingest_batch(given, Ingestion(store, PLAIN, own))
                    break
                except CheckpointConflict:
                    continue

    with ThreadPoolExecutor(4) as pool:
        working = [pool.submit(keep, 1), pool.submit(keep, 2), pool.submit(ingest, 4)]
        given_up = pool.submit(give_up, 3)
        for done in working:
            done.result(timeout=allowed(60))
        discarded = {position.sequence_number for position in given_up.result(timeout=allowed(60))}
    rows = [kept.sequence_number for kept in engine.rows(SensorReading) if kept.sequence_number < LETTERS]
    assert rows == [number for number in range(LETTERS) if number not in discarded]
    assert len(engine.attempts()) == LETTERS
    for kept in engine.letters():
        assert kept.status == ("discarded" if kept.sequence_number in discarded else "resolved")
    (books,) = make_store().read_ledgers()
    assert (books.balanced, books.letters) == (True, LETTERS)
    numbers = [kept.commit_number for kept in [*engine.ledger(), *engine.retries()]]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


HOUR, DAY, NONE = timedelta(hours=1), timedelta(days=1), timedelta()
OF_OWNER = 20  # of each owner
BRIEF = LetterPolicy(Backoff(base=timedelta(seconds=0.25), ceiling=timedelta(seconds=0.25)), lease=timedelta(seconds=5))
PATIENCE = 30.0  # seconds


@dataclass
class Owner:
    store: Store
    own: Clock
    policy: LetterPolicy
    monotonic: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        of_batches = store_clock(self.store.database, self.own, monotonic=self.monotonic)
        self.means = Ingestion(self.store, PLAIN, of_batches, letters=self.policy)
        clock = self.store.keepers_clock(self.own, self.monotonic)
        self.keeper = Keeper(STREAM, self.store, PLAIN, lambda place, number: None, clock, self.policy)

    def ingest(self, place: str, bodies: Iterable[str], first: int = 0) -> None:
        given = [event(number, body) for number, body in enumerate(bodies, first)]
        ingest_batch(batch(given, partition(place)), self.means)

    def retry(self) -> None:
        if wait_for_due(self.keeper, DAY) == NONE:
            for chunk in claim_due(self.keeper):
                retry_chunk(chunk, self.keeper, "keeper")


def clock_that_is(*off: timedelta, seed: int) -> Clock:
    turns, made = cycle(off), ids(seed)
    return Clock(lambda: datetime.now(UTC) + next(turns), lambda: next(iter(made)))


@pytest.mark.parametrize(
    "off",
    [
        *([(one,), (other,)] for one, other in ((NONE, HOUR), (-HOUR, HOUR), (NONE, DAY), (-DAY, NONE), (-DAY, DAY))),
        [(NONE, DAY, -HOUR, HOUR, -DAY), (NONE,)],
    ],
    ids=lambda off: " and ".join("then ".join(f"{at.total_seconds() / 3600:+g} h " for at in one) for one in off),
)
def test_letters_of_owners_whose_clocks_differ_or_jump_keep_their_schedule_and_all_resolve(
    make_store: Callable[[], Store], engine: Engine, off: list[tuple[timedelta, ...]]
) -> None:
    """Let letters of each owner fail twice more, give them their reference, and check that they resolve in time."""
    owners = [Owner(make_store(), clock_that_is(*each, seed=seed), BRIEF) for seed, each in enumerate(off)]
    began = time.monotonic()

    def retry_until(has_come: Callable[[], bool]) -> None:
        while not has_come():
            for owner in owners:
                owner.retry()
            due = 1 + int((time.monotonic() - began) / BRIEF.backoff.base.total_seconds())
            assert max(one.attempts for one in engine.letters()) <= due, "an attempt came before its time"
            assert time.monotonic() < began + PATIENCE, [(one.status, one.attempts) for one in engine.letters()]

    for place, owner in enumerate(owners):
        owner.ingest(str(place), ["look home-1"] * OF_OWNER)
    retry_until(lambda: min(one.attempts for one in engine.letters()) >= 3)
    owners[1].ingest("1", ["home home-1 1"], first=OF_OWNER)
    retry_until(lambda: all(one.status == "resolved" for one in engine.letters()))
    assert len(engine.letters()) == len(engine.rows(SensorReading)) == 2 * OF_OWNER


@pytest.mark.parametrize("jump", [HOUR + timedelta(minutes=5), DAY], ids=["an hour", "a day"])
@pytest.mark.parametrize("sign", [1, -1], ids=["ahead", "behind"])
def test_letters_resolve_on_schedule_when_the_clock_of_the_database_was_wrong(jump: timedelta, sign: int) -> None:
    """The clock is set wrong, and right again. The process that holds letters in the meantime is killed."""
    clock = builders.FakeClock()
    seconds, policy, off = sign * jump.total_seconds(), LetterPolicy(), NONE
    store = MemoryStore(now=lambda: clock.now() + off)
    owners = [
        Owner(store, clock_that_is(each, seed=at), policy, clock.monotonic) for at, each in enumerate((NONE, DAY))
    ]
    owners[0].ingest("0", ["look home-1"] * OF_OWNER)
    off = timedelta(seconds=seconds)
    clock.advance(60)
    owners[0].ingest("0", ["look home-1"] * OF_OWNER, first=OF_OWNER)
    clock.advance(60)
    assert claim_due(owners[0].keeper)  # it is killed now
    off = NONE
    clock.advance(60)
    owners[1].ingest("1", ["home home-1 1"])
    until = clock.seconds + HOUR.total_seconds()
    while any(one.status != "resolved" for one in store.letters()):
        for owner in owners:
            owner.retry()
        clock.advance(10)
        assert clock.seconds < until, {(one.status, one.due_at) for one in store.letters()}
    assert max(one.attempts for one in store.letters()) <= 3
    assert len(store.rows(SensorReading)) == 2 * OF_OWNER
