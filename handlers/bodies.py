"""A body as a person may look at it: text, JSON or hex, and never more than the limit."""

import json
from typing import Literal

from handlers.operation import Answered

BodyForm = Literal["text", "json", "hex"]


class BodyAnswer(Answered):
    """A body in one form. `shown` is null where it has no such form, and `fault` says why."""

    form: BodyForm
    bytes: int
    truncated: bool
    shown: str | None
    fault: str | None = None


def shown(body: bytes, length: int, form: BodyForm) -> BodyAnswer:
    """The first octets of a body of some length, in a form; octets that are no UTF-8 become U+FFFD."""
    text, fault = _FORMS[form](body, len(body) < length)
    return BodyAnswer(form=form, bytes=length, truncated=len(body) < length, shown=text, fault=fault)


def _as_text(body: bytes, cut: bool) -> tuple[str | None, str | None]:
    return body.decode("utf-8", "replace"), None


def _as_json(body: bytes, cut: bool) -> tuple[str | None, str | None]:
    if cut:
        return None, "too long to be shown as JSON"
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False), None
    except (ValueError, RecursionError) as error:
        return None, f"not JSON: {error}"


def _as_hex(body: bytes, cut: bool) -> tuple[str | None, str | None]:
    return body.hex(), None


_FORMS = {"text": _as_text, "json": _as_json, "hex": _as_hex}
