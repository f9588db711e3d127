"""handlers/web/answering.py: a fault says if it may pass, and an address with a last slash leads to the one without."""

import azure.functions as func
import pytest

from core.api.problems import SAFE, of_fault
from core.api.route import OPEN, Route
from core.errors import StoreMisconfigured, StoreUnavailable
from handlers.web.answering import problem_response, redirect_of

OPS, HOME = Route("GET", "ops", OPEN, "description.ops"), Route("GET", "homes/{home_id}", OPEN, "description.home_page")


def location(route: Route, url: str, method: str = "GET", **values: str) -> str | None:
    response = redirect_of(func.HttpRequest(method, url, route_params=values, body=b""), route)
    if response is None:
        return None
    assert (response.status_code, response.get_body()) == (308, b"")
    assert {name: response.headers[name] for name in SAFE} == SAFE
    return response.headers["Location"]


def test_an_address_without_a_last_slash_and_a_change_are_answered() -> None:
    assert [location(OPS, f"https://app{path}") for path in ("/api/ops", "/api/ops?a=/", "")] == [None] * 3
    assert location(OPS, "https://app/api/ops/", "POST") is None


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


def test_a_fault_that_may_pass_says_when_to_come_again_and_keeps_secrets() -> None:
    passing = problem_response(of_fault(StoreUnavailable("no answer")))
    lasting = problem_response(of_fault(StoreMisconfigured("STORE_CONNECTION: login failed, PWD=hunter2")))
    assert (passing.status_code, passing.headers["Retry-After"]) == (503, "5")
    assert "Retry-After" not in lasting.headers
    assert b"hunter2" not in lasting.get_body()
