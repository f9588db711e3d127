"""The pages of letters: totals that filter, causes, a letter whose numbers agree, and redrives."""

from typing import TYPE_CHECKING

from tests.browser.conftest import Run, seen
from tests.browser.test_ops import order, show

if TYPE_CHECKING:
    from playwright.sync_api import Page

STATUS = "#task-status .badge"


def test_the_totals_by_status_filter_and_the_ones_that_need_an_operator_stand_out(page: "Page", run: Run) -> None:
    letters = run.counted()["letters"]
    show(page, "#/letters")
    page.wait_for_selector(".totals a[aria-current=true]:has-text('need you')")  # no other is asked for
    page.click(".totals a:has-text('letters')")
    page.wait_for_selector(".totals a[aria-current=true]:has-text('letters')")
    assert page.locator(".totals a").all_inner_texts() == [
        f"{letters['open'] + letters['settled']:,} letters",
        f"{letters['exhausted']:,} need you",
        *(f"{letters[name]:,} {name}" for name in ("waiting", "retrying", "held")),
        *("resolved", "discarded"),  # their number grows for ever, and is not counted
    ]
    page.click(".totals a.warn")
    page.wait_for_selector(".totals a[aria-current=true]:has-text('need you')")
    page.wait_for_selector("table[aria-label=Letters] tbody tr")
    assert set(page.locator("table[aria-label=Letters] td[data-label=Status]").all_inner_texts()) == {"needs you"}


def test_nothing_is_offered_where_no_letter_can_be_moved(page: "Page", run: Run) -> None:
    show(page, "#/letters?partition_id=14")
    page.wait_for_selector("p:text-is('No letter matches the filter.')")
    assert page.locator("button:has-text('Retry'), button:has-text('Discard')").count() == 0


def test_no_retry_is_offered_where_no_letter_can_be_retried_and_the_page_says_why(page: "Page", run: Run) -> None:
    run.feed("13", b"{poison")
    show(page, "#/letters?partition_id=13")
    page.wait_for_selector("#redrive-retry")
    assert page.locator("#no-retry").count() == 0
    # No letter of the demo is held.
    seen(page, "**/dead-letters/groups?*", lambda body: [one.update(retryable=0) for one in body["groups"]])
    page.reload()
    page.wait_for_selector("#no-retry:has-text('is held until the letter that it waits for is settled')")
    assert page.locator(".card:has(#no-retry) button:has-text('Retry')").count() == 0
    assert page.locator(".card:has(#no-retry) button:has-text('Discard')").count() == 2


def test_the_numbers_of_a_letter_agree_after_a_retry(page: "Page", run: Run) -> None:
    run.feed("10", b"{poison")
    (letter,) = run.letters(partition_id="10")
    show(page, f"#/letters/10/{letter['sequence_number']}")
    page.wait_for_selector("dd:has-text('not retried by itself, because the event is at fault')")
    assert page.locator("dt:text-is('Attempts') + dd").inner_text() == "1"
    for tries, said in ((1, "1"), (2, "1; the history below has 2")):
        page.click("button:text-is('Retry')")
        order(page, "1")
        page.click("dialog button.main")
        page.wait_for_selector("#notice:has-text('1 letter to be retried now')")
        run.until(lambda _: run.letters(partition_id="10")[0]["status"] == "exhausted")
        page.reload()
        page.wait_for_selector(f"ol.attempts li:nth-child({2 * tries})")
        assert page.locator("dt:text-is('Attempts') + dd").inner_text() == said
        assert page.locator("ol.attempts b").all_inner_texts() == ["made due", "tried"] * tries


def test_the_totals_follow_a_discarded_cause(page: "Page", run: Run) -> None:
    run.feed("10", b"{totals", b"{totals")
    needy, open_letters = run.counted()["letters"]["exhausted"], len(run.letters(partition_id="10"))
    show(page, "#/letters?partition_id=10")
    page.wait_for_selector(f".totals a:has-text('need you') b:text-is('{needy:,}')")
    page.click("table[aria-label='Letters by cause'] button:text-is('Discard')")
    order(page, str(open_letters))
    page.click("dialog button.grave")
    page.wait_for_selector(f".totals a:has-text('need you') b:text-is('{needy - open_letters:,}')")


def test_a_filter_without_tasks_and_a_run_that_there_is_not_are_said(page: "Page") -> None:
    show(page, "#/tasks?kind=purge&status=failed")
    page.wait_for_selector("main :text-is('No task matches the filter.')")
    show(page, "#/runs/no-such-run")
    page.wait_for_selector("main .fault")
    assert page.locator("#cut").count() == 1, "the fault took the place of the sums"


def test_on_a_phone_the_totals_stand_above_the_letters(page: "Page") -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    show(page, "#/letters")
    page.wait_for_selector("table[aria-label=Letters] tbody tr")
    tops = [page.locator(one).first.evaluate("(one) => one.getBoundingClientRect().top") for one in (
        "main h1", "nav.totals", "section[aria-label=Filter]", "table[aria-label='Letters by cause']",
        "table[aria-label=Letters]",
    )]  # fmt: skip
    assert tops == sorted(tops)


def test_from_a_preview_to_the_end_of_a_discard(page: "Page", run: Run) -> None:
    run.feed("11", b"{poison", b"{poison", b"{poison")
    show(page, "#/letters?partition_id=11")
    page.click("#redrive-discard")
    page.wait_for_selector("#preview:has-text('3 letters will be discarded for good.')")
    page.click("#redrive-start")
    page.fill("dialog input[name=per_second]", "50")
    order(page, "3")
    page.click("dialog button.grave")
    page.wait_for_selector(f"{STATUS}:has-text('done')")
    assert page.inner_text("#task-status").split("\n")[-1] == "3 of 3"
    show(page, "#/letters?partition_id=11")
    page.wait_for_selector("table[aria-label=Redrives] tbody tr:has-text('known poison')")
    assert page.locator("#redrive-retry").count() == 0, "no letter can be moved any more"


def test_a_retry_that_did_not_help_says_so_and_is_not_green(page: "Page", run: Run) -> None:
    run.feed("12", b"{poison", b"{poison")
    show(page, "#/letters?partition_id=12")
    page.click("#redrive-retry")
    page.click("#redrive-start")
    order(page, "2")
    page.click("dialog button.main")
    page.wait_for_selector("#outcome .badge.warn:has-text('did not help')")
    assert page.inner_text("#outcome").endswith("0 resolved, 2 failed again for the same cause")
    show(page, "#/tasks?kind=redrive")
    assert page.locator("table[aria-label=Tasks] tbody tr").first.locator(".badge.warn").inner_text() == "did not help"
