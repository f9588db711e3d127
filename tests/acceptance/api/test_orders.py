"""Retry and discard over HTTP: with the expected count, once under a key, with who and why."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from tests.acceptance.api.conftest import fill
from tests.acceptance.api.served import Contents, Served
from tests.acceptance.api.test_principals import FORGED

# Claims that nobody has verified.
WHO = {"X-MS-CLIENT-PRINCIPAL": FORGED, "X-MS-CLIENT-PRINCIPAL-NAME": "ada@example.org"}
NOBODY = "unverified (key holder)"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Contents]]:
    """One host for the module, and the contents of its store."""
    made = Served(tmp_path_factory.mktemp("orders"))
    fill(made)
    yield made, made.contents()
    made.close()


@pytest.fixture
def served(host: tuple[Served, Contents]) -> Iterator[Served]:
    """The host; after each test its store gets its first contents again."""
    yield host[0]
    host[0].restore(host[1])


def asked(served: Served, statement: str) -> list[Any]:
    with closing(sqlite3.connect(served.path)) as connection:
        return connection.execute(statement).fetchall()


def statuses(served: Served) -> dict[str, int]:
    return dict(asked(served, "SELECT status, COUNT(*) FROM event_hub_dead_letter GROUP BY status"))


def order(count: int, **more: Any) -> dict[str, Any]:
    return {"move": "discard", "expected_count": count, "reason": "known poison, see the incident", **more}


def retry(count: int, **more: Any) -> dict[str, Any]:
    return order(count, move="retry", **more)


def named(*positions: tuple[str, str]) -> list[dict[str, str]]:
    return [{"partition_id": id, "sequence_number": number} for id, number in positions]


def test_a_selection_is_discarded_with_who_and_why(served: Served) -> None:
    answer = served.order("redrive", order(2, letters=named(("0", "1"), ("10", "11"))), headers=WHO)
    found = answer.json
    assert (answer.status, found["status"], found["moved"], found["unmoved"], found["total"]) == (201, "done", 2, 0, 2)
    kept = asked(served, "SELECT kind, done_by, why FROM dead_letter_attempt")
    assert kept == [("discard", NOBODY, "known poison, see the incident")] * 2
    letter = served.get("dead-letters/10/11").json
    assert (letter["letter"]["status"], letter["letter"]["settled_why"]) == (
        "discarded",
        "known poison, see the incident",
    )
    assert served.get("status").json["ledger_balanced"] is True


def test_a_letter_that_is_settled_already_is_not_counted(served: Served) -> None:
    served.order("redrive", order(1, letters=named(("0", "1"))))
    answer = served.order("redrive", order(2, letters=named(("0", "1"), ("0", "11"))))
    assert (answer.status, answer.json["count"]) == (409, 1)


def test_redrives_of_overlapping_letters_that_are_requested_at_once_each_count_what_they_moved(served: Served) -> None:
    orders = [
        retry(12, filter={}),
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
    assert statuses(served).get("discarded", 0) == discarded


def test_a_replay_is_opened_once_under_its_id(served: Served) -> None:
    task_id, body = str(uuid4()), {"reason": "the transform was mended", "partitions": ["0"]}
    first, again = (served.order("replay", body, task_id, WHO) for _ in range(2))
    assert (first.status, again.status) == (201, 200)
    assert (again.json["task_id"], again.headers["location"]) == (task_id, first.headers["location"])
    assert first.json["requested_by"] == NOBODY
    other = served.order("replay", {**body, "dry_run": False}, task_id, WHO)
    assert (other.status, other.json["type"]) == (409, "urn:hubledger:problem:conflict")
    assert asked(served, "SELECT COUNT(*) FROM task") == [(1,)]


def test_a_redrive_whose_answer_was_lost_moves_nothing_twice(served: Served) -> None:
    task_id, body = str(uuid4()), order(6, filter={"fingerprint": "aaaa"})
    first, again = (served.order("redrive", body, task_id) for _ in range(2))
    assert (first.status, again.status, again.json["moved"]) == (201, 200, 6)
    assert asked(served, "SELECT COUNT(*) FROM dead_letter_attempt") == [(6,)]


def test_without_an_engine_an_aggregation_is_refused(served: Served) -> None:
    answer = served.post("aggregations", {})
    assert (answer.status, answer.json["type"]) == (409, "urn:hubledger:problem:conflict")
