"""handlers/operations/letters.py: one cause of many values shows its message without them, and each can be chosen."""

import pytest

from tests.handlers.running import Running, functions

KINDS = ("doorbell", "WINDOW", "smoke", "WINDOW", "WINDOW")


def reading(kind: str) -> bytes:
    return b'{"type":"reading","home_id":"H1","sensor_id":"S1","kind":"%s","state":"active"}' % kind.encode()


@pytest.fixture
def app(running: Running) -> Running:
    running.ingest(list(range(6)), [*map(reading, KINDS), b"["])
    return running


def test_letters_that_differ_by_value_are_one_cause_that_shows_its_values(app: Running) -> None:
    cause, other = app.get("reveal_groups").body["groups"]
    assert (cause["letters"], cause["open"], cause["variants"]) == (5, 5, 3)
    assert cause["template"] == "the body is not an event of a home: Invalid value … - at `$.kind`"
    assert sorted(cause["examples"]) == ["WINDOW", "doorbell", "smoke"]
    assert (other["letters"], other["variants"]) == (1, 1)


def test_the_letters_of_a_cause_are_counted_by_value(app: Running) -> None:
    cause = app.get("reveal_groups").body["groups"][0]["fingerprint"]
    values = app.get("reveal_groups", fingerprint=cause).body["groups"]
    assert (values[0]["examples"], values[0]["letters"]) == (["WINDOW"], 3)
    assert sorted(one["letters"] for one in values) == [1, 1, 3]
    assert {one["fingerprint"].partition(".")[0] for one in values} == {cause}


def test_one_value_can_be_listed_and_discarded_alone(app: Running) -> None:
    cause = app.get("reveal_groups").body["groups"][0]["fingerprint"]
    window = app.get("group_letters", fingerprint=cause).body["groups"][0]["fingerprint"]
    listed = app.get("list_letters", fingerprint=window).body["letters"]
    assert [one["sequence_number"] for one in listed] == ["4", "3", "1"]
    order = {"move": "discard", "filter": {"fingerprint": window}, "expected_count": 3, "reason": "not sold any more"}
    task_id = app.put("redrive", order).body["task_id"]
    functions()["task_slice"]({"task_id": task_id, "part": None})
    left = app.get("group_letters", status="exhausted", fingerprint=cause).body["groups"]
    assert [one["letters"] for one in left] == [1, 1]


def test_who_may_not_see_texts_sees_no_values(app: Running) -> None:
    for params in ({}, {"fingerprint": app.get("group_letters").body["groups"][0]["fingerprint"]}):
        groups = app.get("group_letters", **params).body["groups"]
        assert {(one["template"], one["examples"], one["sample"]["error"]) for one in groups} == {(None, None, None)}


def test_a_letter_shows_the_line_that_raised_its_error(app: Running) -> None:
    (letter, *_) = app.get("list_letters").body["letters"]
    assert letter["error_at"].startswith("transform.py:")
