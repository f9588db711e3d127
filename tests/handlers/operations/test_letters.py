"""handlers/operations/letters.py: causes of many values, each of which can be chosen, and bodies that the hub has."""

import pytest

from handlers.operations.letters import LARGEST_SHOWN
from tests.handlers.running import Running, functions

KINDS = ("doorbell", "WINDOW", "smoke", "WINDOW", "WINDOW")


def reading(kind: str) -> bytes:
    return b'{"type":"reading","home_id":"H1","sensor_id":"S1","kind":"%s","state":"active"}' % kind.encode()


@pytest.fixture
def caused(running: Running) -> Running:
    running.ingest(list(range(6)), [*map(reading, KINDS), b"["])
    return running


def test_letters_that_differ_by_value_are_one_cause_whose_letters_are_counted_by_value(caused: Running) -> None:
    cause, other = caused.get("reveal_groups").body["groups"]
    assert (cause["letters"], cause["open"], cause["variants"]) == (5, 5, 3)
    assert cause["template"] == "the body is not an event of a home: Invalid value … - at `$.kind`"
    assert sorted(cause["examples"]) == ["WINDOW", "doorbell", "smoke"]
    assert (other["letters"], other["variants"]) == (1, 1)
    values = caused.get("reveal_groups", fingerprint=cause["fingerprint"]).body["groups"]
    assert (values[0]["examples"], values[0]["letters"]) == (["WINDOW"], 3)
    assert sorted(one["letters"] for one in values) == [1, 1, 3]
    assert {one["fingerprint"].partition(".")[0] for one in values} == {cause["fingerprint"]}
    for params in ({}, {"fingerprint": cause["fingerprint"]}):  # for who may not see texts
        groups = caused.get("group_letters", **params).body["groups"]
        assert {(one["template"], one["examples"], one["sample"]["error"]) for one in groups} == {(None, None, None)}


def test_one_value_can_be_listed_and_discarded_alone(caused: Running) -> None:
    cause = caused.get("reveal_groups").body["groups"][0]["fingerprint"]
    window = caused.get("group_letters", fingerprint=cause).body["groups"][0]["fingerprint"]
    listed = caused.get("list_letters", fingerprint=window).body["letters"]
    assert [one["sequence_number"] for one in listed] == ["4", "3", "1"]
    assert listed[0]["error_at"].startswith("transform.py:"), "the line that raised its error"
    order = {"move": "discard", "filter": {"fingerprint": window}, "expected_count": 3, "reason": "not sold any more"}
    task_id = caused.put("redrive", order).body["task_id"]
    functions()["task_slice"]({"task_id": task_id, "part": None})
    left = caused.get("group_letters", status="exhausted", fingerprint=cause).body["groups"]
    assert [one["letters"] for one in left] == [1, 1]


def test_a_body_that_was_not_stored_is_read_from_the_hub_and_cut_at_the_limit(running: Running) -> None:
    """test_other_hub.py has a different event under the number."""
    running.restart(KEEP_BODIES="false")
    running.ingest([0], [b"{"])
    found = {}
    for name, bodies in {"whole": [b"{"], "long": [b"x" * (LARGEST_SHOWN + 1)], "gone": [b"{", b"{"]}.items():
        running.give_hub(*bodies).expire_before("1", len(bodies) - 1)
        place = {"partition_id": "1", "sequence_number": "0"}
        found[name] = running.get("reveal_letter", place, body="text").body["body"]
    assert found["whole"] == {"form": "text", "bytes": 1, "truncated": False, "shown": "{", "fault": None}
    long = found["long"]
    assert (long["bytes"], long["truncated"], len(long["shown"])) == (LARGEST_SHOWN + 1, True, LARGEST_SHOWN)
    assert (found["gone"]["shown"], found["gone"]["bytes"]) == (None, 0)
    assert found["gone"]["fault"] == "it was not stored, and the hub no longer has it"
