"""A problem as an answer of the host."""

import azure.functions as func
import msgspec

from core.api.problems import SAFE, Problem


def problem_response(problem: Problem) -> func.HttpResponse:
    """Write a problem as an answer."""
    kind = problem.kind
    body = {"type": kind.uri, "title": kind.title, "status": kind.status, "detail": problem.detail, **problem.more}
    if problem.errors:
        body["errors"] = list(problem.errors)
    headers = {**SAFE, **problem.headers}
    return func.HttpResponse(
        msgspec.json.encode(body), status_code=kind.status, mimetype="application/problem+json", headers=headers
    )
