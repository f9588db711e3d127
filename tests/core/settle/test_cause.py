"""core/settle/cause.py: messages that differ in values have one cause, and frames of the room say where it arose."""

import pathlib
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

import core
from core.model.commits import DeadLetter
from core.settle.cause import Place, cause_of, differing_values, fingerprint_of, raised_in, template_of, values_of
from core.settle.settle import dead_letter
from tests.fakes.builders import event
from tests.fakes.plain_transform import PLAIN


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


def test_the_place_is_the_last_line_of_the_room() -> None:
    function, line, *_ = raised_in(raised())
    assert (function, line and line.split(":")[0]) == ("fail", Path(__file__).name)
    text = Path(__file__).read_text(encoding="utf-8").splitlines()[int(str(line).split(":")[1]) - 1]
    assert text.strip() == 'raise ValueError("x")'
    assert raised_in(None) == Place("", None)


def test_the_frames_of_the_app_and_of_libraries_do_not_count() -> None:
    for of in (core, pytest, pathlib):
        place = raised_in(raised(str(Path(str(of.__file__)).parent / "some.py"), "raise ValueError"))
        assert place.function == "raised"
    assert raised_in(raised("/home/site/apps/shop/transform.py", "raise ValueError")).line == "transform.py:1"


def test_the_caller_of_the_function_that_raised_it_does_not_count() -> None:
    assert {raised_in(raised(file)).function for file in (None, "/apps/a.py", "/apps/b.py")} == {"fail"}


def test_a_room_below_the_folder_of_python_is_a_room() -> None:
    for folder in (sys.prefix, sys.base_prefix):
        file = Path(folder) / "src" / "app" / "apps" / "shop" / "transform.py"
        assert raised_in(raised(str(file), "raise ValueError")).line == "transform.py:1"


@pytest.mark.parametrize("piece", ["a-", "x.", "'", '"', "9", "/a", "a@", "a:/", "`", "\\", "'\\", "a.b@", "http://"])
def test_a_long_message_of_anybody_takes_no_more_steps_than_its_length(piece: str) -> None:
    """A pattern that tries again from each character would take a thousand times as many."""
    from timeit import timeit

    short, long = (piece * (length // len(piece)) for length in (200, 20_000))
    assert timeit(lambda: template_of(long), number=1) < 2_000 * max(timeit(lambda: template_of(short), number=9), 2e-5)


def faulty(body: dict[str, str], fault: str) -> object:
    """Fail in the line of a fault; the message of each says at most a value."""
    if fault == "town":
        return body["town"]
    if fault == "tariff":
        return body["tariff"]
    if fault == "first":
        return [*body][len(body)]
    if fault == "last":
        return [*body][-1]
    if fault == "next":
        return next(iter(body))
    if fault == "next again":
        return next(iter(body))
    if fault == "claim":
        assert body
    if fault == "other claim":
        assert fault in body
    if fault == "amount":
        return Decimal("a")
    if fault == "price":
        return Decimal("b")
    if fault == "none":
        return body.get("a").lower()  # type: ignore[union-attr]
    if fault == "none again":
        return body.get("a").upper()  # type: ignore[union-attr]
    if fault == "id":
        raise ValueError(body.get("id", "home-000042"))
    if fault == "other id":
        raise ValueError(body.get("id", "home-000043"))
    if fault == "share":
        return 1 / len(body)
    return 2 / len(body)


FAULTS = (
    "town", "tariff", "first", "last", "next", "next again", "claim", "other claim", "amount", "price", "none",
    "none again", "id", "other id", "share", "other share",
)  # fmt: skip


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
