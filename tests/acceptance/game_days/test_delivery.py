import signal
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from core.ingest.stalled_partitions import TriggerPosition
from core.model.events import Event, PartitionId, SequenceNumber, span
from local.event_hubs.sections import APPLICATION_PROPERTIES, DATA
from local.feed.dangers import section
from tests.acceptance.game_days.day import MENDED, Day
from tests.acceptance.game_days.spark_submit import SCRIPT
from tests.acceptance.started import HUB, STREAM, publish_raw
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
    assert "the hub gave no answer" in day.follow("First")[0].output
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


def look(day: Day, reason: str) -> str:
    """Look at the stops as the page says, and return what the terminal shows."""
    day.until_it_fires("stop-recorded")
    (shown,) = day.follow("stop-recorded")
    assert shown.code == 1, shown
    assert f"by {reason}" in shown.output, shown
    return shown.output


def test_a_recreated_hub_is_read_again_after_the_next_incarnation_is_opened(day: Day) -> None:
    day.start()
    day.app.publish(30)
    day.until_quiet()
    day.app.recreate_hub()
    day.app.publish(20)
    look(day, "incarnation")
    assert day.health() == 503
    dry, _, opened = day.follow("incarnation")
    assert (dry.code, opened.code) == (0, 0), (dry, opened)
    assert "dry run: nothing was changed" in dry.output
    day.until_healthy()
    assert day.follow("First")[0].code == 0


def test_a_deployment_that_fails_on_every_event_is_held_by_the_fuse_and_loses_none(day: Day) -> None:
    day.start(FUSE_PATIENCE="1000")
    day.publish("0", *[b"bug"] * 40)
    day.publish("1", *[b"reading home"] * 40)
    assert "KeyError" in look(day, "outage") or "'bug'" in day.operator.seen
    day.follow("outage", "azd")
    day.until_healthy()
    assert day.follow("First")[0].code == 0
    assert day.app.engine.letters() == []


def test_a_database_that_refuses_a_partition_is_mended_and_the_stop_ends_by_itself(day: Day) -> None:
    day.app.engine.sql(
        "CREATE TRIGGER quota BEFORE INSERT ON batch_ledger WHEN NEW.partition_id = '0'"
        " BEGIN SELECT RAISE(ABORT, 'the quota of the table is used up'); END"
    )
    day.start(STORE_PATIENCE_SECONDS="0")
    day.app.publish(20)
    assert "the quota of the table is used up" in look(day, "store")
    assert day.follow("store", "health")[0].code == 1
    day.app.engine.sql("DROP TRIGGER quota")  # the database's administrator ends what blocks it
    day.until_healthy()
    assert [ran.code for ran in (*day.follow("store"), *day.follow("First"))] == [0, 0]


def test_a_partition_that_holds_too_many_letters_goes_on_when_their_first_is_settled(day: Day) -> None:
    day.start(ORDER_POLICY="hold_key", HELD_LIMIT="5")
    day.publish_keyed("home-1", b"poison", *[b"reading home"] * 20)
    look(day, "held")
    day.follow("held", "list", PARTITION=r"partition (\d+) stopped")
    listed = {"PARTITION": r"(\d+) +0 +exhausted", "NUMBER": r"\d+ +(0) +exhausted"}
    day.follow("held", "show", **listed)
    assert "poison" in day.operator.seen
    day.start(TRANSFORM=MENDED)
    assert day.follow("held", "letters retry", **listed)[0].code == 0
    day.until_healthy()
    assert day.follow("First")[0].code == 0


def test_a_trigger_that_stands_for_long_is_carried_by_the_own_reader_and_a_restart_ends_its_stop(day: Day) -> None:
    day.start()
    day.app.publish(20)
    day.until_quiet()
    day.app.end_host()
    # An earlier process recorded the stop: it needs two minutes, and this trigger stood for ten.
    since, state = (
        datetime.now(UTC) - timedelta(minutes=10),
        day.app.store.read_partition(STREAM.partition(PartitionId("0"))),
    )
    sentence = TriggerPosition(19, since, since).sentence(state)
    day.app.store.note_stop(state, "trigger", sentence, since, span(20, state.next_number - 1))
    day.start()
    map_property = section(APPLICATION_PROPERTIES, {"map": {}}) + section(DATA, b"reading home")
    publish_raw(day.app.producer, [map_property])
    day.app.published["0"] += 1
    day.until_quiet()
    lifted = "by the app's own reader; its checkpoint was lifted"
    day.until(lambda: lifted in str(day.app.request("api/revealed/stops")), "the trigger is lifted")
    detail = " ".join(look(day, "trigger").split())  # the terminal wraps it
    assert "the trigger of partition 0 stands at 19 since " in detail
    assert "one property is a map" in detail
    assert day.health() == 503
    assert "restart" in day.follow("trigger", "az")[0].command
    day.until(lambda: day.app.emulator.reader_count(HUB) >= 2, "the trigger reads again")

    def has_ended() -> bool:
        """Publish events until the trigger is faster than the own reader, whose check comes each second."""
        stops = [stop for one in day.app.request("api/status")["partitions"] for stop in one["stops"]]
        if stops and day.app.accounted() == day.app.published:
            day.publish("0", b"reading home")
        return not stops

    day.until(has_ended, "the trigger commits")
    day.until_healthy()
    assert day.follow("First")[0].code == 0


ENGINE = {"SPARK_ENGINE": "local", "AGGREGATION_SCHEDULE": "* * * * * *", "AGGREGATION_GRACE_SECONDS": "5"}
RUN = {"RUN": r"([0-9a-f]{16,32}) "}
DELETED = "DELETE FROM sensor_reading WHERE partition_id = '0' AND sequence_number BETWEEN 23 AND 25"


def command(day: Day, name: str, script: str) -> str:
    path = day.app.folder / name
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_an_engine_that_fails_a_pause_and_rows_that_were_deleted_are_mended(day: Day) -> None:
    def committed() -> int:
        return sum(one["status"] == "committed" for one in day.app.request("api/aggregations")["runs"])

    def summed() -> int:
        return int(day.app.engine.sql("SELECT COALESCE(SUM(readings), 0) FROM home_activity")[0][0])

    broken = command(day, "broken-submit", "#!/bin/sh\necho JAVA_HOME is not set >&2; exit 1\n")
    spark = command(day, "spark-submit", SCRIPT.format(python=sys.executable))
    day.start(**ENGINE, SPARK_SUBMIT=broken)
    day.app.publish(10)
    day.until_it_fires("aggregation-failed")
    day.until(lambda: {one["status"] for one in day.app.request("api/aggregations")["runs"]} == {"failed"})
    shown = day.follow("aggregation-failed", "runs list", "runs show", **RUN)
    assert (shown[0].code, shown[1].code) == (0, 1), shown
    assert "JAVA_HOME is not set" in shown[1].output
    changed = day.follow("aggregation-failed", "appsettings", "runs step", SETTING="=SPARK_SUBMIT", VALUE=f"={spark}")
    assert [ran.code for ran in changed] == [0, 0], changed
    day.until(lambda: committed() == 1 and summed() == 20, "a run is committed")
    day.until_healthy(but=frozenset({"aggregation-failed"}))
    day.limits["aggregation_lag_seconds"] = 1
    day.post("api/aggregations/pause", reason="the database is restored")
    day.app.publish(10)
    day.until_it_fires("aggregation-lag")
    listed, resumed, _ = day.follow("aggregation-lag")
    assert (listed.code, resumed.code) == (0, 0), resumed
    assert "the database is restored" in listed.output
    day.until_healthy(but=frozenset({"aggregation-failed"}))
    day.until(lambda: summed() == 40, "the run after the pause")
    day.limits["aggregation_lag_seconds"] = 3_600
    day.post("api/aggregations/pause", reason="so that the rows are deleted first")
    day.app.publish(10)
    day.until_quiet()
    runs = committed()
    day.app.engine.sql(DELETED)
    day.post("api/aggregations/resume", reason="they are deleted")
    day.until_it_fires("aggregation-quality")
    assert summed() == 57
    newest = day.app.request("api/aggregations")["runs"][0]["run_id"]
    _, run, audit, _ = day.follow("aggregation-quality", "runs list", "runs show", "audit", RUN=f"={newest}")
    assert (run.code, audit.code) == (0, 1), audit
    assert "the run read 17 rows, and the ledger counts 20" in run.output
    place = {"PARTITION": r"(\d+) +rows_missing", "FIRST": r"rows_missing +(\d+)", "LAST": r"rows_missing +\d+ +(\d+)"}
    mended = day.follow("aggregation-quality", "replay", "repair", **place, DAY=r"planned +(\d{4}-\d\d-\d\d)")
    assert [ran.code for ran in mended] == [0, 0, 0], mended
    day.until(lambda: summed() == 60 and committed() == runs + 3, "the increments and the repair")
    day.until_healthy(but=frozenset({"aggregation-failed", "aggregation-quality"}))
    (again,) = day.follow("aggregation-quality", "audit")
    assert "rows_missing" in again.output, "the page says that the audit goes on naming the commit"
