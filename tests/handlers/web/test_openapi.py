"""handlers/web/openapi.py: what a room brings is described beside what the app has."""

from core.api.operation import Call, operation
from core.api.route import OPEN, Route
from core.model.shapes import Answered, Nothing, Shape
from handlers.api import OPERATIONS, OWN
from handlers.operations.description import FilePath as OurPath
from handlers.web.openapi import describe


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
