"""Serve the HTTP functions of the app on loopback. Keys are not checked, as with `func start`.

A browser of this machine also runs pages of strangers. Such a page reaches loopback by a name of its own that it points
at 127.0.0.1 (its Host is foreign), or by a form (its Origin is foreign), so the server refuses both.

Sources: the host's `ToRpcHttp` (header names are lower case, a query value without text is left out, values of one name
are joined by commas, and a chunked body arrives empty), and ASP.NET Core routing (`RoutePrecedence.ComputeInbound`,
`RoutePatternMatcher`, route constraint reference). Letters of the fixed parts of a route match in any case, `%2F` stays
encoded in a value, and one slash at the end is ignored. With two, only a catch-all matches, and its value has both.
Default values (`{id=1}`) are refused.
"""

import asyncio
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware
from azure.functions.meta import Datum
from multidict import CIMultiDict

from local.functions_host.errors import CannotListen
from local.functions_host.function import FunctionDescription
from local.functions_host.invoker import Invoker, TriggerInputs

logger = logging.getLogger("functions_host")

_LOOPBACK = r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?\Z"
HOST = re.compile(_LOOPBACK, re.IGNORECASE)
ORIGIN = re.compile("https?://" + _LOOPBACK, re.IGNORECASE)
READS = frozenset((hdrs.METH_GET, hdrs.METH_HEAD))
JSON = "application/json"
ADMIN = "/admin/"


def refusing(patience: timedelta) -> tuple[Middleware, ...]:
    """Return the middlewares of the host. A body that is not whole after `patience` ends its connection."""

    @web.middleware
    async def read_whole(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            async with asyncio.timeout(patience.total_seconds()):
                await request.read()
        except TimeoutError:
            detail = f"the body did not arrive within {patience.total_seconds():g} s: send the request again"
            answer = _problem(408, "Request Timeout", detail)
            answer.force_close()
            return answer
        return await handler(request)

    return (_from_here, _in_json, _within_limit, read_whole)


@web.middleware
async def _from_here(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a request for a different machine, or one that a foreign page sent."""
    hosts, origins = request.headers.getall(hdrs.HOST, []), request.headers.getall(hdrs.ORIGIN, [])
    if len(hosts) != 1 or not HOST.match(hosts[0]):
        return _refused(421, "Misdirected Request", "this host answers only to localhost, 127.0.0.1 and [::1]")
    if not all(map(ORIGIN.match, origins)):
        return _refused(403, "Forbidden", "this host answers no page of a foreign origin: open its own pages")
    return await handler(request)


@web.middleware
async def _in_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse an order to /admin whose type a form of any page could send."""
    is_order = request.path.lower().startswith(ADMIN) and request.method not in READS
    if is_order and request.content_type != JSON:
        return _refused(415, "Unsupported Media Type", f"/admin takes {JSON} only: set the header Content-Type")
    return await handler(request)


@web.middleware
async def _within_limit(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Fail for a body that is larger than the limit before it is read, as Azure's host does (its issue 10519)."""
    if (request.content_length or 0) > request.client_max_size:
        logger.error("body is larger than FUNCTIONS_REQUEST_BODY_SIZE_LIMIT", extra={"action": "body_too_large"})
        answer = web.Response(status=500)
        answer.force_close()
        return answer
    return await handler(request)


def _refused(status: int, title: str, detail: str) -> web.Response:
    """Refuse without reading the body, which may be of any length."""
    answer = _problem(status, title, detail)
    answer.force_close()
    return answer


def _problem(status: int, title: str, detail: str) -> web.Response:
    body = {"title": title, "status": status, "detail": detail}
    return web.json_response(body, status=status, content_type="application/problem+json")


PARAMETER = re.compile(
    r"\{(?P<catch_all>\*{1,2})?(?P<name>\w+)(?P<rules>(?::[^{}:()?]+(?:\((?:[^()]|\([^()]*\))*\))?)*)(?P<optional>\?)?\}"
)
SLASH = re.compile("(%2[Ff])")
RULE = re.compile(r":(?P<name>[^{}:()?]+)(?:\((?P<argument>(?:[^()]|\([^()]*\))*)\))?")

Check = Callable[[str], object]


def _in_range(lowest: float, highest: float) -> Check:
    return lambda value: lowest <= int(value) <= highest


def _has_length(shortest: float, longest: float) -> Check:
    return lambda value: shortest <= len(value) <= longest


def _is_whole(bits: int) -> Check:
    return lambda value: re.fullmatch(r"-?\d+", value) and -(2 ** (bits - 1)) <= int(value) < 2 ** (bits - 1)


# The check of each constraint, made from its argument; a ValueError of the check means "no match".
CONSTRAINTS: Mapping[str, Callable[[str], Check]] = {
    "int": lambda _: _is_whole(32),
    "long": lambda _: _is_whole(64),
    "bool": lambda _: lambda value: value.lower() in ("true", "false"),
    "alpha": lambda _: lambda value: re.fullmatch(r"[A-Za-z]*", value),
    "guid": lambda _: lambda value: bool(UUID(value)),
    "float": lambda _: lambda value: isinstance(float(value), float),
    "double": lambda _: lambda value: isinstance(float(value), float),
    "decimal": lambda _: lambda value: re.fullmatch(r"-?\d+(\.\d+)?", value),
    "datetime": lambda _: lambda value: bool(datetime.fromisoformat(value)),
    "required": lambda _: bool,
    "min": lambda argument: _in_range(int(argument), float("inf")),
    "max": lambda argument: _in_range(float("-inf"), int(argument)),
    "range": lambda argument: _in_range(*map(int, argument.split(","))),
    "minlength": lambda argument: _has_length(int(argument), float("inf")),
    "maxlength": lambda argument: _has_length(0, int(argument)),
    "length": lambda argument: _has_length(int(argument.split(",")[0]), int(argument.split(",")[-1])),
    "regex": lambda argument: (
        lambda value: re.search(argument.replace("{{", "{").replace("}}", "}"), value, re.IGNORECASE)
    ),
}


@dataclass(frozen=True, slots=True)
class Route:
    """A template. Of the routes that match, the one with the least `precedence` wins."""

    template: str
    pattern: re.Pattern[str]
    checks: tuple[tuple[str, Check], ...]
    precedence: tuple[int, ...]

    def match(self, path: str) -> dict[str, str] | None:
        """Return the route values of an encoded URL path, or None. A missing optional part has no value."""
        found = self.pattern.fullmatch(path.removeprefix("/"))
        if found is None:
            return None
        values = {
            name: "".join(part if SLASH.fullmatch(part) else unquote(part) for part in SLASH.split(value))
            for name, value in found.groupdict().items()
            if value
        }
        holds = all(_holds(check, values[name]) for name, check in self.checks if name in values)
        return values if holds else None


def parse_route(template: str) -> Route:
    """Return the route of a template. Raises ValueError when the local host cannot match it."""
    # split at the slashes outside braces: a regex constraint may hold slashes
    segments = re.findall(r"(?:\{[^{}]*\}|[^/])+", template.strip("/"))
    pattern, checks, precedence = "", [], []
    for segment in segments:
        pattern += _segment_pattern(segment, is_first=not pattern)
        found = list(PARAMETER.finditer(segment))
        checks += [(one["name"], check) for one in found for check in _checks(one["rules"])]
        precedence.append(_precedence(segment, found))
    return Route(template, re.compile(f"{pattern}/?", re.IGNORECASE), tuple(checks), tuple(precedence))


def _segment_pattern(segment: str, *, is_first: bool) -> str:
    slash = "" if is_first else "/"
    whole = PARAMETER.fullmatch(segment)
    if whole and whole["catch_all"]:
        return f"(?:{slash}(?P<{whole['name']}>[^/].*))?"
    if whole and whole["optional"]:
        return f"(?:{slash}(?P<{whole['name']}>[^/]+))?"
    literals = PARAMETER.split(segment)[:: PARAMETER.groups + 1]
    if any(brace in "".join(literals) for brace in "{}"):
        raise ValueError(f"the part {segment!r} of the route cannot be read")
    names = [f"(?P<{found['name']}>[^/]+?)" for found in PARAMETER.finditer(segment)]
    parts = [re.escape(literal) + name for literal, name in zip(literals, [*names, ""], strict=True)]
    return slash + "".join(parts)


def _checks(rules: str) -> list[Check]:
    checks = []
    for found in RULE.finditer(rules):
        try:
            checks.append(CONSTRAINTS[found["name"].lower()](found["argument"] or ""))
        except (KeyError, TypeError, ValueError, re.error):
            raise ValueError(f"the constraint {found.group()!r} of the route cannot be read") from None
    return checks


def _precedence(segment: str, parameters: list[re.Match[str]]) -> int:
    if not parameters:
        return 1
    if parameters[0]["catch_all"]:
        return 4 if parameters[0]["rules"] else 5
    if parameters[0].group() != segment:
        return 2
    return 2 if parameters[0]["rules"] else 3


def _holds(check: Check, value: str) -> bool:
    try:
        return bool(check(value))
    except ValueError:
        return False


SET_BY_SERVER = frozenset(("content-length", "transfer-encoding"))


async def request_datum(request: web.Request, route_values: Mapping[str, str]) -> Any:
    body = await request.read() if request.content_length else b""
    query = {name: ",".join(request.query.getall(name)) for name in request.query}
    headers = {name.lower(): ",".join(request.headers.getall(name)) for name in request.headers}
    value = {
        "method": _text(request.method),
        "url": _text(str(request.url)),
        "headers": _texts(headers),
        "query": _texts({name: text for name, text in query.items() if text}),
        "params": _texts(route_values),
        "body": Datum(body, "bytes"),
    }
    return Datum(value, "http")


def to_response(returned: Any) -> web.Response:
    """Return the response for a function's return value, a Datum or None."""
    if returned is None or returned.value is None:
        return web.Response(status=204)
    if returned.type != "http":
        return web.Response(text=str(returned.value))
    answer = returned.value
    headers: CIMultiDict[str] = CIMultiDict(
        (name, datum.value) for name, datum in answer["headers"].items() if name.lower() not in SET_BY_SERVER
    )
    cookies: list[SimpleCookie] = answer.get("cookies") or []
    for morsel in (morsel for cookie in cookies for morsel in cookie.values()):
        headers.add("Set-Cookie", morsel.OutputString())
    return web.Response(status=int(answer["status_code"].value), headers=headers, body=answer["body"].value)


def _text(value: str) -> Any:
    return Datum(value, "string")


def _texts(values: Mapping[str, str]) -> dict[str, Any]:
    return {name: _text(value) for name, value in values.items()}


LARGEST_BODY = 100 * 2**20  # octets, without FUNCTIONS_REQUEST_BODY_SIZE_LIMIT
_GOODBYE = 1.0  # seconds in which the rest of a refused body is read, so that its sender reads the answer


@dataclass(frozen=True, slots=True)
class HttpFunction:
    """A function, its whole route with the prefix, and its methods (none: every method)."""

    function: FunctionDescription
    route: Route
    methods: tuple[str, ...]


def http_function(function: FunctionDescription, prefix: str, faults: list[str]) -> HttpFunction | None:
    """Describe the HTTP trigger of a function. Add a line to `faults` when its route cannot be matched."""
    settings = function.trigger.settings
    template = "/".join(part.strip("/") for part in (prefix, settings.get("route") or function.name) if part)
    methods = tuple(str(method).upper() for method in settings.get("methods") or ())
    try:
        return HttpFunction(function, parse_route(template), methods)
    except ValueError as error:
        faults.append(f"function {function.name}: route {template!r}: {error}")
        return None


class HttpFront:
    """Answers a request with the function of the best route, or with 404, as the real host does."""

    def __init__(self, functions: Sequence[HttpFunction], invoker: Invoker) -> None:
        self._functions = sorted(functions, key=lambda one: one.route.precedence)
        self._invoker = invoker

    async def answer(self, request: web.Request) -> web.Response:
        """Invoke the function. A failure is 500 with no body, and its stack is in the log only."""
        for each in self._functions:
            if each.methods and request.method not in each.methods:
                continue
            values = each.route.match(request.rel_url.raw_path)
            if values is not None:
                inputs = TriggerInputs({each.function.trigger.name: await request_datum(request, values)})
                outcome = await self._invoker.invoke(each.function, inputs)
                break
        else:
            return web.Response(status=404)
        return web.Response(status=500) if outcome.error is not None else to_response(outcome.value)


class HttpServer:
    """A web application on the loopback address. A connection whose headers are late by `patience` is closed."""

    def __init__(self, application: web.Application, patience: timedelta) -> None:
        self._runner = web.AppRunner(
            application,
            access_log=None,
            shutdown_timeout=5,
            keepalive_timeout=patience.total_seconds(),  # from the connection or the last answer to a whole header
            lingering_time=_GOODBYE,
        )

    async def start(self, port: int) -> int:
        """Listen on `port` (0: any free one) and return it. Raises CannotListen when it is taken."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, "127.0.0.1", port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise CannotListen(port, os.strerror(error.errno or 0).lower()) from error
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Finish the running requests, then close."""
        await self._runner.cleanup()
