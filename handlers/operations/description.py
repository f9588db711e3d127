"""The description of the API, and the pages with their files and guides: octets that change only with the app."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import msgspec

from core.errors import HubledgerError
from handlers.app import app
from handlers.operations.home_shapes import HomePath
from handlers.operations.homes import homes_of
from handlers.web.openapi import describe
from handlers.web.operation import JSON, Answer, Call, Nothing, Operation, Shape, operation
from handlers.web.problems import NOT_FOUND, not_found
from handlers.web.route import Route

PAGES = Path(__file__).resolve().parents[1] / "pages"
GUIDES = tuple(PAGES.parents[1] / "docs" / name for name in ("operator.md", "resident.md", "aggregation.md"))
MEDIA = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".md": "text/plain",
}
ENTRY, HOME = "ops.html", "home.html"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


class FilePath(Shape):
    """A file of the pages, or a guide that their panels link to."""

    file: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z_-]{0,30}\.(css|js|svg|md)\Z")]


@operation("This description", "description", {200: JSON})
def openapi(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """Describe the API in OpenAPI 3.1."""
    return _description(tuple(call.operations.items()))


@operation("The operator's page", "page", {200: "text/html"})
def ops(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """Return the operator's page."""
    return _page(ENTRY)


@operation("The resident's page", "page", {200: "text/html"}, (NOT_FOUND,))
def home_page(call: Call[HomePath, Nothing, Nothing]) -> Answer:
    """Return the resident's page, the same for every id; it requests the home of its own address.

    It is served while the settings are wrong: then nobody knows if the app has homes.
    """
    with suppress(HubledgerError):
        homes_of(app())
    return _page(HOME)


@operation("A file of the pages", "page", {200: "text/css"}, (NOT_FOUND,))
def ops_file(call: Call[FilePath, Nothing, Nothing]) -> Answer:
    """Return a file of the pages, or a guide as plain text; no other file is served."""
    if call.path.file not in _files():
        raise not_found("file", "the pages have no such file")
    return _page(call.path.file)


@cache
def _description(operations: tuple[tuple[Route, Operation], ...]) -> Answer:
    body = msgspec.json.format(msgspec.json.encode(describe(dict(operations))), indent=1)
    return Answer(body, headers=_revalidated(body))


@cache
def _files() -> Mapping[str, Path]:
    return {path.name: path for path in (*PAGES.iterdir(), *GUIDES) if path.suffix in MEDIA and path.exists()}


@cache
def _page(name: str) -> Answer:
    body = _files()[name].read_bytes()
    headers = {
        **_revalidated(body),
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
    return Answer(body, headers=headers, media=MEDIA[Path(name).suffix])


def _revalidated(body: bytes) -> dict[str, str]:
    return {"ETag": f'"{sha256(body).hexdigest()[:20]}"', "Cache-Control": "no-cache"}
