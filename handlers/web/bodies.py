"""Show the body of an event to a person: as text, JSON or hex, cut at the limit."""

import json
from typing import Literal

from handlers.web.operation import Answered

BodyForm = Literal["text", "json", "hex"]


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
    if cut:
        return None, "too long to be shown as JSON"
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False), None
    except (ValueError, RecursionError) as error:
        return None, f"not JSON: {error}"
