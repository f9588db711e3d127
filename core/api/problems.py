"""Problems: every refusal and fault of the API, as RFC 9457 defines them, of stable types. No stack is ever shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from core.errors import (
    HubledgerError,
    HubUnreachable,
    RequestRefused,
    StoreMisconfigured,
    StoreUnavailable,
    StreamIncarnationChanged,
)

PREFIX = "urn:hubledger:problem:"
PASSING = (StoreUnavailable, HubUnreachable)  # these may pass by themselves
PATIENCE = "5"  # seconds that a client should wait for them
SHOWN_TEXT = 200  # characters of a caller's text in a problem or a log line

# The headers of every answer. Browsers obey Strict-Transport-Security over https only, so not on the local host.
SAFE: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Strict-Transport-Security": "max-age=31536000",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class ProblemType:
    """A kind of problem: the name in its type URI, its title, its status."""

    name: str
    title: str
    status: int

    @property
    def uri(self) -> str:
        """The `type` of RFC 9457, which never changes."""
        return PREFIX + self.name


INVALID = ProblemType("invalid-request", "The request is not valid", 400)
NO_ROUTE = ProblemType("no-such-route", "There is nothing at this address", 404)
NOT_FOUND = ProblemType("not-found", "The request names something that does not exist", 404)
METHOD = ProblemType("method-not-allowed", "The route does not take this method", 405)
CONFLICT = ProblemType("conflict", "The current state does not allow the request", 409)
TASK_OVERLAP = ProblemType("task-overlap", "An open task keeps this one out", 409)
BUSY = ProblemType("busy", "The same work is running for another request", 409)
COUNT_DIFFERS = ProblemType("count-differs", "The count differs from the expected one", 409)
ERASED = ProblemType("erased", "An erasure has blanked it", 410)
STATE_DIFFERS = ProblemType("state-differs", "The stream is not in the state that the request expects", 412)
TOO_LARGE = ProblemType("body-too-large", "The body is larger than the limit", 413)
NOT_JSON = ProblemType("not-json", "The body must be JSON", 415)
NOT_ALLOWED = ProblemType("not-allowed", "The caller may not do this", 403)
UNEXPECTED = ProblemType("unexpected", "The app failed, and its log has the reason", 500)
UNAVAILABLE = ProblemType("unavailable", "A service that the answer needs cannot be used", 503)

TYPES = (
    INVALID, NO_ROUTE, NOT_FOUND, METHOD, BUSY, CONFLICT, TASK_OVERLAP, COUNT_DIFFERS, ERASED, STATE_DIFFERS,
    TOO_LARGE, NOT_JSON, NOT_ALLOWED, UNEXPECTED, UNAVAILABLE,
)  # fmt: skip


class FieldFault(msgspec.Struct, frozen=True):
    """The fault of one field, parameter or header."""

    field: str
    detail: str


@dataclass(eq=False)
class Problem(Exception):
    """Raised by an operation that changed nothing. `more` holds members of the problem besides those of the RFC."""

    kind: ProblemType
    detail: str
    errors: tuple[FieldFault, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def clipped(text: str) -> str:
    """Return a caller's text for a problem or a log line: at most SHOWN_TEXT characters, all of them printable."""
    shown = "".join(one if one.isprintable() else "\ufffd" for one in text[: SHOWN_TEXT + 1])
    return shown if len(shown) <= SHOWN_TEXT else shown[: SHOWN_TEXT - 1] + "…"


def invalid(field_name: str, detail: str) -> Problem:
    """Make the problem of one field. Both texts may quote the caller."""
    name, shown = clipped(field_name), clipped(detail)
    return Problem(INVALID, f"{name}: {shown}", (FieldFault(name, shown),))


def not_found(field_name: str, detail: str) -> Problem:
    """Make the problem of a field that names a missing thing."""
    return Problem(NOT_FOUND, detail, (FieldFault(field_name, detail),))


def of_refusal(refused: RequestRefused) -> Problem:
    """Make the problem of a request that a use case refuses."""
    if refused.problem == INVALID.name:
        return invalid(refused.field, refused.why)
    (kind,) = [one for one in TYPES if one.name == refused.problem]
    errors = (FieldFault(refused.field, refused.why),) if refused.field else ()
    return Problem(kind, refused.why, errors, refused.more)


def of_fault(fault: HubledgerError) -> Problem:
    """Make a problem of an infrastructure fault: 503, with Retry-After where the fault may pass by itself.

    A hub that is not the stream's is a conflict, because only an operator ends it.
    """
    kind = CONFLICT if isinstance(fault, StreamIncarnationChanged) else UNAVAILABLE
    headers = {"Retry-After": PATIENCE} if isinstance(fault, PASSING) else {}
    said = str(fault)
    if isinstance(fault, StoreMisconfigured):  # a driver may repeat parts of the string
        said = "STORE_CONNECTION: the database refuses this connection string; the log has the reason"
    return Problem(kind, said, more={"fault": type(fault).__name__}, headers=headers)


def unexpected(invocation_id: str) -> Problem:
    """Make the problem of an unforeseen fault. `instance` leads to its stack in the log."""
    said = f"the app failed unexpectedly: the log has the stack of invocation {invocation_id}"
    return Problem(UNEXPECTED, said, more={"instance": f"urn:uuid:{invocation_id}"})
