"""Retry and discard over HTTP: many at once under one id or over the same letters, by whoever holds the key."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from tests.acceptance.api.served import Served
from tests.acceptance.api.test_principals import FORGED

# Claims that nobody has verified.
WHO = {"X-MS-CLIENT-PRINCIPAL": FORGED, "X-MS-CLIENT-PRINCIPAL-NAME": "ada@example.org"}
WHY, THREADS = "known poison, see the incident", 50


@pytest.fixture
def served(own: Served) -> Iterator[Served]:
    """The host; after each test its store gets its former contents again."""
    before = own.contents()
    yield own
    own.restore(before)


def order(count: int, move: str = "discard", **more: Any) -> dict[str, Any]:
    return {"move": move, "expected_count": count, "reason": WHY, **more}


def named(*positions: tuple[str, str]) -> list[dict[str, str]]:
    return [{"partition_id": id, "sequence_number": number} for id, number in positions]


def test_a_selection_is_discarded_with_who_and_why(served: Served) -> None:
    answer = served.order("redrive", order(2, letters=named(("0", "1"), ("10", "11"))), headers=WHO)
    found = answer.json
    assert (answer.status, found["status"], found["moved"], found["unmoved"], found["total"]) == (201, "done", 2, 0, 2)
    kept = served.sqlite.sql("SELECT kind, done_by, why FROM dead_letter_attempt")
    assert kept == [("discard", "unverified (key holder)", WHY)] * 2
    letter = served.get("dead-letters/10/11").json["letter"]
    assert (letter["status"], letter["settled_why"]) == ("discarded", WHY)
    assert served.get("status").json["ledger_balanced"] is True
    again = served.order("redrive", order(2, letters=named(("0", "1"), ("0", "11"))))
    assert (again.status, again.json["count"]) == (409, 1)  # a letter that is settled already is not counted


def test_redrives_of_overlapping_letters_that_are_requested_at_once_each_count_what_they_moved(served: Served) -> None:
    orders = [
        order(12, "retry", filter={}),
        order(6, filter={"fingerprint": "aaaa"}),
        order(4, filter={"partition_id": "0"}),
        order(1, letters=named(("0", "1"))),
    ]
    with ThreadPoolExecutor(len(orders)) as pool:
        answers = list(pool.map(lambda one: served.order("redrive", one), orders))
    assert {answer.status for answer in answers} <= {201, 409}  # 409: letters were discarded before
    jobs = [answer.json["task_id"] for answer in answers if answer.status < 300]
    assert jobs
    served.until(lambda: all(served.get(f"tasks/{job}").json["status"] == "done" for job in jobs))
    ended = [served.get(f"tasks/{job}").json for job in jobs]
    assert [one["moved"] + one["unmoved"] for one in ended] == [one["total"] for one in ended]
    discarded = sum(one["moved"] for one in ended if one["move"] == "discard")
    statuses = dict(served.sqlite.sql("SELECT status, COUNT(*) FROM event_hub_dead_letter GROUP BY status"))
    assert statuses.get("discarded", 0) == discarded


def test_of_many_threads_with_one_id_one_opens_the_redrive_and_each_letter_moves_once(served: Served) -> None:
    task_id, body = str(uuid4()), order(6, filter={"fingerprint": "aaaa"})
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(lambda _: served.order("redrive", body, task_id), range(THREADS)))
    # 409: its letters had been moved when the request was read, and the first one was not stored yet when it came
    assert {answer.status for answer in answers} <= {200, 201, 409}
    assert {answer.json["task_id"] for answer in answers if answer.status < 300} == {task_id}
    assert served.order("redrive", body, task_id).json["moved"] == 6
    assert len(served.contents()["dead_letter_attempt"]) == 6


def test_of_many_threads_that_request_a_replay_under_one_id_one_opens_it(served: Served) -> None:
    task_id, body = str(uuid4()), {"reason": "look first", "partitions": ["1"]}
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(lambda _: served.order("replay", body, task_id), range(THREADS)))
    assert {answer.status for answer in answers} == {200, 201}
    assert {answer.json["task_id"] for answer in answers} == {task_id}
    assert len(served.contents()["task"]) == 1
