"""The commands, put together. The commands for rooms need more packages, so each is imported when it is called."""

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup
from typer.main import get_command

from core.errors import HubledgerError, InvalidTransform
from core.model.release import VERSION
from hubledger.cli.operate.command import Url
from hubledger.cli.operate.commands import add_operating_commands
from hubledger.cli.output import Refused, UsageFault, fitted, given_url, joined, say
from hubledger.cli.remote.client import Interrupted
from local.feed.event_file import UnusableFile

HELP = "Operate an app over its HTTP API, and make rooms for your own events."
ROOM_COMMANDS = {  # the module and the function of a command, and its help among all commands
    "new": ("hubledger.cli.new", "new", "Write a room for events of your own."),
    "migrate-diff": ("hubledger.cli.migrate_diff", "migrate_diff", "Write the next migration of a room."),
    "try": ("hubledger.cli.try_events", "try_events", "Try a transform on a file of events."),
}


class Commands(TyperGroup):
    """All commands. Commands for rooms are only names until one is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name, imported."""
        name, found, rest = super().resolve_command(ctx, args)
        if name in ROOM_COMMANDS:
            module, function, _ = ROOM_COMMANDS[name]
            own = typer.Typer(add_completion=False, rich_markup_mode=None)
            own.command(name)(getattr(import_module(module), function))
            found = get_command(own)
        return name, found, rest


_HELP_NAMES = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    help=HELP, cls=Commands, rich_markup_mode=None, pretty_exceptions_enable=False, context_settings=_HELP_NAMES
)
add_operating_commands(app)
for _name, (_, _, _help) in ROOM_COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"hubledger {VERSION}")
        raise typer.Exit


_Version = Annotated[
    bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version, and end.")
]


@app.callback()
def _commands(context: typer.Context, url: Url = None, version: _Version = False) -> None:
    """Take the address before the command too."""
    context.obj = url
    given_url.set(url or "")


_command = get_command(app)  # built once: that takes longer than most calls


def run(arguments: list[str], fail: Callable[..., int]) -> int:
    """Run a command. `fail` prints a line and returns the exit code that it is given, or 1."""
    try:
        code = _command(joined(arguments), prog_name="hubledger", standalone_mode=False)
    except UsageFault as fault:
        return fail(_lines(str(fault)), 2)
    except typer.TyperException as fault:
        wrong: list[Any] = getattr(fault.__cause__, "errors", list)()  # of pydantic, which Typer checks values with
        said = fault.format_message().replace(": Value error, ", ": ").rstrip(".")
        given = f", not {wrong[0]['input']!r}" if wrong and repr(wrong[0]["input"]) not in said else ""
        return fail(_lines(f"{said}{given}"), 2)
    except typer.Abort as fault:
        raise KeyboardInterrupt from fault
    except Interrupted as stopped:
        return fail(str(stopped), 130) if str(stopped) else 130
    except InvalidTransform as fault:
        faults = [*([] if len(fault.faults) == 1 else ["the transform has faults"]), *fault.faults]
        return fail("\n".join(faults))
    except (Refused, UnusableFile, HubledgerError) as fault:
        return fail(_lines(str(fault)))
    except BrokenPipeError:
        raise
    except OSError as fault:
        return fail(f"{fault.filename}: {fault.strerror}" if fault.filename else str(fault))
    if code == 130:  # Typer's for Ctrl-C
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _lines(text: str) -> str:
    """Return a text of the app or of a person as a terminal shows it, without the characters that steer it."""
    return fitted(f"{_NAME}{text}", Console(stderr=True))[len(_NAME) :]


_NAME = "hubledger: "
