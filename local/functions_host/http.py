"""Serve the HTTP functions of the app on loopback. Keys are not checked, as with `func start`.

Source: the host's `ToRpcHttp`: header names are lower case, a query value without text is left out, values of one
name are joined by commas, and a body without Content-Length (chunked) arrives empty.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from http.cookies import SimpleCookie
from typing import Any

from aiohttp import web
from azure.functions.meta import Datum
from multidict import CIMultiDict

from local.functions_host.errors import CannotListen
from local.functions_host.function import FunctionDescription
from local.functions_host.http_routes import Route, parse_route
from local.functions_host.invoker import Invoker, TriggerInputs

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
    """Describe the HTTP trigger of a function; add a line to `faults` when its route cannot be matched."""
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
        """Invoke the function; a failure is 500 with no body, and its stack is in the log only."""
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
    """A web application on the loopback address; a connection whose headers are late by `patience` is closed."""

    def __init__(self, application: web.Application, patience: timedelta) -> None:
        self._runner = web.AppRunner(
            application,
            access_log=None,
            shutdown_timeout=5,
            keepalive_timeout=patience.total_seconds(),  # from the connection or the last answer to a whole header
            lingering_time=_GOODBYE,
        )

    async def start(self, port: int) -> int:
        """Listen on `port` (0: any free one) and return it; raise CannotListen when it is taken."""
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
