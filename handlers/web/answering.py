"""Answer a request with the operation of its route: admit its caller, read it, run it, and write the answer.

Each change, and each answer that reveals something, is logged.
"""

import gzip
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

import azure.functions as func
import msgspec

from core.aggregation.store import Aggregations
from core.api.operation import Answer, Call, Operation
from core.api.problems import METHOD, NO_ROUTE, SAFE, Problem, clipped, of_fault, of_refusal, unexpected
from core.api.room_operations import RoomMeans, RoomStore, Signer, refuse_without_link
from core.api.route import CHANGING, LINKING, OPEN, REVEALING, Route
from core.errors import HubledgerError, RequestRefused
from core.model.policies import AccessPolicy
from core.model.shapes import Shape, hidden
from handlers.app import app
from handlers.web.identity import Caller, identify, refuse_without_role
from handlers.web.requests import read_body, read_path, read_query, revealing_fields


def problem_response(problem: Problem) -> func.HttpResponse:
    """Write a problem as an answer."""
    kind = problem.kind
    body = {"type": kind.uri, "title": kind.title, "status": kind.status, "detail": problem.detail, **problem.more}
    if problem.errors:
        body["errors"] = list(problem.errors)
    headers = {**SAFE, **problem.headers}
    return func.HttpResponse(
        msgspec.json.encode(body), status_code=kind.status, mimetype="application/problem+json", headers=headers
    )


_KEPT_SLASH = re.compile("%252(?=[Ff])")
_OF_A_QUERY = "!$&'()*+,-./:;=?@_~%"


def redirect_of(req: func.HttpRequest, route: Route) -> func.HttpResponse | None:
    """Return the redirect to the same address without its last slash, or None where the request needs none."""
    segment = route.template.rpartition("/")[2]
    return _redirect(req, req.route_params.get(segment[1:-1]) or "" if segment.startswith("{") else segment)


def _redirect(req: func.HttpRequest, last: str) -> func.HttpResponse | None:
    """Return the redirect to the address without slashes after its `last` segment.

    `Location` is relative, because a proxy may change the host or the path. The last segment is encoded again, because
    the host may have decoded the URL. The host leaves the %2F of a slash as it is.
    """
    path, _, query = req.url.partition("?")
    slashes = len(path) - len(path.rstrip("/"))
    if not slashes or req.method not in ("GET", "HEAD") or last in ("", ".", ".."):
        return None
    quoted = _KEPT_SLASH.sub("%2", quote(last, safe=""))
    location = "../" * slashes + quoted + (f"?{quote(query, safe=_OF_A_QUERY)}" if query else "")
    return func.HttpResponse(status_code=308, headers={**SAFE, "Location": location})


_TAG = re.compile(r'(?:W/)?("[!#-~]*")')


def is_known(tag: str, if_none_match: str) -> bool:
    """Return True if the header lists the tag, weak or strong, or is `*`."""
    return if_none_match.strip() == "*" or tag.removeprefix("W/") in _TAG.findall(if_none_match)


log = logging.getLogger("hubledger.api")
SMALL = 1_000  # octets of an answer that compression would hardly make shorter
_CODING = re.compile(r"(gzip|\*)\s*(?:;\s*q=([0-9.]+)\s*)?")


def answer(
    req: func.HttpRequest, route: Route, operations: Mapping[Route, Operation], invocation_id: str
) -> func.HttpResponse:
    """Return the answer of the route's operation, or a problem. Log one line for a change and one for a refusal.

    A refusal on a route without a key logs nothing: anybody could fill the log.
    """
    try:
        if (redirected := redirect_of(req, route)) is not None:
            return redirected
        # An open route is answered without the settings, so that it works while they are wrong.
        access = AccessPolicy() if route.level is OPEN else app().settings.access
        caller = identify(req.headers, route.level, access)
        try:
            return _written(req, _answered(req, route, operations, (caller, access)))
        except (Problem, RequestRefused) as refused:
            problem = refused if isinstance(refused, Problem) else of_refusal(refused)
            if route.level.needs_key:
                facts = {"problem": problem.kind.name, "who": caller.name}  # the detail may quote a name
                log.info("request refused", extra={"action": route.name, **facts})
            return problem_response(problem)
    except HubledgerError as fault:
        log.warning("request failed", extra={"action": route.name, "error": str(fault)})
        return problem_response(of_fault(fault))
    except Exception:  # noqa: BLE001 - every 500 of the API is a problem that leads to its stack
        return answer_unexpected(route, invocation_id)


def answer_unexpected(route: Route, invocation_id: str) -> func.HttpResponse:
    """Log the exception that is being handled, once and with its stack, and return its problem."""
    log.exception("request failed unexpectedly", extra={"action": route.name, "invocation_id": invocation_id})
    return problem_response(unexpected(invocation_id))


def _answered(
    req: func.HttpRequest, route: Route, operations: Mapping[Route, Operation], by: tuple[Caller, AccessPolicy]
) -> Answer:
    """Run the operation for a caller who may use the route. The host has checked the key.

    Log the caller who changed something, saw part of an event or of the subject of a link, or made a link.
    """
    (caller, access), level, at = by, route.level, datetime.now(UTC)
    operation = operations[route]
    if (link := level.link) is not None:
        given, subject = req.headers.get(link.header, ""), req.route_params.get(link.field, "")
        refuse_without_link(link, given, subject, at, access.link_secrets)
    elif level is not OPEN:
        refuse_without_role(caller, level, access)
    path, query = read_path(req, operation), read_query(req, operation, level)
    body = read_body(req, operation)
    if level is CHANGING and (named := revealing_fields(body)):  # its answer counts what has a key
        refuse_without_role(caller, REVEALING, access, named)
    at = app().clock.now() if level is CHANGING else at
    done = operation.run(Call(path, query, body, caller.name, at, operations, _room))
    answer = done if isinstance(done, Answer) else Answer(done)

    def facts() -> dict[str, str]:
        asked = " ".join(f"{name}={value}" for name, value in _logged(query).items())
        return {"who": caller.name, **_logged(path), "asked": asked}

    if level is CHANGING:
        log.info("request done", extra={"action": route.name, "who": caller.name, "status": answer.status})
    if level is REVEALING or link is not None:
        log.info("data revealed", extra={"action": "reveal", "route": route.name, **facts()})
    if level is LINKING:
        log.info("link made", extra={"action": route.name, **facts()})
    return answer if level is REVEALING else replace(answer, body=hidden(answer.body))


def _room() -> RoomMeans:
    own, access = app(), app().settings.access
    store = RoomStore(own.brief, Aggregations(own.brief, own.transform.row_classes))
    return RoomMeans(store, Signer(access.link_secrets, access.link_life))


# The texts of requests that name no person and no thing. Of every other text, also of a room's, a log has a keyed hash.
NAMELESS = frozenset({"partition_id", "sequence_number", "task_id", "body", "status", "error_class"})


def _logged(shape: Shape) -> dict[str, str]:
    """Return the values of a request, cut, and without letters that would break a line."""
    given = {name: value for name, value in msgspec.structs.asdict(shape).items() if value is not None}
    return {
        name: hashed(value) if isinstance(value, str) and name not in NAMELESS else clipped(str(value))
        for name, value in given.items()
    }


HIDDEN = "hidden: set ERASURE_KEY to tell names apart"


def hashed(name: str) -> str:
    """Return the name of a person or a thing in a log: the beginning of its hash in `erased_subject`."""
    key = app().settings.erasure
    return f"hash:{key.hash_of(name)[:16]}" if key.secret else HIDDEN


def _written(req: func.HttpRequest, given: Answer) -> func.HttpResponse:
    """Write an answer: as the version that the client has, compressed where the client takes that, or as it is."""
    headers = {**SAFE, **given.headers}
    octets = given.body if isinstance(given.body, bytes) else msgspec.json.encode(given.body)
    if req.method in ("GET", "HEAD"):
        headers["Vary"] = "Accept-Encoding"
        if len(octets) > SMALL and takes_gzip(req.headers.get("accept-encoding", "")):
            headers["Content-Encoding"] = "gzip"
            if "ETag" in headers:  # a strong tag would promise the same octets as without compression
                headers["ETag"] = f"W/{headers['ETag'].removeprefix('W/')}"
    if "ETag" in headers and is_known(headers["ETag"], req.headers.get("if-none-match", "")):
        headers.pop("Content-Encoding", None)
        return func.HttpResponse(status_code=304, headers=headers)
    if "Content-Encoding" in headers:
        octets = gzip.compress(octets, compresslevel=5, mtime=0)
    return func.HttpResponse(octets, status_code=given.status, mimetype=given.media, headers=headers)


def takes_gzip(accepted: str) -> bool:
    """Return True if a header Accept-Encoding takes gzip, by its name or by `*` (RFC 9110, section 12.5.3)."""
    given = [_CODING.fullmatch(part.strip()) for part in accepted.lower().split(",")]
    taken = {one[1]: not re.fullmatch(r"0(\.0*)?", one[2] or "1") for one in given if one}
    return taken.get("gzip", taken.get("*", False))


_PLACE = re.compile(r"\\\{\w+\\\}")


def answer_unrouted(req: func.HttpRequest, routes: Iterable[Route]) -> func.HttpResponse:
    """Answer 308 where the address has several slashes at its end, which no route of the host takes, 405 where it takes
    other methods, else 404."""
    path = (req.route_params.get("path") or "").strip("/")
    forms = {route: _PLACE.sub("[^/]+", re.escape(route.template)) for route in routes}
    fitting = [route for route, form in forms.items() if re.fullmatch(form, path, re.IGNORECASE)]
    if allowed := sorted({method for route in fitting for method in route.methods}):
        redirected = _redirect(req, path.rpartition("/")[2]) if req.method in allowed else None
        if redirected is not None:
            return redirected
        said = f"this address takes {' and '.join(allowed)}, not {clipped(req.method)}"
        return problem_response(Problem(METHOD, said, headers={"Allow": ", ".join(allowed)}))
    return problem_response(Problem(NO_ROUTE, "the app has no route at this address; /api/openapi.json lists all"))
