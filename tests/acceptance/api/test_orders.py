"""The API over HTTP, on the local functions host: it proves, pages, reveals, and many orders at once count once.

Each answer as a whole is in tests/handlers/answers.jsonl.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from tests.acceptance.api.served import LETTERS, PARTITIONS, Served
from tests.handlers.web.test_identity import ADA, principal

FORGED = principal(("roles", "Hubledger.Operate"), ("roles", "Hubledger.Reveal"), ("oid", ADA))  # nobody verified it
THREADS = 50


@pytest.mark.proof("API")
def test_the_status_the_audit_and_a_number_prove_the_balance_and_pages_lead_through_all_letters(served: Served) -> None:
    answer = served.get("status")
    assert (answer.headers["cache-control"], answer.headers["content-type"]) == ("no-store", "application/json")
    status = answer.json
    assert (status["numbers"], status["accounted"], status["ledger_balanced"]) == (120, 120, True)
    assert (status["dead_lettered"], status["letters"]["open"]) == (LETTERS, LETTERS)
    assert (status["letters"]["waiting"], status["letters"]["exhausted"]) == (6, 6)
    assert [one["partition_id"] for one in status["partitions"]] == list(PARTITIONS)
    for _ in range(2):
        done = served.get("ledger/audit").json
        assert (done["balanced"], done["complete"], done["accounted"], done["faults"]) == (True, True, 120, [])
    for path in ("health/live", "health/ready"):
        assert served.get(path).json == {"healthy": True, "fault": None}
    found = served.get("revealed/ledger/10/11").json
    assert (found["outcome"], found["sequence_number"]) == ("dead_lettered", "11")
    assert (found["range"]["first"], found["range"]["last"], found["range"]["kind"]) == ("10", "19", "batch")
    written = served.get("revealed/ledger/0/20").json
    assert (written["outcome"], written["rows"][0]["table"]) == ("written", "sensor_reading")
    assert served.get("ledger/0/40").json["outcome"] == "not_yet"
    pages = [served.get("dead-letters", limit=5).json]
    while cursor := pages[-1]["next"]:
        pages.append(served.get("dead-letters", limit=5, cursor=cursor).json)
    letters = {(one["partition_id"], one["sequence_number"]) for page in pages for one in page["letters"]}
    assert ([len(page["letters"]) for page in pages], len(letters)) == ([5, 5, 2], LETTERS)


def test_a_letter_shows_its_body_only_on_request_and_the_log_says_who_looked(served: Served) -> None:
    hidden = served.get("dead-letters/1/11").json
    assert (hidden["body"], hidden["letter"]["body_bytes"]) == (None, 7)
    assert '"n"' not in str(hidden)
    forged = {"X-MS-CLIENT-PRINCIPAL": FORGED, "X-MS-CLIENT-PRINCIPAL-NAME": "ada@example.org"}
    shown = served.get("revealed/dead-letters/1/11", headers=forged, body="text").json["body"]["shown"]
    assert shown == '{"n":1}'

    def looked_into() -> list[str]:
        lines = served.log.read_text().splitlines()
        return [line for line in lines if '"reveal"' in line and '"11"' in line and "reveal_letter" in line]

    served.until(looked_into)
    (line,) = looked_into()
    assert all(word in line for word in ("unverified (key holder)", "body=text"))
    assert not any(word in line for word in ('"n"', "ada@example.org", ADA))


@pytest.fixture
def fresh(own: Served) -> Iterator[Served]:
    """The host. After each test its store gets its former contents again."""
    before = own.contents()
    yield own
    own.restore(before)


def order(count: int, move: str = "discard", **more: Any) -> dict[str, Any]:
    return {"move": move, "expected_count": count, "reason": "known poison", **more}


def test_redrives_of_overlapping_letters_that_are_requested_at_once_each_count_what_they_moved(fresh: Served) -> None:
    orders = [
        order(12, "retry", filter={}),
        order(6, filter={"fingerprint": "aaaa"}),
        order(4, filter={"partition_id": "0"}),
        order(1, letters=[{"partition_id": "0", "sequence_number": "1"}]),
    ]
    with ThreadPoolExecutor(len(orders)) as pool:
        answers = list(pool.map(lambda one: fresh.order("redrive", one), orders))
    assert {answer.status for answer in answers} <= {201, 409}  # 409: letters were discarded before
    jobs = [answer.json["task_id"] for answer in answers if answer.status < 300]
    assert jobs
    fresh.until(lambda: all(fresh.get(f"tasks/{job}").json["status"] == "done" for job in jobs))
    ended = [fresh.get(f"tasks/{job}").json for job in jobs]
    assert [one["moved"] + one["unmoved"] for one in ended] == [one["total"] for one in ended]
    discarded = sum(one["moved"] for one in ended if one["move"] == "discard")
    statuses = dict(fresh.sqlite.sql("SELECT status, COUNT(*) FROM event_hub_dead_letter GROUP BY status"))
    assert statuses.get("discarded", 0) == discarded
    assert fresh.get("status").json["ledger_balanced"] is True


def test_of_many_threads_with_one_id_one_opens_the_task_and_each_letter_moves_once(fresh: Served) -> None:
    before = len(fresh.contents()["task"])
    orders = {"redrive": order(6, filter={"fingerprint": "aaaa"}), "replay": {"reason": "look", "partitions": ["1"]}}
    for kind, body in orders.items():
        task_id = str(uuid4())
        with ThreadPoolExecutor(THREADS) as pool:
            answers = list(pool.map(lambda _: fresh.order(kind, body, task_id), range(THREADS)))  # noqa: B023
        # 409: its letters had been moved when the request was read, and the first one was not stored yet when it came
        assert {answer.status for answer in answers} <= {200, 201, *((409,) if kind == "redrive" else ())}
        assert {answer.json["task_id"] for answer in answers if answer.status < 300} == {task_id}
    assert len(fresh.contents()["dead_letter_attempt"]) == 6
    assert len(fresh.contents()["task"]) == before + 2
