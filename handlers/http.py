"""The HTTP routes of the app: how one is registered, and its way to the operation that answers. Light to import."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import azure.functions as func

# Who may ask: anybody; who holds a key of the function or of the app; who holds the app's master key.
OPEN, READING, CHANGING = func.AuthLevel.ANONYMOUS, func.AuthLevel.FUNCTION, func.AuthLevel.ADMIN


@dataclass(frozen=True, slots=True)
class Route:
    """What a function answers to, below the prefix of `host.json`; `level` is the key that it asks for."""

    method: str
    template: str
    level: func.AuthLevel


ROUTES: dict[str, Route] = {}  # by the name of the function

Register = Callable[[Callable[..., Any]], Any]


def reads(bp: func.Blueprint, template: str, level: func.AuthLevel = READING) -> Register:
    """Serve GET of a route with the decorated function."""
    return _serve(bp, Route("GET", template, level))


def changes(bp: func.Blueprint, template: str) -> Register:
    """Serve POST of a route with the decorated function: it asks for a key of its own."""
    return _serve(bp, Route("POST", template, CHANGING))


def _serve(bp: func.Blueprint, route: Route) -> Register:
    def register(function: Callable[..., Any]) -> Any:
        ROUTES[function.__name__] = route
        served = bp.route(route=route.template, methods=[route.method], auth_level=route.level)(function)
        return bp.function_name(function.__name__)(served)

    return register


def respond(req: func.HttpRequest, operation: str) -> func.HttpResponse:
    """Answer a request with the operation of this name; whatever is wrong with it is a problem (RFC 9457).

    What operations need is imported with the first request: indexing the app loads none of it.
    """
    from handlers.answering import answer
    from handlers.operations import find_operation

    return answer(req, find_operation(operation))
