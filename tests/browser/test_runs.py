"""The runs of the aggregation in a real browser: the quality of a run, and an order that waits."""

from typing import TYPE_CHECKING

from tests.browser.conftest import HOSTILE, Run, reading, with_engine
from tests.browser.homes import QUALITY
from tests.browser.tab import Picture
from tests.browser.test_ops import show
from tests.browser.test_replays import confirmed, rows

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


def test_the_runs_of_the_aggregation_are_listed_with_what_they_came_to(
    page: "Page", aggregated: Run, picture: Picture
) -> None:
    show(page, "#/runs")
    page.wait_for_selector("table[aria-label='Aggregation runs'] tbody tr")
    (first,) = page.request.get(f"{aggregated.address}/api/aggregations").json()["runs"]
    cells = page.locator("table[aria-label='Aggregation runs'] tbody tr td")
    told = {cell.get_attribute("data-label"): cell.inner_text() for cell in cells.all()}
    assert (told["Status"], told["Engine"].strip()) == ("committed", "local")
    assert told["Aggregate"] == first["job"]
    assert "Readings" not in told, "words of one app"
    assert told["Windows"] == f"{first['windows']:,}"
    picture(page, "ops-runs")


def test_the_cut_says_how_far_it_is_behind(page: "Page", aggregated: Run) -> None:
    aggregated.feed("14", reading(14, 55))
    show(page, "#/runs")
    page.wait_for_selector("#cut:has-text('not aggregated yet')")


def test_a_run_is_paused_inspected_and_discarded_with_a_reason(page: "Page", aggregated: Run) -> None:
    run_id = "00000000000000aa"
    rows(
        aggregated,
        "INSERT INTO aggregation_run (run_id, job, run_number, cut_from, cut_to, engine, attempt, submits, status,"
        " planned_at, intent_at, engine_job_id, is_snapshot)"
        " SELECT ?, job, run_number + 1, cut, cut, 'livy', 2, 2, 'submitted', '2026-11-21T12:00:00.000000Z',"
        " '2026-11-21T12:00:00.000000Z', 'job-1', 0 FROM aggregation_cut",
        run_id,
    )
    rows(
        aggregated,
        "INSERT INTO aggregation_failure VALUES (?, 1, 1, '2026-11-21T12:01:00.000000Z', 'job-0', 'its job failed',"
        " ?, 'Traceback: the last line', 'javascript:alert(1)')",
        run_id,
        HOSTILE,
    )
    with_engine(page)
    show(page, "#/runs")
    failures = "table[aria-label='Failures of the run']"
    page.wait_for_selector(f"{failures} td:has-text('its job failed')")
    assert HOSTILE in page.inner_text(failures)
    assert page.locator(f"{failures} a").count() == 0  # only a web address is a link
    page.click(f"{failures} summary")
    page.wait_for_selector(f"{failures} pre:has-text('the last line')")
    page.click("button:text-is('Pause')")
    confirmed(page, "peak hours")
    page.wait_for_selector("#paused:has-text('peak hours')")
    page.click("button:text-is('Resume')")
    confirmed(page, "they are over")
    page.wait_for_selector("#paused", state="detached")
    page.click("button:text-is('Discard the run')")
    confirmed(page, "smaller runs")
    page.wait_for_selector("table[aria-label='Aggregation runs'] td:has-text('smaller runs')")
    assert rows(aggregated, "SELECT status FROM aggregation_run WHERE run_id = ?", run_id) == [("failed",)]
    rows(aggregated, "DELETE FROM aggregation_failure WHERE run_id = ?", run_id)
    rows(aggregated, "DELETE FROM aggregation_run WHERE run_id = ?", run_id)
