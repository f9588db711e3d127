"""Every command of an operator by its group, and `use`, which names an app once."""

import inspect
import sys
from typing import Annotated

import typer

from hubledger.cli.operate import agents, doctor, ledger, letter_moves, letters, runs, status, streams, tasks
from hubledger.cli.operate.command import Work, add_command, begun
from hubledger.cli.output import UsageFault, say, show_table
from hubledger.cli.remote.connection import Address, Contexts, checked_url, contexts_file, read_contexts, write_contexts

_Name = Annotated[
    str | None, typer.Argument(metavar="NAME", help="The app; without a name, the known ones are listed.")
]
_Url = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="Its address: makes the context, or changes it.")
]
_Scope = Annotated[
    str, typer.Option("--scope", metavar="SCOPE", help="Sign in by Entra ID with this scope, and keep no key.")
]
_FromStdin = Annotated[bool, typer.Option("--key-from-stdin", help="Read the key from the standard input.")]
_Forget = Annotated[bool, typer.Option("--forget", help="Forget the context and its key.")]


def use(
    name: _Name = None,
    url: _Url = None,
    scope: _Scope = "",
    key_from_stdin: _FromStdin = False,
    forget: _Forget = False,
) -> None:
    """Choose the app that the commands talk to, and keep its address and key.

    They are kept in the user's folder of settings, in a file that only the user can read. --url and the settings
    HUBLEDGER_URL, HUBLEDGER_KEY and HUBLEDGER_SCOPE win over it.

    Example: bin/hubledger use prod --url https://NAME.azurewebsites.net
    """
    path = contexts_file()
    found = read_contexts(path)
    if name is None:
        rows = [
            ("*" if one == found.current else "", one, each.url, _signed(each)) for one, each in found.known.items()
        ]
        return show_table("contexts", ("", "name", "address", "sign-in"), rows) if rows else say("no context is known")
    known = dict(found.known)
    name = name if url else begun(name, list(known), "context") or name
    if forget:
        if known.pop(name, None) is None:
            raise UsageFault(f"there is no context {name}")
        write_contexts(path, Contexts(known, "" if found.current == name else found.current))
        return say(f"{name} is forgotten")
    if not url and name not in known:
        others = f", or use {', '.join(known)}" if known else ""
        raise UsageFault(f"there is no context {name}: make it with --url https://NAME.azurewebsites.net{others}")
    if url or scope or key_from_stdin:
        address = checked_url(url, f"--url {url}") if url else known[name].url
        key = ""
        if key_from_stdin and not scope:
            key = sys.stdin.readline().strip()
        elif not scope and sys.stdin.isatty():
            key = str(typer.prompt("Key (empty: none)", default="", hide_input=True, show_default=False)).strip()
        known[name] = Address(address, key, scope)
    write_contexts(path, Contexts(known, name))
    return say(f"using {name}: {known[name].url}, {_signed(known[name])}; kept in {path}")


def _signed(one: Address) -> str:
    return f"scope {one.scope}" if one.scope else "with a key" if one.key else "without a key"


CHANGING = True
_Group = tuple[str, dict[str, tuple[Work, bool]]]
SINGLE: dict[str, Work] = {
    "status": status.status,
    "health": status.health,
    "doctor": doctor.doctor,
    "open": doctor.open_page,
    "logs": doctor.logs,
    "mcp": agents.serve_agents,
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
            "diff": (tasks.diff, False),
            "pause": (tasks.pause_task, CHANGING),
            "resume": (tasks.resume_task, CHANGING),
            "cancel": (tasks.cancel_task, CHANGING),
        },
    ),
    "replay": (
        "Replay events that are committed: a dry run by default.",
        {"start": (tasks.start_replay, CHANGING)},
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
        {"start": (tasks.start_erasure, CHANGING), "forget-key": (tasks.forget_key, CHANGING)},
    ),
    "purge": (
        "Remove old rows of the store: a dry run by default.",
        {"start": (tasks.start_purge, CHANGING)},
    ),
}


def add_operating_commands(app: typer.Typer) -> None:
    """Add every command to the app of the command line."""

    def print_commands(context: typer.Context) -> None:  # of a group that is called alone
        if context.invoked_subcommand is None:
            print(context.get_help())

    help, _, example = (inspect.getdoc(use) or "").rpartition("\n\n")
    app.command("use", help=help, epilog=example)(use)
    for name, work in SINGLE.items():
        add_command(app, name, work)
    for name, (help, commands) in GROUPS.items():
        group = typer.Typer(help=help, rich_markup_mode=None, invoke_without_command=True)
        group.callback()(print_commands)
        for each, (work, changes) in commands.items():
            add_command(group, each, work, changes)
        app.add_typer(group, name=name)
