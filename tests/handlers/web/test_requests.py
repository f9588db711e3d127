import base64
import gzip
import json
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import azure.functions as func
import msgspec
import pytest

from core.api.operation import Answer, Call, Moment, Number, Operation, cursor_of, key_of, operation
from core.api.problems import SAFE, SHOWN_TEXT, Problem, clipped, invalid, of_fault
from core.api.route import LEVELS, OPEN, READING, Level, Route, linked
from core.errors import RequestRefused, StoreMisconfigured, StoreUnavailable
from core.model.shapes import Answered, Instant, Nothing, NumberText, PartitionText, Reason, Shape, number_of, utc
from examples.home_security.routes import LINK
from handlers.operations.letters import shown
from handlers.web.answering import answer, answer_unrouted, is_known, problem_response, redirect_of
from handlers.web.requests import LARGEST_BODY, LARGEST_QUERY, read_body, read_path, read_query
from tests.handlers.running import functions

LINKED = linked(LINK)
INVOCATION = "6e2a0f1c-52c8-4c5f-9d0a-0d8d3a3b9b11"
LONG = "x" * 5_000


class Inner(Shape):
    number: NumberText


class Given(Shape):
    ONE_OF = ("name", "inner")

    count: Annotated[int, msgspec.Meta(ge=1, le=10)] = 1
    at: Instant | None = None
    name: str | None = None
    inner: list[Inner] | None = None


class Ordered(Shape):
    reason: Reason
    inner: dict[str, int] | None = None


class Told(Answered):
    pass


@operation("a test", "tests")
def tested(call: Call[Inner, Given, Given]) -> Told:
    return Told()


@operation("a test that takes a reason", "tests")
def ordering(call: Call[Nothing, Nothing, Ordered]) -> Told:
    return Told()


@operation("a test that fails", "tests")
def failing(call: Call[Nothing, Nothing, Nothing]) -> Told:
    raise KeyError("a fault that nobody foresaw")


@operation("a test that answers", "tests")
def tagged(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    return Answer(b"{}", headers={"ETag": '"abc"'})


@operation("a test that answers at length", "tests")
def long(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    return Answer(LONG.encode(), headers={"ETag": '"abc"'})


def request(method: str = "GET", body: bytes = b"", *, params: Any = None, **headers: str) -> func.HttpRequest:
    given = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
    return func.HttpRequest(method, "/api/test", headers=given, params=params, route_params={"number": "7"}, body=body)


def asking(**params: str) -> func.HttpRequest:
    return request(params=params)


def answered(of: Operation, asked: func.HttpRequest, level: Level = OPEN) -> func.HttpResponse:
    route = Route("GET", "test", level, f"tests.{of.name}")
    asked = func.HttpRequest(
        asked.method, asked.url, headers=asked.headers, params=asked.params, route_params={}, body=asked.get_body()
    )
    return answer(asked, route, {route: of}, INVOCATION)


def faults_of(call: Any, *given: Any) -> tuple[list[str], int]:
    with pytest.raises(Problem) as caught:
        call(*given)
    return [one.field for one in caught.value.errors], caught.value.kind.status


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level("INFO", "hubledger")
    return caplog


def test_path_query_and_body_are_read_into_their_shapes() -> None:
    body = b'{"name":"a","at":"2026-01-01T01:00:00+01:00"}'
    asked = request("POST", body, params={"count": "3", "code": "secret", "clientId": "x"})
    assert read_path(asked, tested) == Inner(number="7")
    assert read_query(asked, tested, READING) == Given(count=3)
    found = read_body(asked, tested)
    assert isinstance(found, Given)
    assert (found.name, utc(found.at, "at")) == ("a", datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("params", "field"),
    [
        *(({"count": text}, "count") for text in ("11", "x", "1.5", "1e0", " 1", "\u0663", "9" * 30)),
        ({"more": "1"}, "more"),
        ({"at": "now"}, "at"),
        ({"name": "n" * (LARGEST_QUERY - len("name") + 1)}, "query"),
    ],
)
def test_a_parameter_is_refused_by_its_name_and_all_together_have_a_limit(params: dict[str, str], field: str) -> None:
    assert faults_of(read_query, asking(**params), tested, READING) == ([field], 400)
    longest = "n" * (LARGEST_QUERY - len("name"))
    assert read_query(asking(name=longest), tested, READING) == Given(name=longest)


BODIES = {
    b'{"name":1}': "name",
    b'{"name":"a","more":1}': "more",
    b'{"inner":[{"number":"1"},{"number":"x"}]}': "inner[1].number",
    b'{"inner":[{}]}': "inner[0].number",
    b'{"inner":[{"number":"1","a.b":2}]}': "inner[0].a.b",
    b'{"name":"a","inner":[]}': "inner",
    b"{}": "name",
    b"[]": "body",
    b"{": "body",
    b'{"reason":"because","reason":"because"}': "reason",
    b'{"reason":"because","inner":{"a":1,"b":2,"a":1}}': "a",
    b'{"reason":"because","\\u0072eason":"something else"}': "reason",
    **{
        json.dumps({"reason": reason}).encode(): "reason"
        for reason in ("   ", "\t\n ", "\u3000\u3000\u3000", "\u00a0" * 5, "ab", " a")
    },
}


@pytest.mark.parametrize(("body", "field"), BODIES.items())
def test_a_field_of_the_body_is_refused_by_its_place(body: bytes, field: str) -> None:
    of = ordering if b"reason" in body else tested
    assert faults_of(read_body, request("POST", body), of) == ([field], 400)


def test_a_body_that_is_too_large_or_not_json_and_a_number_of_more_than_63_bits_are_refused() -> None:
    assert faults_of(read_body, request("POST", b" " * (LARGEST_BODY + 1)), tested)[1] == 413
    assert faults_of(read_body, request("POST", b"{}", content_type="text/html"), tested)[1] == 415
    assert number_of(str(2**63 - 1), "n") == 2**63 - 1
    with pytest.raises(RequestRefused):
        number_of(str(2**63), "n")


@pytest.mark.parametrize("end", ["2026-02-28T23:59:59", "9999-12-31T23:59:59"])
def test_an_instant_is_cut_to_microseconds_and_a_text_stays_whole(end: str) -> None:
    text, at = f"{end}.9999999Z", datetime.fromisoformat(f"{end}.999999+00:00")
    query = read_query(asking(at=text, name=text), tested, READING)
    body = read_body(request("POST", json.dumps({"at": text, "name": text}).encode()), tested)
    for read in (query, body):
        assert isinstance(read, Given)
        assert (read.at, read.name) == (at, text)


NOT_JSON = (
    b"{", b"", b'"\xff"', b'"\xed\xa0\xbd"', b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b'{"a":NaN}',
    b"[Infinity, -Infinity]", b'"a\x00b"', b"{} {}", b'"\\x41"',
)  # fmt: skip
KEPT = (  # values that a reader of JSON may change: halves of a surrogate pair, NUL, numbers beyond floats, names twice
    '"\\ud83d"', '"a\\ude00b"', '"\\ud83d\\ude00"', '"a\\u0000b"', '"Grüße 👩\u2028"', "1e400",
    "0.10000000000000000000000000000000000001", "1.10", "-0", "9" * 5_000, '{\n    "x": 1,\n    "x": 2\n  }',
)  # fmt: skip


def test_a_body_is_shown_as_text_or_octets_cut_and_marked_as_cut_and_one_that_is_no_json_is_named_so() -> None:
    assert (shown(b"a\xffb", 3, "text").shown, shown(b"a\xffb", 3, "hex").shown) == ("a\ufffdb", "61ff62")
    answer = shown(b"12345", 9, "text")
    assert (answer.shown, answer.truncated, answer.bytes) == ("12345", True, 9)
    assert shown(b"12345", 9, "json").shown is None
    for body in NOT_JSON:
        answer = shown(body, len(body), "json")
        assert (answer.shown, (answer.fault or "").startswith("not JSON: ")) == (None, True), body


@pytest.mark.parametrize("text", KEPT, ids=lambda text: ascii(text)[:20])
def test_every_value_of_a_json_body_is_shown_as_its_event_has_it(text: str) -> None:
    body = f'{{"a":{text},"b":[]}}'.encode()
    answer = shown(body, len(body), "json")
    assert answer.shown == f'{{\n  "a": {text},\n  "b": []\n}}'
    assert msgspec.json.decode(msgspec.json.encode(answer))["shown"] == answer.shown


def test_a_json_body_is_shown_one_value_a_line_and_in_little_space_or_says_that_it_is_nested_too_deeply() -> None:
    body = b'\t{ "a" :[ 1,{"b, c" : "{\\"x\\": [1]}"},[ ], { } ]\r\n}\n'
    lines = ["{", '  "a": [', "    1,", "    {", '      "b, c": "{\\"x\\": [1]}"', "    },", "    [],", "    {}"]
    assert shown(body, len(body), "json").shown == "\n".join([*lines, "  ]", "}"])
    deepest, deep = b"[" * 100_000 + b"]" * 100_000, b"[" * 500 + b"1" + b",1" * 50_000 + b"]" * 500
    assert shown(deepest, len(deepest), "json").fault == "nested too deeply to be shown as JSON"
    found = shown(deep, len(deep), "json").shown or ""
    assert json.loads(found) == json.loads(deep)
    assert len(found) < 50 * len(deep)


def test_a_fault_that_nothing_foresaw_is_a_problem_that_leads_to_its_stack(log: pytest.LogCaptureFixture) -> None:
    response = answered(failing, request())
    body = json.loads(response.get_body())
    assert (response.status_code, response.mimetype) == (500, "application/problem+json")
    assert (body["type"], body["instance"]) == ("urn:hubledger:problem:unexpected", f"urn:uuid:{INVOCATION}")
    assert "nobody foresaw" not in str(body)
    said = vars(log.records[0])
    assert (said["action"], said["invocation_id"], said["levelname"]) == ("failing", INVOCATION, "ERROR")
    assert (said["exc_info"] is not None, len(log.records)) == (True, 1)


def test_a_fault_that_may_pass_says_when_to_come_again_and_keeps_secrets() -> None:
    passing = problem_response(of_fault(StoreUnavailable("no answer")))
    lasting = problem_response(of_fault(StoreMisconfigured("STORE_CONNECTION: login failed, PWD=hunter2")))
    assert (passing.status_code, passing.headers["Retry-After"]) == (503, "5")
    assert "Retry-After" not in lasting.headers
    assert b"hunter2" not in lasting.get_body()


def test_every_answer_has_the_safe_headers() -> None:
    answers = [answered(tagged, asked) for asked in (request(), request(if_none_match='"abc"'), asking(bogus="1"))]
    answers += [answered(failing, request()), answer_unrouted(request("PUT"), ()), functions()["entrance"](request())]
    assert [one.status_code for one in answers] == [200, 304, 400, 500, 404, 302]
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
    short, change = (
        answered(tagged, request(accept_encoding=header)),
        answered(long, request("POST", accept_encoding=header)),
    )
    assert [one.headers.get("Content-Encoding") for one in (short, change)] == [None, None]
    assert (short.get_body(), change.get_body()) == (b"{}", LONG.encode())


@pytest.mark.usefixtures("running")
def test_a_problem_quotes_at_most_200_printable_characters_of_the_caller(log: pytest.LogCaptureFixture) -> None:
    assert (clipped("ß" * 200), clipped("x" * 201)) == ("ß" * 200, "x" * 199 + "…")
    assert clipped("a\nb\x00c\x1b[31m\u202e") == "a\ufffdb\ufffdc\ufffd[31m\ufffd"
    for asked in (asking(**{LONG[:4_000]: "1"}), asking(**{"a\nb": "1"})):
        (fault,) = json.loads(answered(tagged, asked, READING).get_body())["errors"]
        assert len(fault["field"]) <= SHOWN_TEXT and "\n" not in fault["field"]
    fields, _ = faults_of(read_body, request("POST", f'{{"reason":"because","{LONG}":1}}'.encode()), ordering)
    assert len(fields[0]) == SHOWN_TEXT
    assert len(invalid("a", LONG).detail) <= SHOWN_TEXT + 3
    assert ["detail" in vars(line) for line in log.records] == [False, False], "a detail may name a person"
    unrouted = answer_unrouted(request(LONG), [Route("GET", "", OPEN, "tests.tagged")])
    assert (unrouted.status_code, unrouted.headers["Allow"]) == (405, "GET, HEAD")
    assert len(unrouted.get_body()) < 600


@pytest.mark.usefixtures("running")
def test_a_refusal_on_a_route_without_a_key_writes_no_line(log: pytest.LogCaptureFixture) -> None:
    for level in (*LEVELS, LINKED):
        log.clear()
        status = answered(tagged, asking(bogus="1"), level).status_code
        assert status == (403 if level == LINKED else 400)
        assert len(log.records) == (0 if level in (OPEN, LINKED) else 1), level


def test_an_address_without_the_method_is_a_different_refusal_than_no_address() -> None:
    """The host matches addresses in any case."""
    paths = {"homes/H1": 405, "HOMES/H1/": 405, "homes": 404, "homes/": 404, "homes/H1/more": 404, "xhomes/H1": 404}
    for path, status in paths.items():
        given = func.HttpRequest("PUT", "/api", route_params={"path": path}, body=b"")
        refused = answer_unrouted(given, [Route("GET", "homes/{home_id}", OPEN, "tests.tagged")])
        assert (refused.status_code, refused.headers.get("Allow")) == (status, "GET, HEAD" if status == 405 else None)


def test_two_slashes_at_the_end_lead_to_the_address_too_though_the_host_takes_them_for_none_of_its_routes() -> None:
    for path, status in {"homes/a%2Fb//": 308, "homes///": 404, "nothing//": 404}.items():
        url = f"https://app/api/{path}?x=1"
        for method in ("GET", "HEAD", "POST"):
            given = func.HttpRequest(method, url, route_params={"path": path}, body=b"")
            found = answer_unrouted(given, [HOME])
            assert found.status_code == (405 if (status, method) == (308, "POST") else status), (path, method)
            assert found.headers.get("Location") == ("../../a%2Fb?x=1" if found.status_code == 308 else None)
            assert {name: found.headers[name] for name in SAFE} == SAFE


OPS, HOME = Route("GET", "ops", OPEN, "description.ops"), Route("GET", "homes/{home_id}", OPEN, "description.home_page")


def location(route: Route, url: str, method: str = "GET", **values: str) -> str | None:
    response = redirect_of(func.HttpRequest(method, url, route_params=values, body=b""), route)
    if response is None:
        return None
    assert (response.status_code, response.get_body()) == (308, b"")
    assert {name: response.headers[name] for name in SAFE} == SAFE
    return response.headers["Location"]


def test_an_address_with_a_last_slash_leads_to_the_one_without_with_its_query_which_begins_no_new_header() -> None:
    assert [location(OPS, f"https://app{path}") for path in ("/api/ops", "/api/ops?a=/", "")] == [None] * 3
    assert location(OPS, "https://app/api/ops/", "POST") is None
    assert location(OPS, "https://app/api/ops/") == "../ops"
    assert location(OPS, "https://app/api/ops///?code=a%2Fb&x=1") == "../../../ops?code=a%2Fb&x=1"
    found = location(OPS, "https://app/api/ops/?x=1\r\nSet-Cookie: y\u00e9")
    assert found == "../ops?x=1%0D%0ASet-Cookie:%20y%C3%A9"


def test_an_id_stays_one_segment_of_the_address_and_leads_nowhere_else() -> None:
    def of_home(home_id: str) -> str | None:
        return location(HOME, f"https://app/api/homes/{home_id}/", home_id=home_id)

    for home_id in ("H1", "a:b", "50%", "h#1", "a\\b", "é", "a\r\nSet-Cookie: x", "<b>"):
        found = of_home(home_id) or ""
        assert found.startswith("../") and found.isascii()
        assert not set(found.removeprefix("../")) & set("/\\?#:<> \r\n")
    for home_id in ("a%2Fb", "a%2fb", "%2F"):  # the host left a slash encoded
        assert of_home(home_id) == f"../{home_id}"
    assert [of_home(home_id) for home_id in (".", "..", "")] == [None] * 3


class Asked(Shape):
    count: int = 1


Place = tuple[Moment, PartitionText, Number]
PLACE: type[Place] = tuple[Moment, PartitionText, Number]
KEY = (datetime(2026, 1, 1, tzinfo=UTC), "0", 2**62)
AT = "2026-01-01T00:00:00Z"
WRONG: tuple[Any, ...] = (
    *([AT, "0"], [AT, "0", 1, 2], [], [[AT, "0", 1]], {}, None, 1, "x"),  # not three values
    *(["2026-01-01T00:00:00", "0", 1], ["2026-01-01", "0", 1], ["", "0", 1], [1767225600, "0", 1], [None, "0", 1]),
    *(["2026-01-01T00:00:00+01:00", "0", 1], ["0001-01-01T00:00:00+14:00", "0", 1]),  # no cursor of ours has a zone
    *(["9999-12-31T23:59:59-14:00", "0", 1], ["2026-02-30T00:00:00Z", "0", 1]),
    *([AT, text, 1] for text in ("", "0\n", "0/1", "x" * 41, "\x00", "é", "'", None, 0)),
    *([AT, "0", number] for number in (2**63, 10**30, -1, 1.5, 1e300, "1", None, True, [1], float("nan"))),
)
NO_KEYS = (b"NaN", b"[NaN]", b"Infinity", b"[" * 500, b'["a"', b'"\\ud800"', b"\xff")


def test_a_cursor_gives_back_its_key_to_its_own_query_alone() -> None:
    cursor = cursor_of(Asked(count=2), KEY)
    assert key_of(Asked(count=2), cursor, PLACE) == KEY
    assert cursor.isascii() and "=" not in cursor
    with pytest.raises(Problem, match="a different query"):
        key_of(Asked(count=3), cursor, PLACE)
    of_task = (KEY[0], UUID(int=7))
    assert key_of(Asked(), cursor_of(Asked(), of_task), tuple[Moment, UUID]) == of_task


def test_what_is_no_cursor_or_has_a_key_of_other_types_is_refused_although_it_belongs_to_the_query() -> None:
    mark = msgspec.json.decode(base64.urlsafe_b64decode(cursor_of(Asked(), KEY) + "=="))[0]
    for octets in (*map(msgspec.json.encode, WRONG), *NO_KEYS):
        forged = base64.urlsafe_b64encode(f'["{mark}",'.encode() + octets + b"]").decode().rstrip("=")
        with pytest.raises(Problem, match="not the `next`"):
            key_of(Asked(), forged, PLACE)
    for cursor in ("", "x", "é", "W10", "bnVsbA", "WyJhIiwxXQ", "a" * 999, "a\n", " "):
        with pytest.raises(Problem):
            key_of(Asked(), cursor, PLACE)
    with pytest.raises(Problem):
        key_of(Asked(), cursor_of(Asked(), (KEY[0], "x")), tuple[Moment, UUID])


def test_a_cursor_that_was_changed_is_refused_or_names_a_different_place() -> None:
    cursor, refused = cursor_of(Asked(), KEY), 0
    for at in range(len(cursor)):
        damaged = cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
        try:
            key: Any = key_of(Asked(), damaged, PLACE)
        except Problem:
            refused += 1
        else:
            assert key != KEY
    assert refused > 0
