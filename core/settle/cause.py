"""The cause of a failure: its message without the values of one event, and the place in the room that raised it."""

import hashlib
import re
import sys
import sysconfig
from collections.abc import Sequence
from opcode import opmap
from pathlib import Path
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
_KEY = re.compile(r"""'[^'\d]*'|"[^"\d]*\"""")  # of a KeyError, which says no more; a word with a digit is a value
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
    """Return a message with a gap in place of each value: two messages that differ in values only have one template.

    A message that is only a key stays as it is.
    """
    return text if _KEY.fullmatch(text) else _LISTED.sub(GAP, _VALUE.sub(_gap, text))


def values_of(text: str) -> tuple[str, ...]:
    """Return the values of a message, in order, without their quotes."""
    found = (one.group() for one in _VALUE.finditer(text) if one["kept"] is None and not _KEY.fullmatch(text))
    return tuple(one[1:-1] if one[0] in "'\"" and len(one) > 1 else one for one in found)


def differing_values(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the values in which the messages of one cause differ, each once, in order, or all of a single message."""
    several = list(dict.fromkeys(map(values_of, texts)))
    places = [place for place in zip(*several, strict=False) if len(several) == 1 or len(set(place)) > 1]
    return tuple(dict.fromkeys(", ".join(values) for values in zip(*places, strict=True)))


class Place(NamedTuple):
    """A function of the room, and the file and line of a frame, as `transform.py:57`. Empty and None: no frame.

    `step` is the line within the function, which a change above it does not move. `raises` is true where the line is a
    statement that raises.
    """

    function: str = ""
    line: str | None = None
    step: int = 0
    raises: bool = True


def fingerprint_of(error_type: str, text: str, place: Place) -> str:
    """Return `<cause>`, or `<cause>.<values>` for a message with values.

    The cause is the same for the same fault wherever the event is tried. It depends on the type, the template and the
    function of the room that raised it. Where neither the room nor the message tells the fault, the line counts too.
    """
    template, name = template_of(text), error_type.rpartition(".")[2]
    of_python = not place.raises and error_type.partition(".")[0] in sys.stdlib_module_names
    says_nothing = template in ("", GAP, name) or _KEY.fullmatch(text)
    where = f"{place.function}+{place.step}" if of_python or says_nothing else place.function
    cause = _digest([error_type, template, where], CAUSE_LENGTH)
    values = values_of(text)
    return f"{cause}.{_digest(values, CAUSE_LENGTH // 2)}" if values else cause


def cause_of(fingerprint: str) -> str:
    """Return the cause of a fingerprint."""
    return fingerprint[:CAUSE_LENGTH]


def raised_in(at: TracebackType | None) -> Place:
    """Return the last frame of the room's own code: neither the app's, nor a library's."""
    found = Place()
    while at is not None:
        code = at.tb_frame.f_code
        file = code.co_filename
        if not file.startswith(_NOT_OF_A_ROOM) and "-packages/" not in file and file[:1] != "<":
            line = f"{Path(file).name}:{at.tb_lineno}"
            found = Place(
                code.co_name,
                line,
                at.tb_lineno - code.co_firstlineno,
                code.co_code[at.tb_lasti] == opmap["RAISE_VARARGS"],
            )
        at = at.tb_next
    return found


def _gap(found: re.Match[str]) -> str:
    return GAP if found["kept"] is None else _INDEX.sub(f"[{GAP}]", found["kept"])


def _digest(parts: list[str] | tuple[str, ...], length: int) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:length]
