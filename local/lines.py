"""A file of events, one body a line: the demo, `try` and `new` read it by the same rules."""

from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

BOM = b"\xef\xbb\xbf"
LARGEST_LINE = 1_047_552  # bytes: a hub takes 1 MiB, and 1 KiB of that is for the key and the envelope
IN_BASE64 = ".base64"  # the end of the name of a file whose bodies are no text
_LONGEST = len(BOM) + LARGEST_LINE * 4 // 3 + 8  # bytes of the longest line in base64, with its end


class UnusableFile(ValueError):
    """The file has no events that a hub takes; the message says why, and which line."""


def body_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the bodies of a file, one a line that is not empty, each with its number, from 1. Raises UnusableFile.

    A line ends with LF or CR LF, which are no part of its body, and a byte order mark is no part of the first line. In
    a file whose name ends with `.base64`, a line is its body in base64.
    """
    with path.open("rb") as file:
        number = 0
        while line := file.readline(_LONGEST):
            number += 1
            body = (line.removeprefix(BOM) if number == 1 else line).removesuffix(b"\n").removesuffix(b"\r")
            if path.suffix == IN_BASE64:
                body = _decoded(path, number, body)
            if len(body) > LARGEST_LINE:
                raise UnusableFile(
                    f"{path}, line {number} has more than {LARGEST_LINE:,} bytes, and no event hub takes such an event"
                )
            if body:
                yield number, body


def samples_in(folder: Path) -> Path:
    """Return the file with the sample events of a room: `events.base64` where there is one, else `events.jsonl`."""
    binary = folder / f"events{IN_BASE64}"
    return binary if binary.is_file() else folder / "events.jsonl"


def _decoded(path: Path, number: int, line: bytes) -> bytes:
    try:
        return b64decode(line, validate=True)
    except ValueError as error:
        if len(line) > LARGEST_LINE:
            return line
        raise UnusableFile(f"{path}, line {number} is not base64: write one body a line, such as AAECAw==") from error
