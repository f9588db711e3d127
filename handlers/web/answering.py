"""Answer a request with the operation of its route: read it, run it, write the answer; a change runs once per key."""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import azure.functions as func
import msgspec

from core.errors import HubledgerError
from core.idempotency import KeyClaim, KeyStore, standing
from handlers.app import app
from handlers.web.operation import Answer, Answered, Call, Operation
from handlers.web.problems import IN_WORK, KEY_REUSED, Problem, of_fault, problem_response
from handlers.web.requests import idempotency_key, read_body, read_path, read_query, refuse_without_role, who
from handlers.web.route import CHANGING, Route
from handlers.web.slashes import redirect_of

log = logging.getLogger("hubledger.api")
CLAIMS = 3  # attempts to claim a key while other requests claim it first


class StoredAnswer(msgspec.Struct, frozen=True):
    """An answer in the form that is stored under a key."""

    status: int
    headers: dict[str, str]
    body: msgspec.Raw


def answer(req: func.HttpRequest, route: Route, operations: Mapping[Route, Operation]) -> func.HttpResponse:
    """Return the answer of the route's operation, or a problem; log one line for a change and one for a refusal."""
    try:
        return redirect_of(req, route) or _written(req, _answered(req, route, operations))
    except Problem as problem:
        facts = {"problem": problem.kind.name, "detail": problem.detail, "who": who(req)}
        log.info("request refused", extra={"action": route.name, **facts})
        return problem_response(problem)
    except HubledgerError as fault:
        log.warning("request failed", extra={"action": route.name, "error": str(fault)})
        return problem_response(of_fault(fault))


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
    claim = KeyClaim(key, _hash_of(operation, path, body), call.at)
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
            raise Problem(KEY_REUSED, f"a different request used Idempotency-Key {claim.key}: send a new key")
        if stands == "free" and keys.claim_key(claim):
            return _claimed(claim, keys, run)
    raise Problem(IN_WORK, f"the request under {claim.key} still runs: send it again", headers={"Retry-After": "2"})


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
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **given.headers}
    if "ETag" in headers and req.headers.get("if-none-match") == headers["ETag"]:
        return func.HttpResponse(status_code=304, headers=headers)
    return func.HttpResponse(_octets(given), status_code=given.status, mimetype=given.media, headers=headers)
