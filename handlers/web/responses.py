"""Describe the responses of an operation: its answers, its problems and their headers."""

from collections.abc import Mapping
from typing import Any

import msgspec

from core.api.operation import JSON, Operation
from core.api.problems import (
    INVALID,
    METHOD,
    NOT_ALLOWED,
    NOT_JSON,
    PREFIX,
    SAFE,
    TOO_LARGE,
    UNAVAILABLE,
    UNEXPECTED,
    FieldFault,
    ProblemType,
)
from core.api.route import CHANGING, Level, Route

PROBLEM = "application/problem+json"
_OF_ALL = (INVALID, METHOD, UNEXPECTED, UNAVAILABLE)
_OF_CHANGES = (TOO_LARGE, NOT_JSON)
_OPTIONAL = {  # the headers of some answers, by status
    201: ("Location", "Retry-After"),
    202: ("Location",),
    308: ("Location",),
    405: ("Allow",),
    409: ("Retry-After",),
    503: ("Retry-After",),
}
_MEANINGS = {
    "Cache-Control": "`no-store`; or `no-cache` where the answer has an `ETag`.",
    "X-Content-Type-Options": "The media type is the one that is named.",
    "Strict-Transport-Security": "Browsers use https only.",
    "Cross-Origin-Resource-Policy": "No page of a different site may embed the answer.",
    "Vary": "The answer depends on these headers of the request.",
    "Content-Encoding": "`gzip`, where `Accept-Encoding` takes it and the answer is longer than 1,000 octets.",
    "ETag": "The version of the answer; send it back as `If-None-Match`.",
    "Location": "The address of the task or the runs; with status 308, the address without its last slashes, relative.",
    "Retry-After": "Seconds to wait before the next request.",
    "Allow": "The methods of the address.",
}
HEADERS = {
    name: {"description": said, "required": name in SAFE, "schema": {"type": "string"}}
    for name, said in _MEANINGS.items()
}


class ProblemAnswer(msgspec.Struct, omit_defaults=True):
    """A problem (RFC 9457). `errors` names the fields at fault; `instance` names the invocation of a status 500."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldFault] = []
    instance: str = ""


def responses_of(operation: Operation, route: Route, refs: Mapping[type, dict[str, Any]]) -> dict[str, Any]:
    """Describe all responses by status; `refs` has the schemas of the shapes."""
    responses: dict[str, Any] = {}
    for status, answer in sorted(operation.answers.items()):
        content = _octets(answer) if isinstance(answer, str) else {JSON: {"schema": refs[answer]}}
        said = operation.summary if isinstance(answer, str) else (answer.__doc__ or "").strip().split("\n")[0]
        responses[str(status)] = {"description": said, "headers": _headers(status), "content": content}
        if isinstance(answer, str):
            responses["304"] = {"description": "The client has this version.", "headers": _headers(304, "ETag")}
            responses[str(status)]["headers"] |= _headers(status, "ETag")
    if route.method == "GET":
        for response in responses.values():
            response["headers"] |= _headers(0, "Vary", "Content-Encoding")
        said = "The address ends in a slash: the same one without it has the answer. No body."
        responses["308"] = {"description": said, "headers": _headers(308)}
    if route.level.needs_key:
        responses["401"] = {"description": "The host refuses the request: its key is missing or wrong. No body."}
    problems = (*_OF_ALL, *operation.problems, *_of_level(route.level))
    for kind in sorted(set(problems), key=lambda kind: (kind.status, kind.name)):
        empty = {"description": "", "headers": _headers(kind.status), "content": {}}
        _add_problem(responses.setdefault(str(kind.status), empty), kind, refs)
    return dict(sorted(responses.items()))


def _of_level(level: Level) -> tuple[ProblemType, ...]:
    admitted = (NOT_ALLOWED,) if level.role or level.link is not None else ()
    return (*admitted, *(_OF_CHANGES if level is CHANGING else ()))


def _headers(status: int, *more: str) -> dict[str, Any]:
    names = (*SAFE, *_OPTIONAL.get(status, ()), *more)
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _octets(media: str) -> dict[str, Any]:
    return {media: {"schema": {"type": "object" if media == JSON else "string"}}}


def _add_problem(response: dict[str, Any], kind: ProblemType, refs: Mapping[type, dict[str, Any]]) -> None:
    said = f"{kind.title} (`{PREFIX}{kind.name}`)."
    response["description"] = f"{response['description']} {said}".strip()
    response["content"][PROBLEM] = {"schema": refs[ProblemAnswer]}
