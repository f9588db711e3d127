"""A user's own file of events, which the demo, `try` and `new` read by one set of rules."""

import json
import zlib
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from gzip import BadGzipFile, GzipFile
from io import BytesIO
from itertools import count
from pathlib import Path
from random import Random
from typing import IO, Any, cast

from core.model.property_values import is_whole
from local.feed.planned_events import Minute, PlannedEvent

BOM = b"\xef\xbb\xbf"
LARGEST_LINE = 1_047_552  # bytes: a hub takes 1 MiB, and 1 KiB of that is for the key and the envelope
LARGEST_TEXT = 256 * 1024 * 1024  # bytes of a file that is one JSON text
IN_BASE64 = ".base64"  # the end of the name of a file whose bodies are no text
_LONGEST = len(BOM) + LARGEST_LINE * 4 // 3 + 8  # bytes of the longest line in base64, with its end
_GZIP, _UTF_16, _CONTAINER = b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff"), b"Obj\x01"  # beginnings of files
_HEAD = 4096  # bytes that hold the schema of Event Hubs Capture
_OF_CAPTURE = (b'"SequenceNumber"', b'"EnqueuedTimeUtc"', b'"Body"')


class UnusableFile(ValueError):
    """The file has no events that a hub takes; the message says why, and which line."""


@dataclass(frozen=True, slots=True)
class FileEvent:
    """An event of a file. `line` is its number from 1: of its line, or of the event in a file that has no lines.

    Only a file of Event Hubs Capture has partition keys and properties.
    """

    line: int
    body: bytes
    key: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)


def events_in(path: Path) -> Iterator[FileEvent]:
    """Yield the events of a file, plain or compressed by gzip. Raises UnusableFile.

    Each line that is not empty is a body, without its LF or CR LF. In a file whose name ends with `.base64`, a line is
    a body in base64. In UTF-16, a body is its line in UTF-8, and a byte order mark is no part of the first line.
    A file of Event Hubs Capture has its own events. A file that is one JSON text, over several lines or named `*.json`,
    has the elements of its list, or one event.
    """
    with opened(path) as file:
        for one in _captured(path, file) if _begins_as_container(file) else _written(path, file):
            if len(one.body) > LARGEST_LINE:
                said = f"has more than {LARGEST_LINE:,} bytes, and no event hub takes such an event"
                raise UnusableFile(f"{path}, line {one.line} {said}")
            yield one


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file of octets, decompressed where it is compressed by gzip. Raises UnusableFile while it is read."""
    with path.open("rb") as plain:
        file: IO[bytes] = plain if plain.seekable() else BytesIO(plain.read())
        try:
            yield cast(IO[bytes], GzipFile(fileobj=file)) if _head(file, len(_GZIP)) == _GZIP else file
        except (BadGzipFile, EOFError, zlib.error) as error:
            raise UnusableFile(f"{path} is no whole gzip file: {error}") from error


def is_container(path: Path | None) -> bool:
    """Return True for an object container file of Avro that has events of a schema of its own."""
    if path is None or not path.is_file():
        return False
    with opened(path) as file:
        return _begins_as_container(file) and not _is_capture(file)


def has_bodies(path: Path) -> bool:
    """Return True for a file whose events are bodies as the hub has them, in any format: base64, or of Capture."""
    with opened(path) as file:
        return _is_base64(path) or _is_capture(file)


def samples_in(folder: Path) -> Path:
    """Return the file with the sample events of a room: `events.base64` where there is one, else `events.jsonl`."""
    binary = folder / f"events{IN_BASE64}"
    return binary if binary.is_file() else folder / "events.jsonl"


def _head(file: IO[bytes], length: int) -> bytes:
    head = file.read(length)
    file.seek(0)
    return head


def _begins_as_container(file: IO[bytes]) -> bool:
    return _head(file, len(_CONTAINER)) == _CONTAINER


def _is_capture(file: IO[bytes]) -> bool:
    head = _head(file, _HEAD)
    return head.startswith(_CONTAINER) and all(name in head for name in _OF_CAPTURE)


def _is_base64(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(IN_BASE64)


def _captured(path: Path, file: IO[bytes]) -> Iterator[FileEvent]:
    if not _is_capture(file):
        raise UnusableFile(
            f"{path} is an Avro container file, and none of Event Hubs Capture: `new --format avro --from {path}` makes"
            " a room with its events as bodies, in events.base64"
        )
    from fastavro import reader

    try:
        for number, record in enumerate(reader(file), 1):
            key = (record["SystemProperties"] or {}).get("x-opt-partition-key")
            properties = record["Properties"] or {}
            yield FileEvent(number, record["Body"] or b"", None if key is None else str(key), properties)
    except Exception as error:
        raise UnusableFile(f"{path} is no whole file of Event Hubs Capture: {error!r}") from error


def _written(path: Path, file: IO[bytes]) -> Iterator[FileEvent]:
    if _head(file, 2) in _UTF_16:
        try:
            file = BytesIO(file.read().decode("utf-16").encode())
        except UnicodeError as error:
            raise UnusableFile(f"{path} is no whole UTF-16: {error}; save it as UTF-8") from error
    if (texts := _elements(path, file)) is not None:
        yield from (FileEvent(number, body) for number, body in enumerate(texts, 1))
        return
    file.seek(0)
    number = 0
    while line := file.readline(_LONGEST):
        number += 1
        body = (line.removeprefix(BOM) if number == 1 else line).removesuffix(b"\n").removesuffix(b"\r")
        if _is_base64(path):
            body = _decoded(path, number, body)
        if body:
            yield FileEvent(number, body)


def _elements(path: Path, file: IO[bytes]) -> list[bytes] | None:
    """Return the events of a file that is one JSON text, each in one line. None for a file of lines."""
    import msgspec  # here, because an installation of the command line alone has none

    first = file.readline(_LONGEST).removeprefix(BOM)
    if first.lstrip()[:1] not in (b"{", b"["):
        return None
    if _is_json(first) and not path.name.removesuffix(".gz").endswith(".json"):
        return None
    rest = file.read(LARGEST_TEXT + 1)
    if len(rest) > LARGEST_TEXT:
        return None
    try:
        whole = msgspec.json.format(first + rest, indent=-1)
        return list(map(bytes, msgspec.json.decode(whole, type=list[msgspec.Raw]))) if whole[:1] == b"[" else [whole]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _is_json(octets: bytes) -> bool:
    import msgspec

    try:
        msgspec.json.decode(octets, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _decoded(path: Path, number: int, line: bytes) -> bytes:
    try:
        return b64decode(line, validate=True)
    except ValueError as error:
        if len(line) > LARGEST_LINE:
            return line
        raise UnusableFile(f"{path}, line {number} is not base64: write one body a line, such as AAECAw==") from error


PUBLISHED = "published"  # the outcome in the record: the transform decides about the rest
LONGEST_KEY = 128  # characters of a partition key
MOST_NAMES = 12  # fields that a refusal names
COLUMNS = ("line INTEGER NOT NULL",)  # of the record, after the outcome; the first line is 1


class NoSuchKey(UnusableFile):
    """No line of the file has the field that was named as its key."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the file: its number, its bytes without the line's end, and its partition key, if it has one."""

    number: int
    body: bytes
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """The lines of a file that are not empty, keyed by a field of their JSON; None: no line has a key."""

    path: Path
    lines: tuple[Line, ...]
    key: str | None = None

    def __str__(self) -> str:
        """Return the name of the file, its number of lines and its key, for people."""
        lines = "1 line" if len(self.lines) == 1 else f"{len(self.lines):,} lines"
        return f"{_shown(self.path)} ({lines}), {f'keyed by {self.key}' if self.key else 'without a key'}"


def read_sample(path: Path) -> tuple[Line, ...]:
    """Return the lines of a file that are not empty, without keys. Raises UnusableFile."""
    try:
        lines = tuple(Line(each.line, each.body) for each in events_in(path))
    except OSError as error:
        raise UnusableFile(f"{_shown(path)} cannot be read: {error.strerror}") from None
    if not lines:
        raise UnusableFile(f"{_shown(path)} has no event: it needs one a line")
    return lines


def keyed_by(path: Path, lines: Sequence[Line], field: str) -> Sample:
    """Return the lines with their partition keys. Raises NoSuchKey when no line has one, and UnusableFile when one is
    too long."""
    keyed = tuple(Line(line.number, line.body, _key(line.body, field)) for line in lines)
    if all(line.key is None for line in keyed):
        names = sorted({name for line in lines for name, value in _fields(line.body).items() if _text(value)})
        could = f"name one of {', '.join(names[:MOST_NAMES])}" if names else "no line has any such field: name none"
        raise NoSuchKey(f"no line of {_shown(path)} has a text or a number as its field {field}: {could}")
    for line in keyed:
        if line.key is not None and len(line.key) > LONGEST_KEY:
            length = f"{len(line.key)} characters, and a partition key has {LONGEST_KEY} at most: name another field"
            raise UnusableFile(f"{_shown(path)}, line {line.number}: {field} has {length}")
    return Sample(path, keyed, field)


def likeliest_key(lines: Sequence[Line], columns: Sequence[str]) -> str | None:
    """Return the field of most lines that is named like one of the columns, the first of several; None without any.

    The field orderId is named like the column order_id.
    """
    places = {_plain(column): place for place, column in reversed(list(enumerate(columns)))}
    counts = Counter(
        name for line in lines for name, value in _fields(line.body).items() if _plain(name) in places and _text(value)
    )
    return min(counts, key=lambda name: (-counts[name], places[_plain(name)]), default=None)


def sample_minutes(sample: Sample, events: int | None, seed: int, duplicates: float) -> Iterator[Minute]:
    """Yield the lines in the order of the file, from its beginning again after its end; `duplicates` come twice."""
    chance, left = Random(seed), events
    for number in count():
        if left == 0:
            return
        line = sample.lines[number % len(sample.lines)]
        copies = 2 if chance.random() < duplicates and left != 1 else 1
        left = None if left is None else left - copies
        yield Minute(line.key, [PlannedEvent(line.body, (PUBLISHED, line.number))] * copies)


def _key(body: bytes, field: str) -> str | None:
    return _text(_fields(body).get(field))


def _fields(body: bytes) -> dict[str, Any]:
    """Return the fields of a JSON object, with numbers as texts of their digits; none for any other body."""
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
