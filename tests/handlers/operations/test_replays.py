"""handlers/operations/replays.py, with the activities and the timer of handlers/tasks.py, over a hub in memory."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from core.model.events import Event, SequenceNumber
from core.model.rows import References
from core.model.transforms import Transform
from core.replay.pieces import MOST_OPEN
from examples.home_security import transform as home_security
from handlers.app import app
from handlers.operations.tasks import replay_store
from tests.contract.test_open_replays import request as request_of
from tests.fakes.engines import SqliteEngine
from tests.fakes.replaying import opened
from tests.handlers.running import (
    HOME,
    MOTION,
    Client,
    Reply,
    Running,
    SettingsHub,
    client_function,
    handed_over,
)

HOSTILE = "<script>alert(1)</script>'; DROP TABLE home; --{{7*7}}../../etc/passwd"
REFUSED: dict[str, tuple[object, str]] = {
    "no reason": ({}, "reason"),
    "a reason that is too short": ({"reason": "x"}, "reason"),
    "a blank reason": ({"reason": " \t\n\u3000 "}, "reason"),
    "a reason that is too long": ({"reason": "x" * 401}, "reason"),
    "a reason of another type": ({"reason": 7}, "reason"),
    "an unknown field": ({"reason": "good enough", "force": True}, "force"),
    "a hostile field": ({"reason": "good enough", HOSTILE: 1}, HOSTILE),
    "a dry run that is neither": ({"reason": "good enough", "dry_run": "no"}, "dry_run"),
    "partitions that are no list": ({"reason": "good enough", "partitions": "1"}, "partitions"),
    "no partitions": ({"reason": "good enough", "partitions": []}, "partitions"),
    "a hostile partition": ({"reason": "good enough", "partitions": [HOSTILE]}, "partitions[0]"),
    "a missing partition": ({"reason": "good enough", "partitions": ["9"]}, "partitions"),
    "a number that is a number": ({"reason": "good enough", "from": {"sequence_number": 1}}, "from.sequence_number"),
    "a number below zero": ({"reason": "good enough", "from": {"sequence_number": "-1"}}, "from.sequence_number"),
    "a number of 65 bits": ({"reason": "good enough", "to": {"sequence_number": str(2**63)}}, "to.sequence_number"),
    "a place in two ways": ({"reason": "good enough", "to": {"sequence_number": "1", "offset": "1"}}, "to"),
    "a place in no way": ({"reason": "good enough", "from": {}}, "from"),
    "a hostile offset": ({"reason": "good enough", "from": {"offset": HOSTILE}}, "from.offset"),
    "an offset of all partitions": ({"reason": "good enough", "from": {"offset": "64"}}, "from"),
    "a time without a zone": (
        {"reason": "good enough", "to": {"enqueued_at": "2026-01-01T00:00:00"}}, "to.enqueued_at"
    ),
    "a range backwards": (
        {"reason": "good enough", "from": {"sequence_number": "3"}, "to": {"sequence_number": "1"}}, "to"
    ),
    "a time backwards": (
        {"reason": "good enough", "from": {"enqueued_at": "2026-01-02T00:00:00Z"},
         "to": {"enqueued_at": "2026-01-01T00:00:00Z"}}, "to"
    ),
    "a range of 10^12 events": (
        {"reason": "good enough", "from": {"sequence_number": "0"}, "to": {"sequence_number": str(10**12)}}, "to"
    ),
    "a range behind the checkpoint": ({"reason": "good enough", "from": {"sequence_number": "4"}}, "from"),
    "no keys": ({"reason": "good enough", "keys": []}, "keys"),
    "an empty key": ({"reason": "good enough", "keys": ["a", ""]}, "keys[1]"),
    "a key that is given twice": ({"reason": "good enough", "keys": ["a", "b", "a"]}, "keys[2]"),
    "a key that is a number": ({"reason": "good enough", "keys": [7]}, "keys[0]"),
    "a key that is too long": ({"reason": "good enough", "keys": ["k" * 2_001]}, "keys[0]"),
    "too many keys": ({"reason": "good enough", "keys": [str(number) for number in range(1_001)]}, "keys"),
    "a list": ([], "body"),
    "nothing": (None, "body"),
}  # fmt: skip


def transformed(transform: Transform) -> None:
    """Let the app have a transform."""
    app.value = replace(app(), core=replace(app().core, transform=transform))


class Replays(Running):
    """The app over four events of partition 1, with a hub that holds them."""

    hub: SettingsHub

    def begin(self) -> None:
        """Ingest the events, and let the app have the hub."""
        bodies = [HOME, MOTION, b"{", MOTION]
        self.ingest([0, 1, 2, 3], bodies)
        self.hub = SettingsHub({"1": [handed_over(number, body) for number, body in enumerate(bodies)]})
        hub: Any = self.hub
        app.value = replace(app(), hub=hub)

    def start(self, body: object) -> Reply:
        """Request a replay."""
        return self.put("replay", body)

    def show(self, job: str, name: str = "show_task", **params: str) -> Reply:
        """Show a job, or its diff."""
        return self.get(name, {"task_id": job}, **params)

    def move(self, job: str, verb: str) -> Reply:
        """Pause, resume or cancel a job."""
        return self.post(f"{verb}_task", {"reason": "because I say so"}, {"task_id": job})

    def work(self, job: str) -> Any:
        """Do all the work of a job, and return the last answer of an activity."""
        return self.drive(job)

    def watch(self, client: Any) -> None:
        """Let the timer tick."""
        asyncio.run(client_function("watch_tasks")(None, client=client))


@pytest.fixture
def replays(
    sqlite: SqliteEngine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Replays]:
    made = Replays(sqlite, caplog, monkeypatch)
    made.begin()
    yield made
    made.close()


def test_more_open_replays_than_the_limit_are_a_conflict(replays: Replays) -> None:
    asked = {"reason": "look first"}
    assert {replays.start(asked).status for _ in range(MOST_OPEN)} == {201}
    full = replays.start(asked)
    assert (full.status, full.body["type"]) == (409, "urn:hubledger:problem:conflict")
    assert full.body["limit"] == MOST_OPEN


def test_a_replay_is_accepted_as_a_dry_run_and_its_orchestration_started(replays: Replays) -> None:
    reply = replays.start({"reason": "the transform was mended"})
    body = reply.body
    assert (reply.status, reply.media) == (201, "application/json")
    assert reply.headers["Location"] == f"/api/tasks/{body['task_id']}"
    assert (body["status"], body["dry_run"], body["total"], body["done"]) == ("planned", True, 4, 0)
    assert (body["requested_by"], body["reason"]) == ("unverified (key holder)", "the transform was mended")
    assert [(one["partition_id"], one["first"], one["last"], one["next"]) for one in body["partitions"]] == [
        ("1", "0", "3", "0")
    ]
    assert replays.client.started == [["drive_task", f"task-{body['task_id']}", body["task_id"]]]
    shown = replays.show(body["task_id"])
    assert (shown.status, shown.body) == (200, body)


def test_a_replay_of_an_earlier_version_waits_and_goes_on_only_when_the_new_version_is_named(replays: Replays) -> None:
    job = replays.start({"reason": "the transform was mended", "dry_run": False}).body
    task, version = {"task_id": job["task_id"]}, job["transform_version"]
    assert version == job["app_transform_version"] == app().transform.version
    replays.sqlite.sql("UPDATE task SET transform_version = 'old/1'")
    assert replays.drive(job["task_id"]) == {"error": "VersionChanged"}
    shown = replays.show(job["task_id"]).body
    assert (shown["status"], shown["transform_version"], shown["app_transform_version"]) == (
        "planned",
        "old/1",
        version,
    )
    assert shown["fault"].startswith("VersionChanged: the task runs with the transform old/1, and this app has ")
    replays.sqlite.sql("UPDATE task SET updated_at = '2026-01-01T00:00:00.000000Z'")
    assert replays.drive(job["task_id"]) == {"parts": []}
    paused = replays.show(job["task_id"]).body
    assert (paused["status"], paused["fault"]) == ("paused", shown["fault"])
    for named in ({}, {"transform_version": "old/1"}, {"transform_version": "newer/3"}):
        refused = replays.post("resume_task", {"reason": "go on", **named}, task)
        assert (refused.status, refused.body["transform_version"]) == (409, version)
        assert refused.body["detail"].endswith(
            f"this app has {version}: to go on with the latter, name it as transform_version"
        )
    assert replays.show(job["task_id"]).body["status"] == "paused"
    resumed = replays.post("resume_task", {"reason": "go on", "transform_version": version}, task).body
    assert (resumed["status"], resumed["fault"], resumed["transform_version"]) == ("running", None, version)
    replays.drive(job["task_id"])
    done = replays.show(job["task_id"]).body
    assert done["status"] == "done"
    assert [one["transform_versions"] for one in done["partitions"]] == [[version]]


def renamed(event: Event, references: References) -> list[Any]:
    """The rows of the transform, of a sensor with a different id."""
    rows = home_security.transform(event, references)
    return [replace(row, sensor_id="other") for row in rows if hasattr(row, "sensor_id")]


def test_a_dry_run_is_worked_through_and_shows_its_diff_and_then_the_real_one_is_made(replays: Replays) -> None:
    newer = replace(app().transform, version="home_security/2", rows_of=renamed)
    transformed(newer)
    job = replays.start({"reason": "look first"}).body["task_id"]
    assert replays.work(job) == {"parts": []}
    dry = replays.show(job).body
    assert (dry["status"], dry["done"], dry["counts"]["events_changed"]) == ("done", 4, 2)
    counts = dry["counts"]
    assert (counts["rows_added"], counts["rows_removed"], counts["rows_changed"], counts["states_left"]) == (0, 0, 2, 1)
    first = replays.show(job, "show_replay_diff", limit="1").body
    second = replays.show(job, "show_replay_diff", limit="1", cursor=first["next"]).body
    (shown,) = first["events"]
    assert (shown["partition_id"], shown["sequence_number"], shown["outcome"]) == ("1", "1", "written")
    assert [(one["table"], one["columns"]) for one in shown["changed"]] == [
        ("sensor_reading", {"sensor_id": ["h", "other"]})
    ]
    assert [one["sequence_number"] for one in second["events"]] == ["3"]
    assert second["next"] is None
    asked = {"reason": "and now for good", "dry_run": False, "partitions": ["1"], "from": {"sequence_number": "1"}}
    job = replays.start(asked).body["task_id"]
    replays.work(job)
    real = replays.show(job).body
    assert (real["status"], real["dry_run"], real["counts"]["rows_written"]) == ("done", False, 2)
    assert replays.sqlite.sql("SELECT sequence_number, sensor_id FROM sensor_reading ORDER BY 1") == [
        (1, "other"), (3, "other"),
    ]  # fmt: skip
    assert [kept.transform_version for kept in replays.sqlite.replays()] == ["home_security/2"]


@pytest.mark.parametrize("by_hand", ["UPDATE home SET time_zone = 'Mars/Olympus'", "DELETE FROM home"])
def test_a_state_that_somebody_changed_is_shown_by_a_dry_run_and_written_again_by_the_replay(
    replays: Replays, by_hand: str
) -> None:
    homes = "SELECT home_id, time_zone, armed FROM home"
    before = replays.sqlite.sql(homes)
    replays.sqlite.sql(by_hand)
    transformed(replace(app().transform, version="home_security/2"))
    job = replays.start({"reason": "look first"}).body["task_id"]
    replays.work(job)
    assert [one["sequence_number"] for one in replays.show(job, "show_replay_diff").body["events"]] == ["0"]
    replays.work(replays.start({"reason": "and now for good", "dry_run": False}).body["task_id"])
    assert replays.sqlite.sql(homes) == before


def test_a_diff_has_an_error_that_quotes_half_of_a_surrogate_pair(replays: Replays) -> None:
    def quoting(event: Event, references: References) -> list[Any]:
        raise ValueError("no such kind: \ud83d")

    app.value = replace(
        app(), core=replace(app().core, transform=replace(app().transform, version="home_security/2", rows_of=quoting))
    )
    job = replays.start({"reason": "look first"}).body["task_id"]
    replays.work(job)
    shown = replays.show(job, "show_replay_diff")
    assert (shown.status, {one["error"] for one in shown.body["events"]}) == (200, {"no such kind: \\ud83d"})


def test_a_replay_by_key_tells_the_number_of_keys_and_only_its_diff_names_them(replays: Replays) -> None:
    kept = replays.hub.held["1"]
    for number, key in enumerate(["home", "k-secret", "k-secret", "other"]):
        kept[SequenceNumber(number)] = structs.replace(kept[SequenceNumber(number)], partition_key=key)
    app.value = replace(
        app(), core=replace(app().core, transform=replace(app().transform, version="home_security/2", rows_of=renamed))
    )
    begun = replays.start({"reason": "one home only", "keys": ["k-secret", "nobody"]})
    job = begun.body["task_id"]
    replays.work(job)
    dry, listed = replays.show(job).body, replays.get("list_tasks").body["tasks"][0]
    assert (dry["status"], dry["done"], dry["keys"], dry["other_keys"]) == ("done", 4, 2, 3)
    assert "k-secret" not in json.dumps([begun.body, dry, listed])
    diff = replays.show(job, "show_replay_diff").body
    assert (diff["keys"], [one["sequence_number"] for one in diff["events"]]) == (["k-secret", "nobody"], ["1"])
    whole = replays.start({"reason": "all of them"}).body
    assert not {"keys", "other_keys"} & {*whole, *replays.show(whole["task_id"], "show_replay_diff").body}


def test_most_keys_are_accepted_and_one_that_nobody_has_replays_nothing(replays: Replays) -> None:
    asked = {"reason": "nobody's", "keys": [f"nobody-{number}" for number in range(1_000)], "dry_run": False}
    job = replays.start(asked).body["task_id"]
    replays.work(job)
    found = replays.show(job).body
    assert (found["status"], found["keys"], found["counts"]["events"], found["other_keys"]) == ("done", 1_000, 0, 4)


def test_a_second_replay_of_a_range_in_work_is_refused_and_names_the_first(replays: Replays) -> None:
    first = replays.start({"reason": "the first", "dry_run": False, "to": {"sequence_number": "2"}})
    second = replays.start({"reason": "the second", "dry_run": False, "from": {"sequence_number": "2"}})
    assert (second.status, second.media) == (409, "application/problem+json")
    assert second.body["type"] == "urn:hubledger:problem:task-overlap"
    assert second.body["task_id"] == first.body["task_id"]
    assert replays.start({"reason": "a dry one"}).status == 201
    assert replays.start({"reason": "beside it", "dry_run": False, "from": {"sequence_number": "3"}}).status == 201


def test_a_job_is_paused_resumed_and_cancelled_and_names_authors_and_reasons(replays: Replays) -> None:
    job = replays.start({"reason": "to be steered", "dry_run": False}).body["task_id"]
    paused, again = replays.move(job, "pause"), replays.move(job, "pause")
    assert (paused.status, paused.body["status"]) == (200, "paused")
    assert (again.status, again.body["status"]) == (200, "paused")
    assert replays.work(job) == {"parts": []}
    replays.sqlite.sql(f"INSERT INTO replay_state VALUES ('{job}', '0', 'a', 1, '{{}}')")
    resumed, cancelled, late = (replays.move(job, verb) for verb in ("resume", "cancel", "resume"))
    assert (resumed.body["status"], cancelled.body["status"], late.status) == ("running", "cancelled", 409)
    assert (late.body["task_status"], late.body["detail"]) == ("cancelled", "resume: the replay is cancelled")
    assert [(one["move"], one["why"]) for one in cancelled.body["history"]] == [
        (name, "because I say so") for name in ("pause", "resume", "cancel")
    ]
    assert len(replays.client.started) == 2
    assert replays.sqlite.replays() == []
    assert replays.sqlite.sql("SELECT * FROM replay_state") == []


def test_jobs_are_listed_by_pages_the_newest_first(replays: Replays) -> None:
    for number in range(3):
        replays.start({"reason": f"number {number}"})
    first = replays.get("list_tasks", kind="replay", limit="2").body
    second = replays.get("list_tasks", kind="replay", limit="2", cursor=first["next"]).body
    assert [one["reason"] for one in first["tasks"]] == ["number 2", "number 1"]
    assert ([one["reason"] for one in second["tasks"]], second["next"]) == (["number 0"], None)
    wrong = replays.get("list_tasks", kind="replay", cursor="nonsense")
    assert (wrong.status, wrong.fields) == (400, ["cursor"])


def test_whatever_is_wrong_with_a_request_is_a_problem_that_names_the_field_and_changes_nothing(
    replays: Replays,
) -> None:
    for case, (body, field) in REFUSED.items():
        reply = replays.start(b"" if body is None else body)
        assert (reply.status, reply.media) == (400, "application/problem+json"), case
        assert reply.fields == [field], case
        assert "Traceback" not in json.dumps(reply.body), case
    assert replays.sqlite.sql("SELECT COUNT(*) FROM task") == [(0,)]


def test_a_job_of_a_different_stream_is_not_found(replays: Replays) -> None:
    foreign = request_of(1)
    opened(replay_store(app()), foreign)
    job = str(foreign.order.task_id)
    assert (replays.show(job).status, replays.move(job, "cancel").status) == (404, 404)
    found = replay_store(app()).find_replay(foreign.order.task_id)
    assert found is not None
    assert found.task.status == "planned"


def test_a_hub_that_does_not_answer_holds_the_job_and_is_named_there(replays: Replays) -> None:
    job = replays.start({"reason": "while the hub is away", "dry_run": False}).body["task_id"]
    replays.hub.fails = lambda: True
    assert replays.work(job) == {"error": "HubUnreachable"}
    shown = replays.show(job).body
    assert (shown["status"], shown["fault"]) == ("running", "the hub does not answer")
    refused = replays.start({"reason": "by time", "from": {"enqueued_at": "2026-01-01T00:00:00Z"}})
    assert (refused.status, refused.body["fault"]) == (503, "HubUnreachable")
    replays.hub.fails = lambda: False
    replays.work(job)
    mended = replays.show(job).body
    assert (mended["status"], mended["fault"]) == ("done", None)


def test_the_timer_drives_every_job_that_is_open(replays: Replays) -> None:
    class Gone(Client):
        async def start_new(self, name: str, instance: str, given: str) -> None:
            raise OSError("no extension")

    jobs = [replays.start({"reason": "to be watched"}).body["task_id"] for _ in range(2)]
    replays.move(replays.start({"reason": "not this one"}).body["task_id"], "pause")
    replays.watch(Gone())
    client = Client()
    replays.watch(client)
    assert sorted(one[2] for one in client.started) == sorted(jobs)
