from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import pytest

from core.audit.task import DEADLINE
from core.model.policies import DEFAULT_DAYS
from core.purge.purge import BY_PARTITION, BY_STREAM
from core.store.columns import instant_text
from handlers.app import app
from handlers.operations.audits import audit_store
from tests.handlers.running import HOME, MOTION, Reply, Running
from tests.patience import until

ORDER: dict[str, Any] = {"reason": "the disk is full"}
NOW = dict.fromkeys(DEFAULT_DAYS, 0)  # days: everything is old


def done(to: Running, kind: str, **asked: Any) -> Any:
    """Request a task, let its orchestration work on it, and show it."""
    job = to.open(kind, **asked)
    to.drive(job["task_id"])
    found = to.task(job["task_id"])
    assert (found["status"], found["total"] - found["done"], found["fault"]) == ("done", 0, None)
    return found


@pytest.fixture
def audited(running: Running) -> Running:
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    running.ingest([0], [HOME], partition_id="10")
    return running


class Interrupted:
    """A store of audits: the first use of it sends a request."""

    def __init__(self, ledger: Any, send: Callable[[], Reply]) -> None:
        self._ledger, self._send = ledger, send
        self.replies: list[Reply] = []

    def __getattr__(self, name: str) -> Any:
        if not self.replies:
            self.replies.append(self._send())
        return getattr(self._ledger, name)


def test_an_audit_reads_all_ranges(audited: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    audits = Interrupted(audit_store(app()), lambda: audited.get("audit_ledger"))
    monkeypatch.setattr("handlers.operations.audits.audit_store", lambda own: audits)
    found = audited.get("audit_ledger").body
    assert (found["balanced"], found["complete"], found["accounted"]) == (True, True, 4)
    assert [(one["partition_id"], one["until"]) for one in found["partitions"]] == [("1", "1"), ("10", "1")]
    (refused,) = audits.replies
    assert (refused.status, refused.body["type"]) == (409, "urn:hubledger:problem:busy")
    assert refused.headers["Retry-After"] == "10"
    assert audited.get("audit_ledger").status == 200


def test_an_audit_of_the_rows_is_accepted_at_once_and_its_orchestration_works_on_it(audited: Running) -> None:
    job = audited.open("audit", rows=True)
    assert (job["kind"], job["status"], job["done"], job["total"], job["complete"]) == ("audit", "planned", 0, 2, False)
    assert (datetime.fromisoformat(job["deadline_at"]) - datetime.fromisoformat(job["requested_at"])) == DEADLINE
    audited.drive(job["task_id"])
    found = audited.task(job["task_id"])
    assert (found["status"], found["done"], found["total"]) == ("done", 2, 2)
    assert (found["balanced"], found["complete"], found["accounted"], found["faults"]) == (True, True, 4, [])
    assert [one["rows"]["complete"] for one in found["partitions"]] == [True, True]
    (line,) = [one for one in audited.lines if one.get("action") == "audit"]
    assert (line["task_id"], line["is_over"], line["pieces"]) == (job["task_id"], True, 3)


def test_a_partition_that_is_not_there_is_not_found_and_nothing_is_audited_in_an_empty_store(running: Running) -> None:
    assert running.put("audit", {}).status == 404
    running.ingest([0], [HOME])
    assert running.put("audit", {"partition_id": "7"}).status == 404


@pytest.fixture
def filled(running: Running) -> Running:
    """Three batches of partition 1. The first of them has a letter, which is discarded."""
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    running.ingest([3, 4], [MOTION, MOTION])
    running.ingest([5], [MOTION])
    letter = {"partition_id": "1", "sequence_number": "2"}
    order = {"move": "discard", "letters": [letter], "expected_count": 1, "reason": "it never was an event"}
    assert running.put("redrive", order).status == 201
    ((settled_at,),) = running.sqlite.sql("SELECT MAX(settled_at) FROM event_hub_dead_letter")
    until(lambda: instant_text(app().clock.now()) > settled_at, 10)  # the keeper reads the time apart from the purges
    return running


def rows(filled: Running, table: str) -> int:
    return int(filled.sqlite.sql(f"SELECT COUNT(*) FROM {table}")[0][0])


def tables(found: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    return {one["table"]: (one["rows"], one["bytes"]) for one in found["tables"] if one["rows"]}


def test_a_purge_is_a_dry_run_with_the_days_of_the_settings_unless_the_request_has_others(filled: Running) -> None:
    filled.restart(PURGE_DAYS='{"batch_ledger": 30, "task": 7}')
    job = filled.open("purge", **ORDER, older_than_days={"batch_ledger": 3})
    assert (job["kind"], job["status"], job["dry_run"], job["rows"], job["tables"]) == ("purge", "planned", True, 0, [])
    assert (job["done"], job["total"]) == (0, len(BY_PARTITION) + len(BY_STREAM))
    assert job["older_than_days"] == {**DEFAULT_DAYS, "batch_ledger": 3, "task": 7}
    refused = filled.put("purge", ORDER)
    assert (refused.status, refused.body["task_id"]) == (409, job["task_id"])
    assert refused.body["type"].endswith(":task-overlap")
    assert refused.body["detail"] == f"purge {job['task_id']} is open: wait until it is done, or cancel it"
    filled.drive(job["task_id"])
    assert filled.task(job["task_id"])["rows"] == 0
    assert filled.put("purge", ORDER).status == 201


def test_a_dry_run_counts_what_a_purge_deletes_and_deletes_nothing(filled: Running) -> None:
    dry = done(filled, "purge", **ORDER, older_than_days=NOW)
    assert (rows(filled, "batch_ledger"), rows(filled, "event_hub_dead_letter")) == (3, 1)
    (ledger,) = [one for one in dry["tables"] if one["table"] == "batch_ledger"]
    assert ledger["notes"] == ["partition 1: its newest batch stays: its ledger rows after commit 2 stay"]
    real = done(filled, "purge", **ORDER, older_than_days={**NOW, "task": 1}, dry_run=False)
    assert tables(real) == tables(dry)
    counts = {name: count for name, (count, _) in tables(real).items()}
    assert counts == {"batch_ledger": 2, "event_hub_dead_letter": 1}
    assert min(size for _, size in tables(real).values()) > 0
    left = [rows(filled, table) for table in ("batch_ledger", "event_hub_dead_letter", "dead_letter_attempt")]
    assert left == [1, 0, 0]
