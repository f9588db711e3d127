"""Problems for requests that no route answers: the wrong method, or nothing at this address."""

import re
from collections.abc import Iterable

import azure.functions as func

from handlers.http import Route
from handlers.problems import METHOD, NO_ROUTE, Problem, problem_response

_PLACE = re.compile(r"\\\{\w+\\\}")


def answer_unrouted(req: func.HttpRequest, routes: Iterable[Route]) -> func.HttpResponse:
    """405 where another method would be answered, 404 elsewhere."""
    path = req.route_params.get("path") or ""
    allowed = sorted({route.method for route in routes if _matches(route, path)})
    if allowed:
        said = f"this address answers {' and '.join(allowed)}, not {req.method}"
        return problem_response(Problem(METHOD, said, headers={"Allow": ", ".join(allowed)}))
    return problem_response(Problem(NO_ROUTE, "no route of this app has this address; /api/openapi.json lists them"))


def _matches(route: Route, path: str) -> bool:
    pattern = _PLACE.sub("[^/]+", re.escape(route.template))
    return re.fullmatch(pattern, path.strip("/"), re.IGNORECASE) is not None
