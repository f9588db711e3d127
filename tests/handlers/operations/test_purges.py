"""core/purge/task.py: a purge as a task, which its orchestration works on."""

from collections.abc import Mapping
from typing import Any

import pytest

from core.model.policies import DEFAULT_DAYS, MOST_DAYS
from core.purge.purge import BY_PARTITION, BY_STREAM
from core.store.columns import instant_text
from handlers.app import app
from tests.handlers.running import HOME, MOTION, Running
from tests.patience import until

ORDER: dict[str, Any] = {"reason": "the disk is full"}
NOW = dict.fromkeys(DEFAULT_DAYS, 0)  # days: everything is old


@pytest.fixture
def filled(running: Running) -> Running:
    """Three batches of partition 1; the first of them has a letter, which is discarded."""
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    running.ingest([3, 4], [MOTION, MOTION])
    running.ingest([5], [MOTION])
    letter = {"partition_id": "1", "sequence_number": "2"}
    order = {"move": "discard", "letters": [letter], "expected_count": 1, "reason": "it never was an event"}
    moved = running.put("redrive", order)
    assert moved.status == 201, moved.body
    until(lambda: instant_text(app().clock.now()) > settled_at(running), 10)
    return running


def settled_at(filled: Running) -> str:
    """Return when the last letter was settled. The keeper reads the time apart from the purges, and they may differ."""
    return str(filled.sqlite.sql("SELECT MAX(settled_at) FROM event_hub_dead_letter")[0][0])


def done(filled: Running, **asked: Any) -> Any:
    """Request a purge, let its orchestration work on it, and show it."""
    job = filled.open("purge", **ORDER, **asked)
    filled.drive(job["task_id"])
    found = filled.task(job["task_id"])
    assert (found["status"], found["total"] - found["done"], found["fault"]) == ("done", 0, None)
    return found


def rows(filled: Running, table: str) -> int:
    return int(filled.sqlite.sql(f"SELECT COUNT(*) FROM {table}")[0][0])


def tables(found: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    return {one["table"]: (one["rows"], one["bytes"]) for one in found["tables"] if one["rows"]}


def test_a_purge_is_a_dry_run_with_the_days_of_the_settings(filled: Running) -> None:
    job = filled.open("purge", **ORDER)
    assert (job["kind"], job["status"], job["dry_run"], job["rows"], job["tables"]) == ("purge", "planned", True, 0, [])
    assert (job["done"], job["total"]) == (0, len(BY_PARTITION) + len(BY_STREAM))
    assert (job["older_than_days"], job["reason"]) == (dict(DEFAULT_DAYS), "the disk is full")
    filled.drive(job["task_id"])
    assert filled.task(job["task_id"])["rows"] == 0


def test_the_days_of_a_request_go_before_those_of_the_settings(filled: Running) -> None:
    filled.restart(PURGE_DAYS='{"batch_ledger": 30, "task": 7}')
    job = filled.open("purge", **ORDER, older_than_days={"batch_ledger": 3})
    assert job["older_than_days"] == {**DEFAULT_DAYS, "batch_ledger": 3, "task": 7}


def test_a_dry_run_counts_what_a_purge_deletes_and_deletes_nothing(filled: Running) -> None:
    dry = done(filled, older_than_days=NOW)
    assert (rows(filled, "batch_ledger"), rows(filled, "event_hub_dead_letter")) == (3, 1)
    real = done(filled, older_than_days={**NOW, "task": 1}, dry_run=False)
    assert tables(real) == tables(dry)
    assert {name: count for name, (count, _) in tables(real).items()} == {
        "batch_ledger": 2, "event_hub_dead_letter": 1,
    }  # fmt: skip
    assert min(size for _, size in tables(real).values()) > 0
    left = [rows(filled, table) for table in ("batch_ledger", "event_hub_dead_letter", "dead_letter_attempt")]
    assert left == [1, 0, 0]


def test_the_notes_say_what_stays(filled: Running) -> None:
    dry = done(filled, older_than_days=NOW)
    (ledger,) = [one for one in dry["tables"] if one["table"] == "batch_ledger"]
    assert ledger["notes"] == ["partition 1: its newest batch stays: its ledger rows after commit 2 stay"]


def test_a_second_purge_is_refused_with_the_place_of_the_first(filled: Running) -> None:
    job = filled.open("purge", **ORDER)
    refused = filled.put("purge", ORDER)
    assert (refused.status, refused.body["task_id"]) == (409, job["task_id"])
    assert refused.body["type"].endswith(":task-overlap")
    assert refused.body["detail"] == f"purge {job['task_id']} is open: wait until it is done, or cancel it"
    filled.drive(job["task_id"])
    assert filled.put("purge", ORDER).status == 201


def test_a_body_that_is_no_request_names_the_field(filled: Running) -> None:
    wrong: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["reason"]),
        ({**ORDER, "older_than_days": {"batch_ledger": MOST_DAYS + 1}}, ["older_than_days[...]"]),
        ({**ORDER, "older_than_days": {"event_hub_checkpoint": 1}}, ["older_than_days"]),
        ({**ORDER, "tables": []}, ["tables"]),
    ]
    for body, fields in wrong:
        refused = filled.put("purge", body)
        assert (refused.status, refused.fields) == (400, fields), (body, refused.body)
    assert filled.get("list_tasks", kind="purge").body["tasks"] == []
