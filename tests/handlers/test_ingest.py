"""handlers/ingest.py, event_batches.py and the watch of gaps, as the worker calls them.

The host's batch becomes ours whole, or is refused by the name of what it lacks.
"""

import json
import pickle
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import azure.functions as func
import pytest
from msgspec import structs

from core.errors import BatchRefused, HubUnreachable, SettingsRefused, StoreUnavailable
from core.letters.store import Letters
from core.model.events import Event, EventBatch, Partition, PartitionId, SequenceNumber
from core.model.property_values import Unread
from core.settle.partition_store import Partitions
from core.store.database import PatientDatabase, Waiting
from core.store.sqlserver.connections import Deadlines
from handlers.app import WAITING_LIMIT, app
from handlers.event_batches import to_batch
from handlers.operations.tasks import replays_of
from handlers.tasks import SLICE
from local.functions_host.json_sections import parse_time_span
from tests.fakes.builders import FakeClock
from tests.fakes.host_events import decode, metadata_of, recorded_events, recorded_metadata
from tests.handlers.running import CONTEXT, HOME, MOTION, SETTINGS, LostDatabase, Running, functions

ROOT = Path(__file__).parents[2]
JOB = str(UUID(int=1))
CHUNK = {"partition_id": "1", "sequence_numbers": [0], "claimed_by": "t-1"}


def test_a_malformed_body_is_a_letter_of_poison_and_the_rest_is_committed_with_one_line(running: Running) -> None:
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


def test_a_fault_of_the_database_that_repeats_is_logged_with_its_count_and_in_the_status(running: Running) -> None:
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


BODIES = [b'{"v":1}', b"\x00bin"]


def adapt(metadata: dict[str, Any]) -> EventBatch:
    return to_batch(decode(metadata, BODIES), "invocation-1")


def test_the_recorded_batch_becomes_two_events_that_are_those_that_were_recorded() -> None:
    batch = adapt(recorded_metadata())
    assert batch.partition == Partition("localhost/telemetry", "cg", PartitionId("1"))
    assert batch.invocation_id == "invocation-1"
    at = datetime(2026, 11, 21, 2, 15, 0, 295_942, tzinfo=UTC)
    assert tuple(structs.replace(one, annotations=None) for one in batch.events) == tuple(
        Event(SequenceNumber(n), offset, at + timedelta(microseconds=5 * n), "sensor-1", {"tenant": "a"}, BODIES[n])
        for n, offset in enumerate(["0", "64"])
    )
    assert recorded_events() == [
        {
            "body": repr(event.body), "seq": repr(event.sequence_number), "offset": event.offset,
            "key": repr(event.partition_key), "t": repr(event.enqueued_at.replace(tzinfo=None)),
        }
        for event in batch.events
    ]  # fmt: skip


def test_an_event_has_its_own_key_offset_time_and_body_whatever_form_the_host_gives_them() -> None:
    metadata = recorded_metadata()
    metadata["OffsetStringArray"] = ["1:2-3", ""]  # the texts count, and not the numbers
    metadata["PartitionKeyArray"] = ["sensor-1"]  # the host drops the absent ones
    del metadata["SystemPropertiesArray"][0]["PartitionKey"]
    for system, zone in zip(metadata["SystemPropertiesArray"], ("Z", "+00:00"), strict=True):
        system.update(Offset=-1, EnqueuedTimeUtc=f"2026-11-21T02:15:00.295942{zone}")
    at = datetime(2026, 11, 21, 2, 15, 0, 295_942, tzinfo=UTC)
    found = [(one.offset, one.partition_key, one.enqueued_at, one.enqueued_at.tzinfo) for one in adapt(metadata).events]
    assert found == [("1:2-3", None, at, UTC), ("", "sensor-1", at, UTC)]
    bodies = [b"", bytes(range(256)), "👩‍👩‍👧".encode(), b"\xff"]
    batch = to_batch(decode(metadata_of([0, 1, 2, 3]), bodies), "invocation-1")
    assert [event.body for event in batch.events] == bodies


def test_numbers_of_64_bits_come_through_and_holes_are_no_disorder_but_events_out_of_order_are_refused() -> None:
    for numbers in ((2**63 - 2, 2**63 - 1), (3, 9)):
        batch = to_batch(decode(metadata_of([*numbers]), BODIES), "invocation-1")
        assert tuple(event.sequence_number for event in batch.events) == numbers
    for numbers in ((1, 0), (5, 5)):
        with pytest.raises(BatchRefused, match=rf"event {numbers[1]} came after {numbers[0]}"):
            to_batch(decode(metadata_of([*numbers]), BODIES), "invocation-1")


def refusal(metadata: dict[str, Any]) -> str:
    with pytest.raises(BatchRefused) as refused:
        adapt(metadata)
    return str(refused.value)


@pytest.mark.parametrize("name", ["PartitionContext", "OffsetStringArray", "PropertiesArray"])
def test_metadata_that_is_missing_is_refused_by_name(name: str) -> None:
    metadata = recorded_metadata()
    del metadata[name]
    assert name in refusal(metadata)


@pytest.mark.parametrize("name", ["FullyQualifiedNamespace", "EventHubName", "ConsumerGroup", "PartitionId"])
def test_a_context_that_lacks_a_part_is_refused_by_its_name(name: str) -> None:
    metadata = recorded_metadata()
    for value in (None, "", 1):
        metadata["PartitionContext"][name] = value
        assert refusal(metadata) == f"the host's PartitionContext lacks {name}"
    others: tuple[Any, ...] = (None, [], "text", 5)
    for context in others:
        assert "PartitionContext" in refusal({**recorded_metadata(), "PartitionContext": context})
    lacks = "the host's PartitionContext lacks FullyQualifiedNamespace, EventHubName, ConsumerGroup, PartitionId"
    assert refusal({**recorded_metadata(), "PartitionContext": {}}) == lacks
    with pytest.raises(BatchRefused, match="PartitionContext"):
        to_batch([func.EventHubEvent(body=b"")], "invocation-1")
    shouted = {**recorded_metadata()["PartitionContext"], "FullyQualifiedNamespace": "NS.servicebus.windows.net"}
    batch = adapt({**recorded_metadata(), "PartitionContext": shouted})
    assert batch.partition.event_hub.startswith("ns.servicebus.windows.net/"), "as the own reader names it"


@pytest.mark.parametrize("name", ["OffsetStringArray", "PropertiesArray"])
def test_an_array_of_a_different_length_is_refused_with_both_lengths(name: str) -> None:
    metadata = recorded_metadata()
    for length in (0, 1, 3):
        given = {**metadata, name: (metadata[name] * 2)[:length]}
        assert refusal(given) == f"the host sent {length} values in {name} for 2 events"
    assert refusal({**metadata, name: None}) == f"the host sent none in {name} for 2 events"


@pytest.mark.parametrize("index", [0, 1])
def test_an_event_without_its_number_its_time_or_its_offset_is_refused(index: int) -> None:
    for name in ("SequenceNumber", "EnqueuedTimeUtc"):
        metadata = recorded_metadata()
        del metadata["SystemPropertiesArray"][index][name]
        assert "None" in refusal(metadata)
    metadata = recorded_metadata()
    metadata["OffsetStringArray"][index] = None
    assert refusal(metadata).startswith(f"event {index}: ")


def test_the_system_properties_of_a_batch_are_read_once_when_they_are_asked_for_and_a_child_gets_its_own() -> None:
    events = decode(recorded_metadata(), BODIES)
    raw: Any = events[0]
    batch, whole = to_batch(events, "invocation-1"), raw._EventHubEvent__trigger_metadata.pop("SystemPropertiesArray")
    with pytest.raises(TypeError):  # nothing of them was read until now
        _ = batch.events[0].system_properties
    batch = to_batch(events, "invocation-2")
    raw._EventHubEvent__trigger_metadata["SystemPropertiesArray"] = whole
    asked = [event.system_properties for event in batch.events]
    whole.value = "[]"
    assert asked == [event.system_properties for event in batch.events]
    alone = pickle.loads(pickle.dumps(batch.events[1]))
    assert alone.system_properties == asked[1] and isinstance(alone.annotations, dict)


def test_properties_that_are_no_object_or_that_the_worker_cannot_read_are_the_event_s_own_fault() -> None:
    for properties in (None, ["tenant"]):
        metadata = recorded_metadata()
        metadata["PropertiesArray"][1] = properties
        first, second = adapt(metadata).events
        assert (first.properties, second.properties) == ({"tenant": "a"}, Unread("json", json.dumps(properties)))
    deep = "[" * 500_000 + "]" * 500_000  # Python 3.14 reads 60,000 levels
    events = decode(recorded_metadata(), BODIES)
    texts = '{"ratio": NaN, "text": "],{\\"", "up": Infinity}', f'{{"deep": {deep}}}'
    raw: Any = events[0]
    raw._EventHubEvent__trigger_metadata["PropertiesArray"].value = f"[{texts[0]} , {texts[1]}]"
    first, second = to_batch(events, "invocation-1").events
    assert str(first.properties) == "{'ratio': nan, 'text': '],{\"', 'up': inf}"
    assert second.properties == Unread("json", texts[1])
    assert (second.sequence_number, second.body) == (1, BODIES[1])
