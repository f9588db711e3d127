"""How values are shown: numbers with separators, instants in UTC and relative, JSON that steers no terminal."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from hubledger.cli.console import printable

NOTHING = "-"
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
# Characters that JSON lets through and that a terminal obeys or reorders: C1 controls, bidirectional marks, separators.
_STEERING = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def text_of(value: object) -> str:
    """Return a value as text of one line; numbers have separators, and no value is a dash."""
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
    """Read an instant of an answer; None where there is none."""
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
    text = text_of(value) if not isinstance(value, list) else printable(str(value))
    return text if len(text) <= 80 else f"{text[:79]}…"


def safe_json(text: str) -> str:
    """Return the same JSON, with the characters that steer a terminal written as their escapes."""
    return _STEERING.sub(_escaped, text.replace("\r", ""))


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
