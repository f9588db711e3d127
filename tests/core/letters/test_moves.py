"""Promises of every store about moves: the table is kept, each has an attempt, and twice is as good as once."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import get_args

import pytest

from core.errors import LetterConflict
from core.model.commits import LetterStatus
from core.model.events import SequenceNumber
from core.model.letters import MOVES, LetterMove, Move
from tests.core.letters.test_store import resolved, retry
from tests.fakes.builders import LATEST, NOON, STREAM, claim, hold, keep_letters, partition
from tests.fakes.kept import Engine
from tests.fakes.store import Store

LATER, DUE = NOON + timedelta(minutes=1), NOON + timedelta(minutes=2, microseconds=7)
SENT: list[Move] = ["release", "exhaust", "requeue", "discard", "free"]
STATUSES: list[LetterStatus] = list(get_args(LetterStatus))


def move(what: Move, *numbers: int, move_id: str = "move-1", claimed_by: str | None = None) -> LetterMove:
    given = tuple(map(SequenceNumber, numbers))
    return LetterMove(what, partition(), given, move_id, LATER, DUE, "somebody", "because", claimed_by)


def put(store: Store, status: str) -> None:
    """Letter 0 of partition 0 in this status."""
    keep_letters(store, {0: "a"}, status="waiting" if status == "retrying" else status)
    if status == "retrying":
        store.claim_letters(claim())


@pytest.mark.parametrize(("what", "status"), list(product(SENT, STATUSES)))
def test_a_move_is_made_exactly_where_the_table_allows_it(
    store: Store, engine: Engine, what: Move, status: LetterStatus
) -> None:
    put(store, status)
    before = engine.letters()
    (found,) = store.move_letters(move(what, 0))
    if status in MOVES[what].sources:
        assert (found.status, found.touched_by) == (MOVES[what].target, "move-1")
        assert [kept.status for kept in engine.letters()] == [MOVES[what].target]
    else:
        assert (found.status, found.touched_by) == (status, before[0].claimed_by)
        assert engine.letters() == before
        assert engine.attempts() == []


def test_a_discarded_letter_says_when_and_why_and_is_never_due(store: Store, engine: Engine) -> None:
    put(store, "waiting")
    store.move_letters(move("discard", 0))
    (kept,) = engine.letters()
    assert (kept.status, kept.due_at, kept.settled_at, kept.settled_why) == ("discarded", None, LATER, "because")
    assert store.next_due_at(STREAM, LATEST) is None


def test_a_requeued_letter_is_due_at_the_request_and_its_attempts_begin_again(store: Store, engine: Engine) -> None:
    put(store, "exhausted")
    store.move_letters(move("requeue", 0))
    (kept,) = engine.letters()
    assert (kept.status, kept.due_at, kept.attempts, kept.lost_claims) == ("waiting", DUE, 0, 0)
    assert (kept.settled_at, kept.settled_why, kept.error) == (None, None, "no such kind")


def test_a_requeued_letter_of_class_crash_is_tried_alone_as_one_that_has_lost_a_claim(
    store: Store, engine: Engine
) -> None:
    keep_letters(store, {0: "a"}, status="exhausted", error_class="crash")
    store.move_letters(move("requeue", 0))
    (kept,) = engine.letters()
    assert (kept.status, kept.attempts, kept.lost_claims) == ("waiting", 0, 1)


def test_a_released_letter_waits_without_an_attempt(store: Store, engine: Engine) -> None:
    put(store, "retrying")
    store.begin_lone_try(hold(store, [0]), LATER, DUE)
    store.move_letters(move("release", 0, claimed_by="claim-1"))
    (kept,) = engine.letters()
    assert (kept.status, kept.due_at, kept.attempts) == ("waiting", DUE, 1)
    assert (kept.claimed_until, kept.began_at) == (None, None)
    assert engine.attempts() == []


def test_a_release_under_another_claim_changes_nothing(store: Store, engine: Engine) -> None:
    put(store, "retrying")
    before = engine.letters()
    (found,) = store.move_letters(move("release", 0, claimed_by="claim-0"))
    assert (found.status, found.touched_by) == ("retrying", "claim-1")
    assert engine.letters() == before


def test_a_persons_move_leaves_an_attempt_with_who_and_why(store: Store, engine: Engine) -> None:
    put(store, "waiting")
    store.move_letters(move("exhaust", 0))
    store.move_letters(move("requeue", 0, move_id="move-2"))
    store.move_letters(move("discard", 0, move_id="move-3"))
    made = [(kept.attempt, kept.kind, kept.status, kept.touched_by) for kept in engine.attempts()]
    assert made == [
        (1, "exhaust", "exhausted", "move-1"),
        (2, "requeue", "waiting", "move-2"),
        (3, "discard", "discarded", "move-3"),
    ]
    assert {(kept.done_by, kept.why, kept.commit_number) for kept in engine.attempts()} == {
        ("somebody", "because", None)
    }


@pytest.mark.parametrize("what", ["release", "exhaust", "requeue", "discard"])
def test_a_move_that_is_sent_twice_is_made_once_and_answers_the_same(store: Store, engine: Engine, what: Move) -> None:
    put(store, "retrying" if what == "release" else "waiting")
    first = store.move_letters(move(what, 0))
    letters, attempts = engine.letters(), engine.attempts()
    assert store.move_letters(move(what, 0)) == first
    assert (engine.letters(), engine.attempts()) == (letters, attempts)


@pytest.mark.parametrize("what", ["requeue", "discard", "exhaust"])
def test_a_move_that_happened_is_reported_as_done_whoever_touched_the_letter_since(
    store: Store, engine: Engine, what: Move
) -> None:
    """Its answer was lost. Before it is sent again, a keeper claims the letter or a person moves it, and it waits."""
    put(store, "waiting")
    store.move_letters(move(what, 0))
    store.move_letters(move("requeue", 0, move_id="move-2"))
    store.claim_letters(claim(at=DUE))
    store.move_letters(move("release", 0, move_id="move-3", claimed_by="claim-1"))
    letters, attempts = engine.letters(), engine.attempts()
    (found,) = store.move_letters(move(what, 0))
    assert (found.touched_by, found.status) == ("move-1", letters[0].status)
    assert (engine.letters(), engine.attempts()) == (letters, attempts)


def test_only_the_letters_that_are_named_are_moved_and_all_that_exist_are_answered(
    store: Store, engine: Engine
) -> None:
    keep_letters(store, dict.fromkeys((1, 2, 3), "a"))
    keep_letters(store, {2: "a"}, "1")
    found = store.move_letters(move("discard", 3, 1, 99))
    assert [(one.sequence_number, one.status) for one in found] == [(1, "discarded"), (3, "discarded")]
    assert [kept.status for kept in engine.letters()] == ["discarded", "waiting", "discarded", "waiting"]


def test_streams_are_moved_apart(store: Store) -> None:
    put(store, "waiting")
    other = partition(group="other")
    keep_letters(store, {0: "a"}, other)
    store.move_letters(replace(move("discard", 0), partition=other))
    assert [one.status for one in store.find_letters(hold(store, [0]))] == ["waiting"]


def test_what_a_person_discards_while_it_is_retried_is_not_committed(
    make_store: Callable[[], Store], engine: Engine
) -> None:
    keeper, person = make_store(), make_store()
    put(keeper, "retrying")
    person.move_letters(move("discard", 0))
    with pytest.raises(LetterConflict):
        keeper.commit_retry(retry(keeper, [resolved(0)]))
    assert [kept.status for kept in engine.letters()] == ["discarded"]
    assert engine.retries() == []


def test_what_was_retried_first_is_not_discarded(make_store: Callable[[], Store], engine: Engine) -> None:
    keeper, person = make_store(), make_store()
    put(keeper, "retrying")
    keeper.commit_retry(retry(keeper, [resolved(0)]))
    (found,) = person.move_letters(move("discard", 0))
    assert (found.status, found.touched_by) == ("resolved", "claim-1")
    assert [kept.status for kept in engine.letters()] == ["resolved"]


def test_words_that_are_too_long_are_cut_to_what_the_columns_hold(store: Store, engine: Engine) -> None:
    put(store, "waiting")
    store.move_letters(replace(move("discard", 0), by="x" + "👩" * 100, why="x" + "👩" * 400))
    (kept,) = engine.attempts()
    assert (kept.done_by, kept.why) == ("x" + "👩" * 49, "x" + "👩" * 199)  # two UTF-16 units each
    assert [letter.settled_why for letter in engine.letters()] == [kept.why]


@pytest.mark.parametrize("what", ["discard", "requeue"])
@pytest.mark.parametrize("text", ["", "  ", "'; --", "👩‍👩‍👧", "a\x00b", "\ud800"], ids=ascii)
def test_hostile_words_of_a_person_are_kept(store: Store, engine: Engine, text: str, what: Move) -> None:
    put(store, "exhausted")
    store.move_letters(replace(move(what, 0), why=text, by=text))
    (kept,) = engine.attempts()
    assert kept.status == MOVES[what].target
    if text != "\ud800":
        assert (kept.done_by, kept.why or "") == (text, text)


def test_no_letters_are_no_move(store: Store) -> None:
    put(store, "waiting")
    assert store.move_letters(move("discard")) == ()
