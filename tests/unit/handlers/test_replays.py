"""handlers/replays.py and its operations, as the worker calls them: in a process with settings and a store."""

import json
from typing import Any

import pytest

from tests.fakes.engines import SqliteEngine
from tests.unit.handlers.test_handlers import App

pytestmark = pytest.mark.slow  # each starts a process
SCRIPT = """
import asyncio
from uuid import uuid4
from dataclasses import replace
from handlers import services as shared
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.builders import event
from core.model.events import Partition

class Client:
    started = []
    async def get_status(self, instance): return None
    async def start_new(self, name, instance, given): self.started.append([name, instance, given])

def request(method, path, body=None, route=None, params=None, headers=None):
    octets = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Content-Type": "application/json", "Idempotency-Key": uuid4().hex, **(headers or {})}
    return func.HttpRequest(method, f"/api/{path}", headers=given, params=params, route_params=route, body=octets)

def told(response):
    body = json.loads(response.get_body()) if response.get_body() else None
    return [response.status_code, response.mimetype, dict(response.headers), body]

def start(body, **given):
    made = given_functions["start_replay"].client_function(request("POST", "replays", body, **given), client=Client())
    return told(asyncio.run(made))

def show(job, name="show_replay", params=None):
    route = {"job_id": job}
    return told(given_functions[name](request("GET", f"replays/{job}", route=route, params=params)))

def move(job, verb, body={"reason": "because I say so"}):
    req, function = request("POST", f"replays/{job}/{verb}", body, {"job_id": job}), given_functions[f"{verb}_replay"]
    if verb == "resume":
        return told(asyncio.run(function.client_function(req, client=Client())))
    return told(function(req))

given_functions = given

def work(job):
    for _ in range(100):
        opened = given_functions["open_replay_job"](job)
        if not opened.get("partitions"):
            return opened
        for id in opened["partitions"]:
            done = given_functions["replay_pieces"]({"job_id": job, "partition_id": id})
            if "error" in done:
                return done

ingest([0, 1, 2, 3], [HOME, MOTION, b"{", MOTION])
own = shared.services()
partition = [one.partition for one in own.store.read_ledgers()][0]
log = [event(number, body) for number, body in enumerate([HOME, MOTION, b"{", MOTION])]
hub = MemoryHub({"1": log})
shared._made[0] = replace(own, hub=hub)
lines.clear()
"""


class Replays(App):
    """The app over four events of partition 1, with a hub that holds them."""

    def ask(self, script: str) -> Any:
        return self.run(SCRIPT + script)


@pytest.fixture
def app(sqlite: SqliteEngine) -> Replays:
    return Replays(sqlite)


def test_a_replay_is_accepted_as_a_dry_run_and_its_orchestration_started(app: Replays) -> None:
    (code, mimetype, headers, body), started, shown = app.ask("""
answer = start({"reason": "the transform was mended"})
print(json.dumps([answer, Client.started, show(answer[3]["job_id"])]))
""")
    assert (code, mimetype, headers["Location"]) == (202, "application/json", f"/api/replays/{body['job_id']}")
    assert (body["status"], body["dry_run"], body["total"], body["done"]) == ("planned", True, 4, 0)
    assert (body["requested_by"], body["reason"]) == ("unknown (a holder of the key)", "the transform was mended")
    assert [(one["partition_id"], one["first"], one["last"], one["next"]) for one in body["partitions"]] == [
        ("1", "0", "3", "0")
    ]
    assert started == [["drive_replay", f"replay-{body['job_id']}", body["job_id"]]]
    assert (shown[0], shown[3]) == (200, body)


def test_a_dry_run_is_worked_through_and_shows_its_diff_and_then_the_real_one_is_made(app: Replays) -> None:
    answers = app.ask("""
from core.transforms import home_security
def renamed(event, references):
    rows = home_security.transform(event, references)
    return [replace(row, sensor_id="other") for row in rows if hasattr(row, "sensor_id")]
newer = replace(own.transform, version="home_security/2", rows_of=renamed)
shared._made[0] = replace(shared._made[0], transform=newer)
dry = start({"reason": "look first"})[3]["job_id"]
worked = [work(dry), show(dry), show(dry, "show_replay_diff", {"limit": "1"})]
page = show(dry, "show_replay_diff", {"limit": "1", "cursor": worked[2][3]["next"]})
real = start({"reason": "and now for good", "dry_run": False, "partitions": ["1"], "from": {"sequence_number": "1"}})[3]
worked += [page, work(real["job_id"]), show(real["job_id"])]
print(json.dumps(worked))
""")
    over, dry, first, second, _, real = answers
    assert over == {"partitions": []}
    assert (dry[3]["status"], dry[3]["done"], dry[3]["counts"]["events_changed"]) == ("done", 4, 2)
    counts = dry[3]["counts"]
    assert (counts["rows_added"], counts["rows_removed"], counts["rows_changed"], counts["states_left"]) == (0, 0, 2, 1)
    (shown,) = first[3]["events"]
    assert (shown["partition_id"], shown["sequence_number"], shown["outcome"]) == ("1", "1", "written")
    assert [(one["table"], one["columns"]) for one in shown["changed"]] == [
        ("sensor_reading", {"sensor_id": ["h", "other"]})
    ]
    assert [one["sequence_number"] for one in second[3]["events"]] == ["3"]
    assert second[3]["next"] is None
    assert (real[3]["status"], real[3]["dry_run"], real[3]["counts"]["rows_written"]) == ("done", False, 2)
    assert app.sqlite.sql("SELECT sequence_number, sensor_id FROM sensor_reading ORDER BY 1") == [
        (1, "other"), (3, "other"),
    ]  # fmt: skip
    assert [kept.transform_version for kept in app.sqlite.replays()] == ["home_security/2"]


def test_a_second_replay_of_a_range_in_work_is_refused_and_names_the_first(app: Replays) -> None:
    first, second, dry, third = app.ask("""
first = start({"reason": "the first", "dry_run": False, "to": {"sequence_number": "2"}})
second = start({"reason": "the second", "dry_run": False, "from": {"sequence_number": "2"}})
beside = start({"reason": "beside it", "dry_run": False, "from": {"sequence_number": "3"}})
print(json.dumps([first, second, start({"reason": "a dry one"}), beside]))
""")
    assert second[:2] == [409, "application/problem+json"]
    assert (second[3]["type"], second[3]["job_id"]) == ("urn:hubledger:problem:replay-overlap", first[3]["job_id"])
    assert (dry[0], third[0]) == (202, 202)


def test_a_job_is_paused_resumed_and_cancelled_and_says_by_whom_and_why(app: Replays) -> None:
    paused, again, over, resumed, cancelled, late, started = app.ask("""
job = start({"reason": "to be steered", "dry_run": False})[3]["job_id"]
moves = [move(job, "pause"), move(job, "pause"), work(job)]
moves += [move(job, verb) for verb in ("resume", "cancel", "resume")]
print(json.dumps([*moves, Client.started]))
""")
    assert (paused[0], paused[3]["status"]) == (200, "paused")
    assert (again[0], again[3]["status"], again[3]["replay_status"]) == (409, 409, "paused")
    assert again[3]["detail"] == "pause: the replay is paused"
    assert over == {"partitions": []}
    assert (resumed[3]["status"], cancelled[3]["status"], late[0]) == ("running", "cancelled", 409)
    assert [(one["move"], one["why"]) for one in cancelled[3]["history"]] == [
        (name, "because I say so") for name in ("pause", "resume", "cancel")
    ]
    assert len(started) == 2
    assert app.sqlite.replays() == []


def test_jobs_are_listed_by_pages_the_newest_first(app: Replays) -> None:
    first, second, wrong = app.ask("""
for number in range(3):
    start({"reason": f"number {number}"})
listing = lambda params: told(given_functions["list_replays"](request("GET", "replays", params=params)))
first = listing({"limit": "2"})
print(json.dumps([first, listing({"limit": "2", "cursor": first[3]["next"]}), listing({"cursor": "nonsense"})]))
""")
    assert [one["reason"] for one in first[3]["replays"]] == ["number 2", "number 1"]
    assert ([one["reason"] for one in second[3]["replays"]], second[3]["next"]) == (["number 0"], None)
    assert (wrong[0], wrong[3]["errors"][0]["field"]) == (400, "cursor")


HOSTILE = "<script>alert(1)</script>'; DROP TABLE home; --{{7*7}}../../etc/passwd"
REFUSED: dict[str, tuple[object, str]] = {
    "no reason": ({}, "reason"),
    "a reason that is too short": ({"reason": "x"}, "reason"),
    "a reason that is too long": ({"reason": "x" * 401}, "reason"),
    "a reason of another type": ({"reason": 7}, "reason"),
    "an unknown field": ({"reason": "good enough", "force": True}, "force"),
    "a hostile field": ({"reason": "good enough", HOSTILE: 1}, HOSTILE),
    "a dry run that is neither": ({"reason": "good enough", "dry_run": "no"}, "dry_run"),
    "partitions that are no list": ({"reason": "good enough", "partitions": "1"}, "partitions"),
    "no partitions": ({"reason": "good enough", "partitions": []}, "partitions"),
    "a hostile partition": ({"reason": "good enough", "partitions": [HOSTILE]}, "partitions[0]"),
    "a partition that is not there": ({"reason": "good enough", "partitions": ["9"]}, "partitions"),
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
    "a list": ([], "body"),
    "nothing": (None, "body"),
}  # fmt: skip


def test_whatever_is_wrong_with_a_request_is_a_problem_that_names_the_field_and_changes_nothing(app: Replays) -> None:
    answers = app.ask(f"""
given_bodies = json.loads({json.dumps(json.dumps([body for body, _ in REFUSED.values()]))})
print(json.dumps([start(b"" if body is None else body) for body in given_bodies]))
""")
    for (case, (_, field)), (code, mimetype, _, body) in zip(REFUSED.items(), answers, strict=True):
        assert (code, mimetype) == (400, "application/problem+json"), case
        assert [one["field"] for one in body["errors"]] == [field], case
        assert "Traceback" not in json.dumps(body), case
    assert app.sqlite.sql("SELECT COUNT(*) FROM replay_job") == [(0,)]


def test_a_job_that_is_not_there_is_not_found_and_an_id_that_is_none_is_refused(app: Replays) -> None:
    missing, hostile, moved = app.ask(f"""
missing = "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"
print(json.dumps([show(missing), show({HOSTILE!r}), move(missing, "cancel")]))
""")
    assert (missing[0], moved[0]) == (404, 404)
    assert (hostile[0], hostile[3]["errors"][0]["field"]) == (400, "job_id")


def test_a_hub_that_does_not_answer_holds_the_job_and_is_said_there(app: Replays) -> None:
    failed, shown, mended, refused = app.ask("""
job = start({"reason": "while the hub is away", "dry_run": False})[3]["job_id"]
hub.fails = lambda: True
failed = work(job)
shown = show(job)
refused = start({"reason": "by time", "from": {"enqueued_at": "2026-01-01T00:00:00Z"}})
hub.fails = lambda: False
work(job)
print(json.dumps([failed, shown, show(job), refused]))
""")
    assert failed == {"error": "HubUnreachable"}
    assert (shown[3]["status"], shown[3]["fault"]) == ("running", "the hub does not answer")
    assert (mended[3]["status"], mended[3]["fault"]) == ("done", None)
    assert (refused[0], refused[3]["fault"]) == (503, "HubUnreachable")


def test_the_timer_drives_every_job_that_is_open(app: Replays) -> None:
    jobs, started = app.ask("""
class Gone(Client):
    async def start_new(self, *given): raise OSError("no extension")
jobs = [start({"reason": "to be watched"})[3]["job_id"] for _ in range(2)]
move(start({"reason": "not this one"})[3]["job_id"], "pause")
Client.started.clear()
asyncio.run(given_functions["watch_replays"].client_function(None, client=Gone()))
asyncio.run(given_functions["watch_replays"].client_function(None, client=Client()))
print(json.dumps([jobs, Client.started]))
""")
    assert sorted(one[2] for one in started) == sorted(jobs)
