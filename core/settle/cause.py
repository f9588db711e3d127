"""The cause of a failure: its message without the values of one event, and the place in the room that raised it."""

import hashlib
import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import NamedTuple

CAUSE_LENGTH = 16  # characters of a fingerprint that name the cause; the values of the message follow after a dot
GAP = "…"
# What backticks enclose names a type or a field: it stays, and only an index in it goes.
_VALUE = re.compile(
    r"""(?P<kept>`[^`]*`)
      | (?<!\w)'[^']*'(?!\w) | (?<!\w)"[^"]*"(?!\w)    # a quoted text
      | (?<![\w/\\:])(?:[A-Za-z]:)?(?:[/\\][\w.@%+~-]+){2,}    # a path
      | (?<![\w.+-])(?:\w+://[^\s,;'"]+    # an address
                     | [\w.+-]+@[\w-]+(?:\.[\w-]+)+
                     | [\w.+-]*\d(?:[\w.:+-]*\w)?)    # a number, a date, an id: a word with a digit
    """,
    re.VERBOSE,
)
_INDEX = re.compile(r"\[\d+\]")
_LISTED = re.compile(rf"{GAP}(?:(?:,| and| or)? ?{GAP})+")
_OURS = Path(__file__).resolve().parent.parent.parent
_NOT_OF_A_ROOM = tuple(
    f"{path}/"
    for path in (
        *(_OURS / name for name in ("core", "handlers", "hubledger", "local", "jobs")),
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")),
    )
)


def template_of(text: str) -> str:
    """Return a message with a gap in place of each value: two messages that differ in values only have one template."""
    return _LISTED.sub(GAP, _VALUE.sub(_gap, text))


def values_of(text: str) -> tuple[str, ...]:
    """Return the values of a message, in order, without their quotes."""
    found = (one.group() for one in _VALUE.finditer(text) if one["kept"] is None)
    return tuple(one[1:-1] if one[0] in "'\"" and len(one) > 1 else one for one in found)


def differing_values(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the values in which the messages of one cause differ, each once, in order; of a single message, all."""
    several = list(dict.fromkeys(map(values_of, texts)))
    places = [place for place in zip(*several, strict=False) if len(several) == 1 or len(set(place)) > 1]
    return tuple(dict.fromkeys(", ".join(values) for values in zip(*places, strict=True)))


def fingerprint_of(error_type: str, text: str, function: str) -> str:
    """Return `<cause>`, or `<cause>.<values>` for a message with values.

    The cause is the same for the same fault wherever the event is tried: it depends on the type, the template, and the
    `function` of the room that raised it.
    """
    cause = _digest([error_type, template_of(text), function], CAUSE_LENGTH)
    values = values_of(text)
    return f"{cause}.{_digest(values, CAUSE_LENGTH // 2)}" if values else cause


def cause_of(fingerprint: str) -> str:
    """Return the cause of a fingerprint."""
    return fingerprint[:CAUSE_LENGTH]


class Place(NamedTuple):
    """A function of the room, and the file and line of a frame, as `transform.py:57`; empty and None: no frame."""

    function: str = ""
    line: str | None = None


def raised_in(at: TracebackType | None) -> Place:
    """Return the last frame of the room's own code: neither the app's, nor a library's."""
    found = Place()
    for frame, line in walk_tb(at):
        file = frame.f_code.co_filename
        if not file.startswith(_NOT_OF_A_ROOM) and "-packages/" not in file and file[:1] != "<":
            found = Place(frame.f_code.co_name, f"{Path(file).name}:{line}")
    return found


def _gap(found: re.Match[str]) -> str:
    return GAP if found["kept"] is None else _INDEX.sub(f"[{GAP}]", found["kept"])


def _digest(parts: list[str] | tuple[str, ...], length: int) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:length]
