import json
from pathlib import Path

from local.functions_host.durable.management import client_input, management_links

SHAPES = json.loads((Path(__file__).parents[3] / "fixtures" / "durable_shapes.json").read_text())


def test_the_input_of_a_client_has_the_shape_of_the_extension() -> None:
    assert json.loads(client_input("http://localhost:42595", 42595, "SampleHub")) == SHAPES["client_binding"]


def test_the_links_of_an_instance_have_the_shape_of_the_extension() -> None:
    found = management_links("http://localhost:42595", "SampleHub", "demo")
    assert found == SHAPES["check_status_response"]["body"]


def test_an_id_is_quoted_in_its_links() -> None:
    links = management_links("http://localhost:1", "SampleHub", "a b:1")
    assert "/instances/a%20b%3A1?" in links["statusQueryGetUri"]
    assert links["id"] == "a b:1"
