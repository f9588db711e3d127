"""Answer a request with its operation: read it, run it, write what it gives."""

import logging
from datetime import UTC, datetime

import azure.functions as func
import msgspec

from core.errors import HubledgerError
from handlers.operation import Answer, Call, Operation
from handlers.problems import Problem, of_fault, problem_response
from handlers.requests import read_body, read_path, read_query, who

log = logging.getLogger("hubledger.api")


def answer(req: func.HttpRequest, operation: Operation) -> func.HttpResponse:
    """The operation's answer, or a problem; one line is logged for what is refused."""
    try:
        path, query, body = read_path(req, operation), read_query(req, operation), read_body(req, operation)
        done = operation.run(Call(path, query, body, who(req), datetime.now(UTC)))
    except Problem as problem:
        facts = {"problem": problem.kind.name, "detail": problem.detail, "who": who(req)}
        log.info("request refused", extra={"action": operation.name, **facts})
        return problem_response(problem)
    except HubledgerError as fault:
        log.warning("request failed", extra={"action": operation.name, "error": str(fault)})
        return problem_response(of_fault(fault))
    full = done if isinstance(done, Answer) else Answer(done)
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **full.headers}
    octets = full.body if isinstance(full.body, bytes) else msgspec.json.encode(full.body)
    return func.HttpResponse(octets, status_code=full.status, mimetype=full.media, headers=headers)
