"""Match HTTP routes by ASP.NET Core's precedence, and refuse callers from outside this machine.

The server listens on loopback and checks no keys, but a browser here also runs pages of strangers. Such a page reaches
loopback by a name of its own that it points at 127.0.0.1 (its Host is foreign), or by a form (its Origin is foreign).

Source: ASP.NET Core routing (`RoutePrecedence.ComputeInbound`, route constraint reference). Letters of the fixed parts
match in any case; `%2F` stays encoded in a value; one slash at the end is ignored. Default values (`{id=1}`) are
refused.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import unquote
from uuid import UUID

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

logger = logging.getLogger("functions_host")

_LOOPBACK = r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?\Z"
HOST = re.compile(_LOOPBACK, re.IGNORECASE)
ORIGIN = re.compile("https?://" + _LOOPBACK, re.IGNORECASE)
READS = frozenset((hdrs.METH_GET, hdrs.METH_HEAD))
JSON = "application/json"
ADMIN = "/admin/"


def refusing(patience: timedelta) -> tuple[Middleware, ...]:
    """Return the middlewares of the host; a body that is not whole after `patience` ends its connection."""

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
    """A template; of the routes that match, the one with the least `precedence` wins."""

    template: str
    pattern: re.Pattern[str]
    checks: tuple[tuple[str, Check], ...]
    precedence: tuple[int, ...]

    def match(self, path: str) -> dict[str, str] | None:
        """Return the route values of an encoded URL path, or None. A missing optional part has no value."""
        found = self.pattern.fullmatch(path.removeprefix("/").removesuffix("/"))
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
    """Return the route of a template; raise ValueError when the local host cannot match it."""
    # split at the slashes outside braces: a regex constraint may hold slashes
    segments = re.findall(r"(?:\{[^{}]*\}|[^/])+", template.strip("/"))
    pattern, checks, precedence = "", [], []
    for segment in segments:
        pattern += _segment_pattern(segment, is_first=not pattern)
        found = list(PARAMETER.finditer(segment))
        checks += [(one["name"], check) for one in found for check in _checks(one["rules"])]
        precedence.append(_precedence(segment, found))
    return Route(template, re.compile(pattern, re.IGNORECASE), tuple(checks), tuple(precedence))


def _segment_pattern(segment: str, *, is_first: bool) -> str:
    slash = "" if is_first else "/"
    whole = PARAMETER.fullmatch(segment)
    if whole and whole["catch_all"]:
        return f"(?:{slash}(?P<{whole['name']}>.*))?"
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
