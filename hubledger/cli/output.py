"""The output of commands: tables, lines and JSON on stdout, faults on stderr, and times as a person writes them."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from textwrap import wrap
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

ROOT = Path(__file__).resolve().parents[2]  # the project
CELL = 80  # characters of a value in a table
WIDE = 160  # characters of a line of a table in a file


class Refused(Exception):
    """A command cannot do its work. The message says why and what to do."""


class UsageFault(Exception):
    """A command was called with arguments that it does not take."""


def say(*lines: str) -> None:
    """Print lines as they are."""
    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text(line))


def say_faults(*lines: str) -> None:
    """Print lines on stderr as they are."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text(line))


def width_of() -> int | None:
    """Return the width of stdout, which is wide where no terminal and no setting limits it."""
    return WIDE if not Console().is_terminal and "COLUMNS" not in os.environ else None


def fitted(text: str, console: Console) -> str:
    """Return a text whose lines fit the terminal, broken between words. A command at the end of a line gets a line of
    its own that is never broken, so that it can be pasted.
    """
    lines, has_end = list[str](), console.is_terminal or (not console.stderr and "COLUMNS" in os.environ)
    for line in lines_of(text).split("\n"):
        said, name, rest = line.partition(f"{program()} ")
        if not has_end or cell_len(line) <= console.width:
            lines.append(line)
            continue
        to_paste = [name + rest] if name and (said.endswith(": ") or not said.strip()) else []
        words = said if to_paste else line
        lines += wrap(words, console.width, break_long_words=False, break_on_hyphens=False) + to_paste
    return "\n".join(lines)


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table. Where its columns do not fit, each row is its first value, and the others with their names."""
    console = Console(highlight=False, width=width_of())
    cells = [[shown(value) for value in row] for row in rows]
    width = sum(3 + max(map(cell_len, column)) for column in zip(columns, *cells, strict=True))
    if len(columns) > 4 and width > console.width:
        named = [", ".join(f"{name}={cell}" for name, cell in zip(columns[1:], row[1:], strict=True)) for row in cells]
        columns, cells = (columns[0], "row"), [[row[0], text] for row, text in zip(cells, named, strict=True)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(Text(name), overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(titled(title, table))


def titled(title: str, table: RenderableType) -> RenderableType:
    """Return a table with its title above it. The title may be wider."""
    return Group(Text(title, style="bold"), table) if title else table


def shown(value: object) -> str:
    """Return a value as a table shows it: one line of letters that can be printed."""
    text = printable("" if value is None else str(value))
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"


given_url = ContextVar("given_url", default="")  # of the option --url of this call


def program() -> str:
    """Return how a shell in this folder calls the command line for the same app: by its name on the PATH, or by the
    path of its file, with the --url of this call.
    """
    named, url = _named(), given_url.get()
    return f"{named} --url {shlex.quote(url)}" if url else named


def _named() -> str:
    ours, near = ROOT / "bin" / "hubledger", Path("bin/hubledger")
    if Path(shutil.which("hubledger") or "").resolve() == ours:
        return "hubledger"
    return shlex.quote(str(near if near.is_file() and near.samefile(ours) else ours))


def printable(text: str) -> str:
    """Return a text in which each character that could steer a terminal is written as its escape."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def progress() -> Progress:
    """Return a bar of bytes on stderr, which shows itself on a terminal only."""
    console = Console(stderr=True)
    bar = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*bar, console=console, transient=True, disable=not console.is_terminal)


NOTHING = "-"
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
# Characters that JSON lets through and that a terminal obeys or reorders: C1 controls, bidirectional marks, separators.
_STEERING = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def text_of(value: object) -> str:
    """Return a value as text of one line. Numbers have separators, and no value is a dash."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return printable(f"{value:,.1f}" if isinstance(value, float) else str(value))


def lines_of(text: str) -> str:
    """Return a text of several lines, each of which can be printed."""
    return "\n".join(map(printable, text.replace("\t", "    ").splitlines()))


def span(given: timedelta, units: int = 2) -> str:
    """Return a time in its largest units: 3 min, 2 h 5 min."""
    left = int(abs(given).total_seconds())
    parts: list[str] = []
    for unit, seconds in _UNITS:
        if left >= seconds and len(parts) < units:
            parts.append(f"{left // seconds:,} {unit}")
            left %= seconds
        elif parts:
            break
    return " ".join(parts) or "0 s"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 letter, 1,200 letters."""
    return f"{count:,} {noun if count == 1 else f'{noun}s'}"


def place_of(one: Mapping[str, Any]) -> str:
    """Return the position of an event as the page shows it: 15 / 1,111."""
    number = str(one["sequence_number"])
    return f"{one['partition_id']} / {int(number):,}" if re.fullmatch("[0-9]+", number) else str(number)


def seconds(given: float | None) -> str:
    """Return a number of seconds as a time."""
    return NOTHING if given is None else span(timedelta(seconds=given))


def instant(text: str | None, now: datetime) -> str:
    """Return an instant in UTC, with its distance from now: 2026-11-23 11:40:05Z, 3 min 20 s ago."""
    at = read_instant(text)
    if at is None:
        return NOTHING if text is None else printable(str(text))
    return f"{at:%Y-%m-%d %H:%M:%S}Z, {_distance(at, now)}"


def short_instant(text: str | None, now: datetime) -> str:
    """Return the same in short, without the date of today: 11:40:05Z, 3 min ago."""
    at = read_instant(text)
    if at is None or at.date() != now.date():
        return instant(text, now)
    return f"{at:%H:%M:%S}Z, {_distance(at, now, 1)}"


def _distance(at: datetime, now: datetime, units: int = 2) -> str:
    if abs(at - now) < timedelta(seconds=1):
        return "now"
    return f"in {span(at - now, units)}" if at > now else f"{span(now - at, units)} ago"


def read_instant(text: object) -> datetime | None:
    """Read an instant of an answer, if there is one."""
    try:
        at = datetime.fromisoformat(str(text))
        return at.astimezone(UTC) if at.tzinfo else None
    except (ValueError, OverflowError):
        return None


def brief(value: Any, most: int = 12) -> str:
    """Return a value of JSON in one line, cut."""
    if isinstance(value, dict):
        shown = ", ".join(f"{name}={brief(one)}" for name, one in list(value.items())[:most])
        return printable(shown)
    return cut(str(value) if isinstance(value, list) else value, CELL)


def cut(value: object, most: int = WIDE) -> str:
    """Return a text in one line, cut."""
    text = text_of(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def safe_json(text: str) -> str:
    """Return the same JSON, with the characters that steer a terminal written as their escapes."""

    def escaped(found: re.Match[str]) -> str:
        units = found[0].encode("utf-16-be")
        return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

    return _STEERING.sub(escaped, text.replace("\r", ""))


WRITTEN = "2026-11-23T03:00:00Z, now, today, yesterday, -30m, -2h or -3d"
AGO = re.compile(r"-(\d{1,6})([smhdw])")
_UNIT_OF = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def day(text: str | None, now: datetime | None = None) -> str | None:
    """Return a day in UTC, also of a time that is written as those of `moment`."""
    if text is None:
        return None
    with suppress(ValueError):
        return date.fromisoformat(text).isoformat()
    try:
        return str(moment(text, now, UTC)).partition("T")[0]
    except UsageFault as fault:
        raise UsageFault(f"{fault}, or a day: 2026-11-23") from None


def moment(text: str | None, now: datetime | None = None, zone: tzinfo | None = None) -> str | None:
    """Return a time as an instant in UTC, and say on stderr which one a word or a distance is. A day begins at midnight
    in the zone, by default that of this machine. UsageFault says what to write."""
    if text is None:
        return None
    here = (now or datetime.now(UTC)).astimezone(zone)
    midnight = here.replace(hour=0, minute=0, second=0, microsecond=0)
    words = {"now": here, "today": midnight, "yesterday": midnight - timedelta(days=1)}
    relative = words.get(text)
    if given := AGO.fullmatch(text):
        with suppress(OverflowError):
            relative = here - timedelta(**{_UNIT_OF[given[2]]: int(given[1])})
    found = relative or read_instant(text)
    if found is None:
        raise UsageFault(f"{text}: write {WRITTEN}")
    instant = found.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if relative:
        say_faults(f"{text} is {instant}")
    return instant


def joined(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with `--from -2h` as `--from=-2h`: alone, it would look like an option."""
    found: list[str] = []
    for one in arguments:
        if AGO.fullmatch(one) and found and found[-1].startswith("--") and "=" not in found[-1]:
            found[-1] += f"={one}"
        else:
            found.append(one)
    return found


COPIED = ("id", "cause", "run")  # columns of values that a person copies: on one line where the table has the room
GREEN, WARNING, BAD, QUIET = "green", "yellow", "bold red", "dim"
_TONES = {
    GREEN: ("done", "resolved", "written", "filtered", "committed", "verified", "published"),
    WARNING: ("waiting", "retrying", "held", "paused", "planned", "running", "open", "submitted", "cancelled"),
    BAD: ("exhausted", "failed", "stopped", "dead_lettered"),
}
_TONE_OF = {word: tone for tone, words in _TONES.items() for word in words}
_SHOWN = re.compile(r"(?:(?P<name>[^=]*)=)?(?P<path>[\w.]+)(?P<marks>[#~?+@*%&!^]*)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. A `wide` one is left out where the columns do not fit, an `optional` one without values. A
    `roomy` one has the room that the others leave, which are then on one line.
    """

    name: str
    number: bool = False
    wide: bool = False
    optional: bool = False
    roomy: bool = False


def toned(value: object) -> Text:
    """Return a status in its colour."""
    text = text_of(value)
    return Text(text, style=_TONE_OF.get(text, ""))


def yes_or_no(is_good: object, good: str = "yes", bad: str = "NO") -> Text:
    """Return a claim, in red where it does not hold."""
    return Text(good, style=GREEN) if is_good else Text(bad, style=BAD)


class Output:
    """The output of a command. Texts of the app reach the terminal only through `cell`, `lines_of` or `safe_json`."""

    def __init__(self, as_json: bool = False, colour: bool = True) -> None:
        self.as_json = as_json
        how: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
        if not colour or os.environ.get("NO_COLOR"):
            how["color_system"] = None
        self.console = Console(**how, width=width_of())
        self.errors = Console(**how, stderr=True)

    @property
    def asks(self) -> bool:
        """True if a person can answer a question."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def now(self) -> datetime:
        """The time from which distances are counted."""
        return datetime.now(UTC)

    def say(self, *lines: str | Text) -> None:
        """Print lines, which no script sees."""
        for line in () if self.as_json else lines:
            said = line if isinstance(line, Text) else Text(line)
            self.console.print(Text(fitted(said.plain, self.console), said.style), soft_wrap=True)

    def note(self, *lines: str) -> None:
        """Print lines on stderr."""
        for line in lines:
            self.errors.print(Text(fitted(line, self.errors)), soft_wrap=True)

    def show(self, *parts: RenderableType) -> None:
        """Print tables and facts, which no script sees."""
        for before, part in () if self.as_json else zip((None, *parts), parts, strict=False):
            if isinstance(part, Group) and isinstance(before, Table) and before.box is None:
                self.console.print()  # between facts and a title
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
        if not cells:
            return titled(title, Text("none", style=QUIET))
        held = [[one.name, *(row[at].plain for row in cells)] for at, one in enumerate(columns)]
        widths = [3 + max(map(cell_len, texts)) for texts in held]  # with the space after it
        share = self.console.width * 2 // 5  # of a roomy column, at least
        widths = [min(each, share) if one.roomy else each for each, one in zip(widths, columns, strict=True)]
        kept = [at for at, one in enumerate(columns) if not one.optional or {*held[at][1:]} != {NOTHING}]
        for at in reversed(range(len(columns))):
            if at in kept and columns[at].wide and sum(widths[each] for each in kept) > self.console.width:
                kept.remove(at)
        made = Table(box=SIMPLE_HEAD, pad_edge=False)
        has_room = sum(widths[each] for each in kept) <= self.console.width
        for at in kept:
            name, justify = columns[at].name, "right" if columns[at].number else "left"
            is_whole = name in COPIED and widths[at] <= self.console.width // 2
            is_whole = is_whole or (has_room and not columns[at].roomy)
            made.add_column(Text(name), justify=justify, overflow="fold", no_wrap=is_whole)  # type: ignore[arg-type]
        for row in cells:
            made.add_row(*(row[at] for at in kept))
        return titled(title, made)

    def listing(self, shown: str, values: Iterable[Mapping[str, Any]], title: str = "") -> RenderableType:
        """Make a table of an answer's objects.

        `shown` has a word for each column, `path` or `name=path`. Marks after it: # a number, ~ a wide column, ? an
        optional one, + a roomy one, @ an instant, * a status, % a value in one line, & a text of several lines,
        ! a fault, ^ a claim.
        """
        words = _words(shown)
        columns = [Column(_name(one), *(mark in one["marks"] for mark in "#~?+")) for one in words]
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
            "+": cut,
            "&": lambda text: Text(lines_of(str(text))),
            "!": lambda text: Text(text_of(text), style=BAD),
            "^": lambda holds: yes_or_no(holds, "ok", "NOT BALANCED"),
        }
        joined = "; ".join(map(str, value)) if isinstance(value, list) else value
        return next((shown[mark](value) for mark in word["marks"] if mark in shown), joined)

    def facts(self, given: Mapping[str, object]) -> RenderableType:
        """Make a list of names and values, without the names that have no value."""
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
    """Return a value as a cell. A Text of ours keeps its colour."""
    return value if isinstance(value, Text) else Text(text_of(value))
