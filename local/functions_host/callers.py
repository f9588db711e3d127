"""Refuse callers from outside this machine: a foreign Host or Origin, an order that is not JSON, a body that trickles
or is too large.

The server listens on loopback and checks no keys, but a browser here also runs pages of strangers. Such a page reaches
loopback by a name of its own that it points at 127.0.0.1 (its Host is foreign), or by a form (its Origin is foreign).
"""

import asyncio
import logging
import re
from datetime import timedelta

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

logger = logging.getLogger("functions_host")

_LOOPBACK = r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?\Z"
HOST = re.compile(_LOOPBACK, re.IGNORECASE)
ORIGIN = re.compile("https?://" + _LOOPBACK, re.IGNORECASE)
READS = frozenset((hdrs.METH_GET, hdrs.METH_HEAD))
JSON = "application/json"
ADMIN = "/admin/"


def refusing(patience: timedelta) -> tuple[Middleware, ...]:
    """Return the middlewares of the host; a body that is not whole after `patience` ends its connection."""

    @web.middleware
    async def read_whole(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            async with asyncio.timeout(patience.total_seconds()):
                await request.read()
        except TimeoutError:
            detail = f"the body did not arrive within {patience.total_seconds():g} s: send the request again"
            answer = _problem(408, "Request Timeout", detail)
            answer.force_close()
            return answer
        return await handler(request)

    return (_from_here, _in_json, _within_limit, read_whole)


@web.middleware
async def _from_here(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a request for a different machine, or one that a foreign page sent."""
    hosts, origins = request.headers.getall(hdrs.HOST, []), request.headers.getall(hdrs.ORIGIN, [])
    if len(hosts) != 1 or not HOST.match(hosts[0]):
        return _refused(421, "Misdirected Request", "this host answers only to localhost, 127.0.0.1 and [::1]")
    if not all(map(ORIGIN.match, origins)):
        return _refused(403, "Forbidden", "this host answers no page of a foreign origin: open its own pages")
    return await handler(request)


@web.middleware
async def _in_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse an order to /admin whose type a form of any page could send."""
    is_order = request.path.lower().startswith(ADMIN) and request.method not in READS
    if is_order and request.content_type != JSON:
        return _refused(415, "Unsupported Media Type", f"/admin takes {JSON} only: set the header Content-Type")
    return await handler(request)


@web.middleware
async def _within_limit(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Fail for a body that is larger than the limit before it is read, as Azure's host does (its issue 10519)."""
    if (request.content_length or 0) > request.client_max_size:
        logger.error("body is larger than FUNCTIONS_REQUEST_BODY_SIZE_LIMIT", extra={"action": "body_too_large"})
        answer = web.Response(status=500)
        answer.force_close()
        return answer
    return await handler(request)


def _refused(status: int, title: str, detail: str) -> web.Response:
    """Refuse without reading the body, which may be of any length."""
    answer = _problem(status, title, detail)
    answer.force_close()
    return answer


def _problem(status: int, title: str, detail: str) -> web.Response:
    body = {"title": title, "status": status, "detail": detail}
    return web.json_response(body, status=status, content_type="application/problem+json")
