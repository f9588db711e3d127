"""What commands print: tables and lines on stdout, one plain line for an error on stderr."""

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

ROOT = Path(__file__).resolve().parents[2]  # the project
CELL = 80  # characters of a value in a table
WIDE = 160  # characters of a line of a table in a file


class Refused(Exception):
    """A command cannot do what was asked; the message says why and what to do."""


class UsageFault(Exception):
    """A command was called with arguments that it does not take."""


def out() -> Console:
    """Return the console of stdout, as it is now: tests and pipes replace it."""
    return Console(highlight=False, soft_wrap=True)


def say(*lines: str) -> None:
    """Print lines as they are."""
    console = out()
    for line in lines:
        console.print(Text(line))


def say_faults(*lines: str) -> None:
    """Print lines on stderr as they are."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text(line))


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table. Where its columns do not fit, each row is its first value, and the others with their names."""
    console = _wide()
    cells = [[shown(value) for value in row] for row in rows]
    if len(columns) > 4 and _width(columns, cells) > console.width:
        named = [", ".join(f"{name}={cell}" for name, cell in zip(columns[1:], row[1:], strict=True)) for row in cells]
        columns, cells = (columns[0], "row"), [[row[0], text] for row, text in zip(cells, named, strict=True)]
    table = Table(title=Text(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(Text(name), overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


def _width(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    return sum(3 + max(map(cell_len, column)) for column in zip(columns, *cells, strict=True))


def _wide() -> Console:
    """Return the console of stdout, which is wide where no terminal and no setting limits it."""
    is_free = not Console().is_terminal and "COLUMNS" not in os.environ
    return Console(highlight=False, width=WIDE if is_free else None)


def shown(value: object) -> str:
    """Return a value as a table shows it: one line of letters that can be printed."""
    text = printable("" if value is None else str(value))
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"


def program() -> str:
    """Return how a shell in this folder calls the command line: by its name on the PATH, or by the path of its file."""
    ours, near = ROOT / "bin" / "hubledger", Path("bin/hubledger")
    if Path(shutil.which("hubledger") or "").resolve() == ours:
        return "hubledger"
    return str(near if near.is_file() and near.samefile(ours) else ours)


def printable(text: str) -> str:
    """Return a text in which each character that could steer a terminal is written as its escape."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def progress() -> Progress:
    """Return a bar of bytes on stderr, which shows itself on a terminal only."""
    console = Console(stderr=True)
    bar = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*bar, console=console, transient=True, disable=not console.is_terminal)
