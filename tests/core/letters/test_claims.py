"""Promises of every store about claims: what is due, once, until the lease ends."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.model.commits import ROWS_AT_ONCE
from core.model.events import Event
from tests.fakes.builders import (
    LATEST,
    NOON,
    STREAM,
    claim,
    commit,
    event,
    hold,
    keep_letters,
    letter,
    partition,
    settled,
)
from tests.fakes.kept import Engine
from tests.fakes.store import Store

LEASE = timedelta(seconds=300)


def numbers(store: Store, by: str = "claim-1", **asked: object) -> list[int]:
    """The letters that a claim gets, rising."""
    got = store.claim_letters(claim(by, **asked))  # type: ignore[arg-type]
    return sorted(one.position.sequence_number for one in got)


def test_what_is_due_is_claimed_with_its_partition(store: Store, engine: Engine) -> None:
    keep_letters(store, {3: "a"}, "0")
    keep_letters(store, {5: "b"}, "10")
    got = store.claim_letters(claim())
    assert sorted((one.position.partition_id, one.position.sequence_number, one.lost_claims) for one in got) == [
        ("0", 3, 0),
        ("10", 5, 0),
    ]
    for kept in engine.letters():
        assert (kept.status, kept.claimed_by, kept.attempts) == ("retrying", "claim-1", 1)
        assert kept.claimed_until == kept.due_at == NOON + LEASE


def test_a_letter_is_claimed_from_the_moment_at_which_it_is_due(store: Store) -> None:
    keep_letters(store, {0: "a"})
    assert numbers(store, at=NOON - timedelta(microseconds=1)) == []
    assert numbers(store, at=NOON) == [0]


def test_what_is_claimed_is_not_claimed_again(store: Store) -> None:
    keep_letters(store, {0: "a", 1: "b"})
    assert numbers(store, "claim-1") == [0, 1]
    assert numbers(store, "claim-2", at=NOON + LEASE - timedelta(microseconds=1)) == []


@pytest.mark.parametrize("most", [2, 3, 10])
def test_a_claim_that_is_sent_again_gets_what_it_holds_already_and_no_more(
    make_store: Callable[[], Store], engine: Engine, most: int
) -> None:
    """Its answer was lost, and the database is asked again: without this, the first letters wait for their lease."""
    store, other = make_store(), make_store()
    keep_letters(store, dict.fromkeys(range(5), "a"))
    first = store.claim_letters(claim(most=most))
    letters = engine.letters()
    assert sorted(map(str, other.claim_letters(claim(most=most)))) == sorted(map(str, first))
    assert engine.letters() == letters
    assert len(first) == min(most, 5)
    assert len(numbers(store, "claim-2")) == 5 - len(first)


def test_a_claim_that_is_sent_again_leaves_out_what_was_begun_or_lost_since(store: Store) -> None:
    keep_letters(store, dict.fromkeys(range(3), "a"))
    numbers(store)
    store.begin_chunk(hold(store, [1]), "run-1")
    assert numbers(store) == [0, 2]


@pytest.mark.parametrize("most", [1, 3, 10])
def test_a_claim_gets_no_more_than_it_asks_for_and_the_next_one_the_rest(store: Store, most: int) -> None:
    keep_letters(store, dict.fromkeys(range(10), "a"))
    got: list[int] = []
    for turn in range(-(-10 // most)):
        some = numbers(store, f"claim-{turn}", most=most)
        assert len(some) == min(most, 10 - len(got))
        got += some
    assert sorted(got) == list(range(10))
    assert numbers(store, "claim-last", most=most) == []


@pytest.mark.parametrize("status", ["held", "resolved", "exhausted", "discarded"])
def test_letters_that_do_not_wait_are_not_claimed(store: Store, status: str) -> None:
    keep_letters(store, {0: "a"}, status=status)
    assert numbers(store) == []


def test_streams_are_claimed_apart(store: Store) -> None:
    keep_letters(store, {0: "a"})
    other = partition(group="other")
    keep_letters(store, {0: "a"}, other)
    assert len(store.claim_letters(claim())) == 1
    assert store.next_due_at(other.stream, LATEST) == NOON


class TestALeaseThatEnded:
    def lost(self, store: Store, by: str, *, at: datetime) -> int:
        ((number,),) = [[one.lost_claims for one in store.claim_letters(claim(by, at=at))]]
        return number

    def test_gives_the_letter_to_the_next_claim_which_counts_the_lost_one(self, store: Store, engine: Engine) -> None:
        keep_letters(store, {0: "a"})
        assert self.lost(store, "claim-1", at=NOON) == 0
        assert self.lost(store, "claim-2", at=NOON + LEASE) == 1
        (kept,) = engine.letters()
        assert (kept.claimed_by, kept.lost_claims, kept.attempts) == ("claim-2", 1, 1)

    def test_counts_no_second_time_as_long_as_no_lone_try_began(self, store: Store) -> None:
        keep_letters(store, {0: "a"})
        counts = [self.lost(store, f"claim-{turn}", at=NOON + turn * LEASE) for turn in range(4)]
        assert counts == [0, 1, 1, 1]

    def test_counts_each_lone_try_that_began(self, store: Store) -> None:
        keep_letters(store, {0: "a"})
        counts = []
        for turn in range(4):
            counts.append(self.lost(store, f"claim-{turn}", at=NOON + turn * LEASE))
            began = NOON + turn * LEASE
            store.begin_lone_try(hold(store, [0], f"claim-{turn}"), began, began + LEASE)
        assert counts == [0, 1, 2, 3]

    def test_no_longer_holds_the_letter_for_the_claim_before(self, store: Store) -> None:
        keep_letters(store, {0: "a"})
        numbers(store, "claim-1")
        numbers(store, "claim-2", at=NOON + LEASE)
        assert store.begin_chunk(hold(store, [0], "claim-1"), "run-1") == ()
        assert len(store.begin_chunk(hold(store, [0], "claim-2"), "run-2")) == 1


def test_a_chunk_begins_once_whoever_asks(store: Store, engine: Engine) -> None:
    keep_letters(store, {0: "a", 1: "b"})
    numbers(store)
    assert len(store.begin_chunk(hold(store, [0, 1]), "run-1")) == 2
    assert store.begin_chunk(hold(store, [0, 1]), "run-2") == ()
    assert len(store.begin_chunk(hold(store, [0, 1]), "run-1")) == 2  # the same call, after a lost answer
    assert {kept.claimed_by for kept in engine.letters()} == {"run-1"}


def test_a_lone_try_holds_the_letter_on(store: Store, engine: Engine) -> None:
    keep_letters(store, {0: "a"})
    numbers(store, "claim-1")
    later = NOON + timedelta(seconds=200)
    store.begin_lone_try(hold(store, [0]), later, later + LEASE)
    (kept,) = engine.letters()
    assert (kept.began_at, kept.claimed_until, kept.due_at) == (later, later + LEASE, later + LEASE)
    assert numbers(store, "claim-2", at=NOON + LEASE) == []


def test_a_lone_try_of_what_another_holds_changes_nothing(store: Store, engine: Engine) -> None:
    keep_letters(store, {0: "a", 1: "b"})
    numbers(store, "claim-1")
    before = engine.letters()
    store.begin_lone_try(hold(store, [0, 1, 7], "claim-2"), NOON, NOON + 9 * LEASE)
    assert engine.letters() == before


def test_a_claimed_letter_is_read_whole(store: Store) -> None:
    given = Event(event(4).sequence_number, "256", NOON, "key-1", {"tenant": "a", "n": [1, None]}, bytes(range(256)))
    state = store.read_partition(partition())
    store.commit_batch(commit(state, 0, 4, settled({}, letters=[letter(given)], filtered=4)))
    numbers(store)
    (read,) = store.begin_chunk(hold(store, [4]), "run-1")
    assert read.event == given
    assert (read.body_kept, read.attempts, read.lost_claims, read.sequence_number) == (True, 1, 0, 4)


def test_a_body_that_was_not_kept_is_read_as_such(store: Store, engine: Engine) -> None:
    keep_letters(store, {0: "secret"}, keeps_body=False)
    (kept,) = engine.letters()
    assert (kept.body, kept.body_kept) == (b"", False)
    numbers(store)
    (read,) = store.begin_chunk(hold(store, [0]), "run-1")
    assert (read.event.body, read.body_kept) == (b"", False)


def test_only_letters_that_the_claim_holds_are_read_and_in_order(store: Store) -> None:
    keep_letters(store, dict.fromkeys((9, 1, 5), "a"))
    keep_letters(store, {10: "later"}, due_at=NOON + LEASE)
    numbers(store)
    asked = hold(store, [9, 5, 5, 1, 10, 77])
    assert store.begin_chunk(hold(store, [1, 5, 9], "claim-2"), "run-2") == ()
    assert store.begin_chunk(hold(store, []), "run-0") == ()
    assert [one.sequence_number for one in store.begin_chunk(hold(store, [5]), "run-3")] == [5]
    assert [one.sequence_number for one in store.begin_chunk(asked, "run-1")] == [1, 9]


class TestTheNextOneDue:
    def test_is_none_where_nothing_waits(self, store: Store) -> None:
        assert store.next_due_at(STREAM, LATEST) is None
        keep_letters(store, {0: "a"}, status="exhausted")
        assert store.next_due_at(STREAM, LATEST) is None

    def test_is_the_earliest_of_all_partitions(self, store: Store) -> None:
        for place, minutes in (("0", 7), ("1", 5), ("2", 9)):
            keep_letters(store, {0: "a"}, place, due_at=NOON + timedelta(minutes=minutes, microseconds=3))
        assert store.next_due_at(STREAM, LATEST) == NOON + timedelta(minutes=5, microseconds=3)

    def test_is_the_end_of_the_lease_of_what_is_claimed(self, store: Store) -> None:
        keep_letters(store, {0: "a"})
        numbers(store)
        assert store.next_due_at(STREAM, LATEST) == NOON + LEASE


def test_a_claim_is_seen_by_others_at_once(make_store: Callable[[], Store]) -> None:
    one, other = make_store(), make_store()
    keep_letters(one, {0: "a"})
    assert numbers(one) == [0]
    assert numbers(other, "claim-2") == []
    (found,) = other.find_letters(hold(other, [0, 3]))
    assert (found.sequence_number, found.status, found.touched_by) == (0, "retrying", "claim-1")


@pytest.mark.slow
def test_five_thousand_letters_are_claimed_and_read(store: Store) -> None:
    keep_letters(store, {number: str(number) for number in range(5_000)})
    assert numbers(store, most=5_000) == list(range(5_000))
    read = store.begin_chunk(hold(store, range(5_000)), "run-1")
    assert [one.event.body for one in read] == [str(number).encode() for number in range(5_000)]


class TestAClockThatWasAhead:
    AHEAD = NOON + timedelta(days=30)

    def test_leaves_letters_that_are_due_at_once_when_it_is_right_again(self, store: Store) -> None:
        keep_letters(store, {0: "a"}, due_at=self.AHEAD)
        keep_letters(store, {1: "b"}, due_at=NOON + timedelta(minutes=59))
        latest = NOON + timedelta(hours=1)
        assert store.next_due_at(STREAM, latest) == datetime.min.replace(tzinfo=UTC)
        claimed = store.claim_letters(replace(claim(), latest=latest))
        assert [one.position.sequence_number for one in claimed] == [0]
        assert store.next_due_at(STREAM, latest) == NOON + LEASE

    def test_leaves_leases_that_end_at_once_when_it_is_right_again(self, store: Store) -> None:
        keep_letters(store, {0: "a"}, due_at=NOON)
        assert numbers(store, "claim-1", at=self.AHEAD) == [0]
        latest = NOON + timedelta(hours=1)
        assert store.next_due_at(STREAM, latest) == datetime.min.replace(tzinfo=UTC)
        (claimed,) = store.claim_letters(replace(claim("claim-2"), latest=latest))
        assert claimed.lost_claims == 1
        assert store.next_due_at(STREAM, latest) == NOON + LEASE


def test_held_letters_are_freed_in_parts_so_that_no_statement_locks_the_table(store: Store, engine: Engine) -> None:
    keep_letters(store, dict.fromkeys(range(ROWS_AT_ONCE + 1), "a"), status="held", due_at=None)
    for freed in (ROWS_AT_ONCE, ROWS_AT_ONCE + 1):
        store.free_letters(STREAM, "claim-1", NOON)
        assert sum(one.status == "waiting" for one in engine.letters()) == freed
