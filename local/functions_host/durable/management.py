"""Serve the HTTP API of the Durable extension: to people at /runtime/webhooks/durabletask, to the SDK at /durabletask.

Source: HttpApiHandler. Keys are not checked.
"""

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from local.functions_host.durable.client_binding import RPC, WEBHOOK, management_links
from local.functions_host.durable.functions import UnknownFunction
from local.functions_host.durable.instances import Instance, Status, is_entity
from local.functions_host.durable.orchestrations import (
    HasEnded,
    NoSuchInstance,
    NotEnded,
    Orchestrations,
    Query,
    QueryFault,
    WrongId,
    as_json,
)
from local.functions_host.durable.statuses import history_json, status_json
from local.functions_host.durable.store import InstanceExists

Handler = Callable[[web.Request], Awaitable[web.Response]]

CONTINUATION = "x-ms-continuation-token"


class Management:
    """The handlers; `hub_name` is the only task hub."""

    def __init__(self, orchestrations: Orchestrations, hub_name: str) -> None:
        self._orchestrations = orchestrations
        self._hub_name = hub_name

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the addresses to a router."""
        routes: list[tuple[str, str, Handler]] = [
            ("POST", "/orchestrators/{name}", self.start),
            ("POST", "/orchestrators/{name}/{id}", self.start),
            ("GET", "/instances{slash:/?}", self.list_instances),
            ("DELETE", "/instances{slash:/?}", self.purge_instances),
            ("GET", "/instances/{id}", self.status),
            ("DELETE", "/instances/{id}", self.purge),
            ("POST", "/instances/{id}/raiseEvent/{event}", self.raise_event),
            ("POST", "/instances/{id}/{operation}", self.operate),
            ("GET", "/entities/{name}/{key}", self.read_entity),
            ("POST", "/entities/{name}/{key}", self.signal_entity),
            ("DELETE", "/entities/{name}/{key}", self.signal_entity),
            ("GET", "/entities{rest:.*}", self.not_emulated),
        ]
        for prefix in (WEBHOOK, RPC):
            for method, path, handler in routes:
                router.add_route(method, prefix + path, self._answering(handler))

    def _answering(self, handler: Handler) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            try:
                self._check_hub(Query(request.query))
                return await handler(request)
            except NoSuchInstance:
                return web.Response(status=404)
            except HasEnded:
                return web.Response(status=410)
            except NotEnded as error:
                return web.json_response(str(error), status=412)
            except InstanceExists as error:
                return _problem(409, str(error))
            except QueryFault as error:
                return _problem(error.status, str(error))
            except (UnknownFunction, WrongId) as error:
                return _problem(400, "One or more of the arguments submitted is incorrect", str(error))

        return answer

    def _check_hub(self, query: Query) -> None:
        hub_name = query.text("taskHub") or self._hub_name
        if hub_name.lower() != self._hub_name.lower():
            raise QueryFault(501, f"the task hub {hub_name} is not emulated, only {self._hub_name} of host.json")

    async def start(self, request: web.Request) -> web.Response:
        """Start an orchestration."""
        query = Query(request.query)
        query.refuse("timeout", "pollingInterval", "version")
        text = await _body(request)
        started = self._orchestrations.start(request.match_info["name"], request.match_info.get("id"), text)
        return self._links(request, started)

    def _links(self, request: web.Request, instance_id: str) -> web.Response:
        links = management_links(str(request.url.origin()), self._hub_name, instance_id)
        headers = {"Location": links["statusQueryGetUri"], "Retry-After": "10"}
        return web.json_response(links, status=202, headers=headers)

    async def list_instances(self, request: web.Request) -> web.Response:
        """Return a page of statuses."""
        query = Query(request.query)
        wanted = query.instances(_from_token(request.headers.get(CONTINUATION, "")))
        page = self._orchestrations.select(wanted)
        token = _to_token(page[-1].instance_id) if len(page) == wanted.top else ""
        statuses = [status_json(each, with_input=query.claims("showInput")) for each in page]
        return web.json_response(statuses, headers={CONTINUATION: token})

    async def status(self, request: web.Request) -> web.Response:
        """Return the status of one instance."""
        query = Query(request.query)
        instance = self._orchestrations.get(request.match_info["id"])
        body: dict[str, Any] = status_json(instance, with_input=query.claims("showInput", default=True))
        if query.claims("showHistory"):
            history = self._orchestrations.history(instance.instance_id)
            body["historyEvents"] = history_json(history, with_output=query.claims("showHistoryOutput"))
        headers = {} if instance.status.is_final else {"Location": str(request.url), "Retry-After": "5"}
        return web.json_response(body, status=_status_code(instance, query), headers=headers)

    async def purge(self, request: web.Request) -> web.Response:
        """Purge one instance or entity."""
        instance_id = request.match_info["id"]
        if not is_entity(instance_id):
            self._orchestrations.purge(instance_id)
        elif not self._orchestrations.purge_entity(instance_id):
            raise NoSuchInstance(instance_id)
        return web.json_response({"instancesDeleted": 1})

    async def purge_instances(self, request: web.Request) -> web.Response:
        """Purge the ended instances that were created in a period."""
        query = Query(request.query)
        since = query.instant("createdTimeFrom")
        if since is None:
            raise QueryFault(400, "Please provide value for 'createdTimeFrom' parameter.")
        count = self._orchestrations.purge_created(since, query.instant("createdTimeTo"), query.statuses())
        return web.json_response({"instancesDeleted": count}) if count else web.Response(status=404)

    async def raise_event(self, request: web.Request) -> web.Response:
        """Send an external event."""
        instance_id = request.match_info["id"]
        if self._orchestrations.get(instance_id).status.is_final:
            raise HasEnded(instance_id)
        if request.content_type != "application/json":
            return _problem(400, "Only application/json request content is supported")
        self._orchestrations.raise_event(instance_id, request.match_info["event"], await _body(request) or "null")
        return web.Response(status=202)

    async def operate(self, request: web.Request) -> web.Response:
        """Terminate, suspend, resume or restart."""
        instance_id, operation = request.match_info["id"], request.match_info["operation"].lower()
        query = Query(request.query)
        if operation == "restart":
            under_new_id = query.claims("restartWithNewInstanceId", default=True)
            return self._links(request, self._orchestrations.restart(instance_id, under_new_id=under_new_id))
        if operation == "rewind":
            return await self.not_emulated(request)
        known = {
            "terminate": self._orchestrations.terminate,
            "suspend": self._orchestrations.suspend,
            "resume": self._orchestrations.resume,
        }
        if operation not in known:
            return web.Response(status=404)
        known[operation](instance_id, query.text("reason"))
        return web.Response(status=202)

    async def read_entity(self, request: web.Request) -> web.Response:
        """Return the state of an entity."""
        state = self._orchestrations.entity_state(request.match_info["name"], request.match_info["key"])
        return web.Response(status=404) if state is None else web.json_response(text=state)

    async def signal_entity(self, request: web.Request) -> web.Response:
        """Send an operation to an entity."""
        name, key = request.match_info["name"], request.match_info["key"]
        operation = "delete" if request.method == "DELETE" else Query(request.query).text("op") or ""
        text = await request.text() or None
        if text is not None:
            text = await _body(request) if request.content_type == "application/json" else json.dumps(text)
        self._orchestrations.signal_entity(name, key, operation, text)
        return web.Response(status=202)

    async def not_emulated(self, request: web.Request) -> web.Response:
        """Refuse an operation of the extension that this host does not have."""
        raise QueryFault(501, f"{request.method} {request.path} is not emulated by the local functions host")


def _status_code(instance: Instance, query: Query) -> int:
    if not instance.status.is_final:
        return 202
    return 500 if instance.status is Status.FAILED and query.claims("returnInternalServerErrorOnFailure") else 200


async def _body(request: web.Request) -> str | None:
    text = await request.text()
    try:
        return as_json(text) if text else None
    except ValueError:
        raise QueryFault(400, "Invalid JSON content") from None


def _problem(status: int, message: str, detail: str | None = None) -> web.Response:
    body = {
        "Message": message,
        "ExceptionMessage": detail or message,
        "ExceptionType": "System.ArgumentException",
        "StackTrace": "",
    }
    return web.json_response(body, status=status)


def _to_token(instance_id: str) -> str:
    return base64.urlsafe_b64encode(instance_id.encode()).decode()


def _from_token(token: str) -> str:
    try:
        return base64.urlsafe_b64decode(token).decode()
    except ValueError:
        raise QueryFault(400, f"{CONTINUATION} does not come from this host") from None
