"""Promises of every store about the marks of attempts."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from core.model.events import Partition, SequenceNumber, span
from core.settle.attempts import AttemptMark
from tests.fakes.builders import EPOCH, commit, partition
from tests.fakes.store import Store

P = partition()
MARK = AttemptMark(P.partition_id, span(2**62, 2**62 + 9), UUID(int=7), EPOCH, 3, "killing/ü")


def marks(store: Store, of: Partition = P) -> list[AttemptMark]:
    return [mark for mark in store.read_marks(store.read_partition(P)) if mark.partition_id == of.partition_id]


def test_a_mark_stands_as_it_was_set(store: Store) -> None:
    state = store.read_partition(P)
    killer = replace(MARK, tried=span(7, 7), verdict="its process ended by SIGSEGV, \ud800 and " + "x" * 3_000)
    assert marks(store) == []
    store.begin_attempt(state, MARK)
    store.begin_attempt(state, killer)
    found, mark = marks(store)
    assert mark == MARK
    assert found.verdict is not None and len(found.verdict) == 2_000
    assert replace(found, verdict=None) == replace(killer, verdict=None)
    assert marks(store, partition("1")) == []


def test_the_marks_of_all_partitions_of_a_stream_are_read_in_order(store: Store) -> None:
    other, elsewhere = store.read_partition(partition("1")), store.read_partition(partition(group="other"))
    for state, last in ((other, 4), (store.read_partition(P), 9), (store.read_partition(P), 8), (elsewhere, 7)):
        store.begin_attempt(state, replace(MARK, partition_id=state.partition.partition_id, tried=span(0, last)))
    found = [(mark.partition_id, mark.tried.last) for mark in store.read_marks(other)]
    assert found == [("0", 8), ("0", 9), ("1", 4)]


def test_a_mark_takes_the_place_of_the_one_with_the_same_last_number(store: Store) -> None:
    state = store.read_partition(P)
    newer = AttemptMark(P.partition_id, span(3, 4), UUID(int=8), EPOCH + timedelta(hours=1), 4, "killing/2", "it hung")
    store.begin_attempt(state, replace(MARK, tried=span(0, 4)))
    store.begin_attempt(state, newer)
    assert marks(store) == [newer]


def test_only_the_process_that_set_a_mark_takes_it_back(store: Store) -> None:
    state, last = store.read_partition(P), MARK.tried.last
    store.begin_attempt(state, MARK)
    other = replace(MARK, partition_id=partition("1").partition_id)
    store.begin_attempt(store.read_partition(partition("1")), other)
    store.end_attempt(state, last, UUID(int=8))
    assert marks(store) == [MARK]
    for _ in range(2):
        store.end_attempt(state, last, MARK.attempt_id)
        assert marks(store) == []
    assert marks(store, partition("1")) == [other]


def test_a_marked_commit_deletes_the_marks_that_end_in_it_and_another_leaves_them(store: Store) -> None:
    ends = (2, 5, 9, 10)
    state = store.anchor_partition(store.read_partition(P), SequenceNumber(0), EPOCH + timedelta(days=1))
    for place in (state, store.read_partition(partition("1"))):
        for last in ends:
            store.begin_attempt(place, replace(MARK, tried=span(0, last)))
    store.commit_batch(commit(state, 0, 4))
    assert [mark.tried.last for mark in marks(store)] == [2, 5, 9, 10]
    store.commit_batch(replace(commit(store.read_partition(P), 5, 9), is_marked=True))
    assert [mark.tried.last for mark in marks(store)] == [2, 10]
    store.clear_attempts(state, span(0, 10))
    assert marks(store) == []
    assert [mark.tried.last for mark in marks(store, partition("1"))] == [2, 5, 9, 10]
