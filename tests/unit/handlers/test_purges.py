"""handlers/purges.py: the timer works on the open purge, and opens one a day if the settings say so."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.store.columns import instant_text
from handlers.purges import EVERY
from tests.unit.handlers.operations.test_purges import NOW, ORDER, opened, rows, shown
from tests.unit.handlers.running import HOME, MOTION, Running, functions


@pytest.fixture
def filled(running: Running) -> Running:
    running.ingest([0], [HOME])
    running.ingest([1], [MOTION])
    return running


def tick() -> None:
    functions()["run_purges"](None)


def lines(filled: Running) -> list[dict[str, Any]]:
    return [one for one in filled.lines if one.get("action") == "purge"]


def listed(filled: Running) -> list[Any]:
    found: list[Any] = filled.get("list_purges").body["purges"]
    return found


def test_the_timer_is_silent_without_a_job(filled: Running) -> None:
    tick()
    assert (lines(filled), listed(filled)) == ([], [])


def test_one_line_says_how_far_the_purge_is(filled: Running) -> None:
    job = opened(filled, older_than_days=NOW, dry_run=False)
    tick()
    (line,) = lines(filled)
    assert (line["purge_id"], line["status"], line["rows"], line["error"]) == (job["purge_id"], "done", 1, None)
    tick()
    assert len(lines(filled)) == 1


def test_a_partition_with_a_fault_is_left_as_it_is(filled: Running) -> None:
    filled.sqlite.sql("UPDATE batch_ledger SET written = 0, dead_lettered = 1 WHERE commit_number = 1")
    job = opened(filled, older_than_days=NOW, dry_run=False)
    tick()
    found = shown(filled, job)
    assert (found["status"], found["rows"], rows(filled, "batch_ledger")) == ("done", 0, 2)
    (verified,) = [one for one in found["tables"] if one["table"] == "event_hub_checkpoint"]
    assert "nothing of it is purged until an audit finds none" in verified["notes"][0]


def test_none_begins_by_itself_unless_the_settings_say_so(filled: Running) -> None:
    filled.restart(PURGE_DAILY="true", PURGE_DAYS='{"batch_ledger": 5}')
    tick()
    (job,) = listed(filled)
    assert (job["requested_by"], job["reason"], job["dry_run"]) == ("timer", "PURGE_DAILY", False)
    assert (job["status"], job["older_than_days"]["batch_ledger"]) == ("done", 5)


def test_the_timer_opens_one_purge_a_day_and_a_dry_run_is_none(filled: Running) -> None:
    filled.post("request_purge", ORDER)
    tick()
    filled.restart(PURGE_DAILY="true")
    tick()
    tick()
    assert [one["requested_by"] == "timer" for one in listed(filled)] == [True, False]
    yesterday = datetime.now(UTC) - EVERY - timedelta(seconds=1)  # the clock of the database may be behind by less
    filled.sqlite.sql(f"UPDATE purge_job SET requested_at = '{instant_text(yesterday)}'")
    tick()
    assert [one["requested_by"] for one in listed(filled)].count("timer") == 2
