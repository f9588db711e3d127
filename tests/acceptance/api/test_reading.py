"""Read the API over HTTP, on the local functions host."""

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


def test_no_answer_is_stored_by_caches(served: Served) -> None:
    for path in ("status", "dead-letters", "ledger/audit", "ledger/0/5", "health/ledger"):
        answer = served.get(path)
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store"), path
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_number_is_explained(served: Served) -> None:
    assert served.get("ledger/10/11").json["letter"]["error"] is None
    found = served.get("revealed/ledger/10/11").json
    assert (found["outcome"], found["sequence_number"], found["letter"]["error"]) == (
        "dead_lettered",
        "11",
        "no such kind 1",
    )
    assert (found["range"]["first"], found["range"]["last"], found["range"]["kind"]) == ("10", "19", "batch")
    assert served.get("ledger/0/20").json["rows"] is None
    written = served.get("revealed/ledger/0/20").json
    assert (written["outcome"], written["rows"][0]["table"]) == ("written", "sensor_reading")
    assert served.get("ledger/0/40").json["outcome"] == "not_yet"


def test_the_audit_reads_all_ranges_each_time(served: Served) -> None:
    for _ in range(2):
        done = served.get("ledger/audit").json
        assert (done["balanced"], done["accounted"], done["faults"]) == (True, 120, [])
        assert done["complete"]
    one = served.get("ledger/audit", partition_id="10").json
    assert [part["partition_id"] for part in one["partitions"]] == ["10"]


def test_pages_lead_through_all_letters(served: Served) -> None:
    found, page = [], served.get("dead-letters", limit=5).json
    while True:
        found += [(one["partition_id"], one["sequence_number"]) for one in page["letters"]]
        if page["next"] is None:
            break
        page = served.get("dead-letters", limit=5, cursor=page["next"]).json
    assert len(found) == len(set(found)) == LETTERS


def test_a_page_of_a_different_length_continues_at_the_same_place(served: Served) -> None:
    first = served.get("dead-letters", limit=5).json
    rest = served.get("dead-letters", limit=500, cursor=first["next"]).json
    assert (len(rest["letters"]), rest["next"]) == (LETTERS - 5, None)


def test_letters_are_grouped_by_cause(served: Served) -> None:
    groups = served.get("dead-letters/groups").json["groups"]
    assert {one["fingerprint"]: (one["letters"], one["open"]) for one in groups} == {"aaaa": (6, 6), "bbbb": (6, 6)}
    (one,) = served.get("dead-letters/groups", status="exhausted").json["groups"]
    assert (one["fingerprint"], one["sample"]["status"]) == ("aaaa", "exhausted")


def test_a_letter_shows_its_body_only_on_request(served: Served) -> None:
    hidden = served.get("dead-letters/1/11").json
    assert (hidden["body"], hidden["letter"]["body_bytes"]) == (None, 7)
    assert '"n"' not in str(hidden)
    shown = {
        form: served.get("revealed/dead-letters/1/11", body=form).json["body"]["shown"]
        for form in ("text", "json", "hex")
    }
    assert shown == {"text": '{"n":1}', "json": '{\n  "n": 1\n}', "hex": b'{"n":1}'.hex()}


def test_who_looked_into_a_body_is_in_the_log(served: Served) -> None:
    forged = {"X-MS-CLIENT-PRINCIPAL": FORGED, "X-MS-CLIENT-PRINCIPAL-NAME": "ada@example.org"}
    served.get("revealed/dead-letters/1/21", headers=forged, body="text")
    served.until(lambda: looked_into(served, "21"))
    (line,) = looked_into(served, "21")
    assert all(word in line for word in ("reveal_letter", "unverified (key holder)", "body=text"))
    assert not any(word in line for word in ('"n"', "ada@example.org", ADA))


def looked_into(served: Served, number: str) -> list[str]:
    """Return the lines of the log about a letter that was revealed."""
    lines = served.log.read_text().splitlines()
    return [line for line in lines if '"reveal"' in line and f'"{number}"' in line]


def test_health_is_reported_without_a_key_and_without_a_secret(served: Served) -> None:
    assert served.get("health/live").json == {"healthy": True, "fault": None}
    assert served.get("health/ready").json == {"healthy": True, "fault": None}
    assert served.get("health/ledger").json["healthy"] is True


def test_the_page_and_the_description_are_sent_again_only_when_they_changed(served: Served) -> None:
    for path in ("ops", "openapi.json"):
        first = served.get(path)
        again = served.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (first.status, again.status, again.body) == (200, 304, b"")
