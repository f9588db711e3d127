"""`purge`: remove old rows of the store."""

from typing import Annotated

import typer

from hubledger.cli.operate.command import At, Why
from hubledger.cli.operate.tasks import dry_run_first
from hubledger.cli.output import UsageFault

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
