"""The description of the API, and the pages with their files and guides: octets that change only with the app."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from core.api.operation import JSON, Answer, Call, Operation, operation
from core.api.pages import MEDIA, guide_page, page, revalidated
from core.api.problems import NOT_FOUND, not_found
from core.api.route import Route
from core.model.shapes import Nothing, Shape
from handlers.room_routes import own_room
from handlers.web.openapi import describe

PAGES = Path(__file__).resolve().parents[1] / "pages"
NAMES = (
    "operator", "runbook", "alerts", "faults", "retention", "erasure", "aggregation", "resident", "glossary", "access",
    "api", "cli", "capacity", "configuration", "deploy", "scale-out", "upgrading",
)  # fmt: skip
DOCS = PAGES.parents[1] / "docs"
GUIDES = {f"{name}.html": DOCS / f"{name}.md" for name in NAMES}
ENTRY = "ops.html"


class FilePath(Shape):
    """A file of the pages, or a guide that their panels link to, or a picture of a guide."""

    file: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z_-]{0,30}\.(css|js|svg|html|png)\Z")]


@operation("This description", "description", {200: JSON})
def openapi(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """Describe the API in OpenAPI 3.1."""
    return _description(tuple(call.operations.items()))


@operation("The operator's page", "page", {200: "text/html"})
def ops(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """Return the operator's page."""
    return page(_files()[ENTRY])


@operation("A file of the pages", "page", {200: "text/css"}, (NOT_FOUND,))
def ops_file(call: Call[FilePath, Nothing, Nothing]) -> Answer:
    """Return a file of the pages, a guide, or a picture of one. No other file is served."""
    if call.path.file in GUIDES:
        return guide_page(GUIDES[call.path.file], NAMES)
    if call.path.file not in _files():
        raise not_found("file", "the pages have no such file")
    return page(_files()[call.path.file])


@cache
def _description(operations: tuple[tuple[Route, Operation], ...]) -> Answer:
    body = msgspec.json.format(msgspec.json.encode(describe(dict(operations))), indent=1)
    return Answer(body, headers=revalidated(body))


@cache
def _files() -> Mapping[str, Path]:
    own = {path.name: path for path in PAGES.iterdir() if path.suffix in MEDIA}
    pictures = {path.name: path for path in (DOCS / "images").glob("*.png")}
    return {**pictures, **own_room().files(), **own}
