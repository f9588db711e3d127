"""The description of the API is held to the code, and the code to the description.

What it does not allow is a problem that names the field. Nothing is changed, and no answer has a stack.
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import uuid4

import pytest

from core.api.problems import SAFE
from core.api.route import LEVELS, OPEN, linked
from examples.home_security.routes import LINK
from handlers.api import ROUTES
from handlers.web.requests import LARGEST_BODY
from tests.acceptance.api.served import Reply, Served, segment
from tests.handlers.test_function_app import index

CATCH_ALL = "zz_no_such_route"
JOB = "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"  # of a replay that does not exist
VALUES = {
    "partition_id": "0",
    "sequence_number": "1",
    "task_id": JOB,
    "run_id": "0123456789abcdef",
    "file": "ops.js",
    "home_id": "H000001",
}
LINKED = linked(LINK)
CROSS_SITE = {"Cross-Origin-Resource-Policy", "X-Content-Type-Options"}


def served_by_the_app() -> dict[tuple[str, str], tuple[str, str]]:
    """Route and method of each HTTP function, with its name and its level. HEAD goes with GET."""
    found = {}
    for name, function in index().items():
        for binding in function["bindings"]:
            if binding["type"] == "httpTrigger" and name not in ("entrance", CATCH_ALL):
                for method in set(binding["methods"]) - {"HEAD"}:
                    found[binding["route"].removeprefix("api/"), method] = (name, binding["authLevel"])
    return found


def filled(template: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda part: VALUES[part[1]], template)


PLACES = served_by_the_app()
METHODS: dict[str, set[str]] = {}
for _route, _method in PLACES:
    METHODS.setdefault(filled(_route), set()).add(_method)


def paths(method: str) -> list[str]:
    return sorted(path for path, methods in METHODS.items() if method in methods)


@pytest.fixture(scope="module")
def description(served: Served) -> Any:
    return served.get("openapi.json").json


def described(description: Any) -> dict[tuple[str, str], Any]:
    return {
        (path.lstrip("/"), method.upper()): operation
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    }


def test_every_route_is_described_with_its_name_its_key_and_its_role_and_no_other(description: Any) -> None:
    of = described(description)
    assert set(of) == set(PLACES)
    for route in ROUTES:
        operation, level = of[route.template, route.method], route.level
        needed = [] if level is OPEN else [{level.name: [level.role] if level.role else []}]
        assert (operation["operationId"], operation["security"]) == (route.name, needed), route
        assert ("403" in operation["responses"]) == (bool(level.role) or level == LINKED), route
    schemes = description["components"]["securitySchemes"]
    keyed = {level.name: "x-functions-key" for level in LEVELS if level not in (OPEN, LINKED)}
    assert {name: one["name"].lower() for name, one in schemes.items()} == {**keyed, LINKED.name: "x-home-link"}
    assert "master" not in str(description).lower()


def test_no_two_routes_of_a_method_overlap_and_the_catch_all_comes_last_by_name() -> None:
    """The host tries routes by their functions' names, not the narrowest first: azure-functions-host #9876."""
    assert max(index()) == CATCH_ALL
    places = [(route.split("/"), method) for route, method in PLACES]
    for at, (one, method) in enumerate(places):
        for other, also in places[at + 1 :]:
            if method == also and len(one) == len(other):
                pairs = list(zip(one, other, strict=True))
                assert any(a != b and "{" not in a + b for a, b in pairs), (one, other)


def test_every_answer_and_refusal_is_described_and_has_the_required_headers(served: Served, description: Any) -> None:
    of, headers = described(description), description["components"]["headers"]
    required = {name for name, each in headers.items() if each["required"]}
    assert required == {"Cache-Control", "Strict-Transport-Security", *CROSS_SITE}
    for place, operation in of.items():
        responses = operation["responses"]
        for status in ("400", "405", "500", "503"):
            assert responses[status]["content"]["application/problem+json"], (place, status)
        assert ("401" in responses) == any(LINKED.name not in one for one in operation["security"]), place
        assert "Allow" in responses["405"]["headers"], place
        assert ("304" in responses) == ("ETag" in responses.get("200", {"headers": {}})["headers"]), place
        assert ("308" in responses) == (place[1] == "GET"), place
        for status, response in responses.items():
            assert status == "401" or required <= set(response["headers"]), (place, status)
    tag = served.get("ops").headers["etag"]
    unchanged, redirected = served.get("ops", headers={"If-None-Match": tag}), served.get("status/")
    answers = (unchanged, redirected, served.get("nothing"), served.request("DELETE", "/api/status"))
    assert [one.status for one in answers] == [304, 308, 404, 405]
    assert [one for one in answers if not {name.lower() for name in required} <= set(one.headers)] == []


def test_an_address_takes_a_slash_at_its_end_and_head_with_the_same_headers_and_no_body(served: Served) -> None:
    for path in paths("GET"):
        for slashes in ("/", "//"):
            answer = served.get(f"{path}{slashes}")
            assert (answer.status, answer.body) == (308, b""), path
            assert answer.headers["location"] == f"{'../' * len(slashes)}{path.rpartition('/')[2]}", path
        read, head = served.get(path), served.request("HEAD", f"/api/{path}")
        assert (head.status, head.body) == (read.status, b""), path
        compared = [*(name.lower() for name in SAFE), "content-type", "etag"]
        assert [head.headers.get(name) for name in compared] == [read.headers.get(name) for name in compared], path
    assert served.post("replays/", {}).status != 308


ANSWERED = ["2xx", "404", "409", "412", "422"]  # what a request may be answered that is valid by itself
# They are never answered well here: one reads the hub, and there is none; the other needs a link for the very home.
ONLY_WRONG = ("open_next_incarnation", "show_own_activity")
NAMED = ("partitions", "from", "to", "first", "last")  # places in partitions, which no schema knows
COUNTS = ("expected_count", "per_second", "most_rows")


@pytest.fixture(scope="module")
def schema(own: Served) -> Any:
    """The description, as schemathesis reads it: without keys, because the local host needs none, and with the job."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: requirements-dev.txt")
    whole = own.get("openapi.json").json
    for operation in described(whole).values():
        del operation["security"]
    del whole["components"]["securitySchemes"]
    (job,) = (one for one in described(whole)["aggregations", "GET"]["parameters"] if one["name"] == "job")
    names, only = json.dumps(job["schema"]["pattern"]), json.dumps("^home_activity$")  # the only one of the app
    config = schemathesis.Config.from_dict({"checks": {"positive_data_acceptance": {"expected-statuses": ANSWERED}}})
    return schemathesis.openapi.from_dict(json.loads(json.dumps(whole).replace(names, only)), config=config)


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """A client whose connection stays open between requests, and which reads no setting of this machine."""
    from requests import Session

    with Session() as made:
        made.trust_env = False
        yield made


@pytest.mark.parametrize(
    "examples", [pytest.param(15, id="briefly"), pytest.param(50, id="at length", marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("place", sorted(PLACES), ids=lambda place: PLACES[place][0])
def test_an_operation_answers_as_its_description_says(
    own: Served, schema: Any, session: Any, place: tuple[str, str], examples: int
) -> None:
    from hypothesis import HealthCheck, assume, given, settings
    from schemathesis import GenerationMode

    operation = schema.find_operation_by_label(f"{place[1]} /{place[0]}")
    takes = bool(operation.body) or bool(list(operation.iter_parameters()))
    modes = [] if PLACES[place][0] in ONLY_WRONG else [GenerationMode.POSITIVE]
    modes += [GenerationMode.NEGATIVE] if takes else []
    assert modes
    for mode in modes:

        @settings(max_examples=examples, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
        @given(operation.as_strategy(generation_mode=mode))
        def check(case: Any) -> None:
            assume(can_be_judged(case))
            case.call_and_validate(base_url=f"{own.base_url}/api", session=session)

        check()


def can_be_judged(case: Any) -> bool:
    """Return False for a case whose answer no schema knows.

    A cursor has to come from a page, a recount is of one partition, the host leaves out parameters without a text and
    takes no address of 8 kB, a number of 19 digits may have more than 64 bits, a count is written without a fraction,
    and there is no hub to be asked here, nor a partition under any name.
    """
    sent = query_of(case)
    number = str(case.path_parameters.get("sequence_number", ""))
    body = case.body if isinstance(case.body, dict) else {}
    ages = body.get("older_than_days")
    counts = (*map(body.get, COUNTS), *(ages.values() if isinstance(ages, dict) else ()))
    refused = [
        number.isdecimal() and int(number) >= 2**63,
        "cursor" in case.query,
        len(urlencode(sent)) > 7_000,
        len([name for name, text in sent if text]) < max(len(sent), len(case.query)),
        any(isinstance(each, float) for each in counts),
        any(body.get(name) is not None for name in NAMED),
    ]
    return not any(refused)


def query_of(case: Any) -> list[tuple[str, str]]:
    """Return the parameters as the client sends them: of an object within a list it sends the names only."""
    from requests import Request

    address = Request("GET", "http://localhost/", params=case.as_transport_kwargs()["params"]).prepare().url or ""
    return parse_qsl(urlsplit(address).query, keep_blank_values=True)


BEFORE_READING = {"homes/{home_id}/own-activity": (403,), "homes/{home_id}/links": (409,)}  # no link, and no secret
OWN, LINKS = map(filled, BEFORE_READING)  # test_homes.py has both
HOME_PAGE = "homes/{home_id}"
HOSTILE = (
    "0'; DROP TABLE event_hub_dead_letter; --", "<script>alert(1)</script>", "{{7*7}}${7*7}<%= 7 %>",
    "../../../../etc/passwd", "a\x00b", "a\nb", "👩‍👩‍👧", "x" * 5_000, "\\ud800",
)  # fmt: skip
ENDS = ("\n", "\r\n", "\x00", "\u2028", " ", "\x85", "\x0b")
ORDER = {"move": "discard", "expected_count": 1, "reason": "because", "letters": [{"partition_id": "0"}]}


@pytest.fixture
def unchanged(served: Served) -> Iterator[Served]:
    before = served.contents()
    yield served
    assert served.contents() == before


def is_problem(answer: Reply, *statuses: int, case: object = "") -> None:
    """A problem in the form of RFC 9457, without any internals."""
    assert answer.status in (statuses or (400, 404)), (case, answer.body)
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json
    assert problem["type"].startswith("urn:hubledger:problem:")
    assert (problem["status"], bool(problem["title"]), bool(problem["detail"])) == (answer.status, True, True)
    assert not any(word in answer.body for word in (b"Traceback", b".py", b"SELECT", b"sqlite3")), case


def names(answer: Reply, field: str, case: object = "") -> None:
    is_problem(answer, 400, case=case)
    assert answer.fields == [field], case


def test_a_method_that_a_route_does_not_have_is_refused_with_those_it_has(unchanged: Served) -> None:
    for path, allowed in METHODS.items():
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} - allowed:
            answer = unchanged.request(method, f"/api/{path}")
            is_problem(answer, 405, case=(method, path))
            read_by_head = {"HEAD"} if "GET" in allowed else set()
            assert set(answer.headers["allow"].split(", ")) == allowed | read_by_head, (method, path)


def test_what_is_not_there_is_not_found_and_what_is_unknown_or_of_a_different_list_is_named(unchanged: Served) -> None:
    for path in ("", "nothing", "status/more", "status%0A", "ledger/0", "dead-letters/0/1/2", "ops/a/b", "ledger/77/5"):
        is_problem(unchanged.get(path), 404, case=path)
    for path in ("dead-letters/77/1", "dead-letters/0/2", "ops/none.js", "ledger/audit?partition_id=77"):
        is_problem(unchanged.get(path), 404, case=path)
    for path in (f"tasks/{JOB}", f"tasks/{JOB}/diff"):
        is_problem(unchanged.get(path), 404, case=path)
    for move in ("pause", "resume", "cancel"):
        is_problem(unchanged.post(f"tasks/{JOB}/{move}", {"reason": "because"}), 404, case=move)
    for path in [path for path in paths("GET") if path != OWN]:
        names(unchanged.get(path, bogus="1"), "bogus", path)
    assert unchanged.get("status", code="secret").status == 200, "the parameter of the key is the host's"
    cursor = unchanged.get("dead-letters", limit=2).json["next"]
    for path in ("tasks", "aggregations"):
        names(unchanged.get(path, cursor=cursor), "cursor", path)
    for number in ("-1", "1.5", str(2**63), "１２"):
        for path in (f"ledger/0/{segment(number)}", f"dead-letters/0/{segment(number)}"):
            names(unchanged.get(path), "sequence_number", path)


def test_hostile_text_anywhere_in_a_path_is_refused_and_as_a_partition_key_finds_no_letter(unchanged: Served) -> None:
    page = unchanged.get(filled(HOME_PAGE)).body
    for template, method in PLACES:
        for name in re.findall(r"\{(\w+)\}", template):
            ended = (text for end in ENDS for text in (VALUES[name] + end, end + VALUES[name], end))
            for text in (*HOSTILE, *ended):
                path = filled(template.replace(f"{{{name}}}", segment(text)))
                get = method == "GET"
                answer = unchanged.get(path) if get else unchanged.post(path, {"reason": "because"}, method=method)
                if template == HOME_PAGE and answer.status == 200:
                    assert answer.body == page  # the same for every id
                else:
                    is_problem(answer, 400, 404, *BEFORE_READING.get(template, ()), case=path)
    for text in HOSTILE:
        is_problem(unchanged.get(segment(text)), 404, case=text)
        if len(text) < 1_000:
            assert unchanged.get("revealed/dead-letters", partition_key=text).json["letters"] == [], text


def test_a_body_that_is_no_object_of_json_or_too_large_is_refused(unchanged: Served) -> None:
    for path in [path for path in paths("POST") if path != LINKS]:
        for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b'"x"', b"[" * 100_000):
            is_problem(unchanged.post(path, body), 400, case=(path, body[:9]))
        is_problem(unchanged.post(path, ORDER, headers={"Content-Type": "text/plain"}), 415, case=path)
        is_problem(unchanged.post(path, b" " * (LARGEST_BODY + 1)), 413, case=path)
        names(unchanged.post(f"{path}?bogus=1", ORDER), "bogus", path)
    is_problem(unchanged.post(f"tasks/{uuid4()}", b" " * LARGEST_BODY, method="PUT"), 400)
