"""`erase`: forget persons or things, everywhere and for good."""

from typing import Annotated

import typer

from hubledger.cli.operate.command import At, Why
from hubledger.cli.operate.tasks import dry_run_first

_Subjects = Annotated[
    list[str],
    typer.Argument(metavar="SUBJECT...", help="Partition keys, or values of the column that the room declares."),
]
_ForReal = Annotated[bool, typer.Option("--for-real", help="After the dry run, erase them; it asks.")]
_MostRows = Annotated[
    int | None, typer.Option("--most-rows", min=0, help="End before more rows are erased. Default: no limit.")
]
_NoWait = Annotated[bool, typer.Option("--no-wait", help="Return when the app has accepted the dry run.")]


def start_erasure(
    at: At,
    subjects: _Subjects,
    reason: Why,
    most_rows: _MostRows = None,
    for_real: _ForReal = False,
    no_wait: _NoWait = False,
) -> int:
    """Forget persons or things: a dry run, which counts what there is of them.

    --for-real asks after the dry run, and erases them; no replay brings them back. Ctrl-C ends the wait, and the
    erasure goes on. The reason is stored, so it must name nobody.

    Example: bin/hubledger erase start home-7 --reason "request 4711" --for-real
    """
    order = {"subjects": list(dict.fromkeys(subjects)), "reason": reason, "most_rows": most_rows}
    return dry_run_first(
        at, "erasure", order, lambda _: "Erase these subjects for good?", for_real=for_real, no_wait=no_wait
    )
