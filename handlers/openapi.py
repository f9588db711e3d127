"""The description of the API, OpenAPI 3.1, made from the declarations that validate requests and write answers."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from handlers.http import CHANGING, OPEN, Route
from handlers.operation import JSON, Answered, Nothing, Operation, Shape
from handlers.problems import (
    IN_WORK,
    INVALID,
    KEY_REUSED,
    NOT_ALLOWED,
    NOT_JSON,
    PREFIX,
    TOO_LARGE,
    TYPES,
    UNAVAILABLE,
    FieldFault,
    ProblemType,
)
from handlers.requests import KEY, LARGEST_BODY

VERSION = "1"
_REF = "#/components/schemas/{name}"
_OF_CHANGES = (NOT_ALLOWED, IN_WORK, TOO_LARGE, NOT_JSON, KEY_REUSED)
_ABOUT = (
    "What an operator asks of Hubledger and tells it. Errors are problems (RFC 9457) with a stable `type`. Sequence"
    " numbers are strings. Instants are RFC 3339, in UTC. Words (statuses, outcomes, classes) and fields may be added:"
    f" ignore what you do not know. Bodies have at most {LARGEST_BODY} octets."
)


class ProblemAnswer(msgspec.Struct, omit_defaults=True):
    """A problem (RFC 9457). `errors` names the fields that are at fault."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldFault] = []


def describe(operations: Iterable[Operation], routes: Mapping[str, Route]) -> dict[str, Any]:
    """The whole description; KeyError for an operation without a route."""
    listed = list(operations)
    shapes = _Shapes(listed)
    paths: dict[str, dict[str, Any]] = {}
    for operation in listed:
        route = routes[operation.name]
        described = _operation(operation, route, shapes)
        paths.setdefault(f"/{route.template}", {})[route.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hubledger", "version": VERSION, "description": _ABOUT, "license": {"name": "MIT"}},
        "servers": [{"url": "/api"}],
        "paths": paths,
        "components": {"schemas": shapes.components, "securitySchemes": _KEYS},
    }


_KEYS = {
    "key": {
        "type": "apiKey",
        "in": "header",
        "name": "x-functions-key",
        "description": "A key of the function or of the app.",
    },
    "masterKey": {
        "type": "apiKey",
        "in": "header",
        "name": "x-functions-key",
        "description": "The app's master key: changes ask for it.",
    },
}


class _Shapes:
    """The JSON schemas of all shapes; those of parameters are taken apart."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        types: list[type] = [ProblemAnswer]
        for one in operations:
            types += [one.path, one.query, one.body]
            types += [answer for answer in one.answers.values() if not isinstance(answer, str)]
        found, components = msgspec.json.schema_components(list(dict.fromkeys(types)), ref_template=_REF)
        self.refs = dict(zip(dict.fromkeys(types), found, strict=True))
        self._all = components
        of_parameters = {shape.__name__ for one in operations for shape in (one.path, one.query)} | {"Nothing"}
        self.components = {name: shape for name, shape in components.items() if name not in of_parameters}
        for shape in dict.fromkeys(types):
            _tell_one_of(shape, self.components)
        self.components["ProblemAnswer"]["properties"]["type"]["enum"] = [kind.uri for kind in TYPES]

    def parameters(self, shape: type[Shape], place: str) -> list[dict[str, Any]]:
        """The fields of a shape as parameters of the path or the query."""
        schema = self._all[shape.__name__] if shape is not Nothing else {"properties": {}}
        required = schema.get("required", ())
        return [_parameter(name, place, of, name in required) for name, of in schema["properties"].items()]


def _tell_one_of(shape: type, components: Mapping[str, dict[str, Any]]) -> None:
    """Fields of which exactly one has to be given are never null."""
    names: tuple[str, ...] = getattr(shape, "ONE_OF", ())
    for name in names:
        properties = components[shape.__name__]["properties"]
        properties[name] = next(one for one in properties[name]["anyOf"] if one.get("type") != "null")
    if names:
        components[shape.__name__]["oneOf"] = [{"required": [name]} for name in names]


def _parameter(name: str, place: str, schema: Mapping[str, Any], required: bool) -> dict[str, Any]:
    """A parameter is there or not, and never null."""
    given = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    kept = {key: value for key, value in {**schema, **given[0]}.items() if key != "anyOf"}
    if kept.get("default", "") is None:
        del kept["default"]
    described = {"name": name, "in": place, "required": required, "schema": kept}
    if "description" in kept:
        described["description"] = kept.pop("description")
    return described


def _operation(operation: Operation, route: Route, shapes: _Shapes) -> dict[str, Any]:
    changing = route.level is CHANGING
    parameters = shapes.parameters(operation.path, "path") + shapes.parameters(operation.query, "query")
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": parameters + ([_IDEMPOTENCY_KEY] if changing else []),
        "responses": _responses(operation, changing, shapes),
        "security": [] if route.level is OPEN else [{"masterKey": []}] if changing else [{"key": []}],
    }
    if operation.body is not Nothing:
        described["requestBody"] = {"required": True, "content": {JSON: {"schema": shapes.refs[operation.body]}}}
    return described


_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": True,
    "description": "Made by the caller. For a day, the same request under it is done once and answered the same.",
    "schema": {"type": "string", "pattern": f"^{KEY.pattern}$"},
}


def _responses(operation: Operation, changing: bool, shapes: _Shapes) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, answer in sorted(operation.answers.items()):
        content = _octets(answer) if isinstance(answer, str) else {JSON: {"schema": shapes.refs[answer]}}
        said = operation.summary if isinstance(answer, str) else (answer.__doc__ or "").strip().split("\n")[0]
        responses[str(status)] = {"description": said, "content": content}
    problems = (INVALID, UNAVAILABLE, *operation.problems, *(_OF_CHANGES if changing else ()))
    for kind in sorted(set(problems), key=lambda kind: (kind.status, kind.name)):
        _add_problem(responses.setdefault(str(kind.status), {"description": "", "content": {}}), kind, shapes)
    return responses


def _octets(media: str) -> dict[str, Any]:
    return {media: {"schema": {"type": "object" if media == JSON else "string"}}}


def _add_problem(response: dict[str, Any], kind: ProblemType, shapes: _Shapes) -> None:
    said = f"{kind.title} (`{PREFIX}{kind.name}`)."
    response["description"] = f"{response['description']} {said}".strip()
    response["content"]["application/problem+json"] = {"schema": shapes.refs[ProblemAnswer]}


def answers_of(operation: Operation) -> tuple[type[Answered], ...]:
    """The bodies of an operation that are JSON."""
    return tuple(answer for answer in operation.answers.values() if not isinstance(answer, str))
