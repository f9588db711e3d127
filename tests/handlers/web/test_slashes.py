"""handlers/web/answering.py: an address that ends in a slash leads to the same address without it, and nowhere else."""

import azure.functions as func
import pytest

from core.api.problems import SAFE
from core.api.route import OPEN, Route
from handlers.web.answering import redirect_of

OPS, HOME = Route("GET", "ops", OPEN, "description.ops"), Route("GET", "homes/{home_id}", OPEN, "description.home_page")


def location(route: Route, url: str, method: str = "GET", **values: str) -> str | None:
    response = redirect_of(func.HttpRequest(method, url, route_params=values, body=b""), route)
    if response is None:
        return None
    assert (response.status_code, response.get_body()) == (308, b"")
    assert {name: response.headers[name] for name in SAFE} == SAFE
    return response.headers["Location"]


@pytest.mark.parametrize("path", ["/api/ops", "/api/ops?a=/", ""])
def test_an_address_without_a_last_slash_is_answered(path: str) -> None:
    assert location(OPS, f"https://app{path}") is None


def test_a_page_below_a_slash_is_redirected_to_its_address_with_its_query() -> None:
    assert location(OPS, "https://app/api/ops/") == "../ops"
    assert location(OPS, "https://app/api/ops///?code=a%2Fb&x=1") == "../../../ops?code=a%2Fb&x=1"


@pytest.mark.parametrize("home_id", ["H1", "a:b", "50%", "h?x=1", "h#1", "a\\b", "é", "a\r\nSet-Cookie: x", "<b>"])
def test_an_id_stays_one_segment_of_the_address(home_id: str) -> None:
    found = location(HOME, f"https://app/api/homes/{home_id}/", home_id=home_id)
    if "?" not in home_id:  # the host hands such a question mark on as %3F, or as the beginning of the query
        assert found is not None
        assert found.startswith("../")
        assert not set(found.removeprefix("../")) & set("/\\?#:<> \r\n")
        assert found.isascii()


@pytest.mark.parametrize("home_id", ["a%2Fb", "a%2fb", "%2F"])
def test_a_slash_that_the_host_left_encoded_is_not_encoded_again(home_id: str) -> None:
    assert location(HOME, f"https://app/api/homes/{home_id}/", home_id=home_id) == f"../{home_id}"


@pytest.mark.parametrize("home_id", [".", "..", ""])
def test_an_id_that_would_lead_elsewhere_is_not_redirected(home_id: str) -> None:
    assert location(HOME, f"https://app/api/homes/{home_id}/", home_id=home_id) is None


def test_a_query_cannot_begin_a_new_header() -> None:
    found = location(OPS, "https://app/api/ops/?x=1\r\nSet-Cookie: y\u00e9")
    assert found == "../ops?x=1%0D%0ASet-Cookie:%20y%C3%A9"


def test_a_change_is_never_redirected() -> None:
    assert location(OPS, "https://app/api/ops/", "POST") is None
