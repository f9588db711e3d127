"""Promises of every store about the marks of attempts."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from core.ingest.port import AttemptMark
from core.model.spans import SequenceNumber
from tests.fakes.builders import EPOCH, commit, partition
from tests.fakes.store import Store

P = partition()
MARK = AttemptMark(SequenceNumber(2**62), SequenceNumber(2**62 + 9), 2**62 + 10, 3, UUID(int=7), EPOCH, "call-ü")


def test_a_mark_stands_as_it_was_set(store: Store) -> None:
    state = store.read_partition(P)
    assert store.read_attempt(state) is None
    assert store.begin_attempt(state, MARK, None)
    assert store.read_attempt(state) == MARK
    assert store.read_attempt(store.read_partition(partition("1"))) is None


def test_a_mark_is_set_only_over_the_expected_one(store: Store) -> None:
    state, newer = store.read_partition(P), replace(MARK, attempt_id=UUID(int=8), attempts=4)
    assert not store.begin_attempt(state, newer, MARK)
    assert store.begin_attempt(state, MARK, None)
    assert not store.begin_attempt(state, newer, None)
    assert not store.begin_attempt(state, newer, replace(MARK, attempt_id=UUID(int=9)))
    assert not store.begin_attempt(state, newer, replace(MARK, attempts=2))
    assert store.read_attempt(state) == MARK
    assert store.begin_attempt(state, newer, MARK)
    assert store.read_attempt(state) == newer


def test_an_attempt_that_ended_does_not_count_and_to_say_so_twice_is_to_say_it_once(store: Store) -> None:
    state = store.read_partition(P)
    store.begin_attempt(state, MARK, None)
    for _ in range(2):
        store.end_attempt(state, MARK)
        assert store.read_attempt(state) == replace(MARK, attempts=2)
    store.end_attempt(state, replace(MARK, attempt_id=UUID(int=8), attempts=1))
    assert store.read_attempt(state) == replace(MARK, attempts=2)


def test_a_marked_commit_deletes_the_mark_and_another_leaves_it(store: Store) -> None:
    for place in ("0", "1"):
        store.begin_attempt(store.read_partition(partition(place)), MARK, None)
    state = store.anchor_partition(store.read_partition(P), SequenceNumber(0), EPOCH + timedelta(days=1))
    store.commit_batch(commit(state, 0, 4))
    assert store.read_attempt(state) == MARK
    store.commit_batch(replace(commit(store.read_partition(P), 5, 9), is_marked=True))
    assert store.read_attempt(state) is None
    assert store.read_attempt(store.read_partition(partition("1"))) == MARK


def test_a_long_name_of_an_invocation_is_cut(store: Store) -> None:
    state = store.read_partition(P)
    store.begin_attempt(state, replace(MARK, invocation_id="x" * 500), None)
    mark = store.read_attempt(state)
    assert mark is not None and mark.invocation_id == "x" * 100
