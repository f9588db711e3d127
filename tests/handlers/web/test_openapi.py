"""handlers/web/openapi.py: what a room brings is described beside what the app has."""

from collections.abc import Iterator
from typing import Any

import msgspec

from core.api.operation import Call, operation
from core.api.route import OPEN, Route
from core.model.shapes import Answered, Nothing, Shape
from handlers.api import OPERATIONS, OWN
from handlers.operations.description import FilePath as OurPath
from handlers.operations.description import openapi
from handlers.web.openapi import describe
from tests.fakes.builders import EPOCH


class FilePath(Shape):
    """A path of a room, under a name that a path of the app has too."""

    invoice: str


@operation("An invoice", "invoices")
def show_invoice(call: Call[FilePath, Nothing, Nothing]) -> Answered:
    """Show an invoice."""
    return Answered()


def test_a_path_of_a_room_may_have_the_name_of_a_path_of_the_app() -> None:
    own = {route: OPERATIONS[route] for route in OWN}
    route = Route("GET", "invoices/{invoice}", OPEN, "apps.shop.show_invoice")
    described = describe({**own, route: show_invoice})
    (shown,) = described["paths"]["/invoices/{invoice}"]["get"]["parameters"]
    (file,) = described["paths"]["/ops/{file}"]["get"]["parameters"]
    assert (shown["name"], file["name"]) == ("invoice", "file")
    assert OurPath.__name__ == FilePath.__name__
    added = described["components"]["schemas"].keys() - describe(own)["components"]["schemas"].keys()
    assert added == {"Answered"}


def test_the_description_of_a_response_ends_with_its_sentence() -> None:
    described = describe({route: OPERATIONS[route] for route in OWN})
    said = {
        response["description"]
        for path in described["paths"].values()
        for method in path.values()
        for status, response in method["responses"].items()
        if status.startswith("20")
    }
    assert [text for text in said if "." in text and not text.endswith((".", ".)"))] == []


def patterns(within: Any) -> Iterator[str]:
    """Yield each pattern of a JSON schema."""
    if isinstance(within, dict):
        if isinstance(within.get("pattern"), str):
            yield within["pattern"]
        for each in within.values():
            yield from patterns(each)
    elif isinstance(within, list):
        for each in within:
            yield from patterns(each)


def of_requests() -> set[str]:
    shapes = [shape for one in OPERATIONS.values() for shape in (one.path, one.query, one.body)]
    return {found for shape in shapes for found in patterns(msgspec.json.schema(shape))}


def test_a_pattern_ends_at_the_end_of_the_text_and_not_before_a_newline() -> None:
    assert len(of_requests()) > 5
    assert [pattern for pattern in of_requests() if pattern.endswith("$") or not pattern.endswith("\\Z")] == []


def test_the_description_has_patterns_of_ecma_which_has_no_capital_z() -> None:
    described = set(patterns(describe(OPERATIONS)))
    assert {pattern.replace("\\Z", "$") for pattern in of_requests()} <= described
    assert [pattern for pattern in described if "\\Z" in pattern] == []


def test_a_second_request_for_the_description_makes_no_new_one() -> None:
    unused: Any = None  # no operation of a room runs
    call = Call(Nothing(), Nothing(), Nothing(), "anybody", EPOCH, OPERATIONS, unused)
    assert openapi.run(call) is openapi.run(call)
