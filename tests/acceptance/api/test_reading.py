"""Read the API over HTTP, on the local functions host. Each answer as a whole is in tests/handlers/answers.jsonl."""

import pytest

from tests.acceptance.api.conftest import LETTERS, PARTITIONS
from tests.acceptance.api.served import Served
from tests.acceptance.api.test_principals import FORGED
from tests.handlers.web.test_identity import ADA

pytestmark = pytest.mark.proof("API")


def test_the_status_proves_the_balance_with_two_numbers(served: Served) -> None:
    status = served.get("status").json
    assert (status["numbers"], status["accounted"], status["ledger_balanced"]) == (120, 120, True)
    assert (status["dead_lettered"], status["letters"]["open"]) == (LETTERS, LETTERS)
    assert (status["letters"]["waiting"], status["letters"]["exhausted"]) == (6, 6)
    assert [one["partition_id"] for one in status["partitions"]] == list(PARTITIONS)
    assert status["partitions"][0]["checkpoint"] == "39"
    assert status["oldest_open_letter"]["failed_at"].endswith("Z")


def test_every_part_that_counts_or_reads_answers_and_no_cache_stores_it(served: Served) -> None:
    for path in ("status", "dead-letters", "dead-letters/groups", "ledger/audit", "ledger/0/5", "health/ledger"):
        answer = served.get(path)
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store"), path
        assert answer.headers["content-type"] == "application/json"
    for path in ("health/live", "health/ready"):
        assert served.get(path).json == {"healthy": True, "fault": None}
    for _ in range(2):
        done = served.get("ledger/audit").json
        assert (done["balanced"], done["complete"], done["accounted"], done["faults"]) == (True, True, 120, [])


def test_a_number_is_explained(served: Served) -> None:
    assert served.get("ledger/10/11").json["letter"]["error"] is None
    found = served.get("revealed/ledger/10/11").json
    assert (found["outcome"], found["sequence_number"]) == ("dead_lettered", "11")
    assert found["letter"]["error"] == "no such kind 1"
    assert (found["range"]["first"], found["range"]["last"], found["range"]["kind"]) == ("10", "19", "batch")
    assert served.get("ledger/0/20").json["rows"] is None
    written = served.get("revealed/ledger/0/20").json
    assert (written["outcome"], written["rows"][0]["table"]) == ("written", "sensor_reading")
    assert served.get("ledger/0/40").json["outcome"] == "not_yet"


def test_pages_of_any_length_lead_through_all_letters(served: Served) -> None:
    first = served.get("dead-letters", limit=5).json
    second = served.get("dead-letters", limit=5, cursor=first["next"]).json
    rest = served.get("dead-letters", limit=500, cursor=second["next"]).json
    pages = [page["letters"] for page in (first, second, rest)]
    found = {(one["partition_id"], one["sequence_number"]) for page in pages for one in page}
    assert ([len(page) for page in pages], len(found), rest["next"]) == ([5, 5, LETTERS - 10], LETTERS, None)


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


def test_the_page_and_the_description_are_sent_again_only_when_they_changed(served: Served) -> None:
    for path in ("ops", "openapi.json"):
        first = served.get(path)
        again = served.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (first.status, again.status, again.body) == (200, 304, b"")
