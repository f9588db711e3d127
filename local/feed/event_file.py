"""A file of events: the demo, `try` and `new` read it by the same rules."""

import zlib
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from gzip import BadGzipFile, GzipFile
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

BOM = b"\xef\xbb\xbf"
LARGEST_LINE = 1_047_552  # bytes: a hub takes 1 MiB, and 1 KiB of that is for the key and the envelope
LARGEST_TEXT = 256 * 1024 * 1024  # bytes of a file that is one JSON text
IN_BASE64 = ".base64"  # the end of the name of a file whose bodies are no text
_LONGEST = len(BOM) + LARGEST_LINE * 4 // 3 + 8  # bytes of the longest line in base64, with its end
_GZIP, _UTF_16, _CONTAINER = b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff"), b"Obj\x01"  # beginnings of files
ENVELOPE = b'{"$event"'  # the beginning of a line with more than a body
_HEAD = 4096  # bytes that hold the schema of Event Hubs Capture
_OF_CAPTURE = (b'"SequenceNumber"', b'"EnqueuedTimeUtc"', b'"Body"')


class UnusableFile(ValueError):
    """The file has no events that a hub takes. The message says why, and which line."""


@dataclass(frozen=True, slots=True)
class FileEvent:
    """An event of a file. `line` is its number from 1: of its line, or of the event in a file that has no lines.

    A file of Event Hubs Capture has partition keys and properties, and so has a line that is an envelope. `is_sent` is
    True where the body is the one that a hub has, in any format, and no JSON that stands for it.
    """

    line: int
    body: bytes
    key: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    system_properties: Mapping[str, Any] = field(default_factory=dict)
    is_sent: bool = field(default=False, compare=False)

    @property
    def is_bare(self) -> bool:
        """True for an event that is nothing but its body."""
        return not (self.key or self.properties or self.system_properties)

    @property
    def envelope(self) -> bytes:
        """The line that has the whole event."""
        import msgspec

        is_line = len(self.body.splitlines()) == 1 and self.body.strip() == self.body and _is_json(self.body)
        sent = {
            **({"body": msgspec.Raw(self.body)} if is_line else {"base64": self.body}),
            **({} if self.key is None else {"partition_key": self.key}),
            **({"properties": self.properties} if self.properties else {}),
            **({"system_properties": self.system_properties} if self.system_properties else {}),
        }
        return msgspec.json.encode({"$event": sent})


def events_in(path: Path) -> Iterator[FileEvent]:
    """Yield the events of a file, plain or compressed by gzip. Raises UnusableFile.

    Each line that is not empty is a body, without its LF or CR LF. In a file whose name ends with `.base64`, a line is
    a body in base64. In UTF-16, a body is its line in UTF-8, and a byte order mark is no part of the first line.
    A file of Event Hubs Capture has its own events. A file that is one JSON text, over several lines or named `*.json`,
    has the elements of its list, or one event. A line or element with the one member `$event` is an envelope, and has
    `body` (any JSON) or `base64`, and perhaps `partition_key`, `properties` and `system_properties`.
    """
    with opened(path) as file:
        is_container = _begins_as_container(file)
        for each in _captured(path, file) if is_container else _written(path, file):
            is_envelope = each.body.startswith(ENVELOPE) and not (is_container or _is_base64(path))
            one = _opened(path, each) if is_envelope else each
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

    from core.model.events import PARTITION_KEY, captured  # here, because the command line alone has no msgspec

    try:
        for number, record in enumerate(reader(file), 1):
            system, properties = captured(record["SystemProperties"] or {}), record["Properties"] or {}
            key = system.pop(PARTITION_KEY, None)
            yield FileEvent(number, record["Body"] or b"", None if key is None else str(key), properties, system, True)
    except Exception as error:
        raise UnusableFile(f"{path} is no whole file of Event Hubs Capture: {error!r}") from error


def _opened(path: Path, line: FileEvent) -> FileEvent:
    """Return the event of an envelope."""
    import msgspec

    class Sent(msgspec.Struct, forbid_unknown_fields=True):
        body: msgspec.Raw = msgspec.Raw()
        base64: bytes | None = None
        partition_key: str | None = None
        properties: dict[str, Any] = {}
        system_properties: dict[str, Any] = {}

    class Envelope(msgspec.Struct, forbid_unknown_fields=True):
        event: Sent = msgspec.field(name="$event")

    try:
        sent = msgspec.json.decode(line.body, type=Envelope).event
        if sent.base64 is not None and bytes(sent.body):
            raise msgspec.ValidationError("it has body and base64, and needs one of them")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnusableFile(f"{path}, line {line.line} is no envelope of an event: {error}") from error
    body = bytes(sent.body) if sent.base64 is None else sent.base64
    return FileEvent(line.line, body, sent.partition_key, sent.properties, sent.system_properties, True)


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
            yield FileEvent(number, body, is_sent=_is_base64(path))


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
