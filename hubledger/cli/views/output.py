"""Prints for people and for scripts: tables and lines, or the app's JSON; colour on a terminal only."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from hubledger.cli.console import WIDE
from hubledger.cli.views.texts import NOTHING, brief, instant, lines_of, safe_json, short_instant, text_of

COPIED = ("id", "cause", "run")  # columns of values that a person copies: on one line where the table has the room
GOOD, WARNING, BAD, QUIET = "green", "yellow", "bold red", "dim"
_TONES = {
    GOOD: ("done", "resolved", "written", "filtered", "committed", "verified", "published"),
    WARNING: ("waiting", "retrying", "held", "paused", "planned", "running", "open", "submitted", "cancelled"),
    BAD: ("exhausted", "failed", "stopped", "dead_lettered"),
}
_TONE_OF = {word: tone for tone, words in _TONES.items() for word in words}
_SHOWN = re.compile(r"(?:(?P<name>[^=]*)=)?(?P<path>[\w.]+)(?P<marks>[#~?@*%&!^]*)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. A `wide` one is left out where the columns do not fit, an `optional` one without values."""

    name: str
    number: bool = False
    wide: bool = False
    optional: bool = False


def toned(value: object) -> Text:
    """Return a status in its colour."""
    text = text_of(value)
    return Text(text, style=_TONE_OF.get(text, ""))


def yes_or_no(is_good: object, good: str = "yes", bad: str = "NO") -> Text:
    """Return a claim, in red where it does not hold."""
    return Text(good, style=GOOD) if is_good else Text(bad, style=BAD)


class Output:
    """Where a command prints. Texts of the app reach the terminal only through `cell`, `lines_of` or `safe_json`."""

    def __init__(self, as_json: bool = False, colour: bool = True) -> None:
        self.as_json = as_json
        is_plain = not colour or bool(os.environ.get("NO_COLOR"))
        self._how: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
        if is_plain:
            self._how["color_system"] = None
        is_free = not Console().is_terminal and "COLUMNS" not in os.environ
        self.console = Console(**self._how, width=WIDE if is_free else None)
        self.errors = Console(**self._how, stderr=True)

    @property
    def asks(self) -> bool:
        """True if a person can answer a question."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def now(self) -> datetime:
        """The time from which distances are counted."""
        return datetime.now(UTC)

    def say(self, *lines: str | Text) -> None:
        """Print lines; a script sees none of them."""
        for line in () if self.as_json else lines:
            self.console.print(line if isinstance(line, Text) else Text(lines_of(line)), soft_wrap=True)

    def note(self, *lines: str) -> None:
        """Print lines on stderr."""
        for line in lines:
            self.errors.print(Text(lines_of(line)), soft_wrap=True)

    def show(self, *parts: RenderableType) -> None:
        """Print tables and facts."""
        for part in parts:
            self.console.print(part)

    def json(self, text: str) -> None:
        """Print an answer of the app as it came, on a line of its own."""
        sys.stdout.write(f"{safe_json(text)}\n")
        sys.stdout.flush()

    def ago(self, text: str | None) -> str:
        """Return an instant with its distance from now."""
        return instant(text, self.now)

    def when(self, text: str | None) -> str:
        """Return an instant in short, for a table."""
        return short_instant(text, self.now)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[object]], title: str = "") -> RenderableType:
        """Make a table of the columns that fit."""
        cells = [[cell(value) for value in row] for row in rows]
        widths = _widths(columns, cells)
        kept = _fitting(columns, cells, widths, self.console.width)
        made = Table(
            title=Text(title) if title else None,
            title_justify="left",
            title_style="bold",
            box=SIMPLE_HEAD,
            pad_edge=False,
        )
        for at in kept:
            name, justify = columns[at].name, "right" if columns[at].number else "left"
            is_whole = name in COPIED and widths[at] <= self.console.width // 2
            made.add_column(Text(name), justify=justify, overflow="fold", no_wrap=is_whole)  # type: ignore[arg-type]
        for row in cells:
            made.add_row(*(row[at] for at in kept))
        return made if cells else Group(*([Text(title, style="bold")] if title else []), Text("none", style=QUIET))

    def listing(self, shown: str, values: Iterable[Mapping[str, Any]], title: str = "") -> RenderableType:
        """Make a table of an answer's objects.

        `shown` has a word for each column, `path` or `name=path`. Marks after it: # a number, ~ a wide column, ? an
        optional one, @ an instant, * a status, % a value in one line, & a text of several lines, ! a fault, ^ a claim.
        """
        words = _words(shown)
        columns = [Column(_name(one), *(mark in one["marks"] for mark in "#~?")) for one in words]
        return self.table(columns, [[self._value(each, one, self.when) for one in words] for each in values], title)

    def stated(self, shown: str, value: Mapping[str, Any]) -> dict[str, object]:
        """Return the facts of an answer's object, by words as those of `listing`."""
        return {_name(one): self._value(value, one, self.ago) for one in _words(shown)}

    def _value(self, value: Any, word: re.Match[str], instant_of: Callable[[str], str]) -> object:
        for part in word["path"].split("."):
            value = value and value[part]
        if value is None or value == "":
            return None
        shown: dict[str, Callable[[Any], object]] = {
            "@": instant_of,
            "*": toned,
            "%": brief,
            "&": lambda text: Text(lines_of(str(text))),
            "!": lambda text: Text(text_of(text), style=BAD),
            "^": lambda holds: yes_or_no(holds, "ok", "NOT BALANCED"),
        }
        joined = "; ".join(map(str, value)) if isinstance(value, list) else value
        return next((shown[mark](value) for mark in word["marks"] if mark in shown), joined)

    def facts(self, given: Mapping[str, object]) -> RenderableType:
        """Make a list of names and values; those without a value are left out."""
        made = Table.grid(padding=(0, 2))
        made.add_column(style=QUIET, no_wrap=True)
        made.add_column(overflow="fold")
        for name, value in given.items():
            if value is not None and value != "":
                made.add_row(Text(name), cell(value))
        return made


def _words(shown: str) -> list[re.Match[str]]:
    words = [_SHOWN.fullmatch(word) for word in shown.split(", ")]
    if None in words:
        raise ValueError(f"a word of a list cannot be read: {shown}")
    return [word for word in words if word]


def _name(word: re.Match[str]) -> str:
    return str(word["path"].rpartition(".")[2].replace("_", " ") if word["name"] is None else word["name"])


def cell(value: object) -> Text:
    """Return a value as a cell; a Text of ours keeps its colour."""
    return value if isinstance(value, Text) else Text(text_of(value))


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[Text]]) -> list[int]:
    """Return the width of each column, with the space after it."""
    return [
        3 + max([cell_len(column.name), *(cell_len(row[at].plain) for row in cells)])
        for at, column in enumerate(columns)
    ]


def _fitting(
    columns: Sequence[Column], cells: Sequence[Sequence[Text]], widths: Sequence[int], width: int
) -> list[int]:
    """Return the columns to show: those with a value, without the wide ones, the last first, until the table fits."""
    kept = [at for at, one in enumerate(columns) if not one.optional or any(row[at].plain != NOTHING for row in cells)]
    for at in reversed(range(len(columns))):
        if at in kept and columns[at].wide and sum(widths[each] for each in kept) > width:
            kept.remove(at)
    return kept
