"""Bad input on every route: a problem that names the field, nothing changed, never a stack.

What a value may be is in the description of the API: test_description.py sends each operation what it refuses.
"""

import re
from collections.abc import Iterator
from uuid import uuid4

import pytest

from core.api.problems import SAFE
from handlers.web.requests import LARGEST_BODY
from tests.acceptance.api.routes import JOB, filled, methods_by_path, paths, served_by_the_app
from tests.acceptance.api.served import Reply, Served, segment

METHODS = methods_by_path()
BEFORE_READING = {"homes/{home_id}/own-activity": (403,), "homes/{home_id}/links": (409,)}  # no link, and no secret
OWN, LINKS = map(filled, BEFORE_READING)  # test_homes.py has both
READING, CHANGING = ([path for path in paths(method) if path not in (OWN, LINKS)] for method in ("GET", "POST"))
HOME_PAGE = "homes/{home_id}"
HOSTILE = (
    "0'; DROP TABLE event_hub_dead_letter; --", "<script>alert(1)</script>", "{{7*7}}${7*7}<%= 7 %>",
    "../../../../etc/passwd", "a\x00b", "a\nb", "0\n", "👩‍👩‍👧", "x" * 5_000, "\\ud800",
)  # fmt: skip
ORDER = {"move": "discard", "expected_count": 1, "reason": "because", "letters": [{"partition_id": "0"}]}
VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


@pytest.fixture(autouse=True)
def nothing_changes(served: Served) -> Iterator[None]:
    """The store has the same contents after every test."""
    before = served.contents()
    yield
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
    """A problem of one field, by its name."""
    is_problem(answer, 400, case=case)
    assert answer.fields == [field], case


def asked(served: Served, method: str, path: str) -> Reply:
    return served.get(path) if method == "GET" else served.post(path, {"reason": "because"}, method=method)


def test_a_method_that_a_route_does_not_have_is_refused_with_those_it_has(served: Served) -> None:
    for path, allowed in METHODS.items():
        for method in set(VERBS) - allowed:
            answer = served.request(method, f"/api/{path}")
            is_problem(answer, 405, case=(method, path))
            read_by_head = {"HEAD"} if "GET" in allowed else set()
            assert set(answer.headers["allow"].split(", ")) == allowed | read_by_head, (method, path)


def test_every_address_that_takes_get_takes_head_with_the_same_headers_and_no_body(served: Served) -> None:
    for path in paths("GET"):
        read, head = served.get(path), served.request("HEAD", f"/api/{path}")
        assert (head.status, head.body) == (read.status, b""), path
        compared = [*(name.lower() for name in SAFE), "content-type", "etag"]
        assert [head.headers.get(name) for name in compared] == [read.headers.get(name) for name in compared], path


def test_an_address_without_a_route_is_a_problem(served: Served) -> None:
    for path in ("", "nothing", "status/more", "status%0A", "ledger/0", "dead-letters/0/1/2", "ops/a/b"):
        is_problem(served.get(path), 404, case=path)


def test_an_unknown_parameter_is_named_and_that_of_the_key_is_the_host_s(served: Served) -> None:
    for path in READING:
        names(served.get(path, bogus="1"), "bogus", path)
    assert served.get("status", code="secret").status == 200


def test_a_cursor_of_a_different_list_is_refused(served: Served) -> None:
    cursor = served.get("dead-letters", limit=2).json["next"]
    for path in ("tasks", "aggregations"):
        names(served.get(path, cursor=cursor), "cursor", path)


def test_what_is_not_there_is_not_found(served: Served) -> None:
    for path in ("ledger/77/5", "dead-letters/77/1", "dead-letters/0/2", "ops/none.js", "ledger/audit?partition_id=77"):
        is_problem(served.get(path), 404, case=path)
    for path in (f"tasks/{JOB}", f"tasks/{JOB}/diff"):
        is_problem(served.get(path), 404, case=path)
    for move in ("pause", "resume", "cancel"):
        is_problem(served.post(f"tasks/{JOB}/{move}", {"reason": "because"}), 404, case=move)


def test_a_sequence_number_that_is_none_is_named(served: Served) -> None:
    for number in ("-1", "1.5", str(2**63), "１２"):
        for path in (f"ledger/0/{segment(number)}", f"dead-letters/0/{segment(number)}"):
            names(served.get(path), "sequence_number", path)


def test_hostile_text_as_a_partition_key_finds_no_letter(served: Served) -> None:
    for text in [text for text in HOSTILE if len(text) < 1_000]:
        assert served.get("revealed/dead-letters", partition_key=text).json["letters"] == [], text


def test_hostile_text_in_a_path_is_refused(served: Served) -> None:
    page = served.get(filled(HOME_PAGE)).body
    for text in HOSTILE:
        for template, method in served_by_the_app():
            for name in re.findall(r"\{(\w+)\}", template):
                path = filled(template.replace(f"{{{name}}}", segment(text)))
                answer = asked(served, method, path)
                if template == HOME_PAGE and answer.status == 200:
                    assert answer.body == page  # the same for every id
                else:
                    is_problem(answer, 400, 404, *BEFORE_READING.get(template, ()), case=path)
        is_problem(served.get(segment(text)), 404, case=text)


def test_a_body_that_is_no_object_of_json_or_too_large_is_refused(served: Served) -> None:
    for path in CHANGING:
        for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b'"x"', b"[" * 100_000):
            is_problem(served.post(path, body), 400, case=(path, body[:9]))
        is_problem(served.post(path, ORDER, headers={"Content-Type": "text/plain"}), 415, case=path)
        is_problem(served.post(path, b" " * (LARGEST_BODY + 1)), 413, case=path)
        names(served.post(f"{path}?bogus=1", ORDER), "bogus", path)
    is_problem(served.post(f"tasks/{uuid4()}", b" " * LARGEST_BODY, method="PUT"), 400)
