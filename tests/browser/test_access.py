"""The pages before a key that may read but not reveal, and before a resident's link."""

import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tests.browser.conftest import Run
from tests.browser.homes import HOME
from tests.browser.tab import Opener

if TYPE_CHECKING:
    from playwright.sync_api import Page

HIDDEN = "#notice:has-text('Messages are hidden')"
REFUSED = {"type": "urn:hubledger:problem:not-allowed", "status": 403, "detail": "this route needs the app role"}


def refuse(page: "Page", at: str = "**/api/revealed/**") -> list[str]:
    """Refuse the revealing routes from now on, as the app does without the role; return the refused requests."""
    asked: list[str] = []

    def answer(route: Any) -> None:
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


def test_a_key_that_may_not_reveal_explains_a_number_without_its_rows(page: "Page", run: Run) -> None:
    refuse(page)
    written = next(one for one in run.status()["partitions"] if one["written"])
    page.goto(f"{run.address}/api/ops#/ledger/{written['partition_id']}/{written['first']}")
    page.wait_for_selector("#outcome")
    page.wait_for_selector(HIDDEN)
    assert page.locator("main h3").count() == 0  # the name of a table
    is_written = page.inner_text("#outcome .badge").startswith("written")
    assert page.locator("main p:text-is('The rows are hidden.')").count() == int(is_written)


def test_the_changes_of_a_dry_run_are_hidden_without_the_role(page: "Page", run: Run) -> None:
    refuse(page, "**/api/tasks/*/diff*")
    order = {"kind": "replay", "reason": "look first", "partitions": ["9"], "to": {"sequence_number": "0"}}
    sent = page.request.put(f"{run.address}/api/tasks/{uuid4()}", data=order)
    page.goto(f"{run.address}/api/ops#/tasks/{sent.json()['task_id']}")
    page.wait_for_selector("#hidden-changes")
    page.wait_for_selector("#task-status .badge:text-is('done')")
    assert page.locator("main .fault").count() == 0


def test_a_key_that_the_twins_do_not_take_keeps_the_page(page: "Page", run: Run) -> None:
    page.evaluate("sessionStorage.setItem('hubledger.key', 'of readers')")
    page.route("**/api/revealed/**", lambda route: route.fulfill(status=401, body=""))
    page.goto(f"{run.address}/api/ops#/letters?partition_key=x")
    page.wait_for_selector("main .fault:has-text('does not open what reveals events')")
    assert page.locator(".lone").count() == 0
    page.goto(f"{run.address}/api/ops#/letters")
    page.wait_for_selector(HIDDEN)


def test_a_stop_by_an_error_hides_its_detail_without_the_role(page: "Page", run: Run) -> None:
    refuse(page)
    with run.stopped("7", {"outage": "One of the errors: no such kind"}):
        page.wait_for_selector("table[aria-label='Stopped partitions'] :text('hidden: the detail quotes an error')")
        assert "no such kind" not in page.inner_text("main")
    page.wait_for_selector("#stopped", state="detached")


def test_a_resident_sees_the_home_of_the_link_without_a_key_or_a_search(aggregated: Run, open_page: Opener) -> None:
    page = open_page("/api/ops/icon.svg")
    sent: list[Any] = []

    def show_any(route: Any) -> None:
        sent.append(route.request)
        route.fulfill(response=route.fetch(url=route.request.url.replace("own-activity", "activity")))

    page.route("**/own-activity*", show_any)
    page.goto(f"{aggregated.address}/api/homes/{HOME}#link=v1.1795305600.abc")
    page.wait_for_selector(f"h1:has-text('{HOME}')")
    page.wait_for_selector("#period")
    assert [one.headers["x-home-link"] for one in sent] == ["v1.1795305600.abc"]
    assert not any("v1.1795305600" in one.url for one in sent)
    assert (page.is_visible("#search"), page.is_visible("#key")) == (False, False)


def test_a_link_that_has_ended_is_reported_in_words(aggregated: Run, open_page: Opener) -> None:
    page = open_page(f"/api/homes/{HOME}#link=v1.1795305600.abc")
    page.wait_for_selector("main .fault:has-text('this is not a link for this home')")
    assert not re.search(r"\bkey\b", page.inner_text("main"))
