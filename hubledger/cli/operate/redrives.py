"""The letters that a redrive moved: a command of `tasks`."""

from typing import Annotated

import typer

from hubledger.cli.operate.command import At, Everything
from hubledger.cli.operate.letters import segment
from hubledger.cli.views.output import Column, toned

TaskId = Annotated[str, typer.Argument(metavar="ID")]


def list_moved(
    at: At,
    task_id: TaskId,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Letters of a page.")] = 100,
    everything: Everything = False,
) -> None:
    """List the letters that a redrive has moved, with their status now.

    Example: bin/hubledger tasks letters 0d9f7a52-8c1e-4d53-9a4b-2f1f3c5a7e10 --all
    """
    rows, _ = at.listed(f"tasks/{segment(task_id)}/letters", "letters", {"limit": limit}, everything)
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
