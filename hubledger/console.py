"""What commands print: tables and lines on stdout, one plain line for an error on stderr."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from core.errors import HubledgerError

ROOT = Path(__file__).resolve().parents[1]  # the project
CELL = 80  # characters of a value in a table


class Refused(HubledgerError):
    """A command cannot do what was asked; the message says why and what to do."""


class UsageFault(HubledgerError):
    """A command was called with arguments that it does not take."""


def out() -> Console:
    """Return the console of stdout, as it is now: tests and pipes replace it."""
    return Console(highlight=False, soft_wrap=True)


def say(*lines: str) -> None:
    """Print lines as they are."""
    console = out()
    for line in lines:
        console.print(Text(line))


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table. Long values are cut, and values fold into a narrow terminal."""
    table = Table(title=Text(title), title_justify="left", title_style="bold", header_style="bold")
    for name in columns:
        table.add_column(Text(name), overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(value)) for value in row))
    Console(highlight=False).print(table)


def shown(value: object) -> str:
    """Return a value as a table shows it: one line of letters that can be printed."""
    text = "" if value is None else str(value)
    text = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"


def progress() -> Progress:
    """Return a bar of bytes on stderr, which shows itself on a terminal only."""
    console = Console(stderr=True)
    bar = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*bar, console=console, transient=True, disable=not console.is_terminal)
