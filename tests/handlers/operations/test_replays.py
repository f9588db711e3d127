import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from msgspec import structs

from core.model.events import Event, PartitionId, SequenceNumber, Span
from core.model.rows import References
from core.replay.pieces import MOST_OPEN, PartitionRange
from examples.home_security import transform as home_security
from handlers.app import app
from handlers.operations.tasks import replay_store
from tests.fakes.replaying import opened, replay_asked
from tests.handlers.running import HOME, MOTION, Running

BODIES = [HOME, MOTION, b"{", MOTION]
# The limits of each field are in the description of the API: test_description.py sends what it refuses.


@pytest.fixture
def replays(running: Running) -> Running:
    running.ingest([0, 1, 2, 3], BODIES)
    running.give_hub(*BODIES)
    return running


def start(to: Running, /, **asked: object) -> str:
    return str(to.open("replay", **{"reason": "look first", **asked})["task_id"])


def diff(to: Running, task_id: str, **params: str) -> Any:
    return to.get("show_replay_diff", {"task_id": task_id}, **params).body


def renamed(event: Event, references: References) -> list[Any]:
    rows = home_security.transform(event, references)
    return [replace(row, sensor_id="other") for row in rows if hasattr(row, "sensor_id")]


def deploy(**changed: Any) -> None:
    newer = replace(app().transform, version="home_security/2", **changed)
    app.value = replace(app(), core=replace(app().core, transform=newer))


def test_a_replay_of_an_earlier_version_waits_and_goes_on_only_when_the_new_version_is_named(replays: Running) -> None:
    job = replays.open("replay", reason="the transform was mended", dry_run=False)
    task_id, version = job["task_id"], job["transform_version"]
    assert version == job["app_transform_version"] == app().transform.version
    replays.sqlite.sql("UPDATE task SET transform_version = 'old/1'")
    assert replays.drive(task_id) == {"error": "VersionChanged"}
    shown = replays.task(task_id)
    versions = (shown["transform_version"], shown["app_transform_version"])
    assert (shown["status"], versions) == ("planned", ("old/1", version))
    assert shown["fault"].startswith("VersionChanged: the task runs with the transform old/1, and this app has ")
    replays.sqlite.sql("UPDATE task SET updated_at = '2026-01-01T00:00:00.000000Z'")
    assert replays.drive(task_id) == {"parts": []}
    paused = replays.task(task_id)
    assert (paused["status"], paused["fault"]) == ("paused", shown["fault"])
    for named in ({}, {"transform_version": "old/1"}, {"transform_version": "newer/3"}):
        refused = replays.move("resume", task_id, **named)
        assert (refused.status, refused.body["transform_version"]) == (409, version)
        assert refused.body["detail"].endswith(
            f"this app has {version}: to go on with the latter, name it as transform_version"
        )
    assert replays.task(task_id)["status"] == "paused"
    resumed = replays.move("resume", task_id, transform_version=version).body
    assert (resumed["status"], resumed["fault"], resumed["transform_version"]) == ("running", None, version)
    replays.drive(task_id)
    done = replays.task(task_id)
    assert (done["status"], [one["transform_versions"] for one in done["partitions"]]) == ("done", [[version]])


def test_a_dry_run_is_worked_through_and_shows_its_diff_and_then_the_real_one_is_made(replays: Running) -> None:
    deploy(rows_of=renamed)
    task_id = start(replays)
    assert replays.has_begun_to_drive(task_id)
    assert replays.drive(task_id) == {"parts": []}
    dry = replays.task(task_id)
    counts = {name: dry["counts"][name] for name in ("events_changed", "rows_added", "rows_removed", "states_left")}
    assert (dry["status"], dry["done"], dry["counts"]["rows_changed"]) == ("done", 4, 2)
    assert counts == {"events_changed": 2, "rows_added": 0, "rows_removed": 0, "states_left": 1}
    first = diff(replays, task_id, limit="1")
    second = diff(replays, task_id, limit="1", cursor=first["next"])
    (shown,) = first["events"]
    assert (shown["partition_id"], shown["sequence_number"], shown["outcome"]) == ("1", "1", "written")
    changes = [(one["table"], one["columns"]) for one in shown["changed"]]
    assert changes == [("sensor_reading", {"sensor_id": ["h", "other"]})]
    assert ([one["sequence_number"] for one in second["events"]], second["next"]) == (["3"], None)
    task_id = start(replays, dry_run=False, partitions=["1"], **{"from": {"sequence_number": "1"}})
    replays.drive(task_id)
    real = replays.task(task_id)
    assert (real["status"], real["dry_run"], real["counts"]["rows_written"]) == ("done", False, 2)
    readings = replays.sqlite.sql("SELECT sequence_number, sensor_id FROM sensor_reading ORDER BY 1")
    assert readings == [(1, "other"), (3, "other")]
    assert [kept.transform_version for kept in replays.sqlite.replays()] == ["home_security/2"]


def quoting(event: Event, references: References) -> list[Any]:
    raise ValueError("no such kind: \ud83d")


def test_a_diff_has_an_error_that_quotes_half_of_a_surrogate_pair(replays: Running) -> None:
    deploy(rows_of=quoting)
    task_id = start(replays)
    replays.drive(task_id)
    assert {one["error"] for one in diff(replays, task_id)["events"]} == {"no such kind: \\ud83d"}


def test_a_replay_by_key_tells_the_number_of_keys_and_only_its_diff_names_them(replays: Running) -> None:
    kept = replays.give_hub(*BODIES).held["1"]
    for number, key in enumerate(["home", "k-secret", "k-secret", "other"]):
        kept[SequenceNumber(number)] = structs.replace(kept[SequenceNumber(number)], partition_key=key)
    deploy(rows_of=renamed)
    keys = ["k-secret", *(f"nobody-{number}" for number in range(999))]  # the most keys that are taken
    begun = replays.open("replay", reason="one home only", keys=keys)
    replays.drive(begun["task_id"])
    dry, listed = replays.task(begun["task_id"]), replays.tasks()[0]
    assert (dry["status"], dry["done"], dry["keys"], dry["other_keys"]) == ("done", 4, 1_000, 3)
    assert "k-secret" not in json.dumps([begun, dry, listed])
    found = diff(replays, begun["task_id"])
    assert (found["keys"], [one["sequence_number"] for one in found["events"]]) == (keys, ["1"])
    whole = replays.open("replay", reason="all of them")
    assert not {"keys", "other_keys"} & {*whole, *diff(replays, whole["task_id"])}


def test_a_second_replay_of_a_range_in_work_is_refused_and_names_the_first(replays: Running) -> None:
    first = start(replays, dry_run=False, to={"sequence_number": "2"})
    second = replays.put("replay", {"reason": "the second", "dry_run": False, "from": {"sequence_number": "2"}})
    assert (second.status, second.body["type"]) == (409, "urn:hubledger:problem:task-overlap")
    assert second.body["task_id"] == first
    start(replays, dry_run=False, **{"from": {"sequence_number": "3"}})
    for _ in range(MOST_OPEN - 2):
        start(replays)  # dry ones
    full = replays.put("replay", {"reason": "look first"})
    assert (full.status, full.body["type"]) == (409, "urn:hubledger:problem:conflict")
    assert full.body["limit"] == MOST_OPEN


def test_a_job_of_a_different_stream_is_not_found(replays: Running) -> None:
    ranges = (PartitionRange(PartitionId("0"), Span(SequenceNumber(0), SequenceNumber(9))),)
    foreign = replay_asked(UUID(int=1, version=4), ranges)
    opened(replay_store(app()), foreign)
    task_id = str(foreign.order.task_id)
    assert (replays.task(task_id)["status"], replays.move("cancel", task_id).status) == (404, 404)
    found = replay_store(app()).find_replay(foreign.order.task_id)
    assert found is not None
    assert found.task.status == "planned"
