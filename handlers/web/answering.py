"""Answer a request with the operation of its route: read it, run it, write the answer; a change runs once per key."""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import azure.functions as func
import msgspec

from core.errors import HubledgerError
from core.idempotency import KeyClaim, KeyStore, key_of_caller, standing
from handlers.app import app
from handlers.web.operation import Answer, Answered, Call, Operation
from handlers.web.problems import IN_WORK, KEY_REUSED, SAFE, Problem, of_fault, problem_response, unexpected
from handlers.web.requests import idempotency_key, read_body, read_path, read_query, refuse_without_role, who
from handlers.web.route import CHANGING, OPEN, Route
from handlers.web.tags import is_known

log = logging.getLogger("hubledger.api")
CLAIMS = 3  # attempts to claim a key while other requests claim it first


class StoredAnswer(msgspec.Struct, frozen=True):
    """An answer in the form that is stored under a key."""

    status: int
    headers: dict[str, str]
    body: msgspec.Raw


def answer(
    req: func.HttpRequest, route: Route, operations: Mapping[Route, Operation], invocation_id: str
) -> func.HttpResponse:
    """Return the answer of the route's operation, or a problem; log one line for a change and one for a refusal.

    A refusal on an open route logs nothing: anybody could fill the log.
    """
    try:
        return _written(req, _answered(req, route, operations))
    except Problem as problem:
        if route.level is not OPEN:
            facts = {"problem": problem.kind.name, "detail": problem.detail, "who": who(req)}
            log.info("request refused", extra={"action": route.name, **facts})
        return problem_response(problem)
    except HubledgerError as fault:
        log.warning("request failed", extra={"action": route.name, "error": str(fault)})
        return problem_response(of_fault(fault))
    except Exception:  # noqa: BLE001 - every 500 of the API is a problem that leads to its stack
        return answer_unexpected(route, invocation_id)


def answer_unexpected(route: Route, invocation_id: str) -> func.HttpResponse:
    """Log the exception that is being handled, once and with its stack, and return its problem."""
    log.exception("request failed unexpectedly", extra={"action": route.name, "invocation_id": invocation_id})
    return problem_response(unexpected(invocation_id))


def _answered(req: func.HttpRequest, route: Route, operations: Mapping[Route, Operation]) -> Answer:
    operation = operations[route]
    changing = route.level is CHANGING
    key = idempotency_key(req) if changing else ""
    path, query = read_path(req, operation), read_query(req, operation)
    body = read_body(req, operation)
    call = Call(path, query, body, who(req), datetime.now(UTC), operations)
    if not changing:
        return _full(operation.run(call))
    refuse_without_role(req, app().settings.operator_role)
    claim = KeyClaim(key_of_caller(call.who, key), _hash_of(operation, path, body), call.at)
    return once(claim, app().keys, lambda: _changed(operation, call))


def _changed(operation: Operation, call: Call[Any, Any, Any]) -> Answer:
    done = _full(operation.run(call))
    log.info("request done", extra={"action": operation.name, "who": call.who, "status": done.status})
    return done


def once(claim: KeyClaim, keys: KeyStore, run: Callable[[], Answer]) -> Answer:
    """Run a request under its key, or return the answer of its earlier run. A run that fails stores nothing."""
    for _ in range(CLAIMS):
        stored = keys.read_key(claim.key)
        stands = standing(claim, stored)
        if stands == "answered" and stored is not None:
            return _again(stored.answer or "")
        if stands == "other_request":
            raise Problem(KEY_REUSED, "a different request of yours used this Idempotency-Key: send a new one")
        if stands == "free" and keys.claim_key(claim):
            return _claimed(claim, keys, run)
    said = "the request under this Idempotency-Key still runs: send it again"
    raise Problem(IN_WORK, said, headers={"Retry-After": "2"})


def _claimed(claim: KeyClaim, keys: KeyStore, run: Callable[[], Answer]) -> Answer:
    try:
        done = run()
    except BaseException:
        keys.release_key(claim)
        raise
    stored = StoredAnswer(done.status, dict(done.headers), msgspec.Raw(_octets(done)))
    keys.keep_answer(claim, msgspec.json.encode(stored).decode())
    return done


def _again(text: str) -> Answer:
    stored = msgspec.json.decode(text, type=StoredAnswer)
    return Answer(bytes(stored.body), stored.status, stored.headers)


def _hash_of(operation: Operation, path: object, body: object) -> str:
    """Hash the values of a request, not its octets: white space and the order of fields make no difference."""
    return sha256(msgspec.json.encode([operation.name, path, body])).hexdigest()


def _full(given: Answered | Answer) -> Answer:
    return given if isinstance(given, Answer) else Answer(given)


def _octets(given: Answer) -> bytes:
    return given.body if isinstance(given.body, bytes) else msgspec.json.encode(given.body)


def _written(req: func.HttpRequest, given: Answer) -> func.HttpResponse:
    headers = {**SAFE, **given.headers}
    if "ETag" in headers and is_known(headers["ETag"], req.headers.get("if-none-match", "")):
        return func.HttpResponse(status_code=304, headers=headers)
    return func.HttpResponse(_octets(given), status_code=given.status, mimetype=given.media, headers=headers)
