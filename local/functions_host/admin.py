"""Serve the host's own HTTP addresses: list functions, fire a timer, drain, and make faults (Azure has no faults)."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from aiohttp import web

from local.functions_host.function import FunctionDescription


class AdministeredHost(Protocol):
    """The part of the host that /admin needs."""

    @property
    def functions(self) -> tuple[FunctionDescription, ...]:
        """All functions of the app."""

    @property
    def state(self) -> str:
        """Running, Draining or Drained."""

    @property
    def running(self) -> int:
        """The number of running invocations."""

    @property
    def retrying(self) -> int:
        """The number of invocations that wait for their next try."""

    def is_disabled(self, function_name: str) -> bool:
        """Return True when a setting disables the function."""

    def fire(self, function_name: str) -> None:
        """Start a timer function now; raise KeyError for any other function."""

    def begin_drain(self) -> None:
        """Stop the triggers without waiting."""

    def redeliver(self, count: int) -> None:
        """Deliver the last batches again."""

    def skip(self, count: int) -> None:
        """Lose the next batches."""


class Admin:
    """The handlers of /admin."""

    def __init__(self, host: AdministeredHost) -> None:
        self._host = host

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the addresses to a router."""
        router.add_get("/admin/functions", self.list_functions)
        router.add_post("/admin/functions/{name}", self.invoke)
        router.add_get("/admin/host/ping", self.ping)
        router.add_get("/admin/host/status", self.status)
        router.add_post("/admin/host/drain", self.drain)
        router.add_get("/admin/host/drain/status", self.drain_status)
        router.add_post("/admin/faults", self.make_faults)

    async def list_functions(self, _: web.Request) -> web.Response:
        """Return every function with its bindings."""
        return web.json_response([self._shape(function) for function in self._host.functions])

    def _shape(self, function: FunctionDescription) -> dict[str, Any]:
        return {
            "name": function.name,
            "isDisabled": self._host.is_disabled(function.name),
            "config": {"name": function.name, "bindings": [dict(one.settings) for one in function.bindings]},
        }

    async def invoke(self, request: web.Request) -> web.Response:
        """Fire a timer; refuse a function with any other trigger."""
        name = request.match_info["name"]
        function = next((one for one in self._host.functions if one.name.lower() == name.lower()), None)
        if function is None:
            return web.Response(status=404)
        try:
            self._host.fire(function.name)
        except KeyError:
            kind = function.trigger.type
            return _problem(f"{function.name} is of type {kind}: call its route, publish to its hub, or use a client")
        return web.Response(status=202)

    async def ping(self, _: web.Request) -> web.Response:
        """Answer that the host runs."""
        return web.Response()

    async def status(self, _: web.Request) -> web.Response:
        """Return the state of the host."""
        return web.json_response({"id": "local-functions-host", "state": self._host.state, "version": "4.local"})

    async def drain(self, _: web.Request) -> web.Response:
        """Begin to stop the triggers; HTTP stays open."""
        self._host.begin_drain()
        return web.Response(status=202)

    async def drain_status(self, _: web.Request) -> web.Response:
        """Return the progress of the drain, in the words of the real host."""
        states = {"Running": "Disabled", "Draining": "InProgress", "Drained": "Completed"}
        outstanding = {"outstandingInvocations": self._host.running, "outstandingRetries": self._host.retrying}
        return web.json_response({"state": states[self._host.state], **outstanding})

    async def make_faults(self, request: web.Request) -> web.Response:
        """Redeliver or skip batches: {"redeliver": n} or {"skip": n} or both."""
        faults: Mapping[str, Callable[[int], None]] = {"redeliver": self._host.redeliver, "skip": self._host.skip}
        try:
            wanted = _counts(await request.json(), faults)
        except ValueError as error:
            return _problem(str(error))
        for name, count in wanted.items():
            faults[name](count)
        return web.json_response(wanted, status=202)


def _counts(body: Any, known: Mapping[str, object]) -> dict[str, int]:
    if not isinstance(body, dict) or not body or not body.keys() <= known.keys():
        raise ValueError(f"the body must be an object with {' and/or '.join(known)}")
    for name, count in body.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, not {json.dumps(count)}")
    return body


def _problem(detail: str) -> web.Response:
    body = {"title": "Bad Request", "status": 400, "detail": detail}
    return web.json_response(body, status=400, content_type="application/problem+json")
