"""core/settle/settle.py: the outcome of every event, whatever its transform does."""

from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

import msgspec
import pytest
from msgspec import structs

from core.errors import MissingReference, PoisonEvent, ProcessDied
from core.model.commits import DeadLetter, OpenKeys, Settled
from core.model.events import Event, SequenceNumber, order_key
from core.model.rows import ReferenceKey, References, Row
from core.model.transforms import Transform, body_decoder
from core.settle.isolate import Isolation
from core.settle.settle import ERROR_LENGTH, KeyOrder, OpenLetter, reference_keys, settle
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import alert, event, events, home, reading
from tests.fakes.plain_transform import PLAIN

RowsOf = Callable[[Event, References], Iterable[Row]]


def settle_with(rows_of: RowsOf, *given: Event, known: Iterable[Row] = ()) -> Settled:
    references = References({ReferenceKey.of(row): row for row in known})
    return settle(given or (event(0),), references, Transform("test/1", rows_of))


class Panic(BaseException):
    """As a native extension raises it."""


class Mute(Exception):
    def __str__(self) -> str:
        raise self.args[0] if self.args else SystemExit("nothing to say")


class Order(msgspec.Struct):
    order_id: str


def test_an_event_with_an_unknown_field_has_its_outcome_and_is_counted() -> None:
    decode = body_decoder(Order)

    def rows_of(event: Event, references: References) -> Iterable[Row]:
        decode(event.body)
        return ()

    bodies = (b'{"order_id":"1","coupon":1}', b'{"order_id":"1"}', b'{"order_id":1,"coupon":1}')
    made = [structs.replace(event(number), body=body) for number, body in enumerate(bodies)]
    settled = settle_with(rows_of, *made)
    assert (settled.filtered, settled.dead_lettered, settled.unknown_fields) == (2, 1, {"coupon": 1})
    assert settle_with(rows_of, made[1]).unknown_fields == {}


def raising(error: BaseException) -> RowsOf:
    def rows_of(event: Event, references: References) -> Iterable[Row]:
        raise error

    return rows_of


def asking(error: BaseException) -> Callable[[Event], Iterable[ReferenceKey]]:
    def references(event: Event) -> Iterable[ReferenceKey]:
        raise error

    return references


def only_letter(done: Settled) -> DeadLetter:
    (letter,) = done.letters
    assert (done.written, done.filtered, done.rows_written) == (0, 0, 0)
    return letter


def test_rows_are_gathered_by_class_with_number_and_ordinal() -> None:
    done = settle_with(lambda event, _: [reading(), alert(), reading("b")], event(4), event(5))
    assert done.rows[SensorReading] == [(n, at, row) for n in (4, 5) for at, row in ((0, reading()), (2, reading("b")))]
    assert done.rows[HomeAlert] == [(4, 1, alert()), (5, 1, alert())]
    assert (done.written, done.filtered, done.letters, done.rows_written) == (2, 0, [], 6)


def test_an_event_without_rows_is_filtered() -> None:
    done = settle_with(lambda event, _: (), event(0), event(1))
    assert (done.written, done.filtered, done.letters, done.rows_written) == (0, 2, [], 0)


def test_poison_is_exhausted_at_once() -> None:
    letter = only_letter(settle_with(raising(PoisonEvent("no such kind"))))
    assert (letter.error_class, letter.status, letter.error) == ("poison", "exhausted", "no such kind")
    assert letter.error_type == "core.errors.PoisonEvent"
    assert letter.event == event(0)


def test_a_missing_reference_waits() -> None:
    letter = only_letter(settle_with(lambda _, references: [references.get(Home, "home-9")]))
    assert (letter.error_class, letter.status) == ("reference", "waiting")
    assert letter.error == "home home-9 is not registered"
    assert letter.error_type == "core.errors.MissingReference"


class SharperPoison(PoisonEvent):
    pass


class SharperMissing(MissingReference):
    pass


@pytest.mark.parametrize(
    ("error", "error_class", "status"),
    [
        (KeyError("x"), "unknown", "waiting"),
        (RecursionError(), "unknown", "waiting"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "unknown", "waiting"),
        (ExceptionGroup("several", [ValueError("x")]), "unknown", "waiting"),
        (AssertionError(), "unknown", "waiting"),
        (OSError(5, "a transform does no I/O, and yet"), "unknown", "waiting"),
        (StopIteration(), "unknown", "waiting"),
        (SharperPoison("x"), "poison", "exhausted"),
        (SharperMissing("x"), "reference", "waiting"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_whatever_a_transform_raises_is_kept_with_its_class(error: Exception, error_class: str, status: str) -> None:
    letter = only_letter(settle_with(raising(error)))
    assert (letter.error_class, letter.status) == (error_class, status)


def test_an_error_without_a_text_is_named() -> None:
    assert only_letter(settle_with(raising(AssertionError()))).error == "AssertionError"


NO_EVENTS_FAULT = [MemoryError(), KeyboardInterrupt()]
ANY_FAULT = [SystemExit(1), GeneratorExit(), CancelledError(), Panic("index out of bounds"), BaseException(), Mute()]


@pytest.mark.parametrize("error", NO_EVENTS_FAULT, ids=repr)
def test_what_is_no_events_fault_goes_on(error: BaseException) -> None:
    ways: list[Callable[[], object]] = [
        lambda: settle_with(raising(error)),
        lambda: settle_with(raising(Mute(error))),
        lambda: reference_keys([event(0)], Transform("test/1", PLAIN.rows_of, asking(error))),
    ]
    for way in ways:
        with pytest.raises(type(error)) as escaped:
            way()
        assert escaped.value is error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Mute(KeyboardInterrupt())], ids=repr)
def test_an_interrupt_where_no_signal_is_taken_is_the_outcome_of_its_event(error: BaseException) -> None:
    transform = Transform("test/1", raising(error), asking(error), takes_signals=lambda: False)
    try:
        letter = only_letter(settle([event(0)], References({}), transform))
        asked = reference_keys([event(0)], transform)
    except KeyboardInterrupt:
        pytest.fail("the interrupt went on")
    assert (letter.error_class, letter.status, asked) == ("unknown", "waiting", set())


@pytest.mark.parametrize("error", ANY_FAULT, ids=lambda error: type(error).__name__)
def test_any_other_error_is_the_outcome_of_its_event(error: BaseException) -> None:
    def transform(event: Event, references: References) -> Iterator[Row]:
        yield reading()
        if event.sequence_number == 1:
            raise error

    done = settle_with(transform, *events(0, 2))
    assert [number for number, _, _ in done.rows[SensorReading]] == [0, 2]
    (letter,) = done.letters
    assert (letter.event.sequence_number, letter.error_class) == (1, "unknown")
    assert letter.error_type.endswith(type(error).__qualname__)
    assert reference_keys([event(0)], Transform("test/1", transform, asking(error))) == set()


class TestTooManyRows:
    """Are a letter before they fill the memory."""

    def settled(self, count: int, make: Callable[[int], Iterable[Row]]) -> Settled:
        own = Transform("test/1", lambda event, _: make(count if event.sequence_number == 1 else 1), rows_limit=5)
        return settle(events(0, 2), References({}), own)

    @pytest.mark.parametrize("make", [lambda n: [reading()] * n, lambda n: (reading(),) * n], ids=["list", "tuple"])
    def test_are_counted(self, make: Callable[[int], Iterable[Row]]) -> None:
        assert self.settled(5, make).rows_written == 7
        done = self.settled(6, make)
        (letter,) = done.letters
        assert (letter.error_class, letter.error_type) == ("unknown", "core.errors.TooManyRows")
        assert "more than 5 rows" in letter.error and "ROWS_PER_EVENT" in letter.error
        assert done.rows_written == 2

    def test_are_not_all_made(self) -> None:
        made: list[int] = []

        def endless(count: int) -> Iterator[Row]:
            for number in range(10**9 if count > 1 else 1):
                made.append(number)
                yield reading()

        assert [letter.error_type for letter in self.settled(2, endless).letters] == ["core.errors.TooManyRows"]
        assert len(made) == 6 + 2

    def test_are_counted_where_the_database_refused_other_events(self) -> None:
        isolation = Isolation(refused={event(0).sequence_number: "too long"})
        own = Transform("test/1", lambda event, _: (reading() for _ in count()), rows_limit=5)
        done = settle(events(0, 1), References({}), isolation.around(own))
        assert [letter.error_type.rpartition(".")[2] for letter in done.letters] == ["RowsRefused", "TooManyRows"]


def test_a_process_that_died_is_a_letter_for_a_person() -> None:
    letter = only_letter(settle_with(raising(ProcessDied("it died"))))
    assert (letter.error_class, letter.status) == ("crash", "exhausted")


def test_a_bad_event_does_not_touch_its_neighbours() -> None:
    bodies = ["reading a", "poison", "quiet", "bug", "look nobody", "double a"]
    done = settle([event(number, body) for number, body in enumerate(bodies)], References({}), PLAIN)
    assert [letter.event.sequence_number for letter in done.letters] == [1, 3, 4]
    assert [letter.error_class for letter in done.letters] == ["poison", "unknown", "reference"]
    assert [number for number, _, _ in done.rows[SensorReading]] == [0, 5]
    assert (done.written, done.filtered) == (2, 1)


def test_a_generator_that_fails_half_way_leaves_none_of_its_rows() -> None:
    def half(event: Event, references: References) -> Iterator[Row]:
        yield reading()
        yield home(armed=True)
        raise PoisonEvent("and then")

    assert only_letter(settle_with(half)).error == "and then"


def test_what_a_failed_event_wrote_is_not_learnt() -> None:
    def transform(event: Event, references: References) -> Iterator[Row]:
        if event.sequence_number == 0:
            yield home()
            raise PoisonEvent("and then")
        yield references.get(Home, "home-1")

    assert [letter.error_class for letter in settle_with(transform, event(0), event(1)).letters] == [
        "poison",
        "reference",
    ]


@dataclass(frozen=True)
class Undeclared:
    home_id: str


@pytest.mark.parametrize("made", [Undeclared("a"), "a text", None, 7], ids=repr)
def test_what_is_not_a_declared_row_is_a_letter_and_leaves_no_row(made: object) -> None:
    letter = only_letter(settle_with(lambda event, _: cast("list[Row]", [reading(), made])))
    assert (letter.error_class, letter.error_type) == ("unknown", "core.errors.InvalidTransform")
    assert type(made).__name__ in letter.error


@pytest.mark.parametrize("made", [None, 7, reading()], ids=["None", "number", "a bare row"])
def test_a_transform_that_returns_no_rows_to_go_through_is_a_letter(made: Any) -> None:
    assert only_letter(settle_with(lambda event, _: made)).error_type == "builtins.TypeError"


def test_an_undeclared_row_does_not_spoil_its_class_for_later_events() -> None:
    def transform(event: Event, references: References) -> Iterable[Row]:
        return cast("list[Row]", [home(), Undeclared("a")] if event.sequence_number == 0 else [home()])

    done = settle_with(transform, event(0), event(1))
    assert done.rows[Home] == [(1, 0, home())]
    assert (done.written, len(done.letters)) == (1, 1)


def test_an_event_sees_what_earlier_events_of_its_batch_wrote() -> None:
    bodies = ["look a", "home a 1", "look a", "home a 0", "look a"]
    done = settle([event(number, body) for number, body in enumerate(bodies)], References({}), PLAIN)
    assert [letter.event.sequence_number for letter in done.letters] == [0]
    assert [cast(SensorReading, row).sensor_id for _, _, row in done.rows[SensorReading]] == [
        "sensorTrue",
        "sensorFalse",
    ]


def test_a_learnt_state_takes_the_place_of_the_one_read() -> None:
    done = settle_with(
        lambda event, references: [home(armed=not references.get(Home, "home-1").armed)],
        *events(0, 2),
        known=[home(armed=False)],
    )
    assert [cast(Home, row).armed for _, _, row in done.rows[Home]] == [True, False, True]


class TestFingerprint:
    """Groups letters of one cause."""

    def of(self, rows_of: RowsOf) -> str:
        return only_letter(settle_with(rows_of)).fingerprint

    def test_is_the_same_for_other_events(self) -> None:
        done = settle([event(0, "poison"), event(1, "poison now")], References({}), PLAIN)
        assert len({letter.fingerprint for letter in done.letters}) == 1

    def test_differs_by_class_text_and_place_and_stands_for_a_lone_surrogate(self) -> None:
        def elsewhere(event: Event, references: References) -> Iterable[Row]:
            raise ValueError("x")

        errors = (ValueError("x"), KeyError("x"), ValueError("too long"), ValueError("too short"), ValueError("\ud800"))
        assert len({*(self.of(raising(error)) for error in errors), self.of(elsewhere)}) == 6

    def test_comes_with_the_line_that_raised_the_error(self) -> None:
        line = raising(ValueError("x")).__code__.co_firstlineno + 1
        assert only_letter(settle_with(raising(ValueError("x")))).error_at == f"test_settle.py:{line}"


@pytest.mark.parametrize("length", [ERROR_LENGTH - 1, ERROR_LENGTH, ERROR_LENGTH + 1, 1_000_000])
def test_the_text_of_an_error_is_bounded(length: int) -> None:
    letter = only_letter(settle_with(raising(ValueError("x" * length))))
    assert letter.error == "x" * min(length, ERROR_LENGTH)


def test_the_text_of_an_error_has_half_of_a_surrogate_pair_as_its_escape() -> None:
    letter = only_letter(settle_with(raising(ValueError("no \ud83d, and no 👩\udfff" + "x" * ERROR_LENGTH))))
    assert letter.error.startswith("no \\ud83d, and no 👩\\udfffx")
    assert len(letter.error) == ERROR_LENGTH


class TestReferenceKeys:
    def test_are_those_of_all_events_once(self) -> None:
        given = [event(0, "look a"), event(1, "look b"), event(2, "look a"), event(3, "quiet")]
        assert reference_keys(given, PLAIN) == {ReferenceKey(Home, ("a",)), ReferenceKey(Home, ("b",))}

    def test_are_none_without_a_function_that_says(self) -> None:
        assert reference_keys([event(0, "look a")], Transform("test/1", PLAIN.rows_of)) == set()

    def test_of_an_event_that_cannot_say_are_left_out(self) -> None:
        given = [event(0, b"\xff"), event(1, b""), event(2, "look"), event(3, "look b")]
        assert reference_keys(given, PLAIN) == {ReferenceKey(Home, ("b",))}

    def test_that_cannot_be_keys_are_left_out(self) -> None:
        sound = ReferenceKey(Home, ("a",))
        for wrong in (
            ReferenceKey(Home, (["not", "a", "key"],)), ReferenceKey(Home, "a"), ReferenceKey(Home, ("a", "b")),  # type: ignore[arg-type]
            ReferenceKey(Home, ()), ReferenceKey(Home, (("deep",),)), ReferenceKey(Home, (object(),)),
            ReferenceKey(SensorReading, ("a",)), ReferenceKey(dict, ("a",)), (Home, ("b",)), None, "a", 7,
        ):  # fmt: skip
            given = [event(0), event(1)]
            answers: dict[int, Any] = {0: [sound, wrong], 1: [sound]}
            asking = Transform("test/1", PLAIN.rows_of, lambda one: answers[one.sequence_number])  # noqa: B023
            assert reference_keys(given, asking) == {sound}, wrong
            assert reference_keys(given[:1], asking) == set(), wrong


def test_a_state_whose_key_cannot_be_one_is_a_letter() -> None:
    made = Home(["no", "text"], "UTC", True)  # type: ignore[arg-type]
    done = settle([event(0)], References({}), Transform("test/1", lambda event, _: [made]))
    assert [letter.error_type for letter in done.letters] == ["builtins.TypeError"]


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
