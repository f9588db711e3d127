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
    answer = served.post("redrives", order(2, letters=named(("0", "1"), ("10", "11"))), headers=WHO)
    found = answer.json
    assert (answer.status, found["status"], found["moved"], found["unmoved"], found["total"]) == (200, "done", 2, 0, 2)
    kept = asked(served, "SELECT kind, done_by, why FROM dead_letter_attempt")
    assert kept == [("discard", NOBODY, "known poison, see the incident")] * 2
    letter = served.get("dead-letters/10/11").json
    assert (letter["letter"]["status"], letter["letter"]["settled_why"]) == (
        "discarded",
        "known poison, see the incident",
    )
    assert served.get("status").json["ledger_balanced"] is True


def test_a_letter_that_is_settled_already_is_not_counted(served: Served) -> None:
    served.post("redrives", order(1, letters=named(("0", "1"))))
    answer = served.post("redrives", order(2, letters=named(("0", "1"), ("0", "11"))))
    assert (answer.status, answer.json["count"]) == (409, 1)


def test_redrives_of_overlapping_letters_that_are_requested_at_once_each_list_what_they_moved(served: Served) -> None:
    orders = [
        retry(12, filter={}),
        order(6, filter={"fingerprint": "aaaa"}),
        order(4, filter={"partition_id": "0"}),
        order(1, letters=named(("0", "1"))),
    ]
    with ThreadPoolExecutor(len(orders)) as pool:
        answers = list(pool.map(lambda one: served.post("redrives", one), orders))
    assert {answer.status for answer in answers} <= {
        200,
        202,
        409,
    }  # 409: letters were discarded before
    jobs = [answer.json["task_id"] for answer in answers if answer.status < 300]
    assert jobs
    served.until(lambda: all(served.get(f"tasks/{job}").json["status"] == "done" for job in jobs))
    ended = [served.get(f"tasks/{job}").json for job in jobs]
    assert [one["moved"] + one["unmoved"] for one in ended] == [one["total"] for one in ended]
    discarded = sum(one["moved"] for one in ended if one["move"] == "discard")
    assert statuses(served).get("discarded", 0) == discarded


class TestKeys:
    """A key under which a request died or still runs, and replays and aggregations under a key."""

    def keep(self, served: Served, change: str) -> None:
        """Leave the key as a process does that died or still runs."""
        with closing(sqlite3.connect(served.path)) as connection, connection:
            assert connection.execute(f"UPDATE idempotency_key SET {change}").rowcount == 1

    def test_a_request_under_a_key_whose_first_request_still_runs_gets_a_time_to_retry(self, served: Served) -> None:
        key, body = uuid4().hex, order(6, filter={"fingerprint": "aaaa"})
        served.post("redrives", body, key=key)
        self.keep(served, "answer = NULL")
        answer = served.post("redrives", body, key=key)
        assert (answer.status, answer.json["type"]) == (409, "urn:hubledger:problem:request-in-work")
        assert int(answer.headers["retry-after"]) > 0
        other = served.post("redrives", order(1, filter={"fingerprint": "aaaa"}), key=key)
        assert (other.status, other.json["type"]) == (422, "urn:hubledger:problem:key-reused")
        assert asked(served, "SELECT COUNT(*) FROM dead_letter_attempt") == [(6,)]

    def test_a_process_that_died_before_its_work_leaves_it_to_the_same_request(self, served: Served) -> None:
        key, body = uuid4().hex, order(5, filter={"fingerprint": "aaaa"})
        assert served.post("redrives", body, key=key).status == 409  # claimed, and nothing came of it
        self.keep(served, "claimed_at = '2020-01-01T00:00:00.000000Z', answer = NULL")
        served.post("redrives", order(1, letters=named(("0", "11"))))
        assert served.post("redrives", body, key=key).json["moved"] == 5

    def test_a_process_that_died_between_its_work_and_its_answer_moves_nothing_twice(self, served: Served) -> None:
        key, body = uuid4().hex, order(6, filter={"fingerprint": "aaaa"})
        served.post("redrives", body, key=key)
        self.keep(served, "claimed_at = '2020-01-01T00:00:00.000000Z', answer = NULL")
        answer = served.post("redrives", body, key=key)
        assert (answer.status, answer.json["count"]) == (409, 0)
        assert asked(served, "SELECT COUNT(*) FROM dead_letter_attempt") == [(6,)]

    def test_a_replay_is_started_once_under_a_key(self, served: Served) -> None:
        key, body = uuid4().hex, {"reason": "the transform was mended", "partitions": ["0"]}
        first, again = (served.post("replays", body, key=key, headers=WHO) for _ in range(2))
        assert (first.status, again.status) == (202, 202)
        assert (again.body, again.headers["location"]) == (first.body, first.headers["location"])
        assert first.json["requested_by"] == NOBODY
        other = served.post("replays", {**body, "dry_run": False}, key=key, headers=WHO)
        assert (other.status, other.json["type"]) == (422, "urn:hubledger:problem:key-reused")
        assert asked(served, "SELECT COUNT(*) FROM task") == [(1,)]

    def test_a_replay_whose_process_died_before_its_answer_is_not_made_twice(self, served: Served) -> None:
        key, body = uuid4().hex, {"reason": "for good", "partitions": ["0"], "dry_run": False}
        first = served.post("replays", body, key=key)
        assert first.status == 202
        self.keep(served, "claimed_at = '2020-01-01T00:00:00.000000Z', answer = NULL")
        again = served.post("replays", body, key=key)  # there is no hub: the first one is still at it
        assert (again.status, again.json["task_id"]) == (409, first.json["task_id"])
        assert asked(served, "SELECT COUNT(*) FROM task") == [(1,)]

    def test_without_an_engine_an_aggregation_is_refused_and_its_key_is_free(self, served: Served) -> None:
        key = uuid4().hex
        answers = [served.post("aggregations", {}, key=key) for _ in range(2)]
        assert [(answer.status, answer.json["type"]) for answer in answers] == [
            (409, "urn:hubledger:problem:conflict")
        ] * 2
