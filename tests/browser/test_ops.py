"""The operator's page in a real browser: what it shows, what it does, by mouse and by keyboard, large and small."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import sin
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import HOSTILE, Run, reading, with_aggregation
from tests.browser.tab import SCHEMES, Opener, Picture, Portrait, is_light
from tests.patience import allowed

if TYPE_CHECKING:
    from playwright.sync_api import Page

LAST = {  # the heading of each part that comes last
    "#/": "Audit",
    "#/letters": "One by one",
    "#/letters/3/41": "History",
    "#/tasks": "Tasks",
    "#/ledger": "Find a time",
    "#/ledger/3/41": "Letter",
    "#/runs": "Runs",
    "#/homes": "Find a home",
}
PAGES = tuple(LAST)
STICKING_OUT = (
    "[...document.querySelectorAll('main .card table')].filter(one => one.getBoundingClientRect().right"
    " > one.closest('.card').getBoundingClientRect().right).map(one => one.ariaLabel)"
)
UNLABELLED = "[...document.querySelectorAll('input, select')].filter(i => !i.labels?.length && !i.ariaLabel).length"
NAMELESS = (
    "[...document.querySelectorAll('a, button, summary')]"
    ".filter(one => !(one.ariaLabel || one.innerText).trim() && one.checkVisibility()).length"
)
FOCUSED = "document.activeElement.innerText || document.activeElement.name || document.activeElement.tagName"


def show(page: "Page", fragment: str) -> None:
    """Go to a part of the page, and wait until it is filled."""
    page.evaluate("to => { location.hash = to }", fragment)
    page.wait_for_selector("main .card")


BOXES = """at => {
  const found = at.map((one) => [...document.querySelectorAll(one)].map((it) => it.getBoundingClientRect().toJSON()));
  return found.every((some) => some.length) && found.flat();
}"""


def boxes(page: "Page", *at: str) -> list[Any]:
    """Wait until each selector has a match, and measure all matches at one moment: a later banner would move them."""
    return page.wait_for_function(BOXES, arg=list(at)).json_value()


def show_whole(page: "Page", fragment: str) -> None:
    """Go to a part of the page, and wait until its last panel is filled."""
    show(page, fragment)
    page.wait_for_selector(f"main h2:text-is('{LAST[fragment]}')")
    if fragment == "#/":
        page.wait_for_selector("#verdict")


def order(page: "Page", count: str, reason: str = "known poison") -> None:
    """Fill in the dialog."""
    page.fill("dialog input[name=count]", count)
    page.fill("dialog input[name=reason]", reason)


def test_the_first_screen_says_whether_the_ledger_is_balanced_and_proves_it(
    page: "Page", run: Run, picture: Picture
) -> None:
    page.wait_for_selector("#verdict")
    numbers, accounted = page.inner_text("#numbers"), page.inner_text("#accounted")
    assert (page.inner_text("#verdict"), numbers) == ("Balanced", accounted)
    assert int(accounted.replace(",", "")) == run.status()["accounted"]
    page.wait_for_selector("#healthy summary:text-is('16 partitions healthy')")
    page.click("#healthy summary")
    page.wait_for_selector("table[aria-label=Partitions] tbody tr:nth-child(16)")
    lags = page.locator("table[aria-label=Partitions] tbody td[data-label=Lag]").all_inner_texts()
    assert lags == ["0"] * 16
    run.feed("0", *(reading(0, at) for at in range(40)))
    so_far = int(accounted.replace(",", "")) + 40
    page.wait_for_selector(f"#accounted:text-is('{so_far:,}')")
    with_aggregation(page, runs=[])
    with run.minutes(*a_calm_hour(so_far)):
        page.reload()
        page.wait_for_selector(".chart polyline.rate", state="attached")
        picture(page, "ops-overview")


def a_calm_hour(accounted: int) -> list[tuple[datetime, int, int]]:
    """An hour of watches up to now: 20 to 55 events a minute come in waves, and few of them wait."""
    waves = [sin(at / 5) + sin(at / 2) / 3 for at in range(60)]
    after = [round(sum(38 + 13 * wave for wave in waves[at + 1 :])) for at in range(60)]
    now = datetime.now(UTC).replace(second=15)
    return [
        (now - timedelta(minutes=60 - at), max(0, round(12 * waves[at])), accounted - after[at]) for at in range(60)
    ]


def an_hour() -> list[tuple[datetime, int, int]]:
    """An hour of watches: the rate grows to 200 events/s, and the lag falls from 590 events to none."""
    now = datetime.now(UTC).replace(second=15)
    times = range(60)
    return [(now - timedelta(minutes=60 - at), 590 - 10 * at, 1_000 + 100 * at * (at + 1)) for at in times]


def test_the_header_names_the_stream_on_a_part_that_is_opened_first(open_page: Opener) -> None:
    page = open_page("/api/ops#/ledger")
    page.wait_for_selector("#stream:has-text('telemetry · hubledger')")


def test_the_chart_shows_the_minutes_of_the_store_and_not_the_time_of_this_tab(open_page: Opener, run: Run) -> None:
    page, minutes = open_page("/api/ops/icon.svg", apart=True), an_hour()
    page.clock.install()

    def look(seen: str) -> None:
        """Let the ten seconds pass after which the page reads the minutes again."""
        page.clock.fast_forward(10_000)
        page.wait_for_selector(seen)

    with run.minutes(*minutes[:20], *minutes[50:]):
        page.goto(f"{run.address}/api/ops")
        page.wait_for_selector("figure[aria-label='lag: at most 1,000']")
        up = page.locator("figure[aria-label='rate: at most 200 events/s'] .up span").all_inner_texts()
        assert up == ["200 events/s", "100 events/s", "0 events/s"]
        across = page.locator("figure[aria-label^=lag] .across span").all_inner_texts()
        assert (across[0], across[2]) == (f"{minutes[0][0]:%H:%M} UTC", f"{minutes[-1][0]:%H:%M} UTC")
        assert page.inner_text(".now.rate") == "197 events/s in the last minute"
        assert [page.locator(f".chart polyline.{name}").count() for name in ("lag", "rate")] == [2, 2], "a break"
        page.route("**/api/status/history*", lambda route: route.fulfill(status=503, json={"detail": HOSTILE}))
        look("#minutes-fault:text('The minutes were not read')")
        assert HOSTILE in page.inner_text("#minutes-fault")
        assert page.locator(".chart polyline").count() == 4, "those of before stay"
        assert page.evaluate("window.hacked") is None
        page.unroute("**/api/status/history*")
    with run.minutes(minutes[-1]):
        look(".now.rate:text('rate unknown')")
        assert page.locator(".chart polyline.lag").count() == 1
    look("p:text('The chart begins after the first minute')")
    with run.minutes(*((at - timedelta(hours=2), lag, accounted) for at, lag, accounted in minutes)):
        look("#late-watch:text('The watch stored the last minute 2 h ago.')")
        assert page.inner_text(".now.rate") == "rate unknown"


def test_a_stopped_partition_is_shown_with_its_reason_its_time_and_the_action(page: "Page", run: Run) -> None:
    page.wait_for_selector("#verdict")
    assert page.locator("#stopped").count() == 0
    with run.stopped("7", {"incarnation": HOSTILE, "outage": "40 of 50 events fail", "held": "too many wait"}):
        page.wait_for_selector("#stopped:text-is('1 partition is stopped: its events are neither read nor written.')")
        rows = page.locator("table[aria-label='Stopped partitions'] tbody tr")
        assert rows.locator("td[data-label=Reason]").all_inner_texts() == ["held", "incarnation", "outage"]
        assert rows.locator("td[data-label=Detail]").all_inner_texts()[1] == HOSTILE
        since = rows.locator("td[data-label=Since] time").first
        assert since.get_attribute("title") == f"{since.get_attribute('datetime')[:19].replace('T', ' ')} UTC"
        assert since.inner_text() == "4 min ago"
        assert page.locator("text=Open the next incarnation of the stream").count() == 1
        assert page.locator("text=never the held ones").count() == 1
        assert page.evaluate("window.hacked") is None
    page.wait_for_selector("#stopped", state="detached")


def test_the_audit_is_run_from_the_page(page: "Page") -> None:
    page.wait_for_selector("#verdict")
    page.click("text=Audit the ledger")
    page.wait_for_selector("text=/each with one outcome/")
    for box in page.locator("section[aria-label=Audit] input").all():
        box.check()
    page.click("text=Audit the ledger")
    page.wait_for_selector("#task-status .badge:text-is('done')")
    assert "no fault so far" in page.inner_text("main")
    page.wait_for_selector("table[aria-label=Partitions] .badge:text-is('balanced')")


def test_an_audit_that_is_not_complete_shows_its_faults_and_never_says_balanced(page: "Page") -> None:
    page.wait_for_selector("#verdict")
    fault = {"partition_id": "3", "kind": "hole", "first": "5", "last": "6", "detail": "a range is missing"}
    part = {"rows": None}
    done = {"at": "2026-01-02T00:00:00Z", "balanced": False, "complete": False, "accounted": 9, "faults": [fault]}
    page.route("**/api/ledger/audit", lambda route: route.fulfill(json={**done, "partitions": [part]}))
    page.click("text=Audit the ledger")
    page.wait_for_selector("text=a range is missing")
    for text in ("1 fault found.", "The time was over before all ranges"):
        assert page.locator(f"text={text}").count() == 1


@pytest.mark.proof("page")
def test_from_a_poisoned_batch_to_a_discarded_letter(page: "Page", run: Run, picture: Picture) -> None:
    discarded = run.discarded()
    run.feed("5", b"{broken", b"{broken", b"{broken")
    show(page, "#/letters?partition_id=5")
    page.click("table[aria-label='Letters by cause'] a")
    page.wait_for_selector("table[aria-label=Letters] tbody tr")
    page.click("table[aria-label=Letters] tbody tr:first-child a")
    page.wait_for_selector("text=The log records your name when you show it")
    assert page.locator("#body").count() == 0
    page.click("button[data-form=text]")
    page.wait_for_selector("#body")
    assert page.inner_text("#body") == "{broken"
    picture(page, "ops-letter")
    page.click("button.grave")
    assert "1 letter will be discarded for good. Its event stays accounted for" in page.inner_text("dialog")
    picture(page, "ops-discard")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    page.click("button.grave")
    order(page, "2")
    assert page.is_disabled("dialog button.grave")
    order(page, "1", "")
    assert page.is_disabled("dialog button.grave")
    order(page, "1")
    page.click("dialog button.grave")
    page.wait_for_selector("h1 .badge:has-text('discarded')")
    assert page.inner_text("#notice") == "1 letter discarded"
    assert (run.discarded(), run.status()["ledger_balanced"]) == (discarded + 1, True)


def test_all_letters_of_a_cause_are_discarded_and_a_changed_count_is_confirmed_again(page: "Page", run: Run) -> None:
    run.feed("6", b"{cause", b"{cause")
    show(page, "#/letters?partition_id=6")
    page.wait_for_selector("button.grave")
    run.feed("6", b"{cause")
    page.click("table[aria-label='Letters by cause'] button.grave")
    assert "2 letters will be discarded for good. Their events stay accounted for" in page.inner_text("dialog")
    order(page, "2")
    page.click("dialog button.grave")
    page.wait_for_selector("dialog .fault")
    assert "3 letters can be moved" in page.inner_text("dialog .fault")
    order(page, "3")
    page.click("dialog button.grave")
    page.wait_for_selector("#notice:has-text('3 letters discarded')")
    assert run.status()["ledger_balanced"] is True


def test_letters_that_are_chosen_are_retried(page: "Page", run: Run) -> None:
    show(page, "#/letters?partition_id=3")
    page.wait_for_selector("table[aria-label=Letters] input[type=checkbox]")
    for box in page.locator("table[aria-label=Letters] input[type=checkbox]").all()[:2]:
        box.check()
    page.click("button:has-text('Retry 2')")
    order(page, "2")
    page.click("dialog button.main")
    page.wait_for_selector("#outcome:has-text('failed again for the same cause')")


def test_hostile_addresses_do_nothing(page: "Page") -> None:
    for fragment in (f"#/ledger/{HOSTILE}/1", f"#/letters?status={HOSTILE}", f"#/{HOSTILE}", "#/letters/%E0%A4%A/1"):
        page.evaluate("to => { location.hash = to }", fragment)
        page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None


def test_the_explorer_tells_where_a_number_went_and_refuses_what_is_none_in_words(
    page: "Page", picture: Picture
) -> None:
    show(page, "#/ledger")
    page.fill("input[name=partition]", "7")
    page.fill("input[name=number]", "12")
    page.keyboard.press("Enter")
    page.wait_for_selector("#outcome")
    assert "written" in page.inner_text("#outcome")
    assert "sensor_reading" in page.inner_text("main")
    picture(page, "ops-ledger")
    page.click("text=next →")
    page.wait_for_selector("#outcome:has-text('7 / 13')")
    page.fill("input[name=number]", "999999")
    page.click("text=Explain")
    page.wait_for_selector("#outcome .badge:has-text('not yet')")
    assert "after the checkpoint" in page.inner_text("section[aria-label=Outcome]")
    page.fill("input[name=number]", "twelve")
    page.keyboard.press("Enter")
    page.wait_for_selector("main .fault")
    said = "sequence_number: a sequence number has 1 to 19 digits and nothing else, such as 4711"
    assert page.inner_text("main .fault") == said


def test_all_of_it_is_done_by_keyboard(page: "Page", run: Run) -> None:
    discarded = run.discarded()
    run.feed("8", b"{by keyboard")
    press_until(page, "Letters")
    page.keyboard.press("Enter")
    page.wait_for_selector("table[aria-label=Letters] tbody tr")
    press_until(page, "Filter: status needs you")
    page.keyboard.press("Enter")
    page.wait_for_selector("select[name=status]")
    press_until(page, "partition_id")
    page.keyboard.type("8")
    page.keyboard.press("Enter")
    page.wait_for_url("**partition_id=8*")
    page.wait_for_selector("table[aria-label=Letters] tbody tr")
    press_until(page, "Discard")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    assert page.evaluate(FOCUSED) == "count"
    page.keyboard.type("1")
    page.keyboard.press("Tab")
    page.keyboard.type("by keyboard alone")
    page.keyboard.press("Enter")
    page.wait_for_selector("#notice:has-text('1 letter discarded')")
    assert run.discarded() == discarded + 1


def press_until(page: "Page", name: str) -> None:
    """Press Tab until what has this text or name has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == name:
            return
    raise AssertionError(f"{name} cannot be reached by Tab")


@pytest.mark.parametrize("width", [360, 1040, 1600])
def test_no_part_is_wider_than_the_screen_in_either_colour_scheme(
    open_page: Opener, aggregated: Run, picture: Picture, portrait: Portrait, width: int
) -> None:
    page = open_page(width=width)
    page.wait_for_selector("#verdict")
    for fragment in PAGES:
        show(page, fragment)
        page.wait_for_timeout(300)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (fragment, scheme)
            assert page.evaluate(STICKING_OUT) == [], (fragment, scheme)
            assert is_light(page) == (scheme == "light"), fragment
            if width != 1040:
                portrait(page, f"ops-{fragment[2:].replace('/', '-') or 'overview'}")
    show(page, "#/")
    page.wait_for_selector("#verdict")
    if width == 360:
        picture(page, "ops-phone")


def test_the_theme_is_changed_and_stored(page: "Page") -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    seen = {page.inner_text("#theme"): page.evaluate(ground)}
    for _ in range(2):
        page.click("#theme")
        seen[page.inner_text("#theme")] = page.evaluate(ground)
        page.reload()
        page.wait_for_selector("#verdict")
        assert seen[page.inner_text("#theme")] == page.evaluate(ground)
    assert list(seen) == ["Theme: system", "Theme: light", "Theme: dark"]
    assert seen["Theme: system"] == seen["Theme: light"] != seen["Theme: dark"]
    page.click("#theme")
    assert page.inner_text("#theme") == "Theme: system"


def test_every_field_and_control_has_a_name_and_no_heading_skips_a_level(page: "Page") -> None:
    for fragment in PAGES:
        show_whole(page, fragment)
        assert [page.evaluate(one) for one in (UNLABELLED, NAMELESS)] == [0, 0], fragment
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(one => Number(one.tagName[1]))")
        assert (levels[0], levels.count(1)) == (1, 1), fragment
        assert all(after - before <= 1 for before, after in pairwise(levels)), fragment


def test_the_first_paint_comes_within_a_second(page: "Page") -> None:
    page.reload()
    page.wait_for_selector("#verdict")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert paint < 1_000 * allowed(1.0)


def test_a_key_is_stored_in_the_tab_and_sent(page: "Page") -> None:
    page.click("#key")
    page.fill("dialog input[name=key]", "secret-key")
    with page.expect_request("**/api/status") as sent:
        page.click("dialog button.main")
    assert sent.value.headers["x-functions-key"] == "secret-key"
    assert page.evaluate("localStorage.getItem('hubledger.key')") is None


def test_the_ledger_is_found_by_time_and_by_key(page: "Page", run: Run) -> None:
    show(page, "#/ledger")
    page.fill("input[name=at]", "2020-01-01T00:00:00")
    page.click("#find-time")
    link = page.locator("table a").first
    link.wait_for()
    link.click()
    page.wait_for_selector("#outcome")
    show(page, "#/ledger")
    page.fill("input[name=key]", "nobody has this key")
    page.click("#find-key")
    page.wait_for_selector("text=No place has this key.")
    page.wait_for_selector("text=Such a search cannot find an event that was filtered")
    run.feed("", b"{", key="home-of-the-search")
    page.fill("input[name=key]", "home-of-the-search")
    page.click("#find-key")
    page.locator("table[aria-label=Places] a").first.click()
    page.wait_for_selector("#outcome")
