from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import get_args

import pytest
from msgspec import structs

from core.errors import DataRefused, LetterConflict
from core.model.commits import DeadLetter, LetterStatus, Settled
from core.model.events import Event, SequenceNumber
from core.model.letters import MOVES, LetterMove, LetterOutcome, Move, RetryCommit
from core.model.rows import Row
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes import builders
from tests.fakes.builders import NOON, claim, event, hold, home, keep_letters, letter, partition, reading, settled
from tests.fakes.kept import Engine, KeptAttempt, KeptLetter, KeptRow
from tests.fakes.store import Store

P = partition()
LATER = NOON + timedelta(minutes=1)
DUE = NOON + timedelta(minutes=3, microseconds=5)
BODIES = {
    "empty": b"",
    "every byte": bytes(range(256)),
    "NUL first": b"\x00\x00text\x00",
    "emoji": "👩‍👩‍👧".encode(),
    "not UTF-8": b"\xff\xfe\xed\xa0\x80",
    "one that is as long as a text may be": b"\xe2" * 2_001,
    "1 MB": bytes(range(256)) * 4096,
}
TEXTS = ["", "'; --", '"\\a\n\t\x1f', "👩‍👩‍👧", "👩" * 2_000, "k" * 10_000, "\x00", "a\x00b", "\ufdd0", "a\uffff", None]


def keep(store: Store, engine: Engine, *given: DeadLetter) -> list[KeptLetter]:
    numbers = [one.event.sequence_number for one in given]
    store.commit_batch(builders.commit(store.read_partition(P), numbers[0], numbers[-1], settled({}, letters=given)))
    return engine.letters()


def test_a_letter_keeps_all_of_its_event_and_its_reason(store: Store, engine: Engine) -> None:
    properties = {"tenant": "a", "retries": 3, "ratio": 0.5, "late": True, "none": None, "deep": {"list": [1, "ß"]}}
    given = Event(event(3).sequence_number, "192", builders.EPOCH, "key-1", properties, b"body")
    why = DeadLetter(given, "poison", "core.errors.PoisonEvent", "no such kind", "fedcba9876543210", "exhausted")
    (kept,) = keep(store, engine, why)
    assert kept == KeptLetter(
        stream_id=store.read_partition(P).stream_id,
        partition_id="0",
        sequence_number=3,
        offset="192",
        enqueued_at=builders.EPOCH,
        partition_key="key-1",
        properties=properties,
        body=b"body",
        error_class="poison",
        error_type="core.errors.PoisonEvent",
        error="no such kind",
        fingerprint="fedcba9876543210",
        transform_version="test/1",
        status="exhausted",
        attempts=1,
        due_at=None,
        failed_at=builders.EPOCH + timedelta(days=1),
    )


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_a_text_of_any_character_and_length_is_kept_as_it_is(store: Store, engine: Engine, text: str | None) -> None:
    error = (text or "")[:2_000]
    (kept,) = keep(store, engine, letter(event(0, b"body", key=text), error=error))
    assert (kept.partition_key, kept.error, kept.body) == (text, error, b"body")


def test_lone_surrogates_do_not_lose_a_letter(store: Store, engine: Engine) -> None:
    given = structs.replace(event(0, b"body", key="k\ud800y"), properties={"tenant\ud800": "a\udfff"})
    (kept,) = keep(store, engine, letter(given, error="no \udfff such"))
    assert (kept.partition_key, kept.error, kept.body, len(kept.properties)) == ("k?y", "no ? such", b"body", 1)


def everything(engine: Engine) -> tuple[object, ...]:
    rows = (*(engine.rows(each) for each in (SensorReading, HomeAlert, Home)),)
    return (*rows, engine.letters(), engine.ledger(), engine.retries(), engine.attempts())


def resolved(number: int) -> LetterOutcome:
    return LetterOutcome(SequenceNumber(number), "resolved", why="its rows were written")


def failed(number: int, error: str = "still wrong") -> LetterOutcome:
    why = replace(letter(event(number), error=error), error_class="reference", fingerprint="fedcba9876543210")
    return LetterOutcome(SequenceNumber(number), "waiting", why, DUE)


def exhausted(number: int) -> LetterOutcome:
    return LetterOutcome(SequenceNumber(number), "exhausted", why="the event left the hub", attempted=False)


def retry(
    store: Store, outcomes: list[LetterOutcome], outcome: Settled | None = None, by: str = "claim-1"
) -> RetryCommit:
    """A retry of letters of partition 0. Without rows of its own all of the resolved were filtered."""
    quiet = settled({}, filtered=sum(one.status == "resolved" for one in outcomes))
    state = store.read_partition(partition())
    return RetryCommit(state, by, tuple(outcomes), outcome or quiet, "test/2", "retry-1", LATER)


@pytest.fixture
def claimed(store: Store) -> Store:
    keep_letters(store, dict.fromkeys((2, 5, 8), "a"))
    store.claim_letters(claim())
    return store


def test_a_retry_settles_its_letters_and_writes_their_rows_their_attempts_and_a_row_of_the_ledger_together(
    store: Store, engine: Engine
) -> None:
    keep_letters(store, dict.fromkeys((2, 5, 8), "a"))
    keep_letters(store, {2: "a"}, "1")
    store.claim_letters(claim())
    before = engine.letters()
    outcomes = [resolved(2), failed(5, "still \udfff wrong"), exhausted(8)]
    placed = settled({2: [reading("a"), builders.alert("a"), home("b", armed=True)]})
    assert store.commit_retry(retry(store, outcomes, placed)) == 2
    done, waits, given_up, elsewhere = engine.letters()
    assert done == replace(
        before[0],
        status="resolved",
        attempts=2,
        due_at=None,
        claimed_until=None,
        transform_version="test/2",
        settled_at=LATER,
        settled_why="its rows were written",
    )
    assert (waits.status, waits.attempts, waits.due_at, waits.settled_at) == ("waiting", 2, DUE, None)
    assert (waits.error_class, waits.error, waits.fingerprint) == ("reference", "still ? wrong", "fedcba9876543210")
    assert waits.failed_at == NOON
    assert (given_up.status, given_up.attempts, given_up.error) == ("exhausted", 1, "no such kind")
    assert (given_up.settled_at, given_up.settled_why) == (LATER, "the event left the hub")
    assert elsewhere == before[3]  # a letter of a different partition, under the same claim
    place = (store.read_partition(partition()).stream_id, "0")
    assert engine.rows(SensorReading) == [KeptRow(*place, 2, 0, 2, reading("a"))]
    assert engine.rows(HomeAlert) == [KeptRow(*place, 2, 1, 2, builders.alert("a"))]
    assert engine.rows(Home) == [KeptRow(*place, 2, None, 2, home("b", armed=True))]
    (kept,) = engine.retries()
    assert (kept.first, kept.last, kept.commit_number, kept.committed_at) == (2, 8, 2, LATER)
    assert (kept.written, kept.filtered, kept.dead_lettered, kept.rows_written) == (1, 0, 2, 3)
    assert (kept.partition_id, kept.transform_version, kept.invocation_id) == ("0", "test/2", "retry-1")
    books = store.read_ledgers()[0]
    assert (books.balanced, books.commits, books.dead_lettered, books.letters) == (True, 1, 3, 3)
    shared = {"attempt": 1, "touched_by": "claim-1", "kind": "retry", "commit_number": 2, "done_by": "retry-1"}
    tried = [
        (2, "resolved", None, None, "its rows were written"),
        (5, "waiting", "reference", "still ? wrong", None),
        (8, "exhausted", "unknown", "no such kind", "the event left the hub"),
    ]
    assert engine.attempts() == [
        KeptAttempt(*place, number, **shared, status=status, error_class=kind, error=error, why=why)  # type: ignore[arg-type]
        for number, status, kind, error, why in tried
    ]
    assert store.claim_letters(claim("claim-2", at=DUE - timedelta(microseconds=1))) == ()
    assert len(store.claim_letters(claim("claim-2", at=DUE))) == 1
    store.commit_retry(retry(store, [failed(5)], by="claim-2"))
    made = [(one.attempt, one.commit_number) for one in engine.attempts() if one.sequence_number == 5]
    assert made == [(1, 2), (2, 3)]


def test_an_outcome_ends_a_row_of_lost_claims(claimed: Store, engine: Engine) -> None:
    at = NOON + timedelta(seconds=300)
    claimed.claim_letters(claim("claim-2", at=at))
    claimed.begin_lone_try(hold(claimed, [2], "claim-2"), at, at)
    claimed.commit_retry(retry(claimed, [failed(2)], by="claim-2"))
    assert [(kept.lost_claims, kept.began_at) for kept in engine.letters()] == [(0, None), (1, None), (1, None)]


def take_away(store: Store, how: str) -> None:
    if how == "claimed again":
        store.claim_letters(claim("claim-2", at=NOON + timedelta(seconds=300)))
    elif how == "settled":
        store.commit_retry(retry(store, [resolved(5)]))
    elif how == "discarded":
        store.move_letters(move("discard", 5))
    else:
        keep_letters(store, {9: "a"})


@pytest.mark.parametrize("how", ["claimed again", "settled", "discarded", "never claimed"])
def test_a_retry_of_letters_that_are_not_all_held_writes_nothing(claimed: Store, engine: Engine, how: str) -> None:
    take_away(claimed, how)
    before, state = everything(engine), claimed.read_partition(partition())
    number = 9 if how == "never claimed" else 5
    rows = settled({2: [reading(), home("a")], number: [reading()]})
    with pytest.raises(LetterConflict, match="no longer held by claim claim-1"):
        claimed.commit_retry(retry(claimed, [resolved(2), resolved(number)], rows))
    assert everything(engine) == before
    assert claimed.read_partition(partition()) == state


@pytest.mark.parametrize("row", [reading(), home()], ids=["appended", "state"])
def test_a_retry_that_is_committed_twice_writes_nothing_again(claimed: Store, engine: Engine, row: Row) -> None:
    once = retry(claimed, [resolved(2)], settled({2: [row]}))
    claimed.commit_retry(once)
    before = everything(engine)
    with pytest.raises((LetterConflict, DataRefused)):  # refused where the key of its rows is met first
        claimed.commit_retry(once)
    assert everything(engine) == before


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(reading(ppm=2**63), id="a number of 65 bits"),
        pytest.param(home(time_zone="\ud800"), id="a lone surrogate"),
        pytest.param(home(time_zone=None), id="nothing where something must be"),  # type: ignore[arg-type]
    ],
)
def test_refused_rows_leave_nothing_written_and_the_letters_held(claimed: Store, engine: Engine, row: Row) -> None:
    before = everything(engine)
    rows = settled({2: [reading(), home("a")], 5: [row]})
    with pytest.raises(DataRefused):
        claimed.commit_retry(retry(claimed, [resolved(2), resolved(5)], rows))
    assert everything(engine) == before
    assert claimed.commit_retry(retry(claimed, [resolved(2), failed(5)], settled({2: [reading()]}))) == 2


SENT: list[Move] = ["release", "exhaust", "requeue", "discard", "free"]
STATUSES: list[LetterStatus] = list(get_args(LetterStatus))


def move(what: Move, *numbers: int, move_id: str = "move-1", claimed_by: str | None = None) -> LetterMove:
    given = tuple(map(SequenceNumber, numbers))
    return LetterMove(what, partition(), given, move_id, LATER, DUE, "somebody", "because", claimed_by)


def put(store: Store, status: str) -> None:
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


def test_a_requeued_letter_begins_again_and_a_discarded_one_is_never_due(store: Store, engine: Engine) -> None:
    put(store, "exhausted")
    store.move_letters(move("requeue", 0))
    (kept,) = engine.letters()
    assert (kept.status, kept.due_at, kept.attempts, kept.lost_claims) == ("waiting", DUE, 0, 0)
    assert (kept.settled_at, kept.settled_why, kept.error) == (None, None, "no such kind")
    store.move_letters(move("discard", 0, move_id="move-2"))
    (kept,) = engine.letters()
    assert (kept.status, kept.due_at, kept.settled_at, kept.settled_why) == ("discarded", None, LATER, "because")
    assert store.next_due_at(builders.STREAM, builders.LATEST) is None
    made = [(one.attempt, one.kind, one.status, one.touched_by) for one in engine.attempts()]
    assert made == [(1, "requeue", "waiting", "move-1"), (2, "discard", "discarded", "move-2")]
    assert {(one.done_by, one.why, one.commit_number) for one in engine.attempts()} == {("somebody", "because", None)}


def test_a_letter_that_its_own_claim_releases_waits_without_an_attempt(store: Store, engine: Engine) -> None:
    put(store, "retrying")
    store.begin_lone_try(hold(store, [0]), LATER, DUE)
    before = engine.letters()
    (found,) = store.move_letters(move("release", 0, claimed_by="claim-0"))
    assert (found.status, found.touched_by) == ("retrying", "claim-1")
    assert engine.letters() == before
    first = store.move_letters(move("release", 0, claimed_by="claim-1"))
    assert store.move_letters(move("release", 0, claimed_by="claim-1")) == first
    (kept,) = engine.letters()
    assert (kept.status, kept.due_at, kept.attempts) == ("waiting", DUE, 1)
    assert (kept.claimed_until, kept.began_at) == (None, None)
    assert engine.attempts() == []


@pytest.mark.parametrize("what", ["requeue", "discard", "exhaust"])
def test_a_move_that_is_sent_again_is_made_once(store: Store, engine: Engine, what: Move) -> None:
    """The answer to a move was lost. Before the move is sent again, a keeper or an operator changes the letter."""
    put(store, "waiting")
    first = store.move_letters(move(what, 0))
    kept = engine.letters(), engine.attempts()
    assert store.move_letters(move(what, 0)) == first
    assert (engine.letters(), engine.attempts()) == kept
    store.move_letters(move("requeue", 0, move_id="move-2"))
    store.claim_letters(claim(at=DUE))
    store.move_letters(move("release", 0, move_id="move-3", claimed_by="claim-1"))
    kept = engine.letters(), engine.attempts()
    (found,) = store.move_letters(move(what, 0))
    assert (found.touched_by, found.status) == ("move-1", kept[0][0].status)
    assert (engine.letters(), engine.attempts()) == kept


def test_only_the_letters_that_are_named_are_moved_and_all_there_are_answered(store: Store, engine: Engine) -> None:
    keep_letters(store, dict.fromkeys((1, 2, 3), "a"))
    keep_letters(store, {2: "a"}, "1")
    other = partition(group="other")
    keep_letters(store, {1: "a"}, other)
    assert store.move_letters(move("discard")) == ()
    store.move_letters(replace(move("discard", 1), partition=other))
    assert [one.status for one in store.find_letters(hold(store, [1]))] == ["waiting"]
    found = store.move_letters(move("discard", 3, 1, 99))
    assert [(one.sequence_number, one.status) for one in found] == [(1, "discarded"), (3, "discarded")]
    own = store.read_partition(partition()).stream_id
    statuses = [kept.status for kept in engine.letters() if kept.stream_id == own]
    assert statuses == ["discarded", "waiting", "discarded", "waiting"]


@pytest.mark.parametrize("text", ["", "  ", "'; --", "👩‍👩‍👧", "a\x00b", "\ud800", "x" + "👩" * 400], ids=ascii)
def test_hostile_and_long_words_of_a_person_are_kept_as_the_columns_hold_them(
    store: Store, engine: Engine, text: str
) -> None:
    put(store, "exhausted")
    store.move_letters(replace(move("discard", 0), why=text, by=text))
    (kept,) = engine.attempts()
    assert kept.status == "discarded"
    if text != "\ud800":
        assert (kept.done_by, kept.why or "") == (text[:50], text[:200])  # two UTF-16 units an emoji
    assert [letter.settled_why for letter in engine.letters()] == [kept.why]
