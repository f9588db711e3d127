"""The purges on the operator's page: a dry run."""

from typing import TYPE_CHECKING

from tests.browser.conftest import Run, reading
from tests.browser.test_ops import show

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_a_dry_run_counts_the_old_rows_and_is_among_the_tasks_then(page: "Page", run: Run) -> None:
    before = run.status()["accounted"]
    run.publish("12", reading(12, 55))
    run.until(lambda status: status["accounted"] == before + 1)
    show(page, "#/tasks")
    page.click("#purge-count")
    page.wait_for_selector("#task-status .badge:text-is('done')")
    assert "0 rows counted" in page.inner_text("#task-status")
    page.wait_for_selector("h2:text-is('Dry run: nothing is deleted')")
    page.wait_for_selector("table[aria-label=Tables] tr:has-text('its newest batch stays')")
    assert "a dry run from the operator's page" in page.inner_text("main")
    show(page, "#/tasks")
    page.wait_for_selector("table[aria-label=Tasks] tr:has-text('purge, dry run') .badge:text-is('done')")
