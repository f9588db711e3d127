"""Entries to the pages: with and without a key, by a resident's link, with a slash, and for a home without sums."""

import json
import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.browser.conftest import Run, reading, registration
from tests.browser.homes import HOME
from tests.browser.tab import WIDTH, Opener, seen

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

KEY = "the right key"
HIDDEN = "#notice:has-text('Messages are hidden')"
REFUSED = {"type": "urn:hubledger:problem:not-allowed", "status": 403, "detail": "this route needs the app role"}
LINK = "v1.1795305600.abc"


def guarded(page: "Page") -> list[str]:
    """Put a host that checks keys before the app. Return the requests for data."""
    asked: list[str] = []

    def answer(route: "Route") -> None:
        asked.append(route.request.url)
        if route.request.headers.get("x-functions-key") == KEY:
            route.continue_()
        else:
            route.fulfill(status=401, body="")

    address = page.url
    page.goto("about:blank")  # the page that is open may still ask
    page.route("**/api/{status,homes/*/activity}", answer)
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


def test_a_key_is_stored_in_the_tab_and_sent_and_ends_the_polling_when_it_is_withdrawn(page: "Page") -> None:
    page.click("#key")
    page.fill("dialog input[name=key]", "secret-key")
    with page.expect_request("**/api/status") as sent:
        page.click("dialog button.main")
    assert sent.value.headers["x-functions-key"] == "secret-key"
    assert page.evaluate("localStorage.getItem('hubledger.key')") is None
    page.wait_for_selector("#verdict")
    with page.expect_response("**/api/status"):
        page.route("**/api/status", lambda route: route.fulfill(status=401, body=""))
    page.wait_for_selector(".lone")
    assert page.locator("#verdict").count() == 0


def refuse(page: "Page", at: str = "**/api/revealed/**") -> list[str]:
    """Refuse the revealing routes from now on, as the app does without the role. Return the refused requests."""
    asked: list[str] = []

    def answer(route: "Route") -> None:
        asked.append(route.request.url)
        route.fulfill(status=403, json=REFUSED, content_type="application/problem+json")

    page.route(at, answer)
    return asked


def test_a_key_that_may_not_reveal_shows_letters_without_their_messages(page: "Page", run: Run) -> None:
    run.feed("7", b"{unrevealed")
    asked = refuse(page)
    page.goto(f"{run.address}/api/ops#/letters?partition_id=7")
    page.wait_for_selector(HIDDEN)
    page.wait_for_selector("table[aria-label=Letters] tbody tr")
    assert "unrevealed" not in page.inner_text("main")
    page.click("table[aria-label=Letters] tbody tr:first-child a")
    page.wait_for_selector("button[data-form=text]")
    assert "unrevealed" not in page.inner_text("main")
    for said in ("The message is hidden.", "The properties are hidden."):
        assert said in page.inner_text("main")
    page.click("button[data-form=text]")
    page.wait_for_selector("main .fault:has-text('this route needs the app role')")
    assert len(asked) == 2  # the first list, and the body: once refused, the page asks for no more


def test_without_the_role_the_rows_of_a_number_the_changes_of_a_replay_and_the_detail_of_a_stop_are_hidden(
    page: "Page", run: Run
) -> None:
    for at in ("**/api/revealed/**", "**/api/tasks/*/diff*"):
        refuse(page, at)
    written = next(one for one in run.status()["partitions"] if one["written"])
    page.goto(f"{run.address}/api/ops#/ledger/{written['partition_id']}/{written['first']}")
    page.wait_for_selector("#outcome")
    page.wait_for_selector(HIDDEN)
    assert page.locator("main h3").count() == 0  # the name of a table
    is_written = page.inner_text("#outcome .badge").startswith("written")
    assert page.locator("main p:text-is('The rows are hidden.')").count() == int(is_written)
    order = {"kind": "replay", "reason": "look first", "partitions": ["9"], "to": {"sequence_number": "0"}}
    sent = page.request.put(f"{run.address}/api/tasks/{uuid4()}", data=order)
    page.goto(f"{run.address}/api/ops#/tasks/{sent.json()['task_id']}")
    page.wait_for_selector("#hidden-changes")
    page.wait_for_selector("#task-status .badge:text-is('done')")
    assert page.locator("main .fault").count() == 0
    page.goto(f"{run.address}/api/ops#/")
    with run.stopped("7", {"outage": "One of the errors: no such kind"}):
        page.wait_for_selector(".matter q:text('hidden: the detail quotes an error')")
        assert "no such kind" not in page.inner_text("main")
    page.wait_for_selector(".matter:has-text('Partition 7 stopped')", state="detached")


def test_a_key_that_the_twins_do_not_take_keeps_the_page(page: "Page", run: Run) -> None:
    page.evaluate("sessionStorage.setItem('hubledger.key', 'of readers')")
    page.route("**/api/revealed/**", lambda route: route.fulfill(status=401, body=""))
    page.goto(f"{run.address}/api/ops#/letters?partition_key=x")
    page.wait_for_selector("main .fault:has-text('does not open what reveals events')")
    assert page.locator(".lone").count() == 0
    page.goto(f"{run.address}/api/ops#/letters")
    page.wait_for_selector(HIDDEN)


def test_a_resident_sees_the_home_of_the_link_without_a_key_or_a_search_until_the_link_ends(
    aggregated: Run, open_page: Opener
) -> None:
    page = open_page(f"/api/homes/{HOME}#link={LINK}")
    page.wait_for_selector("main .fault:has-text('this is not a link for this home')")
    assert not re.search(r"\bkey\b", page.inner_text("main"))
    page = open_page("/api/ops/icon.svg")
    sent: list[Any] = []

    def show_any(route: "Route") -> None:
        sent.append(route.request)
        route.fulfill(response=route.fetch(url=route.request.url.replace("own-activity", "activity")))

    page.route("**/own-activity*", show_any)
    page.goto(f"{aggregated.address}/api/homes/{HOME}#link={LINK}")
    page.wait_for_selector(f"h1:has-text('{HOME}')")
    page.wait_for_selector("#period")
    assert [one.headers["x-home-link"] for one in sent] == [LINK]
    assert not any(LINK[:13] in one.url for one in sent)
    assert [page.is_visible(one) for one in ("#back", "#search", "#key")] == [False, False, False]


def test_the_root_and_an_address_with_a_slash_at_the_end_lead_to_the_page_which_links_to_homes_that_there_are(
    aggregated: Run, open_page: Opener
) -> None:
    for address, end, seen_there in (
        (f"/api/homes/{HOME}/?code=x", f"/api/homes/{HOME}?code=x", "main h1"),
        ("/api/ops/", "/api/ops", "#verdict"),
        ("/", "/api/ops", "#verdict"),
    ):
        page = open_page(address)
        page.wait_for_selector(seen_there)
        assert page.url == f"{aggregated.address}{end}"
    page.wait_for_selector("nav a[data-page=homes]:visible")
    seen(page, "**/api/status", lambda body: body.update(room_pages=[]))
    page.reload()
    page.wait_for_selector("#verdict")
    assert page.locator("nav a:visible").all_inner_texts() == [
        "Overview", "Letters", "Tasks", "Ledger", "Aggregation",
    ]  # fmt: skip


def test_a_home_without_sums_shows_its_readings_in_the_order_of_their_arrival_or_its_alerts(
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
        assert page.evaluate(WIDTH) <= width
    aggregated.rows("DELETE FROM home WHERE home_id = 'H000900'")  # other tests count the homes
    alert = {"sensor_id": "S1", "kind": "motion", "ppm": None, "observed_at": "2026-01-01T12:00:00Z"}

    def alerts_alone(body: Any) -> None:
        body.update(alerts=[alert], readings=[])
        body["day"].update(kinds=[])

    seen(page, "**/api/homes/*/activity*", alerts_alone)
    page.goto(f"{aggregated.address}/api/homes/H000001")
    page.wait_for_selector("#alerts li")
    said = "No reading besides these alerts is in the charts of this period yet."
    assert page.inner_text("#nothing").startswith(said)
