import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.ledger.store import Ledger
from core.store.columns import instant_text
from handlers.app import app
from handlers.operations.tasks import KINDS
from handlers.tasks import DAY, PAUSE, SECOND, STALLED_AFTER, drive, drive_task
from tests.fakes.builders import EPOCH
from tests.fakes.durable import DurableClient, OrchestrationContext
from tests.handlers.running import HOME, MOTION, Running, functions

JOB = "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"
CONFLICT = "urn:hubledger:problem:conflict"


def round_of(*answers: Any) -> tuple[list[Any], list[object]]:
    """Run a round with these answers, and return its next requests and the inputs of the next round."""
    context = OrchestrationContext(f"task-{JOB}", JOB)
    work = drive_task(context)
    asked = [next(work)]
    with pytest.raises(StopIteration):
        for answer in answers:
            asked.append(work.send(answer))
    assert asked[0] == ("open_task", JOB)
    return asked[1:], context.again


def test_each_partition_with_work_left_gets_an_activity_and_a_round_without_work_is_the_last() -> None:
    slices = ("all", [("task_slice", {"task_id": JOB, "part": id}) for id in ("0", "7")])
    assert round_of({"parts": ["0", "7"]}, [{"ok": {}}, {"ok": {}}]) == ([slices], [JOB])
    assert round_of({"parts": []}) == ([], [])


@pytest.mark.parametrize("done", [[{"error": "HubUnreachable"}], [{"ok": {}}, {"error": "StoreUnavailable"}]])
def test_a_fault_of_the_store_or_of_a_slice_is_waited_for_and_ends_nothing(done: list[object]) -> None:
    pause = ("timer", EPOCH + PAUSE + SECOND)
    assert round_of({"error": "StoreUnavailable"}, None) == ([pause], [JOB])
    asked, again = round_of({"parts": ["0", "1"][: len(done)]}, done, None)
    assert (asked[1:], again) == ([pause], [JOB])


@pytest.mark.parametrize("status", [None, "Completed", "Failed", "Terminated", "Running", "Pending"])
def test_a_job_whose_orchestration_does_not_run_gets_one_under_its_own_name_and_no_fault_of_durable_escapes(
    status: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    client = DurableClient(status)
    asyncio.run(drive(client, JOB))
    assert client.started == ([] if status in ("Running", "Pending") else [("drive_task", f"task-{JOB}", JOB)])
    asyncio.run(drive(DurableClient(fault=OSError("no extension")), JOB))
    assert caplog.messages == ["task not driven; the timer will drive it: no extension"]


@pytest.fixture
def filled(running: Running) -> Running:
    running.ingest([0], [HOME])
    running.ingest([1], [MOTION])
    return running


def test_an_app_is_not_ready_with_a_different_key_of_events_than_that_of_an_open_task(filled: Running) -> None:
    filled.open("replay", reason="again", dry_run=False)
    assert filled.get("health_ready").status == 200
    filled.restart(EVENT_KEY="kafka")
    ready = filled.get("health_ready")
    assert (ready.status, ready.body["fault"]) == (503, "EventKeyChanged")


def test_the_line_of_a_step_that_failed_has_the_text_of_its_error(filled: Running) -> None:
    replay = filled.open("replay", reason="again", dry_run=False)["task_id"]
    assert filled.drive(replay)["error"] == "HubUnreachable"
    (line,) = [one for one in filled.lines if one["action"] == "task"]
    assert line["message"] == f"task step failed; will retry: {line['error']}"
    assert line["error"]


def test_the_timer_opens_one_purge_a_day_where_the_settings_say_so_and_a_dry_run_is_none(filled: Running) -> None:
    assert (filled.tick(), filled.tasks()) == ([], [])
    filled.drive(filled.open("purge", reason="look first")["task_id"])
    filled.restart(PURGE_DAILY="true", PURGE_DAYS='{"batch_ledger": 5}')
    (task_id,) = filled.tick()
    assert filled.tick() == [task_id]  # it is open, and not driven yet
    filled.drive(task_id)
    assert filled.tick() == []
    task, other = filled.tasks()
    by = (task["kind"], task["requested_by"], task["reason"], task["dry_run"], other["requested_by"])
    assert by == ("purge", "timer", "PURGE_DAILY", False, "unverified (key holder)")
    assert (task["status"], task["older_than_days"]["batch_ledger"]) == ("done", 5)
    yesterday = datetime.now(UTC) - DAY - timedelta(seconds=1)  # the clock of the database may be behind by less
    filled.sqlite.sql(f"UPDATE task SET requested_at = '{instant_text(yesterday)}'")
    assert len(filled.tick()) == 1
    assert [one["requested_by"] for one in filled.tasks()].count("timer") == 2


def test_the_timer_drives_every_open_task_that_is_not_paused_also_after_a_tick_that_failed(filled: Running) -> None:
    audit, purge = filled.open("audit")["task_id"], filled.open("purge", reason="look first")["task_id"]
    assert filled.move("pause", audit).status == 200
    assert filled.tick(DurableClient(fault=OSError("no extension"))) == []
    assert filled.tick() == [purge]
    assert filled.move("resume", audit).status == 200
    assert sorted(filled.tick()) == sorted([audit, purge])


def test_the_timer_pauses_a_task_whose_orchestration_is_suspended_and_its_resume_resumes_both(filled: Running) -> None:
    task_id = filled.open("audit")["task_id"]
    suspended = DurableClient("Suspended")
    assert (filled.tick(suspended), suspended.done) == ([], [])
    (task,) = filled.tasks()
    why = f"Durable holds the orchestration task-{task_id}: it is suspended. Resume the task"
    assert (task["status"], task["fault"]) == ("paused", why)
    assert filled.lines[-1]["error"] == why
    functions()["task_slice"]({"task_id": task_id, "part": None})  # one that was in hand
    assert filled.tasks()[0]["fault"] == why
    assert Ledger(app().stream).count_tasks_held_up() == 1
    filled.client = suspended
    resumed = filled.move("resume", task_id)
    assert (resumed.status, resumed.body["status"], resumed.body["fault"]) == (200, "running", None)
    assert (suspended.started, suspended.done) == ([], [f"resume task-{task_id}"])
    assert Ledger(app().stream).count_tasks_held_up() == 0
    filled.drive(task_id)
    assert filled.tasks()[0]["status"] == "done"


def test_the_timer_resumes_an_orchestration_again(filled: Running) -> None:
    task_id = filled.open("audit")["task_id"]
    suspended = DurableClient("Suspended")
    filled.tick(suspended)
    filled.client = DurableClient(fault=OSError("no storage"))
    assert filled.move("resume", task_id).status == 200
    assert (filled.tick(suspended), suspended.done) == ([], [f"resume task-{task_id}"])
    assert filled.tasks()[0]["status"] == "running"
    moves = [{**one, "at": "2026-01-01T00:00:00Z"} for one in filled.tasks()[0]["history"]]
    filled.sqlite.sql("UPDATE task SET history = '" + "".join(f"{json.dumps(one)}\n" for one in moves) + "'")
    assert (filled.tick(suspended), suspended.done) == ([], [f"resume task-{task_id}"])
    assert filled.tasks()[0]["status"] == "paused"


def test_the_timer_ends_an_orchestration_that_lost_an_activity_and_drives_the_task_again(filled: Running) -> None:
    task_id = filled.open("audit")["task_id"]
    for silent, done in ((STALLED_AFTER - SECOND, []), (STALLED_AFTER + SECOND, [f"terminate task-{task_id}"])):
        client = DurableClient("Running", silent)
        assert (filled.tick(client), client.done) == ([], done)
    assert filled.tick(DurableClient("Terminated")) == [task_id]


@pytest.mark.parametrize("verb", [None, "pause"])
def test_the_timer_fails_what_is_overdue_also_when_it_is_paused(filled: Running, verb: str | None) -> None:
    task_id = filled.open("audit")["task_id"]
    if verb:
        assert filled.move(verb, task_id).status == 200
    filled.sqlite.sql("UPDATE task SET requested_at = '2026-01-01T00:00:00.000000Z'")
    assert filled.tick() == []
    (task,) = filled.tasks()
    assert (task["status"], task["fault"]) == ("failed", "the audit was not done in 2:00:00")


def test_tasks_are_listed_by_pages_the_newest_first_of_one_kind_or_status_or_of_all(filled: Running) -> None:
    audit = filled.open("audit")["task_id"]
    made = []
    for _ in range(3):
        made.append(filled.open("purge", reason="look first")["task_id"])
        filled.drive(made[-1])
    first = filled.get("list_tasks", kind="purge", limit="2").body
    second = filled.get("list_tasks", kind="purge", limit="2", cursor=first["next"]).body
    assert [one["task_id"] for one in (*first["tasks"], *second["tasks"])] == made[::-1]
    assert (first["kinds"], second["next"]) == ([*KINDS], None)
    assert [one["task_id"] for one in filled.tasks()] == [*made[::-1], audit]
    assert [one["task_id"] for one in filled.get("list_tasks", status="planned").body["tasks"]] == [audit]
    assert filled.get("list_tasks", cursor=first["next"]).fields == ["cursor"]  # of a different query
    for name, value in (("kind", "odd"), ("status", "open"), ("limit", "0")):
        assert filled.get("list_tasks", None, **{name: value}).fields == [name]


def test_a_task_that_does_not_exist_is_not_found(filled: Running) -> None:
    replies = [filled.get(name, {"task_id": JOB}) for name in ("show_task", "show_replay_diff")]
    replies += [filled.move(verb, JOB) for verb in ("pause", "cancel")]
    audit = filled.open("audit")["task_id"]
    replies.append(filled.get("show_replay_diff", {"task_id": audit}))
    assert [one.status for one in replies] == [404] * 5
    assert replies[-1].body["detail"] == f"there is no replay {audit}"


def test_the_same_request_under_an_id_opens_one_task_and_a_different_one_is_refused(filled: Running) -> None:
    order = {"reason": "look first", "dry_run": True}
    retry = {"move": "retry", "filter": {}, "reason": "mended", "expected_count": 7}
    assert filled.put("redrive", retry, JOB).status == 409, "a request that was refused leaves its id free"
    first = filled.put("purge", order, JOB)
    assert (first.status, first.headers["Location"], first.body["task_id"]) == (201, f"/api/tasks/{JOB}", JOB)
    again = filled.put("purge", {"dry_run": True, "reason": "look first"}, JOB)
    assert (again.status, again.headers["Location"], again.body) == (200, first.headers["Location"], first.body)
    filled.drive(JOB)
    assert filled.put("purge", order, JOB).body["status"] == "done"
    for kind, other in (("purge", {**order, "dry_run": False}), ("purge", {**order, "reason": "why"}), ("audit", {})):
        refused = filled.put(kind, other, JOB)
        assert (refused.status, refused.body["type"], refused.body["task_id"]) == (409, CONFLICT, JOB), other
    assert [one["task_id"] for one in filled.tasks()] == [JOB]


def test_a_move_to_a_status_that_is_reached_changes_nothing(filled: Running) -> None:
    filled.put("audit", {}, JOB)
    for verb, status in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        moved = [filled.move(verb, JOB) for _ in range(2)]
        assert [(one.status, one.body["status"]) for one in moved] == [(200, status)] * 2
    late = filled.move("resume", JOB)
    told = (late.status, late.body["task_status"], late.body["detail"])
    assert told == (409, "cancelled", "resume: the audit is cancelled")
    moves = [(one["move"], one["why"], one["by"]) for one in filled.task(JOB)["history"]]
    by = ("because I say so", "unverified (key holder)")
    assert moves == [("pause", *by), ("resume", *by), ("cancel", *by)]


def test_a_log_names_no_subject_and_the_same_erasure_is_answered_after_its_end(filled: Running) -> None:
    filled.restart(ERASURE_KEY="a key of thirty-two octets or more")
    refused = filled.put("erasure", {"subjects": ["home-1", "home-1" * 40], "reason": "request 4711"})
    assert (refused.status, refused.fields) == (400, ["subjects[1]"])
    assert filled.put("purge", {"reason": "as home-1 asked"}).status == 201
    assert filled.get("list_tasks", kind="home-1").status == 400
    filled.sqlite.sql("UPDATE event_hub_checkpoint SET unknown_fields = ?", '{"\\u0000": 1200}')
    erasure = {"subjects": ["home-1"], "reason": "request 4711", "dry_run": False}
    for status in (201, 200):
        reply = filled.put("erasure", erasure, JOB)
        assert reply.status == status
        filled.drive(JOB)
    assert reply.body["status"] == "done"
    assert any("the key of 1,200 events could not be read" in one for one in reply.body["notes"])
    assert any("Order the erasure there too" in one for one in reply.body["notes"])
    assert filled.put("erasure", {**erasure, "subjects": ["home-2"]}, JOB).status == 409
    assert [one for one in filled.lines if "home-1" in str(one)] == []
