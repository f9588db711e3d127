"""Show the body of an event to a person: as text, JSON or hex, cut at the limit."""

import json
import re
from collections.abc import Iterator
from typing import Literal

from core.api.operation import Answered

BodyForm = Literal["text", "json", "hex"]

MOST_INDENTED = 20  # levels: otherwise the answer could be a thousand times as long as the body
_TOKEN = re.compile(r'[\[{]\s*[\]}]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s\[\]{},:"]+|[\[\]{},:]')


class BodyAnswer(Answered):
    """A body in one form. `shown` is null where the body has no such form, and `fault` says why."""

    form: BodyForm
    bytes: int
    truncated: bool
    shown: str | None
    fault: str | None = None


def shown(body: bytes, length: int, form: BodyForm) -> BodyAnswer:
    """Show the first octets of a body of `length` octets in a form; octets that are not UTF-8 become U+FFFD."""
    cut = len(body) < length
    text, fault = _as_json(body, cut) if form == "json" else (_as_text(body, form), None)
    return BodyAnswer(form=form, bytes=length, truncated=cut, shown=text, fault=fault)


def _as_text(body: bytes, form: BodyForm) -> str:
    return body.hex() if form == "hex" else body.decode("utf-8", "replace")


def _as_json(body: bytes, cut: bool) -> tuple[str | None, str | None]:
    """Return the JSON with each value as it stands: readers change 1e400, half of a surrogate pair, and two values of
    one name."""
    if cut:
        return None, "too long to be shown as JSON"
    try:
        text = body.decode()
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except ValueError as error:
        return None, f"not JSON: {error}"
    except RecursionError:
        return None, "nested too deeply to be shown as JSON"
    return "".join(_indented(text)), None


def _refuse(constant: str) -> None:
    raise ValueError(f"JSON has no {constant}")


def _indented(text: str) -> Iterator[str]:
    """Yield the parts of JSON, with each value on a line of its own."""
    depth = 0
    for token in _TOKEN.findall(text):
        if token in "]}":
            depth -= 1
            yield _line(depth)
        yield token[0] + token[1:].strip() if token[0] in "[{" else token
        depth += token in "[{"
        if token in "[{,":
            yield _line(depth)
        elif token == ":":
            yield " "


def _line(depth: int) -> str:
    return "\n" + "  " * min(depth, MOST_INDENTED)
