"""Bad input on every route: a problem that names the field, nothing changed, never a stack."""

import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from tests.acceptance.api.routes import JOB, filled, methods_by_path, paths, served_by_the_app
from tests.acceptance.api.served import Reply, Served, segment

METHODS = methods_by_path()
BEFORE_READING = {"homes/{home_id}/own-activity": (403,), "homes/{home_id}/links": (409,)}  # no link, and no secret
OWN, LINKS = map(filled, BEFORE_READING)  # test_homes.py has both
READING, CHANGING = ([path for path in paths(method) if path not in (OWN, LINKS)] for method in ("GET", "POST"))
HOME_PAGE = "homes/{home_id}"
HOSTILE = {
    "sql": "0'; DROP TABLE event_hub_dead_letter; --",
    "html": "<script>alert(1)</script>",
    "template": "{{7*7}}${7*7}<%= 7 %>",
    "path": "../../../../etc/passwd",
    "nul": "a\x00b",
    "newline": "a\nb",
    "emoji": "👩‍👩‍👧",
    "long": "x" * 5_000,
    "surrogate": "\\ud800",
}
LETTER = {"partition_id": "0", "sequence_number": "1"}
ORDER = {"move": "discard", "expected_count": 1, "reason": "because", "letters": [LETTER]}


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


VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def test_a_method_that_a_route_does_not_have_is_refused_with_those_it_has(served: Served) -> None:
    for path, allowed in METHODS.items():
        for method in set(VERBS) - allowed:
            answer = served.request(method, f"/api/{path}")
            is_problem(answer, 405, case=(method, path))
            read_by_head = {"HEAD"} if "GET" in allowed else set()
            assert set(answer.headers["allow"].split(", ")) == allowed | read_by_head, (method, path)


def test_an_address_without_a_route_is_a_problem(served: Served) -> None:
    for path in ("", "nothing", "status/more", "ledger/0", "dead-letters/0/1/2", "ops/a/b"):
        is_problem(served.get(path), 404, case=path)


def test_an_unknown_parameter_is_named(served: Served) -> None:
    for path in READING:
        names(served.get(path, bogus="1"), "bogus", path)


def test_the_parameter_of_the_key_is_the_host_s(served: Served) -> None:
    assert served.get("status", code="secret").status == 200


CURSORS = ("xyz", "x" * 2_000, "WyJhIixbMSwyLDNdXQ", "null")
INSTANTS = ("4", "1e9", "1767225600", "2026-01-01", "2026-13-01T00:00:00Z", "now", "-1", "yesterday")
PARAMETERS: dict[str, dict[str, tuple[str, ...]]] = {
    "dead-letters": {
        "status": ("null", "open"),
        "cursor": CURSORS,
        "limit": ("null", "0", "501", "-1", "ten", "1e3", str(10**30)),
        "error_class": ("bad",),
        "fingerprint": ("a b",),
        "partition_id": ("0/1",),
        "partition_key": ("home-1",),  # only a revealing route has this filter
        "failed_from": (*INSTANTS, "2026-01-01T00:00:00"),
        "failed_before": (*INSTANTS, "0001-01-01T00:00:00+14:00"),
    },
    "revealed/dead-letters": {"partition_key": ("k" * 3_000,), "limit": ("0", "501"), "cursor": CURSORS},
    **{
        path: {"limit": ("0", "101", "1e1", "x"), "cursor": tuple(HOSTILE.values())}
        for path in ("tasks", "aggregations")
    },
}


def test_a_parameter_that_is_not_valid_is_named(served: Served) -> None:
    for path, parameters in PARAMETERS.items():
        for name, values in parameters.items():
            for value in values:
                names(served.get(f"{path}?{urlencode({name: value})}"), name, (path, name, value))


def test_hostile_text_in_a_parameter_is_refused_by_its_name(served: Served) -> None:
    for name in ("cursor", "status", "error_class", "fingerprint", "partition_id", "failed_from"):
        for text in HOSTILE.values():
            names(served.get(f"dead-letters?{urlencode({name: text})}"), name, (name, text))


def test_a_cursor_of_a_different_query_or_list_is_refused(served: Served) -> None:
    cursor = served.get("dead-letters", limit=2).json["next"]
    names(served.get("dead-letters", limit=2, status="waiting", cursor=cursor), "cursor")
    for path in ("tasks", "aggregations"):
        names(served.get(path, cursor=cursor), "cursor", path)


def test_what_is_not_there_is_not_found(served: Served) -> None:
    for path in ("ledger/77/5", "dead-letters/77/1", "dead-letters/0/2", "ops/none.js", "ledger/audit?partition_id=77"):
        is_problem(served.get(path), 404, case=path)
    for path in (f"tasks/{JOB}", f"tasks/{JOB}/diff"):
        is_problem(served.get(path), 404, case=path)
    for move in ("pause", "resume", "cancel"):
        is_problem(served.post(f"tasks/{JOB}/{move}", {"reason": "because"}), 404, case=move)


def test_a_move_of_a_replay_needs_a_reason_and_nothing_else(served: Served) -> None:
    bodies: list[tuple[dict[str, object], str]] = [({"reason": bad}, "reason") for bad in (1, "no", "x" * 401)]
    bodies += [({}, "reason"), ({"reason": "because", "force": True}, "force")]
    for move in ("pause", "resume", "cancel"):
        for body, field in bodies:
            names(served.post(f"tasks/{JOB}/{move}", body), field, (move, body))


def test_an_aggregation_of_an_unknown_job_is_refused(served: Served) -> None:
    for body, field in (
        ({"job": "flights"}, "job"),
        ({"job": 1}, "job"),
        ({"job": None}, "job"),
        ({"jobs": "x"}, "jobs"),
    ):
        names(served.post("aggregations", body), field, body)


def test_hostile_text_in_the_fields_of_replays_and_aggregations_is_refused_by_its_name(served: Served) -> None:
    for text in HOSTILE.values():
        places = [(end, name) for end in ("from", "to") for name in ("sequence_number", "offset", "enqueued_at")]
        fields: list[tuple[str, object, str]] = [("partitions", [text], "partitions[0]"), ("dry_run", text, "dry_run")]
        fields += [(end, {name: text}, f"{end}.{name}") for end, name in places]
        for name, value, field in fields:
            names(served.order("replay", {"reason": "because", name: value}), field, value)
        names(served.post("aggregations", {"job": text}), "job", text)


def test_a_sequence_number_that_is_none_is_named(served: Served) -> None:
    for number in ("-1", "1.5", "0x10", "ten", str(2**63), "9" * 30, "１２"):
        for path in (f"ledger/0/{segment(number)}", f"dead-letters/0/{segment(number)}"):
            names(served.get(path), "sequence_number", path)


def test_hostile_text_as_a_partition_key_finds_no_letter(served: Served) -> None:
    for text in [text for text in HOSTILE.values() if len(text) < 1_000]:
        assert served.get("revealed/dead-letters", partition_key=text).json["letters"] == [], text


def test_hostile_text_in_a_path_is_refused(served: Served) -> None:
    page = served.get(filled(HOME_PAGE)).body
    for text in HOSTILE.values():
        for template, method in served_by_the_app():
            for name in re.findall(r"\{(\w+)\}", template):
                path = filled(template.replace(f"{{{name}}}", segment(text)))
                answer = (
                    served.get(path) if method == "GET" else served.post(path, {"reason": "because"}, method=method)
                )
                if template == HOME_PAGE and answer.status == 200:
                    assert answer.body == page  # the same for every id
                else:
                    is_problem(answer, 400, 404, *BEFORE_READING.get(template, ()), case=path)
        is_problem(served.get(segment(text)), 404, case=text)


class TestChanging:
    """The routes that take a body."""

    def test_a_body_of_a_different_type_than_json_is_refused(self, served: Served) -> None:
        for path in CHANGING:
            is_problem(served.post(path, ORDER, headers={"Content-Type": "text/plain"}), 415, case=path)

    def test_a_body_that_is_no_object_of_json_is_refused(self, served: Served) -> None:
        for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b'"x"', b"[" * 100_000):
            for path in CHANGING:
                is_problem(served.post(path, body), 400, case=(path, body[:9]))

    def test_a_parameter_is_refused_here_too(self, served: Served) -> None:
        for path in CHANGING:
            is_problem(served.post(f"{path}?bogus=1", ORDER), 400, case=path)


class TestOrders:
    """The route that moves letters."""

    def test_hostile_text_finds_no_letter(self, served: Served) -> None:
        for text in HOSTILE.values():
            for hostile in ({"partition_id": text}, {"sequence_number": text}):
                is_problem(served.order("redrive", {**ORDER, "letters": [{**LETTER, **hostile}]}), 400, case=text)
