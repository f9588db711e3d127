"""The commands, put together."""

from collections.abc import Callable

import typer

from core.errors import HubledgerError, InvalidTransform
from hubledger.console import Refused, UsageFault
from hubledger.migrate_diff import migrate_diff
from hubledger.new import new
from hubledger.try_events import try_events
from local.lines import UnusableFile

app = typer.Typer(
    name="python -m hubledger",
    help="Make a room for your own events, keep its tables up to date, and try it without a hub.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("new")(new)
app.command("migrate-diff")(migrate_diff)
app.command("try")(try_events)


@app.callback()
def _commands() -> None:
    """Make a room for your own events, keep its tables up to date, and try it without a hub."""


def run(arguments: list[str], fail: Callable[..., int]) -> int:
    """Run a command; `fail` prints a line and returns the exit code that it is given, or 1."""
    try:
        code = app(arguments, prog_name="python -m hubledger", standalone_mode=False)
    except (typer.TyperException, UsageFault) as fault:
        return fail(fault.format_message() if isinstance(fault, typer.BadParameter) else str(fault), 2)
    except typer.Abort as fault:
        raise KeyboardInterrupt from fault
    except InvalidTransform as fault:
        faults = [*([] if len(fault.faults) == 1 else ["the transform has faults"]), *fault.faults]
        return fail("\n".join(faults))
    except (Refused, UnusableFile, HubledgerError) as fault:
        return fail(str(fault))
    except BrokenPipeError:
        raise
    except OSError as fault:
        return fail(f"{fault.filename}: {fault.strerror}" if fault.filename else str(fault))
    if code == 130:  # Typer's for Ctrl-C
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0
