"""A redrive on the operator's page: from a preview to its end."""

from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Run
from tests.browser.test_ops import order, show

if TYPE_CHECKING:
    from playwright.sync_api import Page

STATUS = "#task-status .badge"


@pytest.fixture
def poisoned(run: Run) -> str:
    """A partition with three letters."""
    before = run.status()["accounted"]
    run.publish("11", b"{poison", b"{poison", b"{poison")
    run.until(lambda status: status["accounted"] == before + 3)
    return "11"


def test_from_a_preview_to_the_end_of_a_discard(page: "Page", poisoned: str) -> None:
    show(page, f"#/letters?partition_id={poisoned}")
    page.click("#redrive-discard")
    page.wait_for_selector("#preview:has-text('3 letters will be discarded for good.')")
    page.click("#redrive-start")
    page.fill("dialog input[name=per_second]", "50")
    order(page, "3")
    page.click("dialog button.grave")
    page.wait_for_selector(f"{STATUS}:has-text('done')")
    assert page.inner_text("#task-status").split("\n")[-1] == "3 of 3"
    show(page, f"#/letters?partition_id={poisoned}")
    page.wait_for_selector("table[aria-label=Redrives] tbody tr:has-text('known poison')")
    assert page.locator("#redrive-retry").count() == 0, "no letter can be moved any more"


def test_a_retry_that_did_not_help_says_so_and_is_not_green(page: "Page", run: Run) -> None:
    before = run.status()["accounted"]
    run.publish("12", b"{poison", b"{poison")
    run.until(lambda status: status["accounted"] == before + 2)
    show(page, "#/letters?partition_id=12")
    page.click("#redrive-retry")
    page.click("#redrive-start")
    order(page, "2")
    page.click("dialog button.main")
    page.wait_for_selector("#outcome .badge.warn:has-text('did not help')")
    assert page.inner_text("#outcome").endswith("0 resolved, 2 failed again for the same cause")
    show(page, "#/tasks?kind=redrive")
    assert page.locator("table[aria-label=Tasks] tbody tr").first.locator(".badge.warn").inner_text() == "did not help"
