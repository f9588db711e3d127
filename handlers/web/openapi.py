"""Describe the API in OpenAPI 3.1, from the declarations that validate requests and write answers."""

import re
from collections.abc import Collection, Mapping
from typing import Any, get_args

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
    TYPES,
    UNAVAILABLE,
    UNEXPECTED,
    FieldFault,
)
from core.api.route import CHANGING, COUNTING, LINKING, OPEN, READING, REVEALING, Route
from core.model.shapes import Nothing, Shape
from handlers.web.requests import LARGEST_BODY

_TYPES = {JSON: "object"}
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

_ABOUT_LEVELS = {
    COUNTING: "counts and times: nothing of an event",
    READING: "the rest that quotes no event",
    REVEALING: "events, errors that quote them, and subjects of a room: each answer is logged",
    CHANGING: "changes",
    LINKING: "links for residents, made by the company's own web site",
}


HEADERS = {
    name: {"description": said, "required": name in SAFE, "schema": {"type": "string"}}
    for name, said in _MEANINGS.items()
}


class ProblemAnswer(msgspec.Struct, omit_defaults=True):
    """A problem (RFC 9457). `errors` names the fields at fault. `instance` names the invocation of a status 500."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldFault] = []
    instance: str = ""


def responses_of(operation: Operation, route: Route, refs: Mapping[type, dict[str, Any]]) -> dict[str, Any]:
    """Describe all responses by status. `refs` has the schemas of the shapes."""
    responses: dict[str, Any] = {}
    for status, answer in sorted(operation.answers.items()):
        if isinstance(answer, str):
            said, schema, tag = operation.summary, {"type": _TYPES.get(answer, "string")}, ["ETag"]
            responses["304"] = {"description": "The client has this version.", "headers": _headers(304, "ETag")}
        else:
            said, schema, tag = " ".join((answer.__doc__ or "").split()), refs[answer], []
        content = {answer if isinstance(answer, str) else JSON: {"schema": schema}}
        responses[str(status)] = {"description": said, "headers": _headers(status, *tag), "content": content}
    if route.method == "GET":
        for response in responses.values():
            response["headers"] |= _headers(0, "Vary", "Content-Encoding")
        said = "The address ends in a slash: the same one without it has the answer. No body."
        responses["308"] = {"description": said, "headers": _headers(308)}
    if route.level.needs_key:
        responses["401"] = {"description": "The host refuses the request: its key is missing or wrong. No body."}
    admitted = (NOT_ALLOWED,) if route.level.role or route.level.link is not None else ()
    changing = _OF_CHANGES if route.level is CHANGING else ()
    problems = (*_OF_ALL, *operation.problems, *admitted, *changing)
    for kind in sorted(set(problems), key=lambda kind: (kind.status, kind.name)):
        empty = {"description": "", "headers": _headers(kind.status), "content": {}}
        response = responses.setdefault(str(kind.status), empty)
        said = f"{kind.title} (`{PREFIX}{kind.name}`)."
        response["description"] = f"{response['description']} {said}".strip()
        response["content"][PROBLEM] = {"schema": refs[ProblemAnswer]}
    return dict(sorted(responses.items()))


def _headers(status: int, *more: str) -> dict[str, Any]:
    names = (*SAFE, *_OPTIONAL.get(status, ()), *more)
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


VERSION = "1"
_HEADER = {"type": "apiKey", "in": "header"}
_REF = "#/components/schemas/{name}"
_ABOUT = (
    "The operations of Hubledger. Errors are problems (RFC 9457) with a stable `type`. Sequence numbers are strings."
    " Instants are RFC 3339, in UTC. Words (statuses, outcomes, classes) and fields may be added: ignore those that"
    " you do not know. Every address that takes GET takes HEAD too, with the same headers and no body. The limit of a"
    f" body is {LARGEST_BODY} octets."
)


def describe(operations: Mapping[Route, Operation]) -> dict[str, Any]:
    """Describe the operations of all routes, in their order, the key of each level, and the link of each kind."""
    shapes = _Shapes(operations.values())
    paths: dict[str, dict[str, Any]] = {}
    keys: dict[str, Any] = {}
    for level, said in _ABOUT_LEVELS.items():
        role = f" Where sign-in is on, the caller needs the app role {level.role} too." if level.role else ""
        told = f"A key of the function: {said}.{role}"
        keys[level.name] = {**_HEADER, "name": "x-functions-key", "description": told}
    for route, operation in operations.items():
        level = route.level
        if (link := level.link) is not None:
            told = f"A resident's link for this {link.subject}."
            keys[level.name] = {**_HEADER, "name": link.header, "description": told}
        refused = operation.query.REVEALING if level is not REVEALING else ()
        of_query = [one for one in shapes.parameters(operation.query, "query") if one["name"] not in refused]
        for one in of_query if level is not REVEALING else ():
            if (mark := operation.query.MARKED.get(one["name"])) is not None:
                one["schema"] |= {"not": {"pattern": re.escape(mark)}}
        described: dict[str, Any] = {
            "operationId": route.name,
            "summary": operation.summary,
            "tags": [operation.tag],
            "parameters": shapes.parameters(operation.path, "path") + of_query,
            "responses": responses_of(operation, route, shapes.refs),
            "security": [] if level is OPEN else [{level.name: [level.role] if level.role else []}],
        }
        if operation.body is not Nothing:
            described["requestBody"] = {"required": True, "content": {JSON: {"schema": shapes.refs[operation.body]}}}
        paths.setdefault(f"/{route.template}", {})[route.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hubledger", "version": VERSION, "description": _ABOUT, "license": {"name": "MIT"}},
        "servers": [{"url": "/api"}],
        "paths": paths,
        "components": {"schemas": shapes.components, "headers": HEADERS, "securitySchemes": keys},
    }


class _Shapes:
    """The JSON schemas of all shapes. A shape of parameters is split into its fields."""

    def __init__(self, operations: Collection[Operation]) -> None:
        types: list[type] = [ProblemAnswer]
        for one in operations:
            types += [one.path, one.query, one.body]
            types += [answer for answer in one.answers.values() if not isinstance(answer, str)]
        found, components = msgspec.json.schema_components(list(dict.fromkeys(types)), ref_template=_REF)
        components = _in_ecma(components)
        self.refs = dict(zip(dict.fromkeys(types), found, strict=True))
        self._all = components
        of_parameters = {self._name(shape) for one in operations for shape in (one.path, one.query, Nothing)}
        self.components = {name: shape for name, shape in components.items() if name not in of_parameters}
        for shape in dict.fromkeys(each for one in types for each in get_args(one) or (one,)):
            if names := getattr(shape, "ONE_OF", ()):
                component = self.components[self._name(shape)]
                for name in names:
                    (component["properties"][name],) = _never_null(component["properties"][name])
                component["oneOf"] = [{"required": [name]} for name in names]
        self.components["ProblemAnswer"]["properties"]["type"]["enum"] = [kind.uri for kind in TYPES]

    def parameters(self, shape: type[Shape], place: str) -> list[dict[str, Any]]:
        """Describe the fields of a shape as parameters of the path or the query."""
        schema = self._all[self._name(shape)] if shape is not Nothing else {"properties": {}}
        described = []
        for name, of in schema["properties"].items():  # a parameter may be left out, and is never null
            plain = {key: value for key, value in {**of, **_never_null(of)[0]}.items() if key != "anyOf"}
            if plain.get("default", "") is None:
                del plain["default"]
            told = {"description": plain.pop("description")} if "description" in plain else {}
            required = name in schema.get("required", ())
            described.append({"name": name, "in": place, "required": required, "schema": plain, **told})
        return described

    def _name(self, shape: type) -> str:
        """Return the name of a shape among the components: longer than its own where two shapes have the same."""
        return str(self.refs[shape]["$ref"].rpartition("/")[2]) if shape in self.refs else shape.__name__


def _in_ecma(schema: Any) -> Any:
    """Write the patterns of a schema as ECMA's: there, `$` is the end of the text, and `\\Z` does not exist."""
    if isinstance(schema, Mapping):
        written = {name: _in_ecma(value) for name, value in schema.items()}
        return written | ({"pattern": schema["pattern"].replace(r"\Z", "$")} if "pattern" in schema else {})
    return [_in_ecma(one) for one in schema] if isinstance(schema, list) else schema


def _never_null(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
