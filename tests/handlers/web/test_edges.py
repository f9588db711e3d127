"""handlers/web: unforeseen faults, entity tags, and the texts of callers in answers."""

import gzip
import json
from typing import Any

import azure.functions as func
import pytest

from core.api.operation import Answer, Call, Operation, operation
from core.api.problems import SAFE, SHOWN_TEXT, Problem, clipped, invalid
from core.api.route import LEVELS, OPEN, READING, Level, Route, linked
from core.model.shapes import Answered, Nothing, Reason, Shape
from examples.home_security.routes import LINK
from handlers.web.answering import answer, answer_unrouted, is_known
from handlers.web.requests import read_body

LINKED = linked(LINK)

INVOCATION = "6e2a0f1c-52c8-4c5f-9d0a-0d8d3a3b9b11"
LONG = "x" * 5_000


class Told(Answered):
    pass


class Given(Shape):
    reason: Reason
    inner: dict[str, int] | None = None


@operation("a test that fails", "tests")
def failing(call: Call[Nothing, Nothing, Nothing]) -> Told:
    raise KeyError("a fault that nobody foresaw")


@operation("a test that answers", "tests")
def tagged(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    return Answer(b"{}", headers={"ETag": '"abc"'})


@operation("a test that answers at length", "tests")
def long(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    return Answer(LONG.encode(), headers={"ETag": '"abc"'})


@operation("a test that takes a body", "tests")
def taking(call: Call[Nothing, Nothing, Given]) -> Told:
    return Told()


def request(method: str = "GET", body: bytes = b"", *, params: Any = None, **headers: str) -> func.HttpRequest:
    given = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
    return func.HttpRequest(method, "/api/test", headers=given, body=body, params=params, route_params={})


def answered(of: Operation, asked: func.HttpRequest, level: Level = OPEN) -> func.HttpResponse:
    route = Route("GET", "test", level, f"tests.{of.name}")
    return answer(asked, route, {route: of}, INVOCATION)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The log of a test."""
    caplog.set_level("INFO", "hubledger")
    return caplog


def test_a_fault_that_nothing_foresaw_is_a_problem_that_leads_to_its_stack(log: pytest.LogCaptureFixture) -> None:
    response = answered(failing, request())
    body = json.loads(response.get_body())
    assert (response.status_code, response.mimetype) == (500, "application/problem+json")
    assert (body["type"], body["instance"]) == ("urn:hubledger:problem:unexpected", f"urn:uuid:{INVOCATION}")
    assert "nobody foresaw" not in str(body)
    (line,) = log.records
    said = vars(line)
    assert (said["action"], said["invocation_id"], said["levelname"]) == ("failing", INVOCATION, "ERROR")
    assert said["exc_info"] is not None


def test_every_answer_has_the_safe_headers() -> None:
    known = request(if_none_match='"abc"')
    refused = request(params={"bogus": "1"})
    answers = [answered(tagged, asked) for asked in (request(), known, refused)]
    answers += [answered(failing, request()), answer_unrouted(request("PUT"), ())]
    assert [one.status_code for one in answers] == [200, 304, 400, 500, 404]
    for one in answers:
        assert {name: one.headers[name] for name in SAFE} == SAFE, one.status_code
    assert "max-age=" in SAFE["Strict-Transport-Security"]
    assert SAFE["Cross-Origin-Resource-Policy"] == "same-origin"


TAGS = {
    **dict.fromkeys(('"abc"', 'W/"abc"', '"x", "abc"', '"x","y" , W/"abc"', "*", " * "), True),
    **dict.fromkeys(("", "abc", '"ABC"', '"x", "abcd"', '"*"', ",,", '"' * 9_000), False),
}


@pytest.mark.parametrize(("header", "known"), TAGS.items(), ids=lambda value: str(value)[:20])
def test_an_answer_that_the_client_has_is_not_sent_again(header: str, known: bool) -> None:
    response = answered(tagged, request(if_none_match=header))
    assert (response.status_code, response.get_body()) == ((304, b"") if known else (200, b"{}"))
    assert response.headers["ETag"] == '"abc"'
    assert is_known('W/"abc"', header) is known


ENCODINGS = {
    **dict.fromkeys(("gzip", "br, GZIP;q=0.5", "gzip ; q=1.0", "*", "identity, *;q=0.1"), True),
    **dict.fromkeys(("", "identity", "br, deflate", "gzip;q=0", "gzip;q=0.000, *", "*;q=0", "xgzip"), False),
}


@pytest.mark.parametrize(("header", "taken"), ENCODINGS.items())
def test_a_long_answer_is_compressed_for_a_client_that_takes_it(header: str, taken: bool) -> None:
    response = answered(long, request(accept_encoding=header))
    octets = response.get_body()
    assert (response.status_code, response.headers["Vary"]) == (200, "Accept-Encoding")
    assert response.headers.get("Content-Encoding") == ("gzip" if taken else None)
    assert response.headers["ETag"] == ('W/"abc"' if taken else '"abc"')
    assert (gzip.decompress(octets) if taken else octets) == LONG.encode()
    assert (len(octets) < 100) is taken
    again = answered(long, request(accept_encoding=header, if_none_match=response.headers["ETag"]))
    assert (again.status_code, again.get_body(), again.headers.get("Content-Encoding")) == (304, b"", None)


def test_a_short_answer_and_a_change_are_not_compressed() -> None:
    short = answered(tagged, request(accept_encoding="gzip"))
    change = answered(long, request("POST", accept_encoding="gzip"))
    assert [one.headers.get("Content-Encoding") for one in (short, change)] == [None, None]
    assert (short.get_body(), change.get_body()) == (b"{}", LONG.encode())


def test_a_caller_s_text_is_cut_and_printable() -> None:
    assert (clipped("ß" * 200), clipped("x" * 201)) == ("ß" * 200, "x" * 199 + "…")
    assert clipped("a\nb\x00c\x1b[31m\u202e") == "a\ufffdb\ufffdc\ufffd[31m\ufffd"


@pytest.mark.usefixtures("running")
def test_a_problem_quotes_at_most_200_characters_of_the_caller(log: pytest.LogCaptureFixture) -> None:
    body = f'{{"reason":"because","{LONG}":1}}'.encode()
    for asked in (request(params={LONG[:4_000]: "1"}), request(params={"a\nb": "1"})):
        response = answered(tagged, asked, READING)
        (fault,) = json.loads(response.get_body())["errors"]
        assert len(fault["field"]) <= SHOWN_TEXT and "\n" not in fault["field"]
    with pytest.raises(Problem) as caught:
        read_body(request("POST", body), taking)
    assert len(caught.value.errors[0].field) == SHOWN_TEXT
    assert len(invalid("a", LONG).detail) <= SHOWN_TEXT + 3
    assert len(log.records) == 2
    assert all(len(vars(line)["detail"]) < 2 * SHOWN_TEXT and "\n" not in vars(line)["detail"] for line in log.records)
    unrouted = answer_unrouted(request(LONG), [Route("GET", "", OPEN, "tests.tagged")])
    assert (unrouted.status_code, unrouted.headers["Allow"]) == (405, "GET, HEAD")
    assert len(unrouted.get_body()) < 600


def test_an_address_without_the_method_is_a_different_refusal_than_no_address() -> None:
    """The host matches addresses in any case."""
    paths = {"homes/H1": 405, "HOMES/H1/": 405, "homes": 404, "homes/": 404, "homes/H1/more": 404, "xhomes/H1": 404}
    for path, status in paths.items():
        given = func.HttpRequest("PUT", "/api", route_params={"path": path}, body=b"")
        refused = answer_unrouted(given, [Route("GET", "homes/{home_id}", OPEN, "tests.tagged")])
        assert (refused.status_code, refused.headers.get("Allow")) == (status, "GET, HEAD" if status == 405 else None)


@pytest.mark.usefixtures("running")
def test_a_refusal_on_a_route_without_a_key_writes_no_line(log: pytest.LogCaptureFixture) -> None:
    for level in (*LEVELS, LINKED):
        log.clear()
        status = answered(tagged, request(params={"bogus": "1"}), level).status_code
        assert status == (403 if level == LINKED else 400)
        assert len(log.records) == (0 if level in (OPEN, LINKED) else 1), level


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"reason":"because","reason":"because"}', "reason"),
        (b'{"reason":"because","inner":{"a":1,"b":2,"a":1}}', "a"),
        (b'{"reason":"because","\\u0072eason":"something else"}', "reason"),
    ],
)
def test_two_values_of_one_name_are_refused(body: bytes, field: str) -> None:
    with pytest.raises(Problem, match="occurs twice") as caught:
        read_body(request("POST", body), taking)
    assert [one.field for one in caught.value.errors] == [field]


@pytest.mark.parametrize("reason", ["   ", "\t\n ", "\u3000\u3000\u3000", "\u00a0" * 5, "ab", " a"])
def test_a_blank_reason_is_refused(reason: str) -> None:
    with pytest.raises(Problem) as caught:
        read_body(request("POST", json.dumps({"reason": reason}).encode()), taking)
    assert [one.field for one in caught.value.errors] == ["reason"]
