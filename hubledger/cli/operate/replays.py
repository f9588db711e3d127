"""`replay`: start a dry run or a real replay; list, show, diff, pause, resume and cancel replays."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from hubledger.cli.console import UsageFault, program
from hubledger.cli.operate.command import GOOD, UNHEALTHY, At, Everything, Why
from hubledger.cli.operate.letters import segment
from hubledger.cli.operate.redrives import history, times
from hubledger.cli.remote.client import AppAnswer
from hubledger.cli.views.output import Column, Output, toned
from hubledger.cli.views.texts import brief, counted, read_instant, text_of
from hubledger.cli.views.waiting import Job, wait_for

JobId = Annotated[str, typer.Argument(metavar="ID")]
PAGE = 20  # events of a diff that `start` shows
_Partitions = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="ID", help="A partition; give it once for each. Default: all."),
]
_PLACE = "a sequence number, or a time such as 2026-11-23T03:00:00Z"
_From = Annotated[str | None, typer.Option("--from", metavar="PLACE", help=f"The first event: {_PLACE}.")]
_To = Annotated[
    str | None, typer.Option("--to", metavar="PLACE", help=f"The last number, or the time at which it ends: {_PLACE}.")
]
_ForReal = Annotated[bool, typer.Option("--for-real", help="After the dry run, replay for real; it asks.")]
_NoWait = Annotated[bool, typer.Option("--no-wait", help="Return when the app has accepted the dry run.")]
_COLUMNS = (
    Column("id"), Column("kind"), Column("status"), Column("done", number=True), Column("total", number=True),
    Column("requested", wide=True), Column("by", wide=True), Column("reason", wide=True),
)  # fmt: skip
_CHANGES = ("events_changed", "rows_added", "rows_removed", "rows_changed", "letters_added", "letters_resolved", "gone")
_REAL = ("events", "rows_written", "rows_retracted", "letters_added", "letters_resolved", "held", "gone")


def start(
    at: At,
    reason: Why,
    partitions: _Partitions = None,
    first: _From = None,
    to: _To = None,
    for_real: _ForReal = False,
    no_wait: _NoWait = False,
) -> int:
    """Start a replay: a dry run, which shows the rows that would change.

    --for-real asks after the dry run, and replays. Ctrl-C ends the wait, and the replay goes on.

    Example: python -m hubledger replay start --partition 3 --from 40 --to 90 --reason "version 2 corrects the unit"
    """
    if for_real and no_wait:
        raise UsageFault("--for-real needs the dry run first, so it has to wait: leave out --no-wait")
    if for_real:
        at.refuse_without_person()
    wish = {"partitions": partitions or None, "from": _place(first), "to": _place(to), "reason": reason}
    dry = at.app.post("replays", {**wish, "dry_run": True})
    if no_wait:
        return shown(at, dry)
    code = _finished(at, dry)
    if code == GOOD and for_real:
        at.confirm(f"Replay {counted(dry.value['total'], 'event')} for real?")
        code = _finished(at, at.app.post("replays", {**wish, "dry_run": False}))
    return code


def _place(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return {"sequence_number": text}
    if read_instant(text) is None:
        raise UsageFault(f"{text}: write {_PLACE}")
    return {"enqueued_at": text}


def _finished(at: At, accepted: AppAnswer) -> int:
    """Wait for a replay, and print its end; return 0 when it is done."""
    job_id, is_dry = accepted.value["job_id"], accepted.value["dry_run"]
    name = "dry run" if is_dry else "replay"
    at.out.say(f"{name} {job_id}")
    left = f"To pause it: {program()} replay pause {job_id} --reason WHY"
    found = wait_for(Job(name, lambda: at.app.get(f"replays/{segment(job_id)}"), "done", left=left), at.out)
    shown(at, found)
    if is_dry and found.value["counts"]["events_changed"]:
        _show_diff(at, job_id, PAGE, False)
    return GOOD if found.value["status"] == "done" else UNHEALTHY


def list_replays(
    at: At,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Replays of a page.")] = 20,
    everything: Everything = False,
) -> None:
    """List replays, the newest first.

    Example: python -m hubledger replay list
    """
    rows: list[Mapping[str, Any]] = []
    for page in at.app.pages("replays", {"limit": limit}, everything):
        if at.out.as_json:
            at.out.json(page.text)
        rows += page.value["replays"]
    if not at.out.as_json:
        at.out.show(at.out.table(_COLUMNS, [_row(at.out, one) for one in rows]))


def _row(out: Output, one: Mapping[str, Any]) -> list[object]:
    kind = "dry run" if one["dry_run"] else "real"
    return [
        one["job_id"], kind, toned(one["status"]), one["done"], one["total"], out.when(one["requested_at"]),
        one["requested_by"], one["reason"],
    ]  # fmt: skip


def show(at: At, job_id: JobId) -> int:
    """Show a replay with its progress by partition and its history.

    Ends with 1 when the replay has failed.

    Example: python -m hubledger replay show 6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11
    """
    return shown(at, at.app.get(f"replays/{segment(job_id)}"))


def shown(at: At, found: AppAnswer) -> int:
    """Print a replay; return 1 when it failed."""
    value, out = found.value, at.out
    if out.as_json:
        out.json(found.text)
    else:
        out.show(out.facts(_facts(out, value)), _partitions_table(out, value), *history(out, value["history"]))
        out.say(*(f"left out: partition {one['partition_id']}, {one['why']}" for one in value["left_out"]))
    return UNHEALTHY if value["status"] == "failed" else GOOD


def _facts(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    counts = value["counts"]
    return {
        "replay": value["job_id"],
        "kind": "dry run: nothing was changed" if value["dry_run"] else "for real",
        "status": toned(value["status"]),
        "done": f"{text_of(value['done'])} of {text_of(value['total'])} events",
        **{name.replace("_", " "): counts[name] for name in (_CHANGES if value["dry_run"] else _REAL)},
        "transform": value["transform_version"],
        "reason": value["reason"],
        "requested": f"{out.ago(value['requested_at'])} by {value['requested_by']}",
        **times(out, value),
        "fault": value["fault"],
    }


def _partitions_table(out: Output, value: Mapping[str, Any]) -> RenderableType:
    columns = (
        Column("partition"), Column("first", number=True), Column("last", number=True), Column("next", number=True),
        Column("events", number=True), Column("closed", wide=True), Column("note", wide=True, optional=True),
    )  # fmt: skip
    rows = [
        [
            one["partition_id"], one["first"], one["last"], one["next"], one["counts"]["events"],
            one["closed_at"] and out.when(one["closed_at"]), one["note"],
        ]
        for one in value["partitions"]
    ]  # fmt: skip
    return out.table(columns, rows)


def diff(
    at: At,
    job_id: JobId,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Events of a page.")] = PAGE,
    everything: Everything = False,
) -> None:
    """Show the rows that a dry run would change. It reveals events, and the app logs who saw them.

    Example: python -m hubledger replay diff 6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11 --all
    """
    _show_diff(at, job_id, limit, everything)


def _show_diff(at: At, job_id: str, limit: int, everything: bool) -> None:
    rows: list[list[object]] = []
    following = None
    for page in at.app.pages(f"replays/{segment(job_id)}/diff", {"limit": limit}, everything):
        if at.out.as_json:
            at.out.json(page.text)
        rows += [row for event in page.value["events"] for row in _diff_rows(event)]
        following = page.value["next"]
    if not at.out.as_json:
        columns = (
            Column("partition"),
            Column("number", number=True),
            Column("change"),
            Column("table"),
            Column("row"),
        )
        at.out.show(Group(at.out.table(columns, rows, "rows that would change")))
    if following:
        at.out.say(f"There are more: {program()} replay diff {job_id} --all")


def _diff_rows(event: Mapping[str, Any]) -> list[list[object]]:
    head: list[object] = [event["partition_id"], event["sequence_number"]]
    rows = [[*head, "added", one["table"], brief(one["row"])] for one in event["added"]]
    rows += [[*head, "removed", one["table"], brief(one["row"])] for one in event["removed"]]
    for one in event["changed"]:
        columns = ", ".join(f"{name}: {brief(old)} → {brief(new)}" for name, (old, new) in one["columns"].items())
        rows.append([*head, "changed", one["table"], columns])
    if event["outcome"] != "written":
        why = f": {event['error']}" if event["error"] else ""
        rows.append([*head, toned(event["outcome"]), None, f"the event becomes {event['outcome']}{why}"])
    return rows


def pause(at: At, job_id: JobId, reason: Why) -> int:
    """Pause a replay between two pieces.

    Example: python -m hubledger replay pause 6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11 --reason "the database is slow"
    """
    return _move(at, job_id, "pause", reason)


def resume(at: At, job_id: JobId, reason: Why) -> int:
    """Resume a paused replay.

    Example: python -m hubledger replay resume 6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11 --reason "it is fast again"
    """
    return _move(at, job_id, "resume", reason)


def cancel(at: At, job_id: JobId, reason: Why) -> int:
    """Cancel a replay for good; the events that it replayed stay replayed.

    Example: python -m hubledger replay cancel 6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11 --reason "the wrong range"
    """
    return _move(at, job_id, "cancel", reason)


def _move(at: At, job_id: str, move: str, reason: str) -> int:
    at.confirm(f"{move.capitalize()} replay {job_id}?")
    return shown(at, at.app.post(f"replays/{segment(job_id)}/{move}", {"reason": reason}))
