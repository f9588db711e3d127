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

from core.events import Event, EventBatch, SequenceNumber
from core.ingest import ingest_batch
from core.store.sqlite import SqliteStore
from core.transforms import load_transform
from jobs.capture import partition_of, read_events
from jobs.replay_capture import EVER, Replayed, TableDiff, parse, replay
from jobs.sqlite_tables import SqliteTables
from local import capture
from local.event_hubs.hubs import Hubs, HubSettings
from tests.fakes.builders import partition, stamps
from tests.fakes.engines import SqliteEngine
from tests.unit.local.event_hubs.messages import message

TRANSFORM = "core.transforms.home_security"
START = 1_760_000_000_000  # milliseconds since 1970


def home(home_id: str, armed: bool = True) -> dict[str, Any]:
    return {"kind": "registration", "home_id": home_id, "time_zone": "Europe/Berlin", "armed": armed}


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

    def run(self, **changed: Any) -> Replayed:
        given = parse(["--files", str(self.files), "--stream-id", "1", "--transform", TRANSFORM])
        asked = argparse.Namespace(**{**vars(given), **changed})
        return replay(self.spark, SqliteTables(self.spark, str(self.sqlite.path)), asked)


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
    ingest(SqliteStore(sqlite.path), [capture.record_of(event) for event in kept])
    assert (
        capture.main(["--database", str(tmp_path / "hubs.db"), "--partitions", "2", "--out", str(tmp_path / "out")])
        == 0
    )
    return Replaying(sqlite, tmp_path / "out", spark)


def ingest(store: SqliteStore, records: Iterable[dict[str, Any]]) -> None:
    events = tuple(
        Event(SequenceNumber(one["SequenceNumber"]), one["Offset"], datetime.now(UTC), None, {}, one["Body"])
        for one in records
    )
    ingest_batch(EventBatch(partition("1"), events, "i"), store, load_transform(TRANSFORM), stamps())
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


def test_a_file_that_capture_wrote_twice_counts_once(replaying: Replaying) -> None:
    first = min(replaying.files.rglob("*.avro"))
    second = first.with_name("59.avro")
    second.write_bytes(first.read_bytes())
    assert readings(replaying.run()) == TableDiff("sensor_reading", 0, 0, 0, 20, [])


def test_staged_rows_lie_in_the_lake_by_position_for_a_replay_to_commit(replaying: Replaying, tmp_path: Path) -> None:
    replayed = replaying.run(stage=str(tmp_path / "lake"))
    assert replayed.staged is not None
    staged = replaying.spark.read.parquet(replayed.staged).orderBy("sequence_number", "ordinal").collect()
    assert len(staged) == 41
    assert staged[0].asDict() == {
        "stream_id": 1,
        "partition_id": "1",
        "sequence_number": 0,
        "ordinal": 0,
        "table_name": "home",
        "is_state": True,
        "texts": ["home-1", "Europe/Berlin", "1"],
    }
    assert replace(replayed, staged=None) == replaying.run()


def test_a_file_of_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match="is not named as Event Hubs Capture names files"):
        partition_of("file:/capture/1.avro")
