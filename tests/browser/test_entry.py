"""Entries to the pages: without a key, with a slash at the end of the address, and for a home without sums."""

import json
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Run, reading, registration, seen
from tests.browser.homes import HOME
from tests.browser.tab import Opener

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

DATA = "**/api/{status,homes/*/activity}"
KEY = "the right key"


def guarded(page: "Page") -> list[str]:
    """Put a host that checks keys before the app; return the requests for data."""
    asked: list[str] = []

    def answer(route: "Route") -> None:
        asked.append(route.request.url)
        if route.request.headers.get("x-functions-key") == KEY:
            route.continue_()
        else:
            route.fulfill(status=401, body="")

    address = page.url
    page.goto("about:blank")  # the page that is open may still ask
    page.route(DATA, answer)
    page.clock.install()
    page.goto(address)
    return asked


@pytest.mark.parametrize("address", ["/api/ops", f"/api/homes/{HOME}"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_without_a_key_is_one_card_that_takes_it_and_requests_nothing(
    aggregated: Run, open_page: Opener, address: str, width: int
) -> None:
    page = open_page(address, width=width, apart=True)
    asked = guarded(page)
    page.wait_for_selector(".lone")
    assert page.locator("main .card, main .fault").count() == 1
    assert page.locator("h1").all_inner_texts() == ["This page needs a key"]
    assert page.locator("nav a:visible, #search:visible, #key:visible").count() == 0
    box = page.locator(".lone").bounding_box()
    assert box is not None
    assert abs(box["x"] + box["width"] / 2 - page.evaluate("document.documentElement.clientWidth") / 2) < 2
    before = len(asked)
    page.clock.run_for(300_000)
    assert len(asked) == before == 1
    assert page.evaluate("document.activeElement.name") == "key"
    page.keyboard.type(KEY)
    page.keyboard.press("Enter")
    page.wait_for_selector("#verdict, main svg[role=img]", state="attached")
    assert page.locator(".lone").count() == 0
    assert page.evaluate("localStorage.getItem('hubledger.key')") is None


def test_a_key_that_the_app_refuses_is_reported_and_other_parts_stay_in_reach(run: Run, open_page: Opener) -> None:
    page = open_page(apart=True)
    guarded(page)
    page.fill(".lone input[name=key]", "a wrong key")
    page.click(".lone button.main")
    page.wait_for_selector(".lone .fault:has-text('refused the key')")
    page.click("nav a[data-page=letters]")
    page.wait_for_selector("table[aria-label='Letters by cause']")


def test_the_page_of_an_app_without_homes_has_no_link_to_them(run: Run, open_page: Opener) -> None:
    page = open_page()
    page.wait_for_selector("nav a[data-page=homes]:visible")
    seen(page, "**/api/status", lambda body: body.update(room_pages=[]))
    page.reload()
    page.wait_for_selector("#verdict")
    assert page.locator("nav a:visible").all_inner_texts() == [
        "Overview", "Letters", "Tasks", "Ledger", "Aggregation",
    ]  # fmt: skip


def test_a_key_that_is_withdrawn_ends_the_polling(run: Run, open_page: Opener) -> None:
    page = open_page()
    page.wait_for_selector("#verdict")
    with page.expect_response("**/api/status"):
        page.route("**/api/status", lambda route: route.fulfill(status=401, body=""))
    page.wait_for_selector(".lone")
    assert page.locator("#verdict").count() == 0


def test_the_root_leads_to_the_page(run: Run, open_page: Opener) -> None:
    page = open_page("/")
    page.wait_for_selector("#verdict")
    assert page.url == f"{run.address}/api/ops"


@pytest.mark.parametrize(("address", "seen"), [("/api/ops/", "#verdict"), (f"/api/homes/{HOME}/?code=x", "main h1")])
def test_an_address_with_a_slash_at_the_end_leads_to_the_page(
    aggregated: Run, open_page: Opener, address: str, seen: str
) -> None:
    page = open_page(address)
    page.wait_for_selector(seen)
    assert page.url == f"{aggregated.address}{address.replace('/?', '?').removesuffix('/')}"


def test_a_home_without_sums_shows_its_readings_in_the_order_of_their_arrival(
    aggregated: Run, open_page: Opener
) -> None:
    meter = {"kind": "carbon_monoxide", "home_id": "H000900", "sensor_id": "co-1", "ppm": 7}
    late = json.dumps({**meter, "observed_at": "2026-11-21T11:00:00Z"}).encode()
    aggregated.feed("6", registration(900), *(reading(900, at) for at in range(24)), late)
    for width in (390, 1280):
        page = open_page("/api/homes/H000900", width=width)
        page.wait_for_selector("#unsummed:has-text('not in the charts yet')")
        rows = page.locator("table[aria-label='Newest readings'] tbody tr")
        assert rows.count() == 20
        first = [cell.split("\n")[-1] for cell in rows.first.locator("td").all_inner_texts()]
        assert "21 Nov 2026, 12:00" in first[0]  # on the home's clock
        assert first[1:] == ["Carbon monoxide co-1", "7 ppm"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    with aggregated.database() as connection:
        connection.execute("DELETE FROM home WHERE home_id = 'H000900'")  # other tests count the homes


def test_a_home_with_alerts_and_without_sums_does_not_say_that_no_sensor_has_sent_a_reading(
    run: Run, open_page: Opener
) -> None:
    page = open_page()
    alert = {"sensor_id": "S1", "kind": "motion", "ppm": None, "observed_at": "2026-01-01T12:00:00Z"}
    seen(
        page,
        "**/api/homes/*/activity*",
        lambda body: (body.update(alerts=[alert], readings=[]), body["day"].update(kinds=[])),
    )
    page.goto(f"{run.address}/api/homes/H000001")
    page.wait_for_selector("#alerts li")
    assert page.inner_text("#nothing").startswith(
        "No reading besides these alerts is in the charts of this period yet."
    )
