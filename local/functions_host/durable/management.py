"""Serve the HTTP API of the Durable extension: to people at /runtime/webhooks/durabletask, to the SDK at /durabletask.

Source: HttpApiHandler (keys are not checked, instants are cut to seconds), BindingHelper, and DurableClient's reshaping
of the history: the event of an end replaces the event of its order.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from aiohttp import web

from local.functions_host.durable.functions import UnknownFunction
from local.functions_host.durable.instances import Event, EventType, Instance, Status
from local.functions_host.durable.orchestrations import HasEnded, NoSuchInstance, NotEnded, Orchestrations, WrongId
from local.functions_host.durable.store import InstanceExists

WEBHOOK = "/runtime/webhooks/durabletask"
RPC = "/durabletask"
PLACEHOLDER = "INSTANCEID"
KEY = "code=local"
LINKS = {
    "statusQueryGetUri": "",
    "sendEventPostUri": "/raiseEvent/{eventName}",
    "terminatePostUri": "/terminate?reason={text}",
    "rewindPostUri": "/rewind?reason={text}",
    "purgeHistoryDeleteUri": "",
    "restartPostUri": "/restart",
    "suspendPostUri": "/suspend?reason={text}",
    "resumePostUri": "/resume?reason={text}",
}


def management_links(base_url: str, hub_name: str, instance_id: str) -> dict[str, str]:
    """Return the management addresses of one instance. `base_url` is the address of the host."""
    prefix = f"{base_url}{WEBHOOK}/instances/{quote(instance_id, safe='')}"
    query = f"taskHub={quote(hub_name)}&connection=Storage&{KEY}"
    links = {name: f"{prefix}{path}{'&' if '?' in path else '?'}{query}" for name, path in LINKS.items()}
    return {"id": instance_id, **links}


def client_input(base_url: str, port: int, hub_name: str) -> str:
    """Return the value of a durableClient binding. The SDK itself calls the address `rpcBaseUrl`."""
    create = f"{base_url}{WEBHOOK}/orchestrators/{{functionName}}[/{{instanceId}}]"
    waiting = "timeout={timeoutInSeconds}&pollingInterval={intervalInSeconds}"
    value = {
        "taskHubName": hub_name,
        "connectionName": None,
        "creationUrls": {
            "createNewInstancePostUri": f"{create}?{KEY}",
            "createAndWaitOnNewInstancePostUri": f"{create}?{waiting}&{KEY}",
        },
        "managementUrls": management_links(base_url, hub_name, PLACEHOLDER),
        "baseUrl": f"{base_url}{WEBHOOK}",
        "requiredQueryStringParameters": KEY,
        "rpcBaseUrl": f"http://127.0.0.1:{port}{RPC}/",
        "httpBaseUrl": None,
    }
    return json.dumps(value)


TURNS = (EventType.ORCHESTRATOR_STARTED, EventType.ORCHESTRATOR_COMPLETED)
OMITTED = ("EventId", "IsPlayed", "Version", "Tags", "OrchestrationInstance", "ParentInstance")
ENDS = ("TaskScheduledId", "TimerId")
VALUES = ("Result", "Input")


def status_json(instance: Instance, *, with_input: bool = True) -> dict[str, Any]:
    return {
        "name": instance.name,
        "instanceId": instance.instance_id,
        "runtimeStatus": instance.status.value,
        "input": _parsed(instance.input) if with_input else None,
        "customStatus": _parsed(instance.custom_status),
        "output": _parsed(instance.output),
        "createdTime": _to_seconds(instance.created_at),
        "lastUpdatedTime": _to_seconds(instance.updated_at),
    }


def history_json(history: Sequence[Event], *, with_output: bool) -> list[dict[str, Any]]:
    """Return the history. `with_output` adds results and inputs."""
    ordered = {each["EventId"]: each for each in history if each["EventId"] >= 0}
    ended = {number for each in history if (number := _number_of(each)) is not None}
    return [
        _shown(each, ordered, with_output=with_output)
        for each in history
        if each["EventType"] not in TURNS and each["EventId"] not in ended
    ]


def _number_of(event: Event) -> int | None:
    """Return the sequence number of the order that an event ends, or None."""
    return next((event[name] for name in ENDS if name in event), None)


def _shown(event: Event, ordered: dict[int, Event], *, with_output: bool) -> dict[str, Any]:
    shown = {name: value for name, value in event.items() if name not in (*OMITTED, "TaskScheduledId", "Name")}
    kind = EventType(event["EventType"])
    shown["EventType"] = "".join(part.title() for part in kind.name.split("_"))
    if event.get("Name") is not None:
        shown["Name" if kind is EventType.EVENT_RAISED else "FunctionName"] = event["Name"]
    order = ordered.get(number) if (number := _number_of(event)) is not None else None
    if order is not None:
        shown["ScheduledTime"] = order["Timestamp"]
        if order.get("Name") is not None:
            shown["FunctionName"] = order["Name"]
    if with_output:
        return {**shown, **{name: _parsed(shown[name]) for name in VALUES if name in shown}}
    return {name: value for name, value in shown.items() if name not in VALUES}


def _parsed(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def _to_seconds(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class QueryFault(Exception):
    """The request is refused with `status` and this text."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Query:
    """Reads the values as the extension does."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in values.items()}

    def text(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def claims(self, name: str, *, default: bool = False) -> bool:
        """Return True or False. Any other value is the default."""
        return {"true": True, "false": False}.get((self.text(name) or "").lower(), default)


Handler = Callable[[web.Request], Awaitable[web.Response]]


class Management:
    """The handlers. `hub_name` is the only task hub."""

    def __init__(self, orchestrations: Orchestrations, hub_name: str) -> None:
        self._orchestrations = orchestrations
        self._hub_name = hub_name

    def add_routes(self, router: web.UrlDispatcher) -> None:
        routes: list[tuple[str, str, Handler]] = [
            ("POST", "/orchestrators/{name}", self.start),
            ("POST", "/orchestrators/{name}/{id}", self.start),
            ("GET", "/instances/{id}", self.status),
            ("DELETE", "/instances/{id}", self.purge),
            ("POST", "/instances/{id}/raiseEvent/{event}", self.raise_event),
            ("POST", "/instances/{id}/{operation}", self.operate),
            ("*", "/instances{slash:/?}", self.not_emulated),
            ("*", "/entities{rest:.*}", self.not_emulated),
        ]
        for prefix in (WEBHOOK, RPC):
            for method, path, handler in routes:
                router.add_route(method, prefix + path, self._answering(handler))

    def _answering(self, handler: Handler) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            try:
                hub_name = Query(request.query).text("taskHub") or self._hub_name
                if hub_name.lower() != self._hub_name.lower():
                    text = f"the task hub {hub_name} is not emulated, only {self._hub_name} of host.json"
                    raise QueryFault(501, text)
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

    async def start(self, request: web.Request) -> web.Response:
        query = Query(request.query)
        for name in ("timeout", "pollingInterval", "version"):
            if query.text(name) is not None:
                raise QueryFault(501, f"{name} is not emulated by the local functions host")
        text = await _body(request)
        started = self._orchestrations.start(request.match_info["name"], request.match_info.get("id"), text)
        links = management_links(str(request.url.origin()), self._hub_name, started)
        headers = {"Location": links["statusQueryGetUri"], "Retry-After": "10"}
        return web.json_response(links, status=202, headers=headers)

    async def status(self, request: web.Request) -> web.Response:
        query = Query(request.query)
        instance = self._orchestrations.get(request.match_info["id"])
        body: dict[str, Any] = status_json(instance, with_input=query.claims("showInput", default=True))
        if query.claims("showHistory"):
            history = self._orchestrations.history(instance.instance_id)
            body["historyEvents"] = history_json(history, with_output=query.claims("showHistoryOutput"))
        headers = {} if instance.status.is_final else {"Location": str(request.url), "Retry-After": "5"}
        failed = instance.status is Status.FAILED and query.claims("returnInternalServerErrorOnFailure")
        code = 500 if failed else 200 if instance.status.is_final else 202
        return web.json_response(body, status=code, headers=headers)

    async def purge(self, request: web.Request) -> web.Response:
        self._orchestrations.purge(request.match_info["id"])
        return web.json_response({"instancesDeleted": 1})

    async def raise_event(self, request: web.Request) -> web.Response:
        instance_id = request.match_info["id"]
        if self._orchestrations.get(instance_id).status.is_final:
            raise HasEnded(instance_id)
        if request.content_type != "application/json":
            return _problem(400, "Only application/json request content is supported")
        self._orchestrations.raise_event(instance_id, request.match_info["event"], await _body(request) or "null")
        return web.Response(status=202)

    async def operate(self, request: web.Request) -> web.Response:
        instance_id, operation = request.match_info["id"], request.match_info["operation"].lower()
        if operation in ("restart", "rewind"):
            return await self.not_emulated(request)
        known = {
            "terminate": self._orchestrations.terminate,
            "suspend": self._orchestrations.suspend,
            "resume": self._orchestrations.resume,
        }
        if operation not in known:
            return web.Response(status=404)
        known[operation](instance_id, Query(request.query).text("reason"))
        return web.Response(status=202)

    async def not_emulated(self, request: web.Request) -> web.Response:
        """Refuse an operation of the extension that this host does not have."""
        raise QueryFault(501, f"{request.method} {request.path} is not emulated by the local functions host")


async def _body(request: web.Request) -> str | None:
    text = await request.text()
    try:
        if text:
            json.loads(text)
    except ValueError:
        raise QueryFault(400, "Invalid JSON content") from None
    return text or None


def _problem(status: int, message: str, detail: str | None = None) -> web.Response:
    body = {
        "Message": message,
        "ExceptionMessage": detail or message,
        "ExceptionType": "System.ArgumentException",
        "StackTrace": "",
    }
    return web.json_response(body, status=status)
