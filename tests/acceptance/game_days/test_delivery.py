import signal
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from core.model.events import Event, PartitionId, SequenceNumber
from tests.acceptance.game_days.day import MENDED, Day
from tests.acceptance.started import HUB, STREAM
from tests.fakes.builders import EPOCH

pytestmark = pytest.mark.soak

LATE = timedelta(minutes=10)
WRITING_OFF = {f"AzureWebJobs.{name}.Disabled": "true" for name in ("ingest", "heal_gaps")}

NEWEST = "partition_id = '0' AND commit_number = (SELECT MAX(commit_number) FROM batch_ledger WHERE partition_id = '0')"


def test_events_that_left_the_hub_are_replayed_from_capture(day: Day) -> None:
    day.start()
    day.app.publish(30)
    day.until_quiet()
    day.app.end_host()
    day.app.publish(30)
    day.app.emulator.expire_before(HUB, "0", 45)
    day.start()
    day.until_it_fires("events-absent")
    day.until_quiet()
    (gap,) = [line for line in day.app.lines("gap") if line["absent"]]  # the query of the page
    assert (gap["partition"][-1], gap["absent"]) == ("0", 15)
    day.others["spark-submit"] = lambda call: stage(day, call)
    given = {"PARTITION": "=0", "FIRST": f"={gap['first']}", "LAST": f"={gap['first'] + gap['absent'] - 1}"}
    ran = day.follow("events-absent", **given, FOLDER="=capture", STREAM="=1")
    assert [one.code for one in ran] == [0] * 4, ran
    assert "absent" in ran[0].output
    assert "replay" in ran[3].output
    day.until_healthy(but=frozenset({"events-absent"}))


def stage(day: Day, call: list[str]) -> None:
    """Stage the events that Capture has, as jobs/replay_capture.py does."""
    named = dict(pairwise(call))
    partition = STREAM.partition(PartitionId(named["--partition"]))
    numbers = range(int(named["--first"]), int(named["--last"]) + 1)
    events = [Event(SequenceNumber(one), str(one), EPOCH, None, {}, b"reading home") for one in numbers]
    day.app.engine.stage(day.app.store.read_partition(partition), events)


def test_a_partition_that_nobody_reads_is_read_again_once_its_functions_are_switched_on(day: Day) -> None:
    open_long_ago(day)
    day.start(**WRITING_OFF)
    day.publish("0", b"reading home", ago=LATE)
    day.until_it_fires("partition-stopped")
    status, *_ = *day.follow("First"), *day.follow("partition-stopped")
    assert (status.code, "partition 0 stands since" in status.output) == (1, True), status
    day.until_healthy()
    assert day.follow("First")[0].code == 0


def open_long_ago(day: Day) -> None:
    """Open the stream as if ten minutes had passed since."""
    day.app.store.open_stream(STREAM)
    anchored_at = datetime.now(UTC) - LATE
    day.app.engine.sql("UPDATE event_stream SET anchored_at = ?", f"{anchored_at:%Y-%m-%dT%H:%M:%S.%f}Z")


def assert_it_stands(day: Day, said: str) -> None:
    day.until_it_fires("partition-stopped")
    day.until(lambda: day.app.lines("watch")[-1]["standing"] == f"0{said}", "the watch names its error")
    day.until(lambda: day.health() == 503, "health")
    status, doctor = (day.operator.run(f"bin/hubledger {verb}") for verb in ("status", "doctor"))
    assert (status.code, "partition 0 stands since" in status.output) == (1, True), status
    assert (doctor.code, f"partitions stand: 0{said or ' (no error)'}" in doctor.output) == (1, True), doctor


def test_a_database_that_refuses_writes_is_named_and_all_is_written_once_it_takes_them(day: Day) -> None:
    open_long_ago(day)
    day.start(STORE_PATIENCE_SECONDS="0")
    with closing(sqlite3.connect(day.app.engine.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        day.publish("0", b"reading home", ago=LATE)
        assert_it_stands(day, " (StoreUnavailable)")
        assert "StoreUnavailable" in day.follow("First")[0].output
        other.execute("ROLLBACK")
    day.until_healthy()


def test_an_event_that_hangs_is_named_and_written_by_a_version_that_does_not_hang(day: Day) -> None:
    open_long_ago(day)
    day.start(TRANSFORM="tests.fakes.killing_transform", TRANSFORM_DEADLINE_SECONDS="420")
    day.publish("0", b"sleep", ago=LATE)
    assert_it_stands(day, "")
    day.start(TRANSFORM=MENDED)
    day.until_healthy()


def test_events_that_wait_for_a_frozen_worker_are_written_once_it_is_started_again(day: Day) -> None:
    day.limits["lag_seconds"] = 1
    day.start(**WRITING_OFF)
    worker = day.app.start_worker(**day.settings)
    day.app.publish(20)
    day.until_quiet()
    worker.send_signal(signal.SIGSTOP)
    day.app.publish(20)
    day.until_it_fires("lag")
    assert day.follow("First")[0].code == 0
    day.others["containerapp"] = lambda call: worker.kill()
    day.follow("lag", "az", REVISION="=workers--1")
    day.app.start_worker(**day.settings)
    day.until_healthy()
    assert day.follow("First")[0].code == 0


def test_an_app_that_is_down_or_whose_hub_does_not_answer_is_back_once_the_cause_is_gone(day: Day) -> None:
    day.start()
    day.app.publish(20)
    day.until_quiet()
    day.app.end_host()
    day.app.publish(20)
    day.until_it_fires("watch-silent")
    (silent,) = day.follow("watch-silent", "health")[:1]
    day.follow("watch-silent", "restart")
    assert silent.code == 2
    day.until_healthy()
    assert [ran.code for ran in (*day.follow("watch-silent", "health"), *day.follow("First"))] == [0] * 3
    right = day.app.emulator.connection_string
    day.start(EVENTHUB=right.replace(f":{day.app.emulator.port}", ":9"))
    day.app.publish(20)
    day.until_it_fires("watch-silent")
    day.until(lambda: any("HubUnreachable" in line["error"] for line in day.app.lines("watch_failed")), "it says why")
    assert day.follow("watch-silent", "health")[0].code == 0
    assert "the hub does not answer" in day.follow("First")[0].output
    assert day.follow("watch-silent", "appsettings", SETTING="=EVENTHUB", VALUE=f"={right}")[0].code == 0
    day.until_healthy()


def test_a_range_that_somebody_deleted_is_named_by_the_audit_and_restored(day: Day) -> None:
    day.start()
    day.app.publish(30)
    day.until_quiet()
    engine = day.app.engine
    engine.sql(f"CREATE TABLE restored AS SELECT * FROM batch_ledger WHERE {NEWEST}")
    engine.sql(f"DELETE FROM batch_ledger WHERE {NEWEST}")
    day.until_it_fires("ledger-unbalanced")
    assert day.health() == 503
    status, audit = *day.follow("First"), *day.follow("ledger-unbalanced")
    assert (status.code, audit.code) == (1, 1), audit
    assert "NOT BALANCED" in status.output
    assert "commit" in audit.output
    engine.sql("INSERT INTO batch_ledger SELECT * FROM restored")  # from the copy of the database
    day.until_healthy()
    assert [ran.code for ran in (*day.follow("First"), *day.follow("ledger-unbalanced"))] == [0, 0]
