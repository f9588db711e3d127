"""Answer a request with its operation: read it, run it, write what it gives; once per key where it changes things."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import azure.functions as func
import msgspec

from core.errors import HubledgerError
from core.idempotency import KeyClaim, KeyStore, standing
from handlers.desk import desk
from handlers.http import CHANGING, ROUTES
from handlers.operation import Answer, Answered, Call, Operation
from handlers.problems import IN_WORK, KEY_REUSED, Problem, of_fault, problem_response
from handlers.requests import idempotency_key, read_body, read_path, read_query, refuse_without_role, who

log = logging.getLogger("hubledger.api")
TURNS = 3  # claims of a key that others were faster at


class Kept(msgspec.Struct, frozen=True):
    """An answer as it is kept under a key."""

    status: int
    headers: dict[str, str]
    body: msgspec.Raw


def answer(req: func.HttpRequest, operation: Operation) -> func.HttpResponse:
    """The operation's answer, or a problem; one line is logged for what is changed, and for what is refused."""
    try:
        return _written(req, _answered(req, operation))
    except Problem as problem:
        facts = {"problem": problem.kind.name, "detail": problem.detail, "who": who(req)}
        log.info("request refused", extra={"action": operation.name, **facts})
        return problem_response(problem)
    except HubledgerError as fault:
        log.warning("request failed", extra={"action": operation.name, "error": str(fault)})
        return problem_response(of_fault(fault))


def _answered(req: func.HttpRequest, operation: Operation) -> Answer:
    changing = ROUTES[operation.name].level is CHANGING
    key = idempotency_key(req) if changing else ""
    path, query = read_path(req, operation), read_query(req, operation)
    body = read_body(req, operation)
    call = Call(path, query, body, who(req), datetime.now(UTC))
    if not changing:
        return _full(operation.run(call))
    refuse_without_role(req, desk().settings.operator_role)
    claim = KeyClaim(key, _hash_of(operation, path, body), call.at)
    return once(claim, desk().store.keys, lambda: _changed(operation, call))


def _changed(operation: Operation, call: Call[Any, Any, Any]) -> Answer:
    done = _full(operation.run(call))
    log.info("request done", extra={"action": operation.name, "who": call.who, "status": done.status})
    return done


def once(claim: KeyClaim, keys: KeyStore, run: Callable[[], Answer]) -> Answer:
    """Run under a key, or answer what an earlier run under it answered. Nothing is kept of a run that fails."""
    for _ in range(TURNS):
        kept = keys.read_key(claim.key)
        stands = standing(claim, kept)
        if stands == "answered" and kept is not None:
            return _again(kept.answer or "")
        if stands == "other_request":
            raise Problem(KEY_REUSED, f"Idempotency-Key {claim.key} was used for another request: take a new one")
        if stands == "free" and keys.claim_key(claim):
            return _claimed(claim, keys, run)
    raise Problem(IN_WORK, f"the request under {claim.key} is in work: ask again", headers={"Retry-After": "2"})


def _claimed(claim: KeyClaim, keys: KeyStore, run: Callable[[], Answer]) -> Answer:
    try:
        done = run()
    except BaseException:
        keys.release_key(claim)
        raise
    kept = Kept(done.status, dict(done.headers), msgspec.Raw(_octets(done)))
    keys.keep_answer(claim, msgspec.json.encode(kept).decode())
    return done


def _again(answer: str) -> Answer:
    kept = msgspec.json.decode(answer, type=Kept)
    return Answer(bytes(kept.body), kept.status, kept.headers)


def _hash_of(operation: Operation, path: object, body: object) -> str:
    """Of what was read, not of its octets: white space and the order of fields make no other request."""
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
