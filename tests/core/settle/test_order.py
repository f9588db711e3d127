"""core/settle/settle.py: which events of a run wait for an earlier one of their key."""

from core.errors import PoisonEvent
from core.model.commits import DeadLetter, OpenKeys
from core.model.events import SequenceNumber, order_key
from core.model.rows import References
from core.settle.settle import KeyOrder, OpenLetter, settle
from tests.fakes.builders import event
from tests.fakes.plain_transform import PLAIN

OPEN = OpenLetter(SequenceNumber(2), "reference")


def run(*bodies: str, order: KeyOrder | None, keys: str = "") -> dict[int, DeadLetter]:
    """Settle events from 5 on, whose keys are the letters of a text; `-` is none."""
    named = [None if key == "-" else key for key in keys or "k" * len(bodies)]
    events = [event(5 + at, body, key=key) for at, (body, key) in enumerate(zip(bodies, named, strict=True))]
    done = settle(events, References({}), PLAIN, order)
    assert done.written + done.filtered + done.dead_lettered + done.held == len(events)
    return {letter.event.sequence_number: letter for letter in done.letters}


def behind(letters: dict[int, DeadLetter]) -> dict[int, int | None]:
    return {number: letter.held_behind for number, letter in letters.items()}


def test_without_an_order_nothing_is_held() -> None:
    assert behind(run("bug", "quiet", order=None)) == {5: None}


def test_events_after_one_that_fails_are_held_each_after_the_one_before_it() -> None:
    letters = run("quiet", "bug", "quiet", "poison", "quiet", order=KeyOrder({}))
    assert behind(letters) == {6: None, 7: 6, 8: 7, 9: 8}
    assert [letters[number].status for number in (7, 8, 9)] == ["held"] * 3


def test_an_event_whose_key_has_an_open_letter_is_held_and_takes_over_its_class() -> None:
    letters = run("quiet", order=KeyOrder({"k": OPEN}))
    assert behind(letters) == {5: 2}
    assert (letters[5].error_class, letters[5].fingerprint) == ("reference", "held")
    assert letters[5].error_type == "core.errors.EarlierLetterOpen"


def test_other_keys_and_events_without_a_key_go_on() -> None:
    letters = run("bug", "quiet", "quiet", "bug", "quiet", keys="kq-qk", order=KeyOrder({}))
    assert behind(letters) == {5: None, 8: None, 9: 5}


def test_an_event_without_a_key_does_not_wait_for_an_empty_key() -> None:
    done = settle([event(5, "bug", key=""), event(6, "quiet")], References({}), PLAIN, KeyOrder({}))
    assert (len(done.letters), done.held) == (1, 0)


def test_events_do_not_wait_for_one_that_is_discarded() -> None:
    discarded = frozenset({SequenceNumber(5)})
    assert behind(run("bug", "quiet", order=KeyOrder({}, discarded))) == {5: None}
    assert behind(run("quiet", "quiet", order=KeyOrder({"k": OPEN}, discarded))) == {5: 2, 6: 2}


def test_a_held_event_is_not_tried() -> None:
    tried: list[int] = []

    def rows_of(given: object, references: References) -> list[object]:
        tried.append(given.sequence_number)  # type: ignore[attr-defined]
        raise PoisonEvent("no")

    settle([event(5, key="k"), event(6, key="k")], References({}), type(PLAIN)("t/1", rows_of), KeyOrder({}))  # type: ignore[arg-type]
    assert tried == [5]


def test_a_key_is_as_the_store_holds_it() -> None:
    assert [order_key(event(1, key=key)) for key in (None, "", "ä", "\ud800")] == [None, "", "ä", "?"]


def test_open_keys_remember_what_was_opened_and_what_was_found_closed() -> None:
    keys = OpenKeys(frozenset("ab")).plus(["c", None]).minus(frozenset("a"))
    assert keys == OpenKeys(frozenset("bc"))
    assert keys.among(["a", "b", None]) == {"b"}


def test_too_many_open_keys_are_any_key() -> None:
    assert OpenKeys(None).plus(["a"]).minus(frozenset("b")).among(["b", None]) == {"b"}
