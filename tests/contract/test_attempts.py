"""Promises of every store about the marks of attempts."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from core.model.commits import PartitionState
from core.model.events import SequenceNumber, span
from core.settle.attempts import NOBODY, AttemptMark
from tests.fakes.builders import EPOCH, commit, partition
from tests.fakes.store import Store

P = partition()
MARK = AttemptMark(span(2**62, 2**62 + 9), UUID(int=7), EPOCH, "call-ü", 3, "killing/ü", None)
ALL = span(0, 2**63 - 1)


def marks(store: Store, state: PartitionState | None = None) -> list[AttemptMark]:
    return list(store.read_marks(state or store.read_partition(P), ALL))


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
    assert marks(store, store.read_partition(partition("1"))) == []


def test_only_the_marks_that_have_one_of_the_numbers_are_read(store: Store) -> None:
    state = store.read_partition(P)
    for first, last in ((0, 9), (10, 10), (11, 19), (20, 29)):
        store.begin_attempt(state, replace(MARK, tried=span(first, last)))
    assert [mark.tried for mark in store.read_marks(state, span(9, 11))] == [span(0, 9), span(10, 10), span(11, 19)]


def test_a_mark_takes_the_place_of_the_one_with_the_same_last_number(store: Store) -> None:
    state = store.read_partition(P)
    newer = AttemptMark(span(3, 4), UUID(int=8), EPOCH + timedelta(hours=1), "call-2", 4, "killing/2", "it hung")
    store.begin_attempt(state, replace(MARK, tried=span(0, 4)))
    store.begin_attempt(state, newer)
    assert marks(store) == [newer]


def test_only_the_process_that_set_a_mark_takes_it_back_or_leaves_it(store: Store) -> None:
    state, last = store.read_partition(P), MARK.tried.last
    store.begin_attempt(state, MARK)
    store.begin_attempt(store.read_partition(partition("1")), MARK)
    store.end_attempt(state, last, UUID(int=8), None)
    store.end_attempt(state, last, UUID(int=8), 9)
    assert marks(store) == [MARK]
    store.end_attempt(state, last, MARK.attempt_id, 2)
    assert marks(store) == [replace(MARK, attempt_id=NOBODY, deaths=2)]
    store.begin_attempt(state, MARK)
    for _ in range(2):
        store.end_attempt(state, last, MARK.attempt_id, None)
        assert marks(store) == []
    assert marks(store, store.read_partition(partition("1"))) == [MARK]


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
    assert [mark.tried.last for mark in marks(store, store.read_partition(partition("1")))] == [2, 5, 9, 10]


def test_a_long_name_of_an_invocation_is_cut(store: Store) -> None:
    store.begin_attempt(store.read_partition(P), replace(MARK, invocation_id="x" * 500))
    (mark,) = marks(store)
    assert mark.invocation_id == "x" * 100
