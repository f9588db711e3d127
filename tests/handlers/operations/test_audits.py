"""handlers/operations/audits.py: the ranges at once, and with their rows as a task."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from core.audit.audit import MOST_NUMBERS
from core.audit.task import DEADLINE
from handlers.app import app
from handlers.operations.audits import audit_store
from tests.handlers.running import HOME, MOTION, Reply, Running


@pytest.fixture
def filled(running: Running) -> Running:
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    running.ingest([0], [HOME], partition_id="10")
    return running


def test_an_audit_reads_all_ranges(filled: Running) -> None:
    done = filled.get("audit_ledger").body
    assert (done["balanced"], done["complete"], done["accounted"]) == (True, True, 4)
    assert [(one["partition_id"], one["until"]) for one in done["partitions"]] == [("1", "1"), ("10", "1")]


class Interrupted:
    """A store of audits: the first use of it sends a request."""

    def __init__(self, ledger: Any, send: Callable[[], Reply]) -> None:
        self._ledger, self._send = ledger, send
        self.replies: list[Reply] = []

    def __getattr__(self, name: str) -> Any:
        if not self.replies:
            self.replies.append(self._send())
        return getattr(self._ledger, name)


def test_a_second_audit_at_the_same_time_is_refused_and_the_next_one_is_not(
    filled: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    audits = Interrupted(audit_store(app()), lambda: filled.get("audit_ledger"))
    monkeypatch.setattr("handlers.operations.audits.audit_store", lambda own: audits)
    assert filled.get("audit_ledger").status == 200
    (refused,) = audits.replies
    assert (refused.status, refused.body["type"]) == (409, "urn:hubledger:problem:busy")
    assert refused.headers["Retry-After"] == "10"
    assert filled.get("audit_ledger").status == 200


def test_a_task_is_accepted_at_once_and_its_orchestration_works_on_it(filled: Running) -> None:
    job = filled.open("audit", rows=True)
    assert (job["kind"], job["status"], job["done"], job["total"], job["complete"]) == ("audit", "planned", 0, 2, False)
    assert (datetime.fromisoformat(job["deadline_at"]) - datetime.fromisoformat(job["requested_at"])) == DEADLINE
    filled.drive(job["task_id"])
    done = filled.task(job["task_id"])
    assert (done["status"], done["done"], done["total"]) == ("done", 2, 2)
    assert (done["balanced"], done["complete"], done["accounted"], done["faults"]) == (True, True, 4, [])
    assert [one["rows"]["complete"] for one in done["partitions"]] == [True, True]
    (line,) = [one for one in filled.lines if one.get("action") == "audit"]
    assert (line["task_id"], line["is_over"], line["pieces"]) == (job["task_id"], True, 3)


def test_a_job_names_the_rows_and_ranges_that_were_changed_after_an_audit(filled: Running) -> None:
    filled.drive(filled.open("audit")["task_id"])
    filled.sqlite.sql("DELETE FROM batch_ledger WHERE partition_id = '10'")
    filled.sqlite.sql("DELETE FROM sensor_reading")
    job = filled.open("audit", rows=True)
    filled.drive(job["task_id"])
    done = filled.task(job["task_id"])
    assert not done["balanced"]
    assert {one["kind"] for one in done["faults"]} >= {"commits", "short", "rows_missing"}


def test_a_partition_that_does_not_exist_is_not_found_and_nothing_is_audited_in_an_empty_store(
    running: Running,
) -> None:
    assert running.put("audit", {}).status == 404
    running.ingest([0], [HOME])
    assert running.put("audit", {"partition_id": "7"}).status == 404


def test_a_body_that_is_no_request_names_the_field(filled: Running) -> None:
    wrong: list[tuple[dict[str, Any], list[str]]] = [
        ({"partition_id": "../.."}, ["partition_id"]),
        ({"everything": True}, ["everything"]),
        ({"rows": True, "first": "1"}, ["partition_id"]),
        ({"partition_id": "1", "first": "1"}, ["first"]),
        ({"partition_id": "1", "last": "1"}, ["last"]),
        ({"partition_id": "1", "rows": True, "last": str(2**63)}, ["last"]),
        ({"partition_id": "1", "rows": True, "first": "5", "last": "4"}, ["last"]),
        ({"partition_id": "1", "rows": True, "first": "0", "last": str(MOST_NUMBERS)}, ["last"]),
    ]
    for body, fields in wrong:
        refused = filled.put("audit", body)
        assert (refused.status, refused.fields) == (400, fields), (body, refused.body)
    largest = {"partition_id": "1", "rows": True, "first": "0", "last": str(MOST_NUMBERS - 1)}
    assert filled.put("audit", largest).status == 201
