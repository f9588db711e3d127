"""The runs of the aggregation in a real browser: the quality of a run, and an order that waits."""

from typing import TYPE_CHECKING

from tests.browser.conftest import Run, with_engine
from tests.browser.homes import QUALITY
from tests.browser.test_ops import show

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_the_quality_of_a_run_is_shown_and_a_fault_is_red(aggregated: Run, page: "Page") -> None:
    show(page, "#/runs")
    cell = page.locator("table[aria-label='Aggregation runs'] td[data-label=Quality]").first
    assert cell.inner_text() == f'rows differ T{QUALITY["fault"][1:]}. Audit the ledger with "the rows too". Runbook'
    red, green, blue = cell.locator(".badge").evaluate("one => getComputedStyle(one).color.match(/\\d+/g).map(Number)")
    assert red > 2 * max(green, blue)
    assert page.locator("table[aria-label='Aggregation runs'] td[data-label=Rows]").first.inner_text() == "12"
    show(page, "#/")
    page.wait_for_selector("p:text-is('This compares sequence numbers with outcomes. It does not compare rows.')")
    page.click(".matter:has-text('The rows of home_activity differ from the ledger') a:text-is('Show the run')")
    page.wait_for_selector("#quality")
    fault, figures = page.locator("#quality p").all_inner_texts()
    assert fault == f"Rows differ: {QUALITY['fault']}."
    assert figures == "12 rows by the ledger · 8 read · 2 late"


def test_a_repair_of_some_days_is_ordered_and_withdrawn(aggregated: Run, page: "Page") -> None:
    with_engine(page)
    show(page, "#/runs")
    page.click("button:text-is('Repair')")
    page.fill("dialog input[name=since_day]", "2026-03-08")
    page.fill("dialog input[name=reason]", "changed by hand")
    page.click("dialog button:text-is('Repair')")
    page.wait_for_selector("#waiting")
    told = page.inner_text("#waiting")
    assert told.startswith("Waiting for its run: repair of 2026-03-08 to the last day, ordered by ")
    assert told.endswith(": changed by hand")
    page.click("button:text-is('Withdraw the order')")
    page.fill("dialog input[name=reason]", "the wrong days")
    page.click("dialog button:text-is('Withdraw')")
    page.wait_for_selector("#waiting", state="detached")
    ordered = page.locator("table[aria-label='Orders about the aggregation'] td[data-label=Order]")
    assert ordered.all_text_contents()[:2] == ["withdraw", "repair of 2026-03-08 to the last day"]
