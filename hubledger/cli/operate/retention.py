"""`retention`: how long the hub still holds the events of letters and gaps; `purge`: remove old rows of the store."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from hubledger.cli.console import UsageFault, program
from hubledger.cli.operate.command import GOOD, UNHEALTHY, At, Everything, Why
from hubledger.cli.operate.letters import segment
from hubledger.cli.operate.redrives import times
from hubledger.cli.remote.client import AppAnswer
from hubledger.cli.views.output import BAD, WARNING, Column, Output, toned, yes_or_no
from hubledger.cli.views.texts import brief, seconds, text_of
from hubledger.cli.views.waiting import Job, wait_for

PurgeId = Annotated[str, typer.Argument(metavar="ID")]
_Older = Annotated[
    list[str] | None,
    typer.Option(
        "--older-than",
        metavar="TABLE=DAYS",
        help="The age of a table's rows; give it once for each. Default: docs/retention.md.",
    ),
]
_ForReal = Annotated[bool, typer.Option("--for-real", help="After the dry run, remove the rows; it asks.")]
_NoWait = Annotated[bool, typer.Option("--no-wait", help="Return when the app has accepted the dry run.")]


def retention(at: At) -> int:
    """Show how long the hub still holds the events of open letters and gaps.

    Ends with 1 when the hub no longer holds an event that is stored nowhere else, or will remove one within an hour.

    Example: python -m hubledger retention
    """
    found = at.app.get("retention")
    value, out = found.value, at.out
    if out.as_json:
        out.json(found.text)
    else:
        named = {"letters": "letters", "without a body": "letters_without_body", "gaps": "gaps"}
        rows = [[name, *_burned(out, value[field])] for name, field in named.items()]
        hours = [Column(f"in {one['hours']} h", number=True) for one in value["letters"]["within"]]
        columns = (
            Column(""),
            Column("open", number=True),
            Column("gone", number=True),
            *hours,
            Column("first lost", wide=True, optional=True),
        )
        out.show(out.facts(_facts(value)), out.table(columns, rows, "events that the hub loses"))
        out.show(out.table(_PARTITIONS, [_partition(out, one) for one in value["partitions"]]))
    return UNHEALTHY if _is_urgent(value) else GOOD


_PARTITIONS = (
    Column("partition"), Column("letters", number=True), Column("gaps", number=True), Column("left", number=True),
    Column("first lost", wide=True, optional=True),
)  # fmt: skip


def _facts(value: Mapping[str, Any]) -> dict[str, object]:
    held = value["hub_retention_hours"]
    return {
        "the hub holds events": "unknown" if held is None else seconds(held * 3600),
        "all letters have their bodies": yes_or_no(value["bodies_kept"], "yes", "no"),
        "hub fault": value["hub_fault"] and Text(text_of(value["hub_fault"]), style=WARNING),
    }


def _burned(out: Output, one: Mapping[str, Any]) -> list[object]:
    gone = Text(text_of(one["gone"]), style=BAD if one["gone"] else "")
    within = [Text(text_of(each["count"]), style=WARNING if each["count"] else "") for each in one["within"]]
    return [one["open"], gone, *within, one["first_lost_at"] and out.when(one["first_lost_at"])]


def _partition(out: Output, one: Mapping[str, Any]) -> list[object]:
    left = None if one["hours_left"] is None else seconds(max(0.0, one["hours_left"] * 3600))
    return [
        one["partition_id"],
        one["letters"],
        one["gaps"],
        left,
        one["first_lost_at"] and out.when(one["first_lost_at"]),
    ]


def _is_urgent(value: Mapping[str, Any]) -> bool:
    """Return whether events are lost, or will be within the hour: those of gaps, and of letters without a body."""
    watched = (value["gaps"], value["letters_without_body"])
    return any(one["gone"] or any(each["count"] for each in one["within"] if each["hours"] <= 1) for one in watched)


def start_purge(
    at: At, reason: Why, older_than: _Older = None, for_real: _ForReal = False, no_wait: _NoWait = False
) -> int:
    """Remove old rows of the store: a dry run, which counts them.

    --for-real asks after the dry run, and removes them. Ctrl-C ends the wait, and the purge goes on.

    Example: python -m hubledger purge start --older-than event_hub_dead_letter=180 --reason "half a year of letters"
    """
    if for_real and no_wait:
        raise UsageFault("--for-real needs the dry run first, so it has to wait: leave out --no-wait")
    if for_real:
        at.refuse_without_person()
    order = {"older_than_days": _ages(older_than), "reason": reason}
    dry = at.app.post("purges", {**order, "dry_run": True})
    if no_wait:
        return shown(at, dry)
    code = _finished(at, dry, "dry run")
    if code == GOOD and for_real:
        at.confirm("Remove these rows for good?")
        code = _finished(at, at.app.post("purges", {**order, "dry_run": False}), "purge")
    return code


def _ages(given: list[str] | None) -> dict[str, int] | None:
    ages = {}
    for one in given or []:
        table, _, days = one.partition("=")
        if not table or not days.isascii() or not days.isdigit():
            raise UsageFault(f"--older-than {one}: write TABLE=DAYS, such as event_hub_dead_letter=180")
        ages[table] = int(days)
    return ages or None


def _finished(at: At, accepted: AppAnswer, name: str) -> int:
    purge_id = accepted.value["purge_id"]
    at.out.say(f"{name} {purge_id}")
    left = f"To stop it: {program()} purge cancel {purge_id} --reason WHY"
    path = f"purges/{segment(purge_id)}"
    found = wait_for(Job(name, lambda: at.app.get(path), "rows", left=left), at.out)
    shown(at, found)
    return GOOD if found.value["status"] == "done" else UNHEALTHY


def list_purges(
    at: At,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Purges of a page.")] = 20,
    everything: Everything = False,
) -> None:
    """List purges, the newest first.

    Example: python -m hubledger purge list
    """
    rows: list[Mapping[str, Any]] = []
    for page in at.app.pages("purges", {"limit": limit}, everything):
        if at.out.as_json:
            at.out.json(page.text)
        rows += page.value["purges"]
    columns = (
        Column("id"),
        Column("kind"),
        Column("status"),
        Column("requested"),
        Column("by", wide=True),
        Column("reason", wide=True),
    )
    if not at.out.as_json:
        at.out.show(at.out.table(columns, [_row(at.out, one) for one in rows]))


def _row(out: Output, one: Mapping[str, Any]) -> list[object]:
    kind = "dry run" if one["dry_run"] else "real"
    return [
        one["purge_id"],
        kind,
        toned(one["status"]),
        out.when(one["requested_at"]),
        one["requested_by"],
        one["reason"],
    ]


def show_purge(at: At, purge_id: PurgeId) -> int:
    """Show one purge with the rows of each table.

    Ends with 1 when the purge has failed.

    Example: python -m hubledger purge show 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10
    """
    return shown(at, at.app.get(f"purges/{segment(purge_id)}"))


def cancel_purge(at: At, purge_id: PurgeId, reason: Why) -> int:
    """Cancel a purge; the rows that it removed stay removed.

    Example: python -m hubledger purge cancel 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10 --reason "wait for the audit"
    """
    at.confirm(f"Cancel purge {purge_id}?")
    return shown(at, at.app.post(f"purges/{segment(purge_id)}/cancel", {"reason": reason}))


def shown(at: At, found: AppAnswer) -> int:
    """Print a purge; return 1 when it failed."""
    value, out = found.value, at.out
    if out.as_json:
        out.json(found.text)
    else:
        columns = (
            Column("table"), Column("rows", number=True), Column("octets", number=True, wide=True),
            Column("oldest", wide=True),            Column("newest", wide=True),
            Column("what stays", wide=True, optional=True),
        )  # fmt: skip
        out.show(out.facts(_purge(out, value)), out.table(columns, [_table(out, one) for one in value["tables"]]))
    return UNHEALTHY if value["status"] == "failed" else GOOD


def _purge(out: Output, value: Mapping[str, Any]) -> dict[str, object]:
    return {
        "purge": value["purge_id"],
        "kind": "dry run: nothing was removed" if value["dry_run"] else "for real",
        "status": toned(value["status"]),
        "rows": value["rows"],
        "tables left": value["left"],
        "ages in days": brief(value["older_than_days"]),
        "reason": value["reason"],
        "requested": f"{out.ago(value['requested_at'])} by {value['requested_by']}",
        **times(out, value),
        "fault": value["fault"],
    }


def _table(out: Output, one: Mapping[str, Any]) -> list[object]:
    return [
        one["table"],
        one["rows"],
        one["bytes"],
        out.when(one["oldest"]),
        out.when(one["newest"]),
        "; ".join(one["notes"]),
    ]
