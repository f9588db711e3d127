import pathlib
import sys
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import msgspec
import pytest
from msgspec import structs

import core
from core.errors import MissingReference, PoisonEvent, ProcessDied
from core.model.commits import DeadLetter, Settled
from core.model.events import Event, SequenceNumber
from core.model.rows import ReferenceKey, References, Row
from core.model.transforms import Transform, body_decoder
from core.settle.cause import Place, cause_of, differing_values, fingerprint_of, raised_in, template_of, values_of
from core.settle.isolate import Isolation
from core.settle.settle import ERROR_LENGTH, KeyOrder, OpenLetter, dead_letter, reference_keys, settle
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import alert, event, events, home, reading
from tests.fakes.plain_transform import PLAIN

LONG = "x" * ERROR_LENGTH
RowsOf = Callable[[Event, References], Iterable[Row]]


def settle_with(rows_of: RowsOf, *given: Event, known: Iterable[Row] = (), **means: Any) -> Settled:
    references = References({ReferenceKey.of(row): row for row in known})
    return settle(given or (event(0),), references, Transform("test/1", rows_of, **means))


def plain(*bodies: str) -> Settled:
    return settle([event(number, body) for number, body in enumerate(bodies)], References({}), PLAIN)


class Panic(BaseException):
    """As a native extension raises it."""


class Mute(Exception):
    def __str__(self) -> str:
        raise self.args[0] if self.args else SystemExit("nothing to say")


class SharperPoison(PoisonEvent):
    pass


class SharperMissing(MissingReference):
    pass


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


def test_an_event_with_an_unknown_field_has_its_outcome_and_is_counted() -> None:
    class Order(msgspec.Struct):
        order_id: str

    decode = body_decoder(Order)

    def rows_of(event: Event, references: References) -> Iterable[Row]:
        decode(event.body)
        return ()

    bodies = (b'{"order_id":"1","coupon":1}', b'{"order_id":"1"}', b'{"order_id":1,"coupon":1}')
    made = [structs.replace(event(number), body=body) for number, body in enumerate(bodies)]
    settled = settle_with(rows_of, *made)
    assert (settled.filtered, settled.dead_lettered, settled.unknown_fields) == (2, 1, {"coupon": 1})
    assert settle_with(rows_of, made[1]).unknown_fields == {}


def test_rows_are_gathered_by_class_with_number_and_ordinal() -> None:
    done = settle_with(lambda event, _: [reading(), alert(), reading("b")], event(4), event(5))
    assert done.rows[SensorReading] == [(n, at, row) for n in (4, 5) for at, row in ((0, reading()), (2, reading("b")))]
    assert done.rows[HomeAlert] == [(4, 1, alert()), (5, 1, alert())]
    assert (done.written, done.filtered, done.letters, done.rows_written) == (2, 0, [], 6)


def test_a_bad_event_does_not_touch_its_neighbours() -> None:
    done = plain("reading a", "poison", "quiet", "bug", "look nobody", "double a")
    assert [(letter.event.sequence_number, letter.error_class, letter.status) for letter in done.letters] == [
        (1, "poison", "exhausted"),
        (3, "unknown", "waiting"),
        (4, "reference", "waiting"),
    ]
    assert done.letters[2].error == "home nobody is not registered"
    assert [number for number, _, _ in done.rows[SensorReading]] == [0, 5]
    assert (done.written, done.filtered) == (2, 1)


@pytest.mark.parametrize(
    ("error", "error_class", "status", "text"),
    [
        (PoisonEvent("no such kind"), "poison", "exhausted", "no such kind"),
        (SharperPoison("x"), "poison", "exhausted", "x"),
        (MissingReference("no home"), "reference", "waiting", "no home"),
        (SharperMissing("x"), "reference", "waiting", None),
        (ProcessDied("it died"), "crash", "exhausted", "it died"),
        (KeyError("x"), "unknown", "waiting", "'x'"),
        (AssertionError(), "unknown", "waiting", "AssertionError"),
        (RecursionError(), "unknown", "waiting", "RecursionError"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "unknown", "waiting", None),
        (ExceptionGroup("several", [ValueError("x")]), "unknown", "waiting", None),
        (StopIteration(), "unknown", "waiting", None),
        (ValueError("x" * (ERROR_LENGTH + 1)), "unknown", "waiting", LONG),
        (ValueError("\ud83d, 👩\udfff" + "x" * 9_999), "unknown", "waiting", f"\\ud83d, 👩\\udfff{LONG[15:]}"),
        (SystemExit(1), "unknown", "waiting", "1"),
        (GeneratorExit(), "unknown", "waiting", None),
        (CancelledError(), "unknown", "waiting", None),
        (Panic("index out of bounds"), "unknown", "waiting", "index out of bounds"),
        (BaseException(), "unknown", "waiting", "BaseException"),
        (Mute(), "unknown", "waiting", None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_whatever_a_transform_raises_is_kept_with_its_class_and_leaves_none_of_the_events_rows(
    error: BaseException, error_class: str, status: str, text: str | None
) -> None:
    def transform(event: Event, references: References) -> Iterator[Row]:
        yield reading()
        yield home()
        if event.sequence_number == 1:
            raise error

    done = settle_with(transform, *events(0, 2))
    (letter,) = done.letters
    assert (letter.event, letter.error_class, letter.status) == (event(1), error_class, status)
    if not isinstance(error, StopIteration):  # which a generator makes a RuntimeError
        assert letter.error_type.endswith(f"{type(error).__module__}.{type(error).__qualname__}")
    assert text is None or letter.error == text
    assert [number for number, _, _ in done.rows[SensorReading]] == [0, 2]
    assert only_letter(settle_with(raising(error))).error_class == error_class
    assert reference_keys([event(0)], Transform("test/1", transform, asking(error))) == set()


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt()], ids=repr)
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


@pytest.mark.parametrize(
    "make",
    [lambda n: [reading()] * n, lambda n: (reading(),) * n, lambda n: (reading() for _ in range(n))],
    ids=["list", "tuple", "generator"],
)
def test_too_many_rows_of_an_event_are_a_letter_before_they_fill_memory(make: Callable[[int], Iterable[Row]]) -> None:
    def settled(many: int) -> Settled:
        return settle_with(
            lambda event, _: make(many if event.sequence_number == 1 else 1), *events(0, 2), rows_limit=5
        )

    assert settled(5).rows_written == 7
    done = settled(6)
    (letter,) = done.letters
    assert (letter.error_class, letter.error_type) == ("unknown", "core.errors.TooManyRows")
    assert "more than 5 rows" in letter.error and "ROWS_PER_EVENT" in letter.error
    assert done.rows_written == 2


def test_rows_without_end_are_not_all_made_also_where_the_database_refused_other_events() -> None:
    made: list[int] = []

    def endless(event: Event, references: References) -> Iterator[Row]:
        for number in count():
            made.append(number)
            yield reading()

    isolation = Isolation(refused={SequenceNumber(0): "too long"})
    own = Transform("test/1", endless, rows_limit=5)
    assert only_letter(settle([event(1)], References({}), own)).error_type == "core.errors.TooManyRows"
    assert len(made) == 6
    done = settle(events(0, 1), References({}), isolation.around(own))
    assert [letter.error_type.rpartition(".")[2] for letter in done.letters] == ["RowsRefused", "TooManyRows"]


@dataclass(frozen=True)
class Undeclared:
    home_id: str


UNDECLARED = (Undeclared("a"), "a", None, 7)


@pytest.mark.parametrize(
    ("made", "error_type", "word"),
    [
        *(([home(), one], "core.errors.InvalidTransform", type(one).__name__) for one in UNDECLARED),
        *((one, "builtins.TypeError", "") for one in (None, 7, reading())),
        ([Home(["no", "text"], "UTC", True)], "builtins.TypeError", ""),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_what_is_no_declared_row_or_no_key_is_a_letter(made: Any, error_type: str, word: str) -> None:
    done = settle_with(lambda event, _: [home()] if event.sequence_number else made, event(0), event(1))
    (letter,) = done.letters
    assert (letter.error_class, letter.error_type, word in letter.error) == ("unknown", error_type, True)
    assert (done.rows, done.written) == ({Home: [(1, 0, home())]}, 1)


def test_an_event_sees_what_earlier_events_of_its_batch_wrote_and_nothing_of_those_that_failed() -> None:
    done = plain("look a", "home a 1", "look a", "home a 0", "look a")
    assert [letter.event.sequence_number for letter in done.letters] == [0]
    sensors = [cast(SensorReading, row).sensor_id for _, _, row in done.rows[SensorReading]]
    assert sensors == ["sensorTrue", "sensorFalse"]
    toggled = settle_with(
        lambda event, references: [home(armed=not references.get(Home, "home-1").armed)],
        *events(0, 2),
        known=[home(armed=False)],
    )
    assert [cast(Home, row).armed for _, _, row in toggled.rows[Home]] == [True, False, True]

    def failing(event: Event, references: References) -> Iterator[Row]:
        if event.sequence_number == 0:
            yield home()
            raise PoisonEvent("and then")
        yield references.get(Home, "home-1")

    letters = settle_with(failing, event(0), event(1)).letters
    assert [letter.error_class for letter in letters] == ["poison", "reference"]


def test_the_fingerprint_groups_letters_of_one_cause_and_comes_with_the_line_that_raised_the_error() -> None:
    def elsewhere(event: Event, references: References) -> Iterable[Row]:
        raise ValueError("x")

    assert len({letter.fingerprint for letter in plain("poison", "poison now").letters}) == 1
    errors = (ValueError("x"), KeyError("x"), ValueError("too long"), ValueError("too short"), ValueError("\ud800"))
    ways = [*(raising(error) for error in errors), elsewhere]
    assert len({only_letter(settle_with(way)).fingerprint for way in ways}) == 6
    line = raising(ValueError("x")).__code__.co_firstlineno + 1
    assert only_letter(settle_with(raising(ValueError("x")))).error_at == f"test_settle.py:{line}"


SOUND = ReferenceKey(Home, ("a",))


def test_reference_keys_are_those_of_all_events_that_can_say_once() -> None:
    bodies: list[str | bytes] = ["look a", "look b", "look a", "quiet", b"\xff", b"", "look"]
    given = [event(number, body) for number, body in enumerate(bodies)]
    assert reference_keys(given, PLAIN) == {SOUND, ReferenceKey(Home, ("b",))}
    assert reference_keys(given, Transform("test/1", PLAIN.rows_of)) == set()
    for wrong in (
        ReferenceKey(Home, (["not", "a", "key"],)), ReferenceKey(Home, "a"), ReferenceKey(Home, ("a", "b")),  # type: ignore[arg-type]
        ReferenceKey(Home, ()), ReferenceKey(Home, (("deep",),)), ReferenceKey(Home, (object(),)),
        ReferenceKey(SensorReading, ("a",)), ReferenceKey(dict, ("a",)), (Home, ("b",)), None, "a", 7,
    ):  # fmt: skip
        answers: dict[int, Any] = {0: [SOUND, wrong], 1: [SOUND]}
        own = Transform("test/1", PLAIN.rows_of, lambda one: answers[one.sequence_number])  # noqa: B023
        assert reference_keys(given[:2], own) == {SOUND}, wrong
        assert reference_keys(given[:1], own) == set(), wrong


OPEN, DISCARDED = {"k": OpenLetter(SequenceNumber(2), "reference")}, frozenset({SequenceNumber(5)})


@pytest.mark.parametrize(
    ("bodies", "keys", "order", "behind"),
    [
        pytest.param("bug quiet", "kk", None, {5: None}, id="without an order none is held"),
        pytest.param("quiet bug quiet poison", "kkkk", KeyOrder({}), {6: None, 7: 6, 8: 7}, id="each after one before"),
        pytest.param("bug quiet quiet bug quiet", "kq-qk", KeyOrder({}), {5: None, 8: None, 9: 5}, id="other keys"),
        pytest.param("bug quiet", "_-", KeyOrder({}), {5: None}, id="no key is no empty key"),
        pytest.param("quiet", "k", KeyOrder(OPEN), {5: 2}, id="an open letter"),
        pytest.param("bug quiet", "kk", KeyOrder({}, DISCARDED), {5: None}, id="none waits for a discarded one"),
        pytest.param("quiet quiet", "kk", KeyOrder(OPEN, DISCARDED), {5: 2, 6: 2}, id="but for the open one before it"),
    ],
)
def test_events_are_held_while_an_earlier_event_of_their_key_has_an_open_letter(
    bodies: str, keys: str, order: KeyOrder | None, behind: dict[int, int | None]
) -> None:
    named = [{"-": None, "_": ""}.get(key, key) for key in keys]
    given = [event(5 + at, body, key=key) for at, (body, key) in enumerate(zip(bodies.split(), named, strict=True))]
    done = settle(given, References({}), PLAIN, order)
    assert done.written + done.filtered + done.dead_lettered + done.held == len(given)
    assert {letter.event.sequence_number: letter.held_behind for letter in done.letters} == behind
    for letter in done.letters:
        assert (letter.status == "held") == (letter.held_behind is not None)


def test_a_held_event_takes_over_the_class_of_the_open_letter_and_is_not_tried() -> None:
    (held,) = settle([event(5, "bug", key="k")], References({}), PLAIN, KeyOrder(OPEN)).letters
    assert (held.error_class, held.fingerprint) == ("reference", "held")
    assert held.error_type == "core.errors.EarlierLetterOpen"
    tried: list[int] = []

    def rows_of(given: Event, references: References) -> list[Row]:
        tried.append(given.sequence_number)
        raise PoisonEvent("no")

    settle([event(5, key="k"), event(6, key="k")], References({}), Transform("t/1", rows_of), KeyOrder({}))
    assert tried == [5]


@pytest.mark.parametrize(
    ("text", "template", "values"),
    [
        ("Invalid value 'doorbell' at `$.kind`", "Invalid value … at `$.kind`", ("doorbell",)),
        ("Expected `int`, got `str` - at `$.items[3].price`", "Expected `int`, got `str` - at `$.items[…].price`", ()),
        ("home home-082704 is not registered", "home … is not registered", ("home-082704",)),
        ("price -3.50 is below 0", "price … is below …", ("-3.50", "0")),
        ("rows 1, 2 and 3 of 9", "rows … of …", ("1", "2", "3", "9")),
        ("late since 2026-11-27T10:00:00.5Z", "late since …", ("2026-11-27T10:00:00.5Z",)),
        ("/data/x/y.csv is no file", "… is no file", ("/data/x/y.csv",)),
        ("C:\\data\\x.csv is no file", "… is no file", ("C:\\data\\x.csv",)),
        ("write to a.b@example.org", "write to …", ("a.b@example.org",)),
        ("see https://example.org/z?q=1, please", "see …, please", ("https://example.org/z?q=1",)),
        ("key 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10", "key …", ("0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10",)),
        ('no "abc" and no ""', "no … and no …", ("abc", "")),
        ("it's km/h, and isn't N/A", "it's km/h, and isn't N/A", ()),
        ("", "", ()),
    ],
)
def test_a_message_is_a_template_and_its_values(text: str, template: str, values: tuple[str, ...]) -> None:
    assert (template_of(text), values_of(text)) == (template, values)


def test_the_values_shown_are_those_in_which_messages_differ() -> None:
    texts = [f"Invalid value '{kind}' of sensor 7" for kind in ("doorbell", "WINDOW", "doorbell", "smoke")]
    assert differing_values(texts) == ("doorbell", "WINDOW", "smoke")
    assert differing_values(texts[:1]) == ("doorbell, 7",)
    assert differing_values(["no value"] * 2) == differing_values([]) == ()


def test_a_value_adds_to_the_cause_and_does_not_change_it() -> None:
    found = [fingerprint_of("ValueError", f"no '{value}'", Place()) for value in ("a", "b", "a")]
    assert found[0] == found[2] != found[1]
    assert cause_of(found[0]) == cause_of(found[1])
    assert (len(found[0]), len(cause_of(found[0])), found[0][16]) == (25, 16, ".")
    assert fingerprint_of("ValueError", "no", Place()) == cause_of(fingerprint_of("ValueError", "no", Place()))


def raised(file: str | None = None, code: str = "fail()") -> TracebackType:
    """Return the traceback of an error that this function raises, or the code of a file."""

    def fail() -> None:
        raise ValueError("x")

    with pytest.raises(ValueError) as error:
        exec(compile(code, file or __file__, "exec"), {"fail": fail})
    return error.tb


def test_the_place_is_the_last_line_of_the_room_and_not_of_its_caller() -> None:
    function, line, *_ = raised_in(raised())
    assert (function, line and line.split(":")[0]) == ("fail", Path(__file__).name)
    text = Path(__file__).read_text(encoding="utf-8").splitlines()[int(str(line).split(":")[1]) - 1]
    assert text.strip() == 'raise ValueError("x")'
    assert raised_in(None) == Place("", None)
    assert {raised_in(raised(file)).function for file in ("/apps/a.py", "/apps/b.py")} == {"fail"}


def test_the_frames_of_the_app_and_of_libraries_do_not_count_but_those_of_a_room_below_the_folder_of_python() -> None:
    for of in (core, pytest, pathlib):
        place = raised_in(raised(str(Path(str(of.__file__)).parent / "some.py"), "raise ValueError"))
        assert place.function == "raised"
    for folder in ("/home/site", f"{sys.prefix}/src/app", f"{sys.base_prefix}/src/app"):
        assert raised_in(raised(f"{folder}/apps/shop/transform.py", "raise ValueError")).line == "transform.py:1"


@pytest.mark.parametrize("piece", ["a-", "x.", "'", '"', "9", "/a", "a@", "a:/", "`", "\\", "'\\", "a.b@", "http://"])
def test_a_long_message_of_anybody_takes_no_more_steps_than_its_length(piece: str) -> None:
    """A pattern that tries again from each character would take a thousand times as many."""
    from timeit import timeit

    short, long = (piece * (length // len(piece)) for length in (200, 20_000))
    assert timeit(lambda: template_of(long), number=1) < 2_000 * max(timeit(lambda: template_of(short), number=9), 2e-5)


def faulty(body: dict[str, str], fault: str) -> object:
    """Fail in the line of a fault. The message of each says at most a value."""
    if fault == "town":
        return body["town"]
    if fault == "tariff":
        return body["tariff"]
    if fault == "first":
        return [*body][len(body)]
    if fault == "last":
        return [*body][-1]
    if fault == "claim":
        assert body
    if fault == "other claim":
        assert fault in body
    if fault == "id":
        raise ValueError(body.get("id", "home-000042"))
    if fault == "other id":
        raise ValueError(body.get("id", "home-000043"))
    return 2 / len(body)


FAULTS = ("town", "tariff", "first", "last", "claim", "other claim", "id", "other id", "share")


def letter_of(function: Callable[..., object], *given: object) -> DeadLetter:
    try:
        function(*given)
    except Exception as error:  # noqa: BLE001 - each fault has a class of its own
        return dead_letter(event(0), error, PLAIN)
    raise AssertionError("it did not fail")


def test_faults_of_different_lines_have_different_causes_where_the_message_is_only_a_value() -> None:
    causes = {fault: cause_of(letter_of(faulty, {}, fault).fingerprint) for fault in FAULTS}
    assert len(set(causes.values())) == len(FAULTS)
    assert causes == {fault: cause_of(letter_of(faulty, {}, fault).fingerprint) for fault in FAULTS}


def test_a_key_belongs_to_the_cause_and_the_id_of_one_event_does_not() -> None:
    def of(key: str) -> str:
        return cause_of(letter_of(lambda: dict[str, str]()[key]).fingerprint)

    assert of("town") != of("tariff")
    assert of("home-000042") == of("home-000043") == of("7")
    assert (template_of("'town'"), values_of("'town'")) == ("'town'", ())
    assert (template_of("'home-7'"), values_of("'home-7'")) == ("…", ("home-7",))


def test_a_cause_outlives_a_change_above_its_function_and_in_the_lines_around_a_message_of_the_room() -> None:
    code = "def fail(body):\n    {}\n    return body['town']\n"
    said = "def fail(body):\n    {}\n    raise ValueError('no town')\n"
    found = []
    for text in (code.format(""), "\n\n\n" + code.format(""), said.format(""), said.format("body = body\n\n")):
        names: dict[str, Any] = {}
        exec(compile(text, "/apps/shop/transform.py", "exec"), names)
        found.append(cause_of(letter_of(names["fail"], {}).fingerprint))
    assert found[0] == found[1] != found[2] == found[3]
