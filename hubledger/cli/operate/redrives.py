"""`redrives`: the jobs that retry or discard letters: list, show, pause, resume, cancel."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hubledger.cli.console import program
from hubledger.cli.operate.command import GOOD, UNHEALTHY, At, Everything, Why
from hubledger.cli.operate.letters import segment
from hubledger.cli.remote.client import AppAnswer
from hubledger.cli.views.output import Column, Output, toned
from hubledger.cli.views.texts import brief, counted, text_of
from hubledger.cli.views.waiting import Job, wait_for

RedriveId = Annotated[str, typer.Argument(metavar="ID")]
_COLUMNS = (
    Column("id"), Column("move"), Column("status"), Column("moved", number=True),
    Column("looked at", number=True, wide=True),
    Column("total", number=True), Column("requested", wide=True), Column("by", wide=True), Column("reason", wide=True),
)  # fmt: skip


def list_redrives(
    at: At,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Jobs of a page.")] = 20,
    everything: Everything = False,
) -> None:
    """List the jobs that retry or discard letters, the newest first.

    Example: python -m hubledger redrives list
    """
    rows: list[Mapping[str, Any]] = []
    for page in at.app.pages("redrives", {"limit": limit}, everything):
        if at.out.as_json:
            at.out.json(page.text)
        rows += page.value["redrives"]
    if not at.out.as_json:
        at.out.show(at.out.table(_COLUMNS, [_row(at.out, one) for one in rows]))


def _row(out: Output, one: Mapping[str, Any]) -> list[object]:
    return [
        one["redrive_id"], one["move"], toned(one["status"]), one["moved"], one["looked_at"], one["total"],
        out.when(one["requested_at"]), one["requested_by"], one["reason"],
    ]  # fmt: skip


def show_redrive(at: At, redrive_id: RedriveId) -> int:
    """Show a job with its progress and its history.

    Ends with 1 when the job has failed.

    Example: python -m hubledger redrives show 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10
    """
    return shown(at, at.app.get(f"redrives/{segment(redrive_id)}"))


def shown(at: At, found: AppAnswer) -> int:
    """Print a job; return 1 when it failed."""
    value, out = found.value, at.out
    if out.as_json:
        out.json(found.text)
    else:
        out.show(out.facts(_facts(out, value)), *history(out, value["history"]))
    return UNHEALTHY if value["status"] == "failed" else GOOD


def _facts(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    letters = value.get("letters")
    return {
        "redrive": value["redrive_id"],
        "move": value["move"],
        "status": toned(value["status"]),
        "letters": f"{text_of(len(letters))} selected" if letters else brief(value.get("filter") or {}) or "all",
        "moved": _moved(value),
        "looked at": value["looked_at"],
        "unmoved": value["unmoved"],
        "per second": value["per_second"],
        "reason": value["reason"],
        "requested": f"{out.ago(value['requested_at'])} by {value['requested_by']}",
        **times(out, value),
        "fault": value["fault"],
    }


def _moved(value: Mapping[str, Any]) -> str:
    """Return how many of the confirmed letters a job moved, or how many more than those."""
    moved, total = value["moved"], value["total"]
    if moved <= total:
        return f"{text_of(moved)} of {counted(total, 'letter')}"
    return f"{counted(moved, 'letter')}, {text_of(moved - total)} more than confirmed: they became movable later"


def times(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    """Return when a job began, was last changed and ended."""
    named = {"started": "started_at", "updated": "updated_at", "ended": "ended_at"}
    return {name: out.ago(value[field]) for name, field in named.items() if value.get(field)}


def history(out: Output, moves: list[Mapping[str, Any]]) -> list[Any]:
    """Return the table of what persons did with a job; nothing where nobody did anything."""
    columns = (Column("at"), Column("move"), Column("by"), Column("why"))
    rows = [[out.when(one["at"]), one["move"], one["by"], one["why"]] for one in moves]
    return [out.table(columns, rows, "history")] if rows else []


def list_moved(
    at: At,
    redrive_id: RedriveId,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Letters of a page.")] = 100,
    everything: Everything = False,
) -> None:
    """List the letters that a job has moved, with their status now.

    Example: python -m hubledger redrives letters 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10 --all
    """
    rows: list[Mapping[str, Any]] = []
    for page in at.app.pages(f"redrives/{segment(redrive_id)}/letters", {"limit": limit}, everything):
        if at.out.as_json:
            at.out.json(page.text)
        rows += page.value["letters"]
    columns = (
        Column("partition"),
        Column("number", number=True),
        Column("moved"),
        Column("status"),
    )
    cells = [
        [one["partition_id"], one["sequence_number"], at.out.when(one["moved_at"]), toned(one["status"])]
        for one in rows
    ]
    if not at.out.as_json:
        at.out.show(at.out.table(columns, cells))


def wait_for_redrive(at: At, redrive_id: str) -> int:
    """Show the progress of a job until it ends; return 0 when it is done."""
    path = f"redrives/{segment(redrive_id)}"
    left = f"To pause it: {program()} redrives pause {redrive_id} --reason WHY"
    found = wait_for(Job("redrive", lambda: at.app.get(path), "looked_at", left=left), at.out)
    value = found.value
    if at.out.as_json:
        at.out.json(found.text)
    at.out.say(f"{value['status']}: moved {_moved(value)}")
    if value["unmoved"]:
        at.out.say(f"{counted(value['unmoved'], 'letter')} not moved: changed since")
    if value["fault"]:
        at.out.say(f"fault: {value['fault']}")
    return GOOD if value["status"] == "done" else UNHEALTHY


def pause_redrive(at: At, redrive_id: RedriveId, reason: Why) -> int:
    """Pause a job; the letters that it moved stay moved.

    Example: python -m hubledger redrives pause 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10 --reason "the database is slow"
    """
    return _move(at, redrive_id, "pause", reason)


def resume_redrive(at: At, redrive_id: RedriveId, reason: Why) -> int:
    """Resume a paused job.

    Example: python -m hubledger redrives resume 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10 --reason "it is fast again"
    """
    return _move(at, redrive_id, "resume", reason)


def cancel_redrive(at: At, redrive_id: RedriveId, reason: Why) -> int:
    """Cancel a job for good; the letters that it moved stay moved.

    Example: python -m hubledger redrives cancel 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10 --reason "the wrong letters"
    """
    return _move(at, redrive_id, "cancel", reason)


def _move(at: At, redrive_id: str, move: str, reason: str) -> int:
    at.confirm(f"{move.capitalize()} redrive {redrive_id}?")
    return shown(at, at.app.post(f"redrives/{segment(redrive_id)}/{move}", {"reason": reason}))
