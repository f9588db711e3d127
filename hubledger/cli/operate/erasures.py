"""`erase`: forget persons or things, everywhere and for good."""

from typing import Annotated

import typer

from hubledger.cli.console import UsageFault
from hubledger.cli.operate.command import GOOD, At, Why
from hubledger.cli.operate.tasks import finished, shown

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

    Example: python -m hubledger erase start home-7 --reason "request 4711" --for-real
    """
    if for_real and no_wait:
        raise UsageFault("--for-real needs the dry run first, so it has to wait: leave out --no-wait")
    if for_real:
        at.refuse_without_person()
    order = {"subjects": list(dict.fromkeys(subjects)), "reason": reason, "most_rows": most_rows}
    dry = at.app.post("erasures", {**order, "dry_run": True})
    if no_wait:
        return shown(at, dry)
    code = finished(at, dry, "dry run")
    if code == GOOD and for_real:
        at.confirm("Erase these subjects for good?")
        code = finished(at, at.app.post("erasures", {**order, "dry_run": False}), "erasure")
    return code
