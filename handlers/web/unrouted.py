"""Problems for requests that no route answers: the wrong method, or an unknown address."""

import re
from collections.abc import Iterable

import azure.functions as func

from core.api.problems import METHOD, NO_ROUTE, Problem, clipped
from core.api.route import Route
from handlers.web.problems import problem_response

_PLACE = re.compile(r"\\\{\w+\\\}")


def answer_unrouted(req: func.HttpRequest, routes: Iterable[Route]) -> func.HttpResponse:
    """Answer 405 where the address takes other methods, else 404."""
    path = req.route_params.get("path") or ""
    allowed = sorted({method for route in routes if _matches(route, path) for method in route.methods})
    if allowed:
        said = f"this address takes {' and '.join(allowed)}, not {clipped(req.method)}"
        return problem_response(Problem(METHOD, said, headers={"Allow": ", ".join(allowed)}))
    return problem_response(Problem(NO_ROUTE, "the app has no route at this address; /api/openapi.json lists all"))


def _matches(route: Route, path: str) -> bool:
    pattern = _PLACE.sub("[^/]+", re.escape(route.template))
    return re.fullmatch(pattern, path.strip("/"), re.IGNORECASE) is not None
