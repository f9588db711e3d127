"""`replay`: start a dry run or a real replay; and the rows that one would change."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Group

from hubledger.cli.operate.command import At, Everything, Why
from hubledger.cli.operate.letters import number_of, segment
from hubledger.cli.operate.tasks import dry_run_first
from hubledger.cli.output import WRITTEN, Column, brief, counted, moment, program, toned

TaskId = Annotated[str, typer.Argument(metavar="ID")]
PAGE = 20  # events of a diff that `start` shows
_Partitions = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="ID", help="A partition; give it once for each. Default: all."),
]
_PLACE = f"a sequence number, or a time: {WRITTEN}"
_From = Annotated[str | None, typer.Option("--from", metavar="PLACE", help=f"The first event: {_PLACE}.")]
_To = Annotated[
    str | None, typer.Option("--to", metavar="PLACE", help=f"The last number, or the time at which it ends: {_PLACE}.")
]
_Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--key", metavar="KEY", help="Only events of this partition key; give it once for each. Default: all."
    ),
]
_ForReal = Annotated[bool, typer.Option("--for-real", help="After the dry run, replay for real; it asks.")]
_NoWait = Annotated[bool, typer.Option("--no-wait", help="Return when the app has accepted the dry run.")]


def start(
    at: At,
    reason: Why,
    partitions: _Partitions = None,
    first: _From = None,
    to: _To = None,
    keys: _Keys = None,
    for_real: _ForReal = False,
    no_wait: _NoWait = False,
) -> int:
    """Start a replay: a dry run, which shows the rows that would change.

    --for-real asks after the dry run, and replays. Ctrl-C ends the wait, and the replay goes on.

    Example: bin/hubledger replay start --partition 3 --from 40 --to 90 --reason "version 2 corrects the unit"
    """
    wish = {"partitions": partitions or None, "from": _place(first), "to": _place(to), "reason": reason}
    if keys:
        wish["keys"] = keys

    def asked(found: Mapping[str, Any]) -> str:
        if found["counts"]["events_changed"]:
            _show_diff(at, found["task_id"], PAGE, False)
            if found["status"] == "done" and not for_real:
                at.out.say("Nothing was changed yet: the same command with --for-real replays.")
        return f"Replay {counted(found['counts']['events'] if keys else found['total'], 'event')} for real?"

    return dry_run_first(at, "replay", wish, asked, for_real=for_real, no_wait=no_wait)


def _place(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    if number := number_of(text):
        return {"sequence_number": number}
    return {"enqueued_at": str(moment(text))}


def diff(
    at: At,
    task_id: TaskId,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Events of a page.")] = PAGE,
    everything: Everything = False,
) -> None:
    """Show the rows that a dry run would change. It reveals events, and the app logs who saw them.

    Example: bin/hubledger tasks diff 6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11 --all
    """
    _show_diff(at, task_id, limit, everything)


def _show_diff(at: At, task_id: str, limit: int, everything: bool) -> None:
    events, following = at.listed(f"tasks/{segment(task_id)}/diff", "events", {"limit": limit}, everything)
    if not at.out.as_json:
        columns = (
            Column("partition"),
            Column("number", number=True),
            Column("change"),
            Column("table"),
            Column("row"),
        )
        rows = [row for event in events for row in _diff_rows(event)]
        at.out.show(Group(at.out.table(columns, rows, "rows that would change")))
    if following:
        at.out.say(f"There are more: {program()} tasks diff {task_id} --all")


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
