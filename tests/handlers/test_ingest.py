"""handlers/ingest.py, gaps.py and watch.py, as the worker calls them."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest

from core.errors import HubUnreachable, SettingsRefused, StoreUnavailable
from core.letters.store import Letters
from core.settle.partition_store import Partitions
from core.store.database import PatientDatabase, Waiting
from core.store.sqlserver.connections import Deadlines
from handlers.app import WAITING_LIMIT, app
from handlers.operations.tasks import replays_of
from handlers.tasks import SLICE
from local.functions_host.json_sections import parse_time_span
from tests.fakes.builders import FakeClock
from tests.handlers.running import CONTEXT, HOME, MOTION, SETTINGS, LostDatabase, Running, functions

ROOT = Path(__file__).parents[2]
JOB = str(UUID(int=1))
CHUNK = {"partition_id": "1", "sequence_numbers": [0], "claimed_by": "t-1"}


def test_a_malformed_body_is_a_letter_of_poison_and_the_rest_of_the_batch_is_committed_with_one_line(
    running: Running,
) -> None:
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    (line,) = running.lines
    assert (line["msg"], line["action"], line["levelname"]) == ("batch ingested", "ingest", "INFO")
    assert (line["partition"], line["first"], line["last"]) == ("telemetry/cg/1", 0, 2)
    assert (line["commits"], line["written"], line["filtered"], line["dead_lettered"]) == (1, 2, 0, 1)
    assert (line["redelivered"], line["gaps"], line["invocation_id"]) == (0, [], "i-1")
    assert (line["healed"], line["absent"]) == (0, 0)
    (letter,), (kept,) = running.sqlite.letters(), running.sqlite.ledger()
    assert (letter.sequence_number, letter.error_class, letter.status) == (2, "poison", "exhausted")
    assert (kept.first, kept.last, kept.written, kept.dead_lettered) == (0, 2, 2, 1)


def test_a_fault_of_the_hub_that_repeats_is_logged_because_no_line_of_the_host_arrives(running: Running) -> None:
    running.ingest([0], [HOME])
    for retries in range(3):
        with pytest.raises(HubUnreachable):
            running.ingest([0, 4], [HOME, MOTION], retries=retries)
    lines = [line for line in running.lines if line["action"] == "fault_repeated"]
    assert [(line["count"], line["levelname"]) for line in lines] == [(2, "WARNING"), (3, "WARNING")]
    assert lines[0]["error"].startswith("HubUnreachable: ")
    assert [(kept.first, kept.last) for kept in running.sqlite.ledger()] == [(0, 0)], "the gap holds the batch"
    gaps = running.sqlite.gaps()
    assert [(kept.first, kept.last, kept.status, kept.attempts) for kept in gaps] == [(1, 3, "open", 3)]


def test_an_empty_receive_is_ignored_and_needs_no_settings(running: Running) -> None:
    running.without(*SETTINGS, "STORE_CONNECTION")
    functions()["ingest"]([], None)
    assert running.lines == []


def test_a_look_for_gaps_and_a_watch_fail_while_the_hub_does_not_answer_and_the_watch_logs_it(running: Running) -> None:
    with pytest.raises(HubUnreachable, match="telemetry"):
        functions()["heal_gaps"](None, SimpleNamespace(invocation_id="t-1"))
    with pytest.raises(HubUnreachable):
        functions()["watch"](None)
    (line,) = running.lines
    assert (line["action"], line["levelname"]) == ("watch_failed", "ERROR")
    assert line["error"].startswith("HubUnreachable: the hub did not answer: telemetry, ")


def test_a_fault_of_the_database_that_repeats_is_logged_with_its_count_and_shown_in_the_status(
    running: Running,
) -> None:
    running.ingest([0], [HOME])
    running.sqlite.sql("ALTER TABLE batch_ledger RENAME TO away")
    for retries in range(5):
        with pytest.raises(StoreUnavailable):
            running.ingest([1], [HOME], retries=retries)
    running.sqlite.sql("ALTER TABLE away RENAME TO batch_ledger")
    lines = [line for line in running.lines if line["action"] == "fault_repeated"]
    assert [(line["count"], line["partition"], line["levelname"]) for line in lines] == [
        (count, "telemetry/cg/1", "WARNING") for count in (2, 3, 4, 5)
    ]
    (shown,) = running.get("status").body["partitions"]
    assert [(one["reason"], one["attempts"]) for one in shown["stops"]] == [("store", 1)]
    running.ingest([1], [HOME], retries=5)
    running.restart()
    assert running.get("status").body["stops"] == 0


INVOCATIONS: dict[str, tuple[timedelta, Callable[[Running], object]]] = {
    "ingest": (WAITING_LIMIT, lambda running: running.ingest([0], [HOME])),
    "find_wait": (SLICE, lambda _: functions()["find_wait"]("dead-letters-1")),
    "claim_letters": (SLICE, lambda _: functions()["claim_letters"](None)),
    "retry_letters": (SLICE, lambda _: functions()["retry_letters"](CHUNK, CONTEXT)),
    "open_task": (SLICE, lambda _: functions()["open_task"](JOB)),
    "task_slice": (SLICE, lambda _: functions()["task_slice"]({"task_id": JOB, "part": "1"})),
}


@pytest.mark.parametrize("name", INVOCATIONS)
def test_no_wait_for_the_database_reaches_the_end_of_an_invocation(running: Running, name: str) -> None:
    limit, call = INVOCATIONS[name]
    clock = FakeClock()
    clock.advance(time.monotonic())
    waiting = Waiting(clock.monotonic, clock.sleep, lambda: 1.0)
    patient, began = PatientDatabase(LostDatabase(), timedelta(days=1), waiting), clock.seconds
    own, store = app(), Partitions(patient)
    ingestion = replace(own.core.ingestion, store=store)
    retrying = replace(own.core.retrying, store=Letters(patient, store))
    app.value = replace(own, core=replace(own.core, patient=patient, ingestion=ingestion, retrying=retrying))
    with suppress(StoreUnavailable):
        call(running)
    assert limit / 2 < timedelta(seconds=clock.seconds - began) <= limit
    timeout, longest = json.loads((ROOT / "host.json").read_text())["functionTimeout"], Deadlines()
    assert longest.statement is not None
    assert limit + longest.sign_in + longest.statement < parse_time_span(timeout), "after the last pause"


def test_faults_of_the_settings_escape_at_each_call_until_they_are_corrected(running: Running) -> None:
    running.without("EVENTHUB_NAME")
    for _ in range(2):
        with pytest.raises(SettingsRefused, match=r"^settings refused: EVENTHUB_NAME must be set$"):
            running.ingest([0], [HOME])
    running.restart(**SETTINGS, BATCH_LINES_PER_MINUTE="0")
    running.ingest([0], [HOME])
    running.ingest([1], [MOTION])
    assert [(kept.first, kept.last) for kept in running.sqlite.ledger()] == [(0, 0), (1, 1)]
    running.close()  # which logs the rest
    assert {line["msg"] for line in running.lines} == {"batches ingested"}
    assert [sum(line[name] for line in running.lines) for name in ("batches", "written")] == [2, 2]


@pytest.mark.parametrize(("limit", "letters"), [("1", [("unknown", "core.errors.TooManyRows")]), ("2", [])])
def test_the_rows_of_an_event_have_the_limit_of_the_settings(
    running: Running, limit: str, letters: list[tuple[str, str]]
) -> None:
    running.restart(ROWS_PER_EVENT=limit)
    running.ingest([0, 1], [HOME, MOTION.replace(b"idle", b"active")])  # a reading and, as the home is armed, an alert
    assert [(one.error_class, one.error_type) for one in running.sqlite.letters()] == letters


@pytest.mark.parametrize(("keep", "body"), [("true", b"{}"), ("false", b"")])
def test_letters_are_stored_as_the_settings_say(running: Running, keep: str, body: bytes) -> None:
    running.restart(KEEP_BODIES=keep, DEAD_LETTER_BASE_SECONDS="3600")
    running.ingest([0, 1], [b"{}", MOTION.replace(b"home-1", b"nobody")])
    poison, reference = running.sqlite.letters()
    assert (poison.status, poison.body, poison.body_kept) == ("exhausted", body, keep == "true")
    assert reference.due_at is not None
    assert timedelta(0) < reference.due_at - reference.failed_at <= timedelta(hours=1)
    own = app()
    parts = (own.core.ingestion, own.stalled.means, own.core.retrying, replays_of(own))
    assert [part.letters.keep_bodies for part in parts] == [keep == "true"] * 4


MARK = (
    "INSERT OR REPLACE INTO batch_attempt"
    f" VALUES (1, '1', 0, {{}}, '{UUID(int=1)}', '2026-01-01T00:00:00', 0, 'v', NULL)"
)


def test_the_first_batch_of_a_process_and_a_retry_leave_a_mark_which_their_commit_deletes(running: Running) -> None:
    left = []
    for numbers, retries in ((range(500), 0), ([500], 0), ([501], 2), ([502], 0)):
        if numbers[0]:
            running.sqlite.sql(MARK.format(numbers[-1]))
        running.ingest([*numbers], [b"{}"] * len(numbers), retries=retries)
        left.append(bool(running.sqlite.sql(f"SELECT 1 FROM batch_attempt WHERE last_sequence_number = {numbers[-1]}")))
    assert left == [False, True, False, True]
    assert app().core.ingestion.journal is app().stalled.means.journal
