"""The HTTP API: one table of its routes, and the functions that the host indexes, made from the table."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import azure.durable_functions as df
import azure.functions as func

from core.api.route import CHANGING, COUNTING, OPEN, READING, REVEALING, Route
from core.tasks.statuses import OPEN as OPEN_TASKS
from handlers.room_routes import own_room, with_room
from handlers.tasks import drive

if TYPE_CHECKING:
    from core.api.operation import Operation

POSITION = "{partition_id}/{sequence_number}"
OWN = (
    Route("GET", "status", COUNTING, "status.status"),
    Route("GET", "status/history", COUNTING, "status.status_history"),
    Route("GET", f"ledger/{POSITION}", READING, "ledger.explain_number"),
    Route("GET", "ledger", READING, "ledger.find_commits"),
    Route("GET", "ledger/audit", READING, "audits.audit_ledger"),
    Route("GET", "dead-letters", READING, "letters.list_letters"),
    Route("GET", "dead-letters/groups", READING, "letters.group_letters"),
    Route("GET", f"dead-letters/{POSITION}", READING, "letters.show_letter"),
    Route("GET", "dead-letters/preview", READING, "redrives.preview_redrive"),
    Route("GET", "tasks", READING, "tasks.list_tasks"),
    Route("GET", "tasks/{task_id}", READING, "tasks.show_task"),
    Route("PUT", "tasks/{task_id}", CHANGING, "tasks.put_task", drives=True),
    Route("GET", "tasks/{task_id}/diff", REVEALING, "replays.show_replay_diff"),
    Route("POST", "tasks/{task_id}/pause", CHANGING, "tasks.pause_task"),
    Route("POST", "tasks/{task_id}/resume", CHANGING, "tasks.resume_task", drives=True),
    Route("POST", "tasks/{task_id}/cancel", CHANGING, "tasks.cancel_task"),
    Route("POST", "erasure-keys/forget", CHANGING, "erasure_keys.forget_erasure_keys"),
    Route("POST", "streams/next-incarnation", CHANGING, "incarnations.open_next_incarnation"),
    Route("POST", "aggregations", CHANGING, "aggregations.start_aggregation"),
    Route("GET", "aggregations", READING, "aggregations.list_aggregations"),
    Route("GET", "aggregations/runs/{run_id}", READING, "aggregations.show_aggregation"),
    Route("POST", "aggregations/pause", CHANGING, "aggregations.pause_aggregation"),
    Route("POST", "aggregations/resume", CHANGING, "aggregations.resume_aggregation"),
    Route("POST", "aggregations/repair", CHANGING, "aggregations.repair_aggregation"),
    Route("POST", "aggregations/backfill", CHANGING, "aggregations.backfill_aggregation"),
    Route("POST", "aggregations/withdraw", CHANGING, "aggregations.withdraw_aggregation"),
    Route("POST", "aggregations/runs/{run_id}/cancel", CHANGING, "aggregations.cancel_aggregation"),
    Route("POST", "aggregations/runs/{run_id}/discard", CHANGING, "aggregations.discard_aggregation"),
    Route("GET", "revealed/dead-letters", REVEALING, "letters.list_letters", function="reveal_letters"),
    Route("GET", "revealed/dead-letters/groups", REVEALING, "letters.group_values", function="reveal_groups"),
    Route("GET", "revealed/dead-letters/preview", REVEALING, "redrives.preview_redrive", function="reveal_preview"),
    Route(
        "GET",
        f"revealed/dead-letters/{POSITION}",
        REVEALING,
        "letters.show_letter",
        function="reveal_letter",
    ),
    Route(
        "GET",
        f"revealed/ledger/{POSITION}",
        REVEALING,
        "ledger.explain_number",
        function="reveal_number",
    ),
    Route("GET", "revealed/ledger", REVEALING, "ledger.list_places", function="reveal_places"),
    Route("GET", "revealed/stops", REVEALING, "status.list_stops", function="reveal_stops"),
    Route("GET", "health/live", OPEN, "status.health_live"),
    Route("GET", "health/ready", OPEN, "status.health_ready"),
    Route("GET", "health/ledger", COUNTING, "status.health_ledger"),
    Route("GET", "openapi.json", OPEN, "description.openapi"),
    Route("GET", "ops", OPEN, "description.ops"),
    Route("GET", "ops/{file}", OPEN, "description.ops_file"),
)

ROUTES = with_room(OWN, own_room())
_ANYBODY, _KEY = func.AuthLevel.ANONYMOUS, func.AuthLevel.FUNCTION
bp = df.Blueprint()


class Operations(Mapping[Route, "Operation"]):
    """The operation of each route, loaded at its first request: a module that cannot be loaded ends no other route."""

    def __getitem__(self, route: Route) -> "Operation":
        module, _, name = route.operation.rpartition(".")
        found: Operation = getattr(import_module(f"handlers.operations.{module}" if route in OWN else module), name)
        return found

    def __iter__(self) -> Iterator[Route]:
        return iter(ROUTES)

    def __len__(self) -> int:
        return len(ROUTES)


OPERATIONS = Operations()


def _register(route: Route) -> None:
    """Register the function of a route. The modules that answer are imported at the first request."""

    def respond(req: func.HttpRequest, context: func.Context) -> func.HttpResponse:
        from handlers.web.answering import answer

        return answer(req, route, OPERATIONS, context.invocation_id)

    async def respond_and_drive(req: func.HttpRequest, context: func.Context, client: Any) -> func.HttpResponse:
        from handlers.web.answering import answer_unexpected

        response = await asyncio.to_thread(respond, req, context)
        if response.status_code < 300:
            try:
                task = json.loads(response.get_body())
                if task["status"] in OPEN_TASKS:
                    await drive(client, task["task_id"])
            except Exception:  # noqa: BLE001 - the task is stored, and the timer drives it
                return answer_unexpected(route, context.invocation_id)
        return response

    function: Callable[..., Any] = respond_and_drive if route.drives else respond
    function.__name__ = function.__qualname__ = route.name
    level = _KEY if route.level.needs_key else _ANYBODY
    served = bp.route(route=f"api/{route.template}", methods=[*route.methods], auth_level=level)(function)
    served = bp.function_name(route.name)(served)
    if route.drives:
        bp.durable_client_input(client_name="client")(served)


for _route in ROUTES:
    _register(_route)


# The host tries overlapping routes in the order of their functions' names (Azure/azure-functions-host#9876): this one
# must be the last. It lists no methods, so it receives every method.
@bp.function_name("zz_no_such_route")
@bp.route(route="api/{*path}", auth_level=_ANYBODY)
def zz_no_such_route(req: func.HttpRequest) -> func.HttpResponse:
    """Answer a request that no route takes: 405 with the methods of the address, else 404."""
    from handlers.web.answering import answer_unrouted

    return answer_unrouted(req, ROUTES)


# A template may not be empty, so it has an optional part that no text fits.
@bp.function_name("entrance")
@bp.route(route="{nothing:maxlength(0)?}", methods=["GET", "HEAD"], auth_level=_ANYBODY)
def entrance(req: func.HttpRequest) -> func.HttpResponse:
    """Lead from `/` to the page."""
    from core.api.problems import SAFE

    return func.HttpResponse(status_code=302, headers={**SAFE, "Location": "api/ops"})
