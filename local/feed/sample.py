"""A user's own events: a file with one body a line, which a feed publishes again and again."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from core.model.property_values import is_whole
from local.feed.event_file import FileEvent, UnusableFile, events_in
from local.feed.planned_events import Minute, PlannedEvent

PUBLISHED = "published"  # the outcome in the record: the transform decides about the rest
LONGEST_KEY = 128  # characters of a partition key
MOST_NAMES = 12  # fields that a refusal names
COLUMNS = ("line INTEGER NOT NULL",)  # of the record, after the outcome; the first line is 1


class NoSuchKey(UnusableFile):
    """No line of the file has the field that was named as its key."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The events of a file, keyed by a field of their JSON. Without a field, an event has the key of its envelope."""

    path: Path
    lines: tuple[FileEvent, ...]
    key: str | None = None

    def __str__(self) -> str:
        """Return the name of the file, its number of lines and its key, for people."""
        lines = "1 line" if len(self.lines) == 1 else f"{len(self.lines):,} lines"
        keys = "with keys of their own" if any(line.key for line in self.lines) else "without a key"
        return f"{_shown(self.path)} ({lines}), {f'keyed by {self.key}' if self.key else keys}"


def read_sample(path: Path) -> tuple[FileEvent, ...]:
    """Return the events of a file. Raises UnusableFile when it has none."""
    try:
        lines = tuple(events_in(path))
    except OSError as error:
        raise UnusableFile(f"{_shown(path)} cannot be read: {error.strerror}") from None
    if not lines:
        raise UnusableFile(f"{_shown(path)} has no event: it needs one a line")
    return lines


def keyed_by(path: Path, lines: Sequence[FileEvent], field: str) -> Sample:
    """Return the lines with their partition keys. Raises NoSuchKey when no line has one, and UnusableFile when one is
    too long."""
    keyed = tuple(replace(line, key=_text(_fields(line.body).get(field))) for line in lines)
    if all(line.key is None for line in keyed):
        names = sorted({name for line in lines for name, value in _fields(line.body).items() if _text(value)})
        could = f"name one of {', '.join(names[:MOST_NAMES])}" if names else "no line has any such field: name none"
        raise NoSuchKey(f"no line of {_shown(path)} has a text or a number as its field {field}: {could}")
    for line in keyed:
        if line.key is not None and len(line.key) > LONGEST_KEY:
            length = f"{len(line.key)} characters, and a partition key has {LONGEST_KEY} at most: name another field"
            raise UnusableFile(f"{_shown(path)}, line {line.line}: {field} has {length}")
    return Sample(path, keyed, field)


def likeliest_key(lines: Sequence[FileEvent], columns: Sequence[str]) -> str | None:
    """Return the field of most lines that is named like one of the columns, the first of several, or None without any.

    The field orderId is named like the column order_id.
    """
    places = {_plain(column): place for place, column in reversed(list(enumerate(columns)))}
    counts = Counter(
        name for line in lines for name, value in _fields(line.body).items() if _plain(name) in places and _text(value)
    )
    return min(counts, key=lambda name: (-counts[name], places[_plain(name)]), default=None)


def sample_minutes(sample: Sample, events: int | None, seed: int, duplicates: float) -> Iterator[Minute]:
    """Yield the lines in the order of the file, from its beginning again after its end. `duplicates` come twice."""
    chance, left = Random(seed), events
    for number in count():
        if left == 0:
            return
        line = sample.lines[number % len(sample.lines)]
        copies = 2 if chance.random() < duplicates and left != 1 else 1
        left = None if left is None else left - copies
        planned = PlannedEvent(line.body, (PUBLISHED, line.line), None if line.is_bare else line)
        yield Minute(line.key, [planned] * copies)


def _fields(body: bytes) -> dict[str, Any]:
    """Return the fields of a JSON object, with numbers as texts of their digits, or none for any other body."""
    try:
        found = json.loads(body, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    """Return a value as a partition key: a text that is not empty, or a boolean as JSON writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) and value and is_whole(value) else None


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _shown(path: Path) -> str:
    """Return a path under the current folder without that folder."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
