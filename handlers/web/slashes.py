"""Redirect an address that ends in a slash: from there, the relative links of a page would fail."""

import re
from urllib.parse import quote

import azure.functions as func

from core.api.problems import SAFE
from core.api.route import Route

_KEPT_SLASH = re.compile("%252(?=[Ff])")
_OF_A_QUERY = "!$&'()*+,-./:;=?@_~%"


def redirect_of(req: func.HttpRequest, route: Route) -> func.HttpResponse | None:
    """Return the redirect to the same address without its last slashes; None where the request needs none.

    `Location` is relative, because a proxy may change the host or the path. The last segment is encoded again, because
    the host may have decoded the URL; but the host leaves the %2F of a slash as it is.
    """
    path, _, query = req.url.partition("?")
    slashes = len(path) - len(path.rstrip("/"))
    last = _last_segment(route, req)
    if not slashes or req.method not in ("GET", "HEAD") or last in ("", ".", ".."):
        return None
    segment = _KEPT_SLASH.sub("%2", quote(last, safe=""))
    location = "../" * slashes + segment + (f"?{quote(query, safe=_OF_A_QUERY)}" if query else "")
    return func.HttpResponse(status_code=308, headers={**SAFE, "Location": location})


def _last_segment(route: Route, req: func.HttpRequest) -> str:
    segment = route.template.rpartition("/")[2]
    return req.route_params.get(segment[1:-1]) or "" if segment.startswith("{") else segment
