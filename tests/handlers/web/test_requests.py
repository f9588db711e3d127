"""handlers/web: requests.py and bodies.py read a request completely, or refuse it by the field's name."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import azure.functions as func
import msgspec
import pytest

from core.api.operation import Call, operation
from core.api.problems import Problem
from core.api.route import READING
from core.errors import RequestRefused
from core.model.shapes import Answered, Instant, NumberText, Shape, number_of, utc
from handlers.operations.letters import shown
from handlers.web.requests import LARGEST_BODY, LARGEST_QUERY, read_body, read_path, read_query


class Inner(Shape):
    number: NumberText


class Given(Shape):
    ONE_OF = ("name", "inner")

    count: Annotated[int, msgspec.Meta(ge=1, le=10)] = 1
    at: Instant | None = None
    name: str | None = None
    inner: list[Inner] | None = None


class Told(Answered):
    pass


@operation("a test", "tests")
def tested(call: Call[Inner, Given, Given]) -> Told:
    return Told()


def request(body: bytes = b"", *, headers: dict[str, str] | None = None, **params: Any) -> func.HttpRequest:
    given = {"content-type": "application/json", **(headers or {})}
    return func.HttpRequest("POST", "/api/test", headers=given, params=params, route_params={"number": "7"}, body=body)


NOT_JSON = (
    b"{", b"", b'"\xff"', b'"\xed\xa0\xbd"', b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b'{"a":NaN}',
    b"[Infinity, -Infinity]", b'"a\x00b"', b"{} {}", b'"\\x41"',
)  # fmt: skip
KEPT = (  # values that a reader of JSON may change: halves of a surrogate pair, NUL, numbers beyond floats, names twice
    '"\\ud83d"', '"a\\ude00b"', '"\\ud83d\\ude00"', '"a\\u0000b"', '"Grüße 👩\u2028"', "1e400",
    "0.10000000000000000000000000000000000001", "1.10", "-0", "9" * 5_000, '{\n    "x": 1,\n    "x": 2\n  }',
)  # fmt: skip


def field_of(caught: pytest.ExceptionInfo[Problem]) -> list[str]:
    return [one.field for one in caught.value.errors]


def test_path_query_and_body_are_read_into_their_shapes() -> None:
    asked = request(b'{"name":"a","at":"2026-01-01T01:00:00+01:00"}', count="3", code="secret", clientId="x")
    query, body = read_query(asked, tested, READING), read_body(asked, tested)
    assert read_path(asked, tested) == Inner(number="7")
    assert query == Given(count=3)
    assert isinstance(body, Given)
    assert (body.name, utc(body.at, "at")) == ("a", datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("params", "field"),
    [
        *(({"count": text}, "count") for text in ("11", "x", "1.5", "1e0", " 1", "\u0663", "9" * 30)),
        ({"more": "1"}, "more"),
        ({"at": "now"}, "at"),
    ],
)
def test_a_parameter_is_refused_by_its_name(params: dict[str, Any], field: str) -> None:
    with pytest.raises(Problem) as caught:
        read_query(request(**params), tested, READING)
    assert field_of(caught) == [field]


def test_all_parameters_together_have_a_limit() -> None:
    longest = "n" * (LARGEST_QUERY - len("name"))
    assert read_query(request(name=longest), tested, READING) == Given(name=longest)
    with pytest.raises(Problem) as caught:
        read_query(request(name=f"{longest}n"), tested, READING)
    assert field_of(caught) == ["query"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"name":1}', "name"),
        (b'{"name":"a","more":1}', "more"),
        (b'{"inner":[{"number":"1"},{"number":"x"}]}', "inner[1].number"),
        (b'{"inner":[{}]}', "inner[0].number"),
        (b'{"inner":[{"number":"1","a.b":2}]}', "inner[0].a.b"),
        (b'{"name":"a","inner":[]}', "inner"),
        (b"{}", "name"),
        (b"[]", "body"),
        (b"{", "body"),
    ],
)
def test_a_field_of_the_body_is_refused_by_its_place(body: bytes, field: str) -> None:
    with pytest.raises(Problem) as caught:
        read_body(request(body), tested)
    assert (field_of(caught), caught.value.kind.status) == ([field], 400)


def test_a_body_that_is_too_large_or_not_json_is_refused() -> None:
    with pytest.raises(Problem) as large:
        read_body(request(b" " * (LARGEST_BODY + 1)), tested)
    with pytest.raises(Problem) as other:
        read_body(request(b"{}", headers={"content-type": "text/html"}), tested)
    assert (large.value.kind.status, other.value.kind.status) == (413, 415)


def test_a_sequence_number_of_more_than_63_bits_is_refused() -> None:
    assert number_of(str(2**63 - 1), "n") == 2**63 - 1
    with pytest.raises(RequestRefused):
        number_of(str(2**63), "n")


class TestBodies:
    def test_octets_that_are_no_text_are_shown_too(self) -> None:
        assert shown(b"a\xffb", 3, "text").shown == "a\ufffdb"
        assert shown(b"a\xffb", 3, "hex").shown == "61ff62"

    @pytest.mark.parametrize("body", NOT_JSON, ids=repr)
    def test_a_body_that_is_no_json_is_named_so_and_not_shown(self, body: bytes) -> None:
        answer = shown(body, len(body), "json")
        assert answer.shown is None
        assert (answer.fault or "").startswith("not JSON: ")

    @pytest.mark.parametrize("text", KEPT, ids=lambda text: ascii(text)[:20])
    def test_every_value_of_a_json_body_is_shown_as_its_event_has_it(self, text: str) -> None:
        body = f'{{"a":{text},"b":[]}}'.encode()
        answer = shown(body, len(body), "json")
        assert answer.shown == f'{{\n  "a": {text},\n  "b": []\n}}'
        assert msgspec.json.decode(msgspec.json.encode(answer))["shown"] == answer.shown

    def test_a_json_body_is_shown_one_value_a_line_and_white_space_between_values_does_not_count(self) -> None:
        body = b'\t{ "a" :[ 1,{"b, c" : "{\\"x\\": [1]}"},[ ], { } ]\r\n}\n'
        lines = ["{", '  "a": [', "    1,", "    {", '      "b, c": "{\\"x\\": [1]}"', "    },", "    [],", "    {}"]
        assert shown(body, len(body), "json").shown == "\n".join([*lines, "  ]", "}"])

    def test_a_body_that_is_nested_too_deeply_says_so_and_one_that_is_nested_deeply_is_shown_in_little_space(
        self,
    ) -> None:
        deepest, deep = b"[" * 100_000 + b"]" * 100_000, b"[" * 500 + b"1" + b",1" * 50_000 + b"]" * 500
        assert shown(deepest, len(deepest), "json").fault == "nested too deeply to be shown as JSON"
        found = shown(deep, len(deep), "json").shown or ""
        assert json.loads(found) == json.loads(deep)
        assert len(found) < 50 * len(deep)

    def test_a_long_body_is_cut_and_marked_as_cut(self) -> None:
        answer = shown(b"12345", 9, "text")
        assert (answer.shown, answer.truncated, answer.bytes) == ("12345", True, 9)
        assert shown(b"12345", 9, "json").shown is None


LAST, CUT = "2026-02-28T23:59:59.9999999Z", datetime(2026, 2, 28, 23, 59, 59, 999_999, UTC)
END = {LAST: CUT, "9999-12-31T23:59:59.9999999Z": datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)}


@pytest.mark.parametrize("text", END)
def test_an_instant_is_cut_to_microseconds_and_a_text_stays_whole(text: str) -> None:
    query = read_query(request(at=text, name=text), tested, READING)
    body = read_body(request(json.dumps({"at": text, "name": text}).encode()), tested)
    for read in (query, body):
        assert isinstance(read, Given)
        assert (read.at, read.name) == (END[text], text)
