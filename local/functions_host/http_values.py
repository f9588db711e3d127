"""Convert HTTP requests and responses between aiohttp and the worker's protocol.

Source: the host's `ToRpcHttp`: header names are lower case, a query value without text is left out, values of one
name are joined by commas, and a body without Content-Length (chunked) arrives empty.
"""

from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Any

from aiohttp import web
from azure.functions.meta import Datum
from multidict import CIMultiDict

SET_BY_SERVER = frozenset(("content-length", "transfer-encoding"))


async def request_datum(request: web.Request, route_values: Mapping[str, str]) -> Any:
    """Return the HTTP trigger's input."""
    body = await request.read() if request.content_length else b""
    query = {name: ",".join(request.query.getall(name)) for name in request.query}
    headers = {name.lower(): ",".join(request.headers.getall(name)) for name in request.headers}
    value = {
        "method": _text(request.method),
        "url": _text(str(request.url)),
        "headers": _texts(headers),
        "query": _texts({name: text for name, text in query.items() if text}),
        "params": _texts(route_values),
        "body": Datum(body, "bytes"),
    }
    return Datum(value, "http")


def to_response(returned: Any) -> web.Response:
    """Return the response for a function's return value, a Datum or None."""
    if returned is None or returned.value is None:
        return web.Response(status=204)
    if returned.type != "http":
        return web.Response(text=str(returned.value))
    answer = returned.value
    headers: CIMultiDict[str] = CIMultiDict(
        (name, datum.value) for name, datum in answer["headers"].items() if name.lower() not in SET_BY_SERVER
    )
    for cookie in answer.get("cookies") or ():
        _add_cookie(headers, cookie)
    return web.Response(status=int(answer["status_code"].value), headers=headers, body=answer["body"].value)


def _add_cookie(headers: CIMultiDict[str], cookie: SimpleCookie) -> None:
    for morsel in cookie.values():
        headers.add("Set-Cookie", morsel.OutputString())


def _text(value: str) -> Any:
    return Datum(value, "string")


def _texts(values: Mapping[str, str]) -> dict[str, Any]:
    return {name: _text(value) for name, value in values.items()}
