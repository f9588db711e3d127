"""`tasks`: what takes longer than one request: list, show, pause, resume and cancel it."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from hubledger.cli.console import UsageFault, program
from hubledger.cli.operate.causes import messages_of
from hubledger.cli.operate.command import GOOD, UNHEALTHY, At, Everything, Why
from hubledger.cli.operate.kinds import KINDS, OTHER, Shown, tables_of
from hubledger.cli.operate.letters import segment
from hubledger.cli.remote.client import AppAnswer
from hubledger.cli.views.output import Output, toned
from hubledger.cli.views.texts import text_of
from hubledger.cli.views.waiting import Job, wait_for

TaskId = Annotated[str, typer.Argument(metavar="ID")]
_Kind = Annotated[str | None, typer.Option("--kind", help="One kind, such as replay or audit. Default: all.")]
_Status = Annotated[
    str | None, typer.Option("--status", help="planned, running, paused, done, cancelled or failed. Default: all.")
]
_COLUMNS = "id=task_id, kind=is, status*, done#, total#, requested=requested_at@~, by=requested_by~, reason~, fault~?"


def list_tasks(
    at: At,
    kind: _Kind = None,
    status: _Status = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Tasks of a page.")] = 20,
    everything: Everything = False,
) -> None:
    """List tasks, the newest first.

    Example: bin/hubledger tasks list --kind replay
    """
    rows, _ = at.listed("tasks", "tasks", {"kind": kind, "status": status, "limit": limit}, everything)
    if not at.out.as_json:
        kinds = [{**one, "is": f"{one['kind']}, dry run" if one["dry_run"] else one["kind"]} for one in rows]
        at.out.show(at.out.listing(_COLUMNS, kinds))


def show_task(at: At, task_id: TaskId) -> int:
    """Show a task with its progress and its history.

    Ends with 1 when the task has failed, or an audit has found a fault.

    Example: bin/hubledger tasks show 6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11
    """
    return shown(at, at.app.get(f"tasks/{segment(task_id)}"))


def shown(at: At, found: AppAnswer) -> int:
    """Print a task; return 1 when it has failed, or has found a fault."""
    value, out = found.value, at.out
    own = KINDS.get(value["kind"], OTHER)
    if out.as_json:
        out.json(found.text)
    else:
        out.show(
            out.facts(_facts(out, value, own) | _cause(at, value)),
            *tables_of(out, value, (*own.tables, ("history", "at@, move, by, why", "history"))),
        )
        out.say(*own.lines(value))
    return UNHEALTHY if value["status"] == "failed" or value.get("faults") else GOOD


def _facts(out: Output, value: Mapping[str, Any], own: Shown) -> dict[str, object]:
    times = {"started": "started_at", "updated": "updated_at", "ended": "ended_at"}
    return {
        value["kind"]: value["task_id"],
        "status": toned(value["status"]),
        "done": f"{text_of(value['done'])} of {text_of(value['total'])}",
        **own.facts(out, value),
        "reason": value["reason"] or None,
        "requested": f"{out.ago(value['requested_at'])} by {value['requested_by']}",
        **{name: out.ago(value[field]) for name, field in times.items() if value.get(field)},
        "fault": value["fault"],
    }


def _cause(at: At, value: Mapping[str, Any]) -> dict[str, object]:
    """Return the message of the cause that a redrive is for; nothing for any other task."""
    chosen = value.get("filter") or {}
    if "fingerprint" not in chosen:
        return {}
    messages = messages_of(at, {"fingerprint": chosen["fingerprint"]})
    return {"cause": "; ".join(dict.fromkeys(messages.values())) or None}


def wait_for_task(at: At, accepted: AppAnswer, name: str) -> AppAnswer:
    """Show the progress of a task until it has ended or is paused; return its last answer."""
    task_id = accepted.value["task_id"]
    at.out.say(f"{name} {task_id}")
    left = f"To pause it: {program()} tasks pause {task_id} --reason WHY"
    return wait_for(Job(name, lambda: at.app.get(f"tasks/{segment(task_id)}"), "done", left=left), at.out)


def finished(at: At, accepted: AppAnswer, name: str) -> tuple[int, Mapping[str, Any]]:
    """Wait for a task, and print its end; return the task, and 0 when it is done without a fault."""
    found = wait_for_task(at, accepted, name)
    code = shown(at, found)
    return (code if found.value["status"] == "done" else UNHEALTHY), found.value


def dry_run_first(
    at: At,
    kind: str,
    order: Mapping[str, object],
    asked: Callable[[Mapping[str, Any]], str],
    *,
    for_real: bool,
    no_wait: bool,
) -> int:
    """Have a task counted by a dry run, of which `asked` shows more and makes the question.

    `for_real` then asks, and has it done. `no_wait` returns at once.
    """
    if for_real and no_wait:
        raise UsageFault("--for-real needs the dry run first, so it has to wait: leave out --no-wait")
    if for_real:
        at.refuse_without_person()
    dry = at.app.open_task(kind, {**order, "dry_run": True})
    if no_wait:
        return shown(at, dry)
    code, counted = finished(at, dry, "dry run")
    question = asked(counted)
    if code == GOOD and for_real:
        at.confirm(question)
        code, _ = finished(at, at.app.open_task(kind, {**order, "dry_run": False}), kind)
    return code


def pause_task(at: At, task_id: TaskId, reason: Why) -> int:
    """Pause a task between two pieces; what it has done stays done.

    Example: bin/hubledger tasks pause 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10 --reason "the database is slow"
    """
    return _move(at, task_id, "pause", reason)


def resume_task(
    at: At,
    task_id: TaskId,
    reason: Why,
    transform_version: Annotated[
        str | None, typer.Option("--transform-version", help="The new version of the transform with which it goes on.")
    ] = None,
) -> int:
    """Resume a paused task.

    Example: bin/hubledger tasks resume 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10 --reason "it is fast again"
    """
    return _move(at, task_id, "resume", reason, transform_version)


def cancel_task(at: At, task_id: TaskId, reason: Why) -> int:
    """Cancel a task for good; what it has done stays done.

    Example: bin/hubledger tasks cancel 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10 --reason "the wrong range"
    """
    return _move(at, task_id, "cancel", reason)


def _move(at: At, task_id: str, move: str, reason: str, version: str | None = None) -> int:
    at.confirm(f"{move.capitalize()} task {task_id}?")
    body = {"reason": reason} | ({} if version is None else {"transform_version": version})
    return shown(at, at.app.post(f"tasks/{segment(task_id)}/{move}", body))
