"""Put the task hub of an app together: its Durable functions, their state, engine and HTTP API."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web
from azure.functions.meta import Datum

from local.functions_host.clock import Clock
from local.functions_host.durable.engine import Engine, Surroundings
from local.functions_host.durable.functions import DurableFunctions
from local.functions_host.durable.management import Management, client_input
from local.functions_host.durable.orchestrations import Orchestrations
from local.functions_host.durable.store import DurableStore
from local.functions_host.function import DURABLE_CLIENT, FunctionDescription
from local.functions_host.invoker import Invoker
from local.functions_host.settings import DurableOptions


def _new_id() -> str:
    return uuid.uuid4().hex


class TaskHub:
    """Open it, start it when the host listens, stop it after all its callers, then close it."""

    def __init__(self, path: Path | None, functions: Sequence[FunctionDescription], options: DurableOptions) -> None:
        self._functions = DurableFunctions(functions)
        self._options = options
        self._store = DurableStore(path)
        self._client: Any = None

    def open(self, invoker: Invoker, clock: Clock) -> None:
        around = Surroundings(self._store, invoker, self._functions, clock, _new_id)
        self._engine = Engine(around, self._options)
        self._orchestrations = Orchestrations(self._store, self._functions, clock, _new_id, self._engine.wake)

    def add_routes(self, router: web.UrlDispatcher) -> None:
        Management(self._orchestrations, self._options.hub_name).add_routes(router)

    def start(self, base_url: str, port: int) -> None:
        """Start due work. Clients find the API at these addresses."""
        self._client = Datum(client_input(base_url, port, self._options.hub_name), "string")
        self._engine.start()

    async def stop(self) -> None:
        await self._engine.stop()

    def close(self) -> None:
        self._store.close()

    def inputs_of(self, function: FunctionDescription) -> Mapping[str, Any]:
        return {each.name: self._client for each in function.bindings if each.type == DURABLE_CLIENT}
