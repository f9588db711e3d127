"""Requests that are not valid name the field and change nothing, in each kind of task and for the next incarnation.

The limits of each field are in the description of the API: test_description.py sends what it refuses, so only what it
does not say is here.
"""

from typing import Any

import pytest

from core.audit.audit import MOST_NUMBERS
from tests.handlers.running import HOME, MOTION, Running

HOSTILE = "<script>alert(1)</script>'; DROP TABLE home; --{{7*7}}../../etc/passwd"
LETTER = {"partition_id": "1", "sequence_number": "1"}
ROWS = {"partition_id": "1", "rows": True}
NEEDED: dict[str, dict[str, Any]] = {
    "redrive": {"move": "retry", "filter": {}, "expected_count": 3, "reason": "good enough"},
    "replay": {"reason": "good enough"},
    "purge": {"reason": "good enough"},
    "audit": {},
    "incarnation": {"reason": "good enough", "expected_incarnation": 1},
}
REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {  # by the kind, what is changed, and the field
    "redrive": [
        ({"letters": [LETTER]}, "filter"),  # both ways to choose
        ({"filter": None}, "letters"),  # no way to choose
        ({"filter": None, "letters": [{**LETTER, "sequence_number": str(2**63)}]}, "letters[0].sequence_number"),
    ],
    "replay": [
        ({HOSTILE: 1}, HOSTILE),
        ({"partitions": ["9"]}, "partitions"),
        ({"to": {"sequence_number": str(2**63)}}, "to.sequence_number"),
        ({"to": {"sequence_number": "1", "offset": "1"}}, "to"),  # a place in two ways
        ({"from": {}}, "from"),
        ({"from": {"offset": "64"}}, "from"),  # of all partitions
        ({"to": {"enqueued_at": "2026-01-01T00:00:00"}}, "to.enqueued_at"),
        ({"from": {"sequence_number": "3"}, "to": {"sequence_number": "1"}}, "to"),
        ({"from": {"enqueued_at": "2026-01-02T00:00:00Z"}, "to": {"enqueued_at": "2026-01-01T00:00:00Z"}}, "to"),
        ({"from": {"sequence_number": "0"}, "to": {"sequence_number": str(10**12)}}, "to"),
        ({"from": {"sequence_number": "4"}}, "from"),  # after the checkpoint
        ({"keys": ["a", "b", "a"]}, "keys[2]"),
    ],
    "purge": [({"older_than_days": {"event_hub_checkpoint": 1}}, "older_than_days")],
    "audit": [
        ({"rows": True, "first": "1"}, "partition_id"),
        ({"partition_id": "1", "first": "1"}, "first"),
        ({"partition_id": "1", "last": "1"}, "last"),
        ({**ROWS, "last": str(2**63)}, "last"),
        ({**ROWS, "first": "5", "last": "4"}, "last"),
        ({**ROWS, "first": "0", "last": str(MOST_NUMBERS)}, "last"),
    ],
    "incarnation": [
        ({"anchor": "end"}, "anchor"),
        ({"anchor": "2026-01-01T00:00:00"}, "anchor"),
        ({"anchor": "0001-01-01T00:00:00+14:00"}, "anchor"),
        ({"dry_run": False}, "expected_hub_created_at"),
    ],
}


@pytest.mark.parametrize("kind", REFUSED)
def test_whatever_is_wrong_with_a_request_is_a_problem_that_names_the_field(running: Running, kind: str) -> None:
    running.ingest([0, 1, 2, 3], [HOME, b"{", b"[", MOTION])
    running.give_hub(HOME, b"{", b"[", MOTION)
    for given, field in REFUSED[kind]:
        body = {name: value for name, value in {**NEEDED[kind], **given}.items() if value is not None}
        reply = running.post("open_next_incarnation", body) if kind == "incarnation" else running.put(kind, body)
        assert (reply.status, reply.media, reply.fields) == (400, "application/problem+json", [field]), given
    assert (running.tasks(), running.client.started) == ([], [])
    if kind == "audit":
        assert running.put("audit", {**ROWS, "first": "0", "last": str(MOST_NUMBERS - 1)}).status == 201
    assert running.sqlite.sql("SELECT MAX(incarnation) FROM event_stream") == [(1,)]


def test_a_request_needs_a_kind_that_there_is_and_an_id(running: Running) -> None:
    running.ingest([0], [HOME])
    for body, wrong in (({"reason": "why"}, "kind"), ({"kind": "odd", "reason": "why"}, "kind"), ([], "body")):
        refused = running.post("put_task", body, {"task_id": "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"})
        assert (refused.status, refused.fields) == (400, [wrong])
    assert running.put("audit", {}, "1").fields == ["task_id"]
