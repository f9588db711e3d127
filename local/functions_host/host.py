"""Load one app, start its triggers, and stop everything in order."""

import asyncio
import json
import os
import random
import sqlite3
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from local.functions_host.app_settings import HubConnection
from local.functions_host.blobs import BlobService, BlobState, connection_to
from local.functions_host.builtin_worker import BuiltinWorker
from local.functions_host.clock import Clock, SystemClock
from local.functions_host.durable.task_hub import TaskHub
from local.functions_host.errors import HostError, SettingsFault
from local.functions_host.event_hub_listener import EventHubListener
from local.functions_host.event_source import EventSource
from local.functions_host.function import DURABLE, FunctionDescription
from local.functions_host.http import HttpFront, HttpServer, refusing
from local.functions_host.invoker import Invoker, Worker
from local.functions_host.partition_pump import REOPEN_AFTER
from local.functions_host.sdk_stream import SdkSource
from local.functions_host.settings import EventHubOptions, Settings, Triggers, read_settings, resolve_triggers
from local.functions_host.state_file import StateFile
from local.functions_host.timers import TimerListener


class Admin:
    """The handlers of /admin."""

    def __init__(self, host: "FunctionsHost") -> None:
        self._host = host

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/admin/functions", self.list_functions)
        router.add_post("/admin/functions/{name}", self.invoke)
        router.add_get("/admin/host/ping", self.ping)
        router.add_get("/admin/host/status", self.status)
        router.add_post("/admin/host/drain", self.drain)
        router.add_get("/admin/host/drain/status", self.drain_status)
        router.add_post("/admin/faults", self.make_faults)

    async def list_functions(self, _: web.Request) -> web.Response:
        shapes = [
            {
                "name": function.name,
                "isDisabled": self._host.is_disabled(function.name),
                "config": {"name": function.name, "bindings": [dict(one.settings) for one in function.bindings]},
            }
            for function in self._host.functions
        ]
        return web.json_response(shapes)

    async def invoke(self, request: web.Request) -> web.Response:
        """Fire a timer. Refuse a function with any other trigger."""
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
        return web.Response()

    async def status(self, _: web.Request) -> web.Response:
        return web.json_response({"id": "local-functions-host", "state": self._host.state, "version": "4.local"})

    async def drain(self, _: web.Request) -> web.Response:
        """Begin to stop the triggers. HTTP stays open."""
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


STORAGE = "AzureWebJobsStorage"

State = TypeVar("State")
OpenSource = Callable[[HubConnection, EventHubOptions, Clock], EventSource]


@dataclass(frozen=True, slots=True)
class HostOptions:
    """The options of a host. `port` 0 takes a free port. Without `state`, nothing outlives the host. `storage` is the
    connection string of an account that gets the host checkpoints instead. Only tests set the rest. A request whose
    headers or body take longer than `patience` is dropped. A reader that stopped opens again after `reopen_after`. No
    pause between two tries of a function is longer than `longest_pause`. None: as its retry policy says."""

    port: int = 7071
    state: Path | None = None
    storage: str | None = None
    worker: Worker | None = None
    open_source: OpenSource = SdkSource
    clock: Clock = field(default_factory=SystemClock)
    patience: timedelta = timedelta(seconds=20)
    reopen_after: timedelta = REOPEN_AFTER
    longest_pause: timedelta | None = None
    chance: Callable[[], float] = random.random


class FunctionsHost:
    """Runs the app in `directory` from `start` to `stop`, on the loop that calls them.

    The app's module is always `function_app`, so one process runs one app.
    """

    def __init__(self, directory: Path, options: HostOptions | None = None) -> None:
        self._directory = directory.resolve()
        self._options = options or HostOptions()
        self._environment_added: tuple[str, ...] = ()
        self._background: set[asyncio.Task[None]] = set()
        self._drain: asyncio.Task[None] | None = None
        self.functions: tuple[FunctionDescription, ...] = ()
        self._listeners: dict[str, EventHubListener] = {}
        self._timers: dict[str, TimerListener] = {}
        self._task_hub: TaskHub | None = None

    async def start(self) -> None:
        """Load the app and start its triggers. Raises HostError, with nothing left running, when it cannot run."""
        settings = read_settings(self._directory)
        self._settings = settings
        self._environment_added = tuple(settings.app.from_file)
        os.environ.update(settings.app.from_file)
        self._worker = self._options.worker or BuiltinWorker(settings.threads)
        try:
            try:
                self.functions = tuple(map(self._pausing, await self._worker.index(self._directory)))
            except HostError as error:
                if settings.faults:
                    raise SettingsFault((*settings.faults, str(error))) from error
                raise
            self._triggers = resolve_triggers(self.functions, settings)
            self._invoker = Invoker(
                self._worker, self._options.clock, self._options.chance, settings.host.function_timeout
            )
            storage = self._options.storage
            self._state = _open_state(
                self._options.state, lambda path: BlobState(path, storage) if storage else StateFile(path)
            )
            self._task_hub = self._open_task_hub(settings)
            await self._open_server()
        except BaseException:
            await self._worker.close()
            self._remove_environment()
            raise
        if self._task_hub is not None:
            self._task_hub.start(self.base_url, self.port)
        self._start_listeners(self._triggers, settings)

    def _pausing(self, function: FunctionDescription) -> FunctionDescription:
        longest = self._options.longest_pause
        if longest is None or function.retry is None:
            return function
        return replace(function, retry=function.retry.within(longest))

    def _open_task_hub(self, settings: Settings) -> TaskHub | None:
        """Open the Durable functions of an app that has some or calls them."""
        if not any(binding.type in DURABLE for function in self.functions for binding in function.bindings):
            return None
        functions, options = self._triggers.durable, settings.host.durable
        hub = _open_state(self._options.state, lambda path: TaskHub(path, functions, options))
        hub.open(self._invoker, self._options.clock)
        self._invoker.bound_inputs = hub.inputs_of
        return hub

    async def _open_server(self) -> None:
        limits = refusing(self._options.patience)
        application = web.Application(client_max_size=self._settings.largest_body, middlewares=limits)
        Admin(self).add_routes(application.router)
        if self._task_hub is not None:
            self._task_hub.add_routes(application.router)
        if not self._options.storage:
            BlobService(self._state, [one.address for _, one in self._triggers.event_hubs]).add_routes(
                application.router
            )
        application.router.add_route("*", r"/{path:[\s\S]*}", HttpFront(self._triggers.http, self._invoker).answer)
        self._server = HttpServer(application, self._options.patience)
        self.port = await self._server.start(self._options.port)
        if not any(value for name, value in self._settings.app.values.items() if name.startswith(STORAGE)):
            os.environ[STORAGE] = self._options.storage or connection_to(self.port)
            self._environment_added += (STORAGE,)

    def _start_listeners(self, triggers: Triggers, settings: Settings) -> None:
        clock, options = self._options.clock, settings.host.event_hubs
        for function, connection in triggers.event_hubs:
            source = self._options.open_source(connection, options, clock)
            listener = EventHubListener(function, connection.address, source, self._options.reopen_after)
            listener.start(self._invoker, self._state, options, clock)
            self._listeners[function.name] = listener
        for function, schedule in triggers.timers:
            timer = TimerListener(function, schedule)
            timer.start(self._invoker, self._state, clock)
            self._timers[function.name] = timer

    async def drain(self) -> None:
        """Stop the triggers, finish running functions, write the host checkpoints. HTTP stays open. Safe to repeat."""
        self.begin_drain()
        if self._drain is not None:
            await asyncio.shield(self._drain)

    async def stop(self) -> None:
        await self.drain()
        await self._server.stop()
        await self._invoker.finished()
        await self._worker.close()
        # the HTTP session of the Durable client: one per process, bound to this loop, which nothing else closes
        if (module := sys.modules.get("azure.durable_functions.models.utils.http_utils")) is not None:
            await module._close_session()
        if self._task_hub is not None:
            self._task_hub.close()
        self._state.close()
        self._remove_environment()

    async def _finish(self) -> None:
        self._invoker.stop_retrying()
        hubs = (listener.stop() for listener in self._listeners.values())
        timers = (timer.stop() for timer in self._timers.values())
        await asyncio.gather(*hubs, *timers, *self._background)
        if self._task_hub is not None:
            await self._task_hub.stop()
        await self._invoker.finished()

    @property
    def base_url(self) -> str:
        """The address of the HTTP server, without a slash at the end."""
        return f"http://localhost:{self.port}"

    @property
    def routes(self) -> list[str]:
        """One line per function, as `func start` prints them."""
        http = {one.function.name: one for one in self._triggers.http}
        lines = []
        for function in self.functions:
            if one := http.get(function.name):
                lines.append(f"{function.name}: [{','.join(one.methods) or '*'}] {self.base_url}/{one.route.template}")
            else:
                lines.append(
                    f"{function.name}: {function.trigger.type}{' (disabled)' * self.is_disabled(function.name)}"
                )
        return lines

    @property
    def state(self) -> str:
        if self._drain is None:
            return "Running"
        return "Drained" if self._drain.done() else "Draining"

    @property
    def running(self) -> int:
        return self._invoker.running

    @property
    def retrying(self) -> int:
        return self._invoker.retrying

    def is_disabled(self, function_name: str) -> bool:
        return self._settings.app.is_disabled(function_name)

    def fire(self, function_name: str) -> None:
        """Start a timer function now, after its current run. Raises KeyError for any other function."""
        task = asyncio.create_task(self._timers[function_name].fire())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def begin_drain(self) -> None:
        if self._drain is None:
            self._drain = asyncio.create_task(self._finish())

    def redeliver(self, count: int) -> None:
        for listener in self._listeners.values():
            listener.redeliver(count)

    def skip(self, count: int) -> None:
        for listener in self._listeners.values():
            listener.skip(count)

    def _remove_environment(self) -> None:
        for name in self._environment_added:
            os.environ.pop(name, None)


def _open_state(path: Path | None, open_at: Callable[[Path | None], State]) -> State:
    try:
        return open_at(path)
    except sqlite3.Error as error:
        raise HostError(f"the state file {path} cannot be opened: {error}") from error
