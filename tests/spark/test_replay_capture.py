"""Capture files, exported from the emulator's own log, through the transform once more."""

import argparse
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import Event, EventBatch, SequenceNumber
from core.replay.pieces import ReplayJob
from core.replay.task import ReplayKind
from core.store.sqlite.database import SqliteDatabase
from core.tasks.run import open_parts, work_on
from core.transforms.loading import load_transform
from examples.home_security.transform import Home, HomeAlert, SensorReading
from jobs.capture import partition_of, read_events
from jobs.replay_capture import EVER, Replayed, TableDiff, parse, replay
from jobs.sqlite_tables import SqliteTables
from local import capture
from local.event_hubs.hubs import Hubs, HubSettings
from tests.fakes.builders import STREAM, partition, stamps
from tests.fakes.engines import SqliteEngine
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.replaying import order, request_replay
from tests.fakes.store import Store
from tests.local.event_hubs.messages import message

TRANSFORM = "examples.home_security"
START = 1_760_000_000_000  # milliseconds since 1970


def home(home_id: str) -> dict[str, Any]:
    return {"kind": "registration", "home_id": home_id, "time_zone": "Europe/Berlin", "armed": True}


def motion(home_id: str, second: int) -> dict[str, Any]:
    at = f"2025-10-09T09:00:{second:02}Z"
    return {"kind": "motion", "home_id": home_id, "sensor_id": "s", "state": "active", "observed_at": at}


BODIES = [home("home-1"), *(motion("home-1", second) for second in range(20)), {"kind": "?"}, motion("home-9", 1)]


@dataclass
class Replaying:
    """A store that ingested the events of an emulator, and the files of the same events."""

    sqlite: SqliteEngine
    files: Path
    spark: Any

    def run(self, tables: SqliteTables | None = None, **changed: Any) -> Replayed:
        given = parse(["--files", str(self.files), "--stream-id", "1", "--transform", TRANSFORM])
        asked = argparse.Namespace(**{**vars(given), **changed})
        return replay(self.spark, tables or SqliteTables(self.spark, str(self.sqlite.path)), asked)

    def events(self) -> list[Event]:
        return [event for path in sorted(self.files.rglob("*.avro")) for event in read_events(path.read_bytes())]

    def rows(self) -> list[tuple[object, ...]]:
        """Return the rows without their commit numbers."""
        kept = [one for each in (SensorReading, HomeAlert, Home) for one in self.sqlite.rows(each)]
        return [(one.partition_id, one.sequence_number, one.ordinal, one.row) for one in kept]

    def letters(self) -> list[tuple[object, ...]]:
        return [(one.sequence_number, one.status, one.body) for one in self.sqlite.letters()]

    def replay(self, *, dry_run: bool = False) -> ReplayJob:
        """Replay all that is committed, by number, with an empty hub."""
        store, hub, given = Store(self.sqlite.database()), MemoryHub({"1": []}), stamps(7 + dry_run)
        means = ReplayKind(STREAM, store, hub, load_transform(TRANSFORM), given)
        job_id = request_replay(order(["1"], 0, len(BODIES), dry_run=dry_run), means, 1_000).task.task_id
        for id in open_parts(job_id, means):
            work_on(job_id, id, means, given.now() + timedelta(minutes=1))
        job = store.find_replay(job_id)
        store.close()
        assert job is not None
        assert hub.asked == ["read_range"]  # the place in its log was never requested
        return job


class Killed(Exception):
    """The job dies here."""


class DyingTables(SqliteTables):
    """Tables that kill their job with half of the events staged."""

    def stage_events(self, events: Any, stream_id: int) -> None:
        super().stage_events(events.where("sequence_number % 2 = 0"), stream_id)
        raise Killed


@pytest.fixture
def replaying(spark: Any, tmp_path: Path) -> Replaying:
    clock = iter(range(START, START + 10**9, 20_000))  # 20 s an event: several files
    hubs = Hubs([HubSettings("telemetry", 2)], lambda: next(clock))
    hubs.open(tmp_path / "hubs.db")
    hub = hubs["telemetry"]
    for body in BODIES:
        text = json.dumps(body).encode()
        hubs.publish(hub, hub.partition("1"), message(text, partition_key=str(body.get("home_id"))), 0)
    hubs.commit()
    kept = hub.partition("1").read(0, 1000)
    hubs.close()
    sqlite = SqliteEngine(tmp_path / "store.db")
    ingest(Store(SqliteDatabase(sqlite.path)), [capture.record_of(event) for event in kept])
    assert (
        capture.main(["--database", str(tmp_path / "hubs.db"), "--partitions", "2", "--out", str(tmp_path / "out")])
        == 0
    )
    return Replaying(sqlite, tmp_path / "out", spark)


def ingest(store: Store, records: Iterable[dict[str, Any]]) -> None:
    events = tuple(
        Event(SequenceNumber(one["SequenceNumber"]), one["Offset"], datetime.now(UTC), None, {}, one["Body"])
        for one in records
    )
    ingest_batch(EventBatch(partition("1"), events, "i"), Ingestion(store, load_transform(TRANSFORM), stamps()))
    store.close()


def readings(replayed: Replayed) -> TableDiff:
    return next(diff for diff in replayed.tables if diff.table == "sensor_reading")


def test_the_files_hold_the_events_as_the_hub_gave_them(replaying: Replaying) -> None:
    paths = sorted(replaying.files.rglob("*.avro"))
    assert len(paths) > 1
    assert {partition_of(path.as_posix()) for path in paths} == {"1"}
    events = [event for path in paths for event in read_events(path.read_bytes())]
    assert [event.sequence_number for event in events] == list(range(len(BODIES)))
    assert [json.loads(event.body) for event in events] == BODIES
    assert events[0].partition_key == "home-1"
    assert {after.enqueued_at - before.enqueued_at for before, after in pairwise(events)} == {timedelta(seconds=20)}
    assert events[0].enqueued_at - datetime.fromtimestamp(START / 1000, UTC) < timedelta(minutes=2)


def test_a_dry_run_of_what_was_ingested_differs_in_nothing_and_changes_nothing(replaying: Replaying) -> None:
    before = replaying.sqlite.sql("SELECT COUNT(*), SUM(commit_number) FROM sensor_reading")
    replayed = replaying.run()
    assert replayed == Replayed(
        events=len(BODIES),
        letters={"poison": 1, "reference": 1},
        states={"home": 1},
        tables=[TableDiff("sensor_reading", 0, 0, 0, 20, []), TableDiff("home_alert", 0, 0, 0, 20, [])],
        staged=None,
    )
    assert replaying.sqlite.sql("SELECT COUNT(*), SUM(commit_number) FROM sensor_reading") == before


def test_a_dry_run_tells_what_is_added_removed_and_changed(replaying: Replaying) -> None:
    sql = replaying.sqlite.sql
    sql("DELETE FROM sensor_reading WHERE sequence_number = 3")
    sql("UPDATE sensor_reading SET state = 'idle' WHERE sequence_number = 4")
    sql("INSERT INTO sensor_reading SELECT 1, '1', 5, 7, 1, home_id, sensor_id, kind, state, ppm, observed_at FROM"
        " sensor_reading WHERE sequence_number = 5")  # fmt: skip
    diff = readings(replaying.run())
    assert (diff.added, diff.removed, diff.changed, diff.same) == (1, 1, 1, 18)
    assert [(one["sequence_number"], one["ordinal"], one["kind"]) for one in diff.shown] == [
        (3, 0, "added"),
        (4, 0, "changed"),
        (5, 7, "removed"),
    ]
    assert (diff.shown[1]["told"][3], diff.shown[1]["standing"][3]) == ("active", "idle")


def test_a_letter_whose_home_was_registered_since_becomes_a_row(replaying: Replaying) -> None:
    replaying.sqlite.sql("INSERT INTO home VALUES ('home-9', 'Europe/Berlin', 0, 1, '1', 99, 9)")
    replayed = replaying.run()
    assert replayed.letters == {"poison": 1}
    assert (readings(replayed).added, readings(replayed).same) == (1, 20)


def test_only_the_wanted_range_is_told_and_what_lies_outside_is_not_missed(replaying: Replaying) -> None:
    replayed = replaying.run(first=2, last=5)
    assert (replayed.events, readings(replayed).same, readings(replayed).removed) == (4, 4, 0)
    assert replaying.run(partition=["0"]).events == 0
    assert replaying.run(first=10**6, last=EVER).tables[0].removed == 0


ALL = [("1", number) for number in range(len(BODIES))]


def test_events_are_staged_whole_and_nothing_else_changes(replaying: Replaying) -> None:
    replayed = replaying.run(stage=True)
    assert replayed.staged == len(BODIES)
    assert replace(replayed, staged=None) == replaying.run()
    assert replaying.sqlite.staged() == ALL
    ((number, offset, at, key, properties, body),) = replaying.sqlite.sql(
        "SELECT sequence_number, offset_token, enqueued_at, partition_key, properties, body"
        " FROM staged_event WHERE sequence_number = 3"
    )
    assert (number, key, json.loads(properties), json.loads(body)) == (3, "home-1", {}, BODIES[3])
    (kept,) = [one for one in replaying.events() if one.sequence_number == 3]
    assert (offset, datetime.fromisoformat(at)) == (kept.offset, kept.enqueued_at)
    assert at.endswith(".000000Z")


def test_staging_twice_stages_once_and_what_is_staged_stays_as_it_is(replaying: Replaying) -> None:
    assert replaying.run(stage=True, first=3, last=5).staged == 3
    replaying.sqlite.sql("UPDATE staged_event SET body = X'00' WHERE sequence_number = 4")
    before = replaying.sqlite.sql("SELECT * FROM staged_event")
    assert replaying.run(stage=True, first=3, last=5).staged == 3
    assert replaying.sqlite.sql("SELECT * FROM staged_event") == before
    assert replaying.run(stage=True).staged == len(BODIES)
    assert replaying.sqlite.staged() == ALL


def test_a_file_that_capture_wrote_twice_counts_once_and_is_staged_once(replaying: Replaying) -> None:
    first = min(replaying.files.rglob("*.avro"))
    first.with_name("59.avro").write_bytes(first.read_bytes())
    replayed = replaying.run(stage=True)
    assert readings(replayed) == TableDiff("sensor_reading", 0, 0, 0, 20, [])
    assert replayed.staged == len(BODIES)


def test_only_wanted_events_that_a_replay_can_reach_are_staged(replaying: Replaying) -> None:
    assert replaying.run(stage=True, partition=["0"]).staged == 0
    assert replaying.run(stage=True, stream_id=2).staged == 0
    replaying.sqlite.sql("UPDATE event_hub_checkpoint SET sequence_number = 6")
    replaying.sqlite.sql("UPDATE batch_ledger SET first_sequence_number = 2, written = written - 2")
    assert replaying.run(stage=True, first=4).staged == 3
    assert replaying.sqlite.staged() == ALL[4:7]
    assert replaying.run(stage=True, partition=["1"]).staged == 5
    assert replaying.sqlite.staged() == ALL[2:7]


def test_what_is_staged_is_replayed_as_it_was_ingested_and_forgotten(replaying: Replaying) -> None:
    before, letters = replaying.rows(), replaying.letters()
    replaying.run(stage=True)
    replaying.sqlite.sql("UPDATE sensor_reading SET state = 'idle'")
    replaying.sqlite.sql("DELETE FROM home_alert")
    dry = replaying.replay(dry_run=True)
    counts = dry.counts
    assert (counts.events, counts.gone, counts.events_changed) == (len(BODIES), 0, 20)
    assert (counts.rows_added, counts.rows_changed, counts.rows_removed) == (20, 20, 0)
    assert replaying.sqlite.staged() == ALL
    assert replaying.rows() != before
    real = replaying.replay()
    assert (real.task.status, real.counts.events, real.counts.gone) == ("done", len(BODIES), 0)
    assert (replaying.rows(), replaying.letters()) == (before, letters)
    assert replaying.sqlite.staged() == []


def test_a_staging_that_dies_halfway_harms_nothing_and_is_made_whole_by_the_next(replaying: Replaying) -> None:
    before = replaying.rows()
    with pytest.raises(Killed):
        replaying.run(DyingTables(replaying.spark, str(replaying.sqlite.path)), stage=True)
    half = replaying.sqlite.staged()
    assert 0 < len(half) < len(BODIES)
    kept = {number for _, number in half} | {one.sequence_number for one in replaying.sqlite.letters()}
    dry = replaying.replay(dry_run=True)
    assert (dry.counts.events, dry.counts.events_changed) == (len(kept), 0)
    assert replaying.run(stage=True).staged == len(BODIES)
    assert replaying.sqlite.staged() == ALL
    replaying.replay()
    assert (replaying.rows(), replaying.sqlite.staged()) == (before, [])


def test_a_file_of_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match="is not named as Event Hubs Capture names files"):
        partition_of("file:/capture/1.avro")


def test_events_that_kill_under_a_new_version_are_letters_and_the_others_are_compared(replaying: Replaying) -> None:
    replayed = replaying.run(transform="tests.fakes.deadly_homes", deadline=2.0)
    assert replayed.letters == {"crash": 2, "poison": 1, "reference": 1}
    assert (readings(replayed).removed, readings(replayed).same) == (2, 18)
