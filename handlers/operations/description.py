"""The description of the API itself, and the pages with their files: octets that only change with the app."""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import msgspec

from handlers.http import ROUTES
from handlers.openapi import describe
from handlers.operation import JSON, Answer, Call, Nothing, Operation, Shape
from handlers.operations.home_shapes import HomePath
from handlers.problems import NOT_FOUND, not_found

PAGES = Path(__file__).resolve().parents[1] / "pages"
MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
ENTRY, HOME = "ops.html", "home.html"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


class FilePath(Shape):
    """A file of the pages."""

    file: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z_-]{0,30}\.(css|js|svg)$")]


def openapi(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """OpenAPI 3.1."""
    return _described()


@cache
def _described() -> Answer:
    from handlers.operations import operations

    body = msgspec.json.format(msgspec.json.encode(describe(operations().values(), ROUTES)), indent=1)
    return Answer(body, headers=_revalidated(body))


def ops(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """The operator's page."""
    return _page(ENTRY)


def home_page(call: Call[HomePath, Nothing, Nothing]) -> Answer:
    """The resident's page: it asks for the home of its own address."""
    return _page(HOME)


def ops_file(call: Call[FilePath, Nothing, Nothing]) -> Answer:
    """A file of the pages: one of those that are there, and no other."""
    if call.path.file not in _files():
        raise not_found("file", "the page has no such file")
    return _page(call.path.file)


@cache
def _files() -> frozenset[str]:
    return frozenset(path.name for path in PAGES.iterdir() if path.suffix in MEDIA)


@cache
def _page(name: str) -> Answer:
    body = (PAGES / name).read_bytes()
    headers = {
        **_revalidated(body),
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
    return Answer(body, headers=headers, media=MEDIA[Path(name).suffix])


def _revalidated(body: bytes) -> dict[str, str]:
    return {"ETag": f'"{sha256(body).hexdigest()[:20]}"', "Cache-Control": "no-cache"}


OPERATIONS = (
    Operation("openapi", "This description", openapi, {200: JSON}, tag="description"),
    Operation("ops", "The operator's page", ops, {200: "text/html"}, tag="page"),
    Operation("home_page", "The resident's page", home_page, {200: "text/html"}, path=HomePath, tag="page"),
    Operation(
        "ops_file",
        "A file of the pages",
        ops_file,
        {200: "text/css"},
        path=FilePath,
        problems=(NOT_FOUND,),
        tag="page",
    ),
)
