"""Every command of an operator, by its group."""

import inspect

import typer

from hubledger.cli.operate import (
    doctor,
    erasures,
    ledger,
    letter_moves,
    letters,
    replays,
    retention,
    runs,
    status,
    streams,
    tasks,
    use,
)
from hubledger.cli.operate.command import Work, add_command

CHANGING = True
_Group = tuple[str, dict[str, tuple[Work, bool]]]
SINGLE: dict[str, Work] = {
    "status": status.status,
    "health": status.health,
    "doctor": doctor.doctor,
    "open": doctor.open_page,
    "logs": doctor.logs,
}
GROUPS: dict[str, _Group] = {
    "letters": (
        "Look at dead letters, retry and discard them.",
        {
            "list": (letters.list_letters, False),
            "causes": (letters.causes, False),
            "show": (letters.show_letter, False),
            "retry": (letter_moves.retry, CHANGING),
            "discard": (letter_moves.discard, CHANGING),
        },
    ),
    "tasks": (
        "What takes longer than one request, such as a replay or an audit.",
        {
            "list": (tasks.list_tasks, False),
            "show": (tasks.show_task, False),
            "diff": (replays.diff, False),
            "pause": (tasks.pause_task, CHANGING),
            "resume": (tasks.resume_task, CHANGING),
            "cancel": (tasks.cancel_task, CHANGING),
        },
    ),
    "replay": (
        "Replay events that are committed: a dry run by default.",
        {"start": (replays.start, CHANGING)},
    ),
    "ledger": (
        "Where a number went, and whether the ledger has faults.",
        {"explain": (ledger.explain, False), "find": (ledger.find, False), "audit": (ledger.audit, False)},
    ),
    "streams": (
        "The stream of the hub, and its next incarnation.",
        {"show": (streams.show_stream, False), "next-incarnation": (streams.next_incarnation, CHANGING)},
    ),
    "runs": (
        "The runs of the aggregation.",
        {
            "list": (runs.list_runs, False),
            "show": (runs.show_run, False),
            "step": (runs.step_runs, CHANGING),
            "pause": (runs.pause_runs, CHANGING),
            "resume": (runs.resume_runs, CHANGING),
            "repair": (runs.repair_runs, CHANGING),
            "backfill": (runs.backfill_runs, CHANGING),
            "withdraw": (runs.withdraw_runs, CHANGING),
            "cancel": (runs.cancel_run, CHANGING),
            "discard": (runs.discard_run, CHANGING),
        },
    ),
    "erase": (
        "Forget persons or things: a dry run by default.",
        {"start": (erasures.start_erasure, CHANGING)},
    ),
    "purge": (
        "Remove old rows of the store: a dry run by default.",
        {"start": (retention.start_purge, CHANGING)},
    ),
}


def _print_commands(context: typer.Context) -> None:
    """Print the commands of a group that is called alone."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def add_operating_commands(app: typer.Typer) -> None:
    """Add every command to the app of the command line."""
    help, _, example = (inspect.getdoc(use.use) or "").rpartition("\n\n")
    app.command("use", help=help, epilog=example)(use.use)
    for name, work in SINGLE.items():
        add_command(app, name, work)
    for name, (help, commands) in GROUPS.items():
        group = typer.Typer(help=help, rich_markup_mode=None, invoke_without_command=True)
        group.callback()(_print_commands)
        for each, (work, changes) in commands.items():
            add_command(group, each, work, changes)
        app.add_typer(group, name=name)
