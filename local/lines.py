"""A file of events, one body a line: the demo, `try` and `new` read it by the same rules."""

from collections.abc import Iterator
from pathlib import Path

BOM = b"\xef\xbb\xbf"
LARGEST_LINE = 1_047_552  # bytes: a hub takes 1 MiB, and 1 KiB of that is for the key and the envelope


class UnusableFile(ValueError):
    """The file has no events that a hub takes; the message says why, and which line."""


def body_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file that are not empty, each with its number, from 1. Raises UnusableFile.

    A line ends with LF or CR LF, which are no part of its body, and a byte order mark is no part of the first line.
    """
    with path.open("rb") as file:
        number = 0
        while line := file.readline(len(BOM) + LARGEST_LINE + 2):
            number += 1
            body = (line.removeprefix(BOM) if number == 1 else line).removesuffix(b"\n").removesuffix(b"\r")
            if len(body) > LARGEST_LINE:
                raise UnusableFile(
                    f"{path}, line {number} has more than {LARGEST_LINE:,} bytes, and no event hub takes such an event"
                )
            if body:
                yield number, body
