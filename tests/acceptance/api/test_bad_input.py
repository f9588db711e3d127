"""Bad input on every route: a problem that names the field, nothing changed, never a stack."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlencode

import pytest

from tests.acceptance.api.routes import JOB, filled, methods_by_path, paths, served_by_the_app
from tests.acceptance.api.served import Reply, Served, segment
from tests.unit.handlers.test_replays import REFUSED

READING, CHANGING, METHODS = paths("GET"), paths("POST"), methods_by_path()
HOME_PAGE = "homes/{home_id}"
ORDERS = ("dead-letters/retry", "dead-letters/discard")
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
ORDER = {"expected_count": 0, "reason": "because", "letters": [{"partition_id": "0", "sequence_number": "1"}]}


def held(served: Served) -> str:
    """All that the store holds."""
    with closing(sqlite3.connect(served.path)) as connection:
        return "\n".join(line for line in connection.iterdump() if "idempotency_key" not in line)


@pytest.fixture(autouse=True)
def nothing_changes(served: Served) -> Iterator[None]:
    """Whatever a test sends, the store holds the same afterwards."""
    before = held(served)
    yield
    assert held(served) == before


def is_problem(answer: Reply, *statuses: int) -> None:
    """A problem as RFC 9457 has it, and nothing of the inside in it."""
    assert answer.status in (statuses or (400, 404)), answer.body
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json
    assert problem["type"].startswith("urn:hubledger:problem:")
    assert (problem["status"], bool(problem["title"]), bool(problem["detail"])) == (answer.status, True, True)
    assert not any(word in answer.body for word in (b"Traceback", b".py", b"SELECT", b"sqlite3"))


@pytest.mark.parametrize("path", METHODS)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_a_method_that_a_route_does_not_have_is_refused_with_those_it_has(
    served: Served, method: str, path: str
) -> None:
    if method in METHODS[path]:
        return
    answer = served.request(method, f"/api/{path}")
    is_problem(answer, 405)
    assert set(answer.headers["allow"].split(", ")) == METHODS[path]


@pytest.mark.parametrize("path", ["", "nothing", "status/more", "ledger", "ledger/0", "dead-letters/0/1/2", "ops/a/b"])
def test_an_address_without_a_route_is_a_problem(served: Served, path: str) -> None:
    is_problem(served.get(path), 404)


@pytest.mark.parametrize("path", READING)
def test_an_unknown_parameter_is_named(served: Served, path: str) -> None:
    answer = served.get(path, bogus="1")
    is_problem(answer, 400)
    assert answer.fields == ["bogus"]


def test_the_parameter_of_the_key_is_the_host_s(served: Served) -> None:
    assert served.get("status", code="secret").status == 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "null"), ("cursor", "null"), ("limit", "null"),
        ("limit", "0"), ("limit", "501"), ("limit", "-1"), ("limit", "ten"), ("limit", "1e3"), ("limit", str(10**30)),
        ("status", "open"), ("error_class", "bad"), ("fingerprint", "a b"), ("partition_id", "0/1"),
        ("failed_from", "yesterday"), ("failed_from", "2026-01-01T00:00:00"),
        ("failed_before", "0001-01-01T00:00:00+14:00"),
        ("cursor", "xyz"), ("cursor", "x" * 2_000), ("cursor", "WyJhIixbMSwyLDNdXQ"), ("partition_key", "k" * 3_000),
    ],
)  # fmt: skip
def test_a_parameter_that_is_not_valid_is_named(served: Served, name: str, value: str) -> None:
    answer = served.get(f"dead-letters?{urlencode({name: value})}")
    is_problem(answer, 400)
    assert answer.fields == [name]


def test_a_cursor_of_another_query_is_refused(served: Served) -> None:
    cursor = served.get("dead-letters", limit=2).json["next"]
    answer = served.get("dead-letters", limit=2, status="waiting", cursor=cursor)
    is_problem(answer, 400)
    assert answer.fields == ["cursor"]


@pytest.mark.parametrize("path", ["ledger/77/5", "dead-letters/77/1", "dead-letters/0/2", "ops/none.js"])
def test_what_is_not_there_is_not_found(served: Served, path: str) -> None:
    is_problem(served.get(path), 404)


@pytest.mark.parametrize("path", ["replays", "aggregations"])
@pytest.mark.parametrize(
    ("name", "value"),
    [*(("limit", text) for text in ("0", "101", "1e1", "x")), *(("cursor", text) for text in HOSTILE.values())],
)
def test_a_parameter_of_a_page_that_is_not_valid_is_named(served: Served, path: str, name: str, value: str) -> None:
    answer = served.get(f"{path}?{urlencode({name: value})}")
    is_problem(answer, 400)
    assert answer.fields == [name]


@pytest.mark.parametrize("path", ["replays", "aggregations"])
def test_a_cursor_of_letters_is_none_of_another_list(served: Served, path: str) -> None:
    answer = served.get(path, cursor=served.get("dead-letters", limit=2).json["next"])
    is_problem(answer, 400)
    assert answer.fields == ["cursor"]


@pytest.mark.parametrize("value", ["4", "1e9", "1767225600", "2026-01-01", "2026-13-01T00:00:00Z", "now", "-1"])
def test_an_instant_is_written_as_rfc_3339_has_it(served: Served, value: str) -> None:
    for name in ("failed_from", "failed_before"):
        answer = served.get(f"dead-letters?{urlencode({name: value})}")
        is_problem(answer, 400)
        assert answer.fields == [name]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"rows": "yes"}, "rows"),
        ({"hub": "2"}, "hub"),
        ({"first": "1", "rows": "true"}, "partition_id"),
        ({"first": "1", "partition_id": "0"}, "first"),
        ({"last": "1", "partition_id": "0"}, "last"),
        ({"first": "9", "last": "8", "partition_id": "0", "rows": "true"}, "last"),
        ({"first": "0", "last": str(10**12), "partition_id": "0", "rows": "true"}, "last"),
        ({"first": "0", "last": "20000", "partition_id": "0", "hub": "true"}, "last"),
        ({"first": "-1", "partition_id": "0", "rows": "true"}, "first"),
        ({"last": str(2**63), "partition_id": "0", "rows": "true"}, "last"),
        ({"partition_id": "../.."}, "partition_id"),
    ],
)
def test_an_audit_of_what_cannot_be_recounted_is_refused(served: Served, query: dict[str, str], field: str) -> None:
    answer = served.get(f"ledger/audit?{urlencode(query)}")
    is_problem(answer, 400)
    assert answer.fields == [field]


def test_a_replay_that_is_not_there_is_not_found(served: Served) -> None:
    for path in (f"replays/{JOB}", f"replays/{JOB}/diff"):
        is_problem(served.get(path), 404)
    for move in ("pause", "resume", "cancel"):
        is_problem(served.post(f"replays/{JOB}/{move}", {"reason": "because"}), 404)


@pytest.mark.parametrize("case", [name for name in REFUSED if name != "a range behind the checkpoint"])
def test_a_replay_of_what_cannot_be_replayed_is_refused(served: Served, case: str) -> None:
    body, field = REFUSED[case]
    answer = served.post("replays", b"" if body is None else body)
    is_problem(answer, 400)
    assert answer.fields == [field]


@pytest.mark.parametrize("move", ["pause", "resume", "cancel"])
@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "reason"), ({"reason": 1}, "reason"), ({"reason": "no"}, "reason"), ({"reason": "x" * 401}, "reason"),
     ({"reason": "because", "force": True}, "force")],
)  # fmt: skip
def test_a_move_of_a_replay_wants_a_reason_and_nothing_else(
    served: Served, move: str, body: dict[str, object], field: str
) -> None:
    answer = served.post(f"replays/{JOB}/{move}", body)
    is_problem(answer, 400)
    assert answer.fields == [field]


@pytest.mark.parametrize(
    ("body", "field"),
    [({"job": "flights"}, "job"), ({"job": 1}, "job"), ({"job": None}, "job"), ({"jobs": "x"}, "jobs")],
)
def test_an_aggregation_that_is_none_is_refused(served: Served, body: dict[str, object], field: str) -> None:
    answer = served.post("aggregations", body)
    is_problem(answer, 400)
    assert answer.fields == [field]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_in_the_fields_of_replays_and_aggregations_is_refused_by_its_name(
    served: Served, text: str
) -> None:
    ends = {"sequence_number": text, "offset": text, "enqueued_at": text}
    for path, body, field in (
        ("replays", {"reason": "because", "partitions": [text]}, "partitions[0]"),
        *(("replays", {"reason": "because", "from": {name: value}}, f"from.{name}") for name, value in ends.items()),
        *(("replays", {"reason": "because", "to": {name: value}}, f"to.{name}") for name, value in ends.items()),
        ("replays", {"reason": "because", "dry_run": text}, "dry_run"),
        ("aggregations", {"job": text}, "job"),
    ):
        answer = served.post(path, body)
        is_problem(answer, 400)
        assert answer.fields == [field]


def test_a_partition_that_is_not_there_cannot_be_audited(served: Served) -> None:
    is_problem(served.get("ledger/audit", partition_id="77"), 404)


@pytest.mark.parametrize("number", ["-1", "1.5", "0x10", "ten", str(2**63), "9" * 30, "１２"])
def test_a_sequence_number_that_is_none_is_named(served: Served, number: str) -> None:
    for path in (f"ledger/0/{segment(number)}", f"dead-letters/0/{segment(number)}"):
        answer = served.get(path)
        is_problem(answer, 400)
        assert answer.fields == ["sequence_number"]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ["cursor", "status", "error_class", "fingerprint", "partition_id", "failed_from"])
def test_hostile_text_in_a_parameter_is_refused_by_its_name(served: Served, name: str, text: str) -> None:
    answer = served.get(f"dead-letters?{urlencode({name: text})}")
    is_problem(answer, 400)
    assert answer.fields == [name]


@pytest.mark.parametrize("text", [text for text in HOSTILE.values() if len(text) < 1_000], ids=ascii)
def test_hostile_text_as_a_partition_key_is_only_looked_for(served: Served, text: str) -> None:
    assert served.get("dead-letters", partition_key=text).json["letters"] == []


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_in_a_path_is_refused(served: Served, text: str) -> None:
    for template, method in served_by_the_app():
        for name in re.findall(r"\{(\w+)\}", template):
            path = filled(template.replace(f"{{{name}}}", segment(text)))
            body = {"reason": "because"}
            answer = served.get(path) if method == "GET" else served.post(path, body)
            if template == HOME_PAGE and answer.status == 200:
                assert answer.body == served.get(filled(HOME_PAGE)).body  # the same for every id
            else:
                is_problem(answer, 400, 404)
    is_problem(served.get(segment(text)), 404)


@pytest.mark.parametrize("path", CHANGING)
class TestChanging:
    """The routes that take a body."""

    def test_a_key_is_asked_for(self, served: Served, path: str) -> None:
        body = json.dumps(ORDER).encode()
        answer = served.request("POST", f"/api/{path}", body, {"Content-Type": "application/json"})
        is_problem(answer, 400)
        assert answer.fields == ["Idempotency-Key"]

    @pytest.mark.parametrize("key", ["k" * 101, "with space", "ß"])
    def test_a_key_that_is_none_is_refused(self, served: Served, path: str, key: str) -> None:
        answer = served.post(path, ORDER, headers={"Idempotency-Key": key.encode().decode("latin-1")})
        is_problem(answer, 400)
        assert answer.fields == ["Idempotency-Key"]

    def test_a_body_that_is_not_said_to_be_json_is_refused(self, served: Served, path: str) -> None:
        is_problem(served.post(path, ORDER, headers={"Content-Type": "text/plain"}), 415)

    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'"x"', b"[" * 100_000])
    def test_a_body_that_is_no_object_of_json_is_refused(self, served: Served, path: str, body: bytes) -> None:
        is_problem(served.post(path, body), 400)

    def test_a_body_beyond_the_limit_is_refused(self, served: Served, path: str) -> None:
        is_problem(served.post(path, {**ORDER, "reason": "x" * 300_000}), 413)

    def test_a_parameter_is_refused_here_too(self, served: Served, path: str) -> None:
        is_problem(served.post(f"{path}?bogus=1", ORDER), 400)


@pytest.mark.parametrize("path", ORDERS)
class TestOrders:
    """The routes that move letters."""

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"bogus": 1}, "bogus"),
            ({"reason": None}, "reason"),
            ({"reason": ""}, "reason"),
            ({"reason": "x" * 401}, "reason"),
            ({"expected_count": -1}, "expected_count"),
            ({"expected_count": "1"}, "expected_count"),
            ({"expected_count": 10**30}, "expected_count"),
            ({"letters": []}, "letters"),
            ({"letters": None}, "letters"),
            ({"letters": [{"partition_id": "0", "sequence_number": 1}]}, "letters[0].sequence_number"),
            ({"letters": [{"partition_id": "0", "sequence_number": str(2**63)}]}, "letters[0].sequence_number"),
            ({"letters": [{"partition_id": "0"}]}, "letters[0].sequence_number"),
            ({"letters": [{"partition_id": "0", "sequence_number": "1"}] * 501}, "letters"),
            ({"filter": {}}, "filter"),
            ({"letters": None, "filter": {"status": "open"}}, "filter.status"),
            ({"letters": None, "filter": {"bogus": 1}}, "filter.bogus"),
            ({"letters": None, "filter": {"partition_id": "../.."}}, "filter.partition_id"),
        ],
    )
    def test_a_field_that_is_not_valid_is_named(
        self, served: Served, path: str, change: dict[str, object], field: str
    ) -> None:
        body = {name: value for name, value in {**ORDER, **change}.items() if value is not None}
        answer = served.post(path, body)
        is_problem(answer, 400)
        assert answer.fields == [field]

    @pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
    def test_hostile_text_finds_no_letter(self, served: Served, path: str, text: str) -> None:
        for changed in (
            {"letters": [{"partition_id": text, "sequence_number": "1"}]},
            {"letters": [{"partition_id": "0", "sequence_number": text}]},
        ):
            is_problem(served.post(path, {**ORDER, **changed}), 400)
