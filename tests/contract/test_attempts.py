"""Promises of every store about the marks of attempts."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from core.ingest.store import AttemptMark
from core.model.spans import SequenceNumber, span
from tests.fakes.builders import EPOCH, commit, partition
from tests.fakes.store import Store

P = partition()
MARK = AttemptMark(span(2**62, 2**62 + 9), UUID(int=7), EPOCH, "call-ü")


def test_a_mark_stands_as_it_was_set(store: Store) -> None:
    state = store.read_partition(P)
    assert store.read_attempt(state) is None
    store.begin_attempt(state, MARK)
    assert store.read_attempt(state) == MARK
    assert store.read_attempt(store.read_partition(partition("1"))) is None


def test_a_mark_takes_the_place_of_the_one_before_it(store: Store) -> None:
    state, newer = store.read_partition(P), AttemptMark(span(3, 4), UUID(int=8), EPOCH + timedelta(hours=1), "call-2")
    store.begin_attempt(state, MARK)
    store.begin_attempt(state, newer)
    assert store.read_attempt(state) == newer


def test_only_the_process_that_set_a_mark_takes_it_back(store: Store) -> None:
    state = store.read_partition(P)
    store.begin_attempt(state, MARK)
    store.begin_attempt(store.read_partition(partition("1")), MARK)
    store.end_attempt(state, replace(MARK, attempt_id=UUID(int=8)))
    assert store.read_attempt(state) == MARK
    for _ in range(2):
        store.end_attempt(state, MARK)
        assert store.read_attempt(state) is None
    assert store.read_attempt(store.read_partition(partition("1"))) == MARK


def test_a_marked_commit_deletes_the_mark_and_another_leaves_it(store: Store) -> None:
    for place in ("0", "1"):
        store.begin_attempt(store.read_partition(partition(place)), MARK)
    state = store.anchor_partition(store.read_partition(P), SequenceNumber(0), EPOCH + timedelta(days=1))
    store.commit_batch(commit(state, 0, 4))
    assert store.read_attempt(state) == MARK
    store.commit_batch(replace(commit(store.read_partition(P), 5, 9), is_marked=True))
    assert store.read_attempt(state) is None
    assert store.read_attempt(store.read_partition(partition("1"))) == MARK


def test_a_long_name_of_an_invocation_is_cut(store: Store) -> None:
    state = store.read_partition(P)
    store.begin_attempt(state, replace(MARK, invocation_id="x" * 500))
    mark = store.read_attempt(state)
    assert mark is not None and mark.invocation_id == "x" * 100
