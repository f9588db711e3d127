"""Retry and discard over HTTP: with the expected count, once under a key, with who and why."""

import sqlite3
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from core.api.idempotency import key_of_caller
from tests.acceptance.api.conftest import fill
from tests.acceptance.api.served import Contents, Served

WHO = {"X-MS-CLIENT-PRINCIPAL-NAME": "ada@example.org"}  # a claim that nobody has verified
ADA, NOBODY = "0f8fad5b-d9cb-469f-a165-70867728950e", "unverified (key holder)"


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


def test_a_filter_moves_all_that_fit(served: Served) -> None:
    answer = served.post("redrives", order(6, filter={"fingerprint": "aaaa"}))
    assert (answer.json["total"], answer.json["moved"], answer.json["unmoved"]) == (6, 6, 0)
    assert statuses(served)["discarded"] == 6


def test_a_wrong_count_is_refused_with_the_right_one_and_nothing_is_moved(served: Served) -> None:
    before = statuses(served)
    choices: tuple[dict[str, Any], ...] = ({"filter": {}}, {"letters": named(("0", "1"), ("77", "1"))})
    for chosen in choices:
        answer = served.post("redrives", order(5, **chosen))
        assert (answer.status, answer.json["type"]) == (409, "urn:hubledger:problem:count-differs")
        assert served.post("redrives", order(answer.json["count"] + 1, **chosen)).status == 409
    assert statuses(served) == before


def test_the_same_request_under_a_key_is_done_once_and_answered_the_same(served: Served) -> None:
    key, body = uuid4().hex, order(6, filter={"fingerprint": "aaaa"})
    answers = [served.post("redrives", body, key=key) for _ in range(3)]
    assert {(answer.status, answer.body) for answer in answers} == {(200, answers[0].body)}
    assert asked(served, "SELECT COUNT(*) FROM dead_letter_attempt") == [(6,)]


def test_a_different_request_under_a_key_is_refused(served: Served) -> None:
    key = uuid4().hex
    served.post("redrives", order(6, filter={"fingerprint": "aaaa"}), key=key)
    for path, body in (
        ("redrives", order(6, filter={"fingerprint": "bbbb"})),
        ("redrives", retry(6, filter={"fingerprint": "aaaa"})),
    ):
        answer = served.post(path, body, key=key)
        assert (answer.status, answer.json["type"]) == (422, "urn:hubledger:problem:key-reused")
    assert statuses(served)["discarded"] == 6


def test_a_refused_request_leaves_its_key_free(served: Served) -> None:
    key = uuid4().hex
    assert served.post("redrives", order(5, filter={"fingerprint": "aaaa"}), key=key).status == 409
    assert served.post("redrives", order(5, filter={"fingerprint": "aaaa"}), key=key).status == 409
    found = asked(served, "SELECT COUNT(*) FROM dead_letter_attempt")
    assert found == [(0,)]


def test_of_many_at_once_under_one_key_one_is_done(served: Served) -> None:
    key, body = uuid4().hex, order(6, filter={"fingerprint": "aaaa"})
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: served.post("redrives", body, key=key), range(6)))
    assert {answer.status for answer in answers} <= {200, 409}
    assert len({answer.body for answer in answers if answer.status == 200}) == 1
    assert asked(served, "SELECT COUNT(*) FROM dead_letter_attempt") == [(6,)]


def test_a_retry_by_hand_makes_exhausted_letters_due(served: Served) -> None:
    answer = served.post("redrives", retry(6, filter={"status": "exhausted"}), headers=WHO)
    assert answer.json["moved"] == 6
    assert asked(served, "SELECT COUNT(*) FROM dead_letter_attempt WHERE kind = 'requeue' AND why <> ''") == [(6,)]


def test_a_letter_that_is_settled_already_is_not_counted(served: Served) -> None:
    served.post("redrives", order(1, letters=named(("0", "1"))))
    answer = served.post("redrives", order(2, letters=named(("0", "1"), ("0", "11"))))
    assert (answer.status, answer.json["count"]) == (409, 1)


def test_a_role_that_changes_are_reserved_for_is_required(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("role")
    made = Served(folder, OPERATOR_ROLE="Hubledger.Operator", WEBSITE_AUTH_ENABLED="True")
    fill(made)
    try:
        body = order(1, letters=named(("0", "1")))
        refused = made.post("redrives", body)
        claims = b'{"claims":[{"typ":"roles","val":"Hubledger.Operator"},{"typ":"oid","val":"%s"}]}' % ADA.encode()
        allowed = made.post("redrives", body, headers={**WHO, "X-MS-CLIENT-PRINCIPAL": b64encode(claims).decode()})
        assert (refused.status, refused.json["type"]) == (403, "urn:hubledger:problem:not-allowed")
        assert (allowed.status, made.get("status").status, made.get("dead-letters").status) == (200, 200, 403)
        assert asked(made, "SELECT done_by FROM dead_letter_attempt") == [(f"ada@example.org ({ADA})",)]
    finally:
        made.close()


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
    discarded: set[tuple[str, str]] = set()
    for found in [served.get(f"tasks/{job}").json for job in jobs]:
        listed = served.get(f"tasks/{found['task_id']}/letters", limit=500).json["letters"]
        places = {(one["partition_id"], one["sequence_number"]) for one in listed}
        assert (found["moved"], found["moved"] + found["unmoved"]) == (len(listed), found["total"])
        assert len(places) == len(listed)
        if found["move"] == "discard":
            assert discarded.isdisjoint(places)
            discarded |= places
    assert statuses(served).get("discarded", 0) == len(discarded)


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

    def test_a_quoted_and_a_bare_key_are_one_and_belong_to_their_caller(self, served: Served) -> None:
        key, body = uuid4().hex, {"reason": "the transform was mended", "partitions": ["0"]}
        first, again = (served.post("replays", body, key=one, headers=WHO) for one in (key, f'"{key}"'))
        assert (first.status, again.body) == (202, first.body)
        stored = key_of_caller(first.json["requested_by"], key)
        assert asked(served, "SELECT request_key FROM idempotency_key") == [(stored,)]

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
