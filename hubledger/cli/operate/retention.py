"""`retention`: how long the hub still holds the events of letters and gaps; `purge`: remove old rows of the store."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from hubledger.cli.console import UsageFault
from hubledger.cli.operate.command import GOOD, UNHEALTHY, At, Why
from hubledger.cli.operate.tasks import dry_run_first
from hubledger.cli.views.output import BAD, WARNING, Column, Output, yes_or_no
from hubledger.cli.views.texts import seconds, text_of

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

    Example: bin/hubledger retention
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

    Example: bin/hubledger purge start --older-than event_hub_dead_letter=180 --reason "half a year of letters"
    """
    order = {"older_than_days": _ages(older_than), "reason": reason}
    return dry_run_first(
        at, "purge", order, lambda _: "Remove these rows for good?", for_real=for_real, no_wait=no_wait
    )


def _ages(given: list[str] | None) -> dict[str, int] | None:
    ages = {}
    for one in given or []:
        table, _, days = one.partition("=")
        if not table or not days.isascii() or not days.isdigit():
            raise UsageFault(f"--older-than {one}: write TABLE=DAYS, such as event_hub_dead_letter=180")
        ages[table] = int(days)
    return ages or None
