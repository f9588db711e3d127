"""The operator's page as a whole: by mouse and by keyboard, large and small, in both colour schemes, and the ledger."""

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import HOSTILE, Run
from tests.browser.tab import (
    FOCUSED,
    SCHEMES,
    UNLABELLED,
    WIDTH,
    Opener,
    Picture,
    Portrait,
    an_hour_before,
    boxes,
    is_light,
    order,
    press_until,
    seen,
    show,
    with_aggregation,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

LAST = {  # the heading of each part that comes last
    "#/": "Audit",
    "#/letters": "One by one",
    "#/letters/3/41": "History",
    "#/tasks": "Newest tasks",
    "#/ledger": "Find a time",
    "#/ledger/3/41": "Step by step",
    "#/runs": "Runs",
    "#/homes": "Find a home",
}
PAGES = tuple(LAST)
STICKING_OUT = (
    "[...document.querySelectorAll('main .card table')].filter(one => one.getBoundingClientRect().right"
    " > one.closest('.card').getBoundingClientRect().right).map(one => one.ariaLabel)"
)
NAMELESS = (
    "[...document.querySelectorAll('a, button, summary')]"
    ".filter(one => !(one.ariaLabel || one.innerText).trim() && one.checkVisibility()).length"
)


def show_whole(page: "Page", fragment: str) -> None:
    show(page, fragment)
    page.wait_for_selector(f"main h2:text-is('{LAST[fragment]}')")
    if fragment == "#/":
        page.wait_for_selector("#verdict")


@pytest.mark.proof("page")
def test_from_a_poisoned_batch_to_a_discarded_letter(page: "Page", run: Run, picture: Picture) -> None:
    discarded = run.discarded()
    run.feed("5", b"{broken", b"{broken", b"{broken")
    show(page, "#/letters?partition_id=5")
    page.click("table[aria-label='Letters by cause'] a")
    page.wait_for_selector("table[aria-label=Letters] tbody tr")
    page.click("table[aria-label=Letters] tbody tr:first-child a")
    page.wait_for_selector("text=The log of the app records who showed it.")
    assert page.locator("#body").count() == 0
    page.click("button[data-form=text]")
    page.wait_for_selector("#body")
    assert page.inner_text("#body") == "{broken"
    picture(page, "ops-letter")
    page.click("button.grave")
    assert "This cannot be undone. The rows of its event are never written" in page.inner_text("dialog")
    picture(page, "ops-discard")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    page.click("button.grave")
    for count, reason in (("2", "known poison"), ("1", "")):
        order(page, count, reason=reason)
        assert page.is_disabled("dialog button.grave")
    order(page, "1", "grave")
    page.wait_for_selector("h1 .badge:has-text('discarded')")
    assert page.inner_text("#notice") == "1 letter discarded"
    assert (run.discarded(), run.status()["ledger_balanced"]) == (discarded + 1, True)


def test_all_of_it_is_done_by_keyboard(page: "Page", run: Run) -> None:
    discarded = run.discarded()
    run.feed("8", b"{by keyboard")
    for name, there in (
        ("Letters", "table[aria-label=Letters] tbody tr"),
        ("Filter: status needs you", "select[name=status]"),
    ):
        press_until(page, name)
        page.keyboard.press("Enter")
        page.wait_for_selector(there)
    press_until(page, "partition_id")
    page.keyboard.type("8")
    page.keyboard.press("Enter")
    page.wait_for_url("**partition_id=8*")
    page.wait_for_selector("table[aria-label=Letters] tbody tr")
    press_until(page, "Discard …")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    assert page.evaluate(FOCUSED) == "count"
    page.keyboard.type("1")
    page.keyboard.press("Tab")
    page.keyboard.type("by keyboard alone")
    page.keyboard.press("Enter")
    page.wait_for_selector("#notice:has-text('1 letter discarded')")
    assert run.discarded() == discarded + 1


def test_no_part_is_wider_than_the_screen_in_either_colour_scheme(
    open_page: Opener, aggregated: Run, portrait: Portrait
) -> None:
    for width in (1600, 1040, 360):
        page = open_page(width=width)
        page.wait_for_selector("#verdict")
        with_aggregation(page, engine="local")
        seen(page, "**/status/history*", lambda body: body.update(minutes=an_hour_before(aggregated.status(), 0.5)))
        page.reload()
        for fragment in PAGES:
            show(page, fragment)
            page.wait_for_timeout(300)
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate(WIDTH) <= width, (fragment, scheme)
                assert page.evaluate(STICKING_OUT) == [], (fragment, scheme)
                assert is_light(page) == (scheme == "light"), fragment
                if width != 1040:
                    portrait(page, f"ops-{fragment[2:].replace('/', '-') or 'overview'}")


def test_every_field_and_control_has_a_name_no_heading_skips_a_level_and_a_hostile_address_does_nothing(
    page: "Page", aggregated: Run
) -> None:
    for fragment in PAGES:
        show_whole(page, fragment)
        assert [page.evaluate(one) for one in (UNLABELLED, NAMELESS)] == [0, 0], fragment
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(one => Number(one.tagName[1]))")
        assert (levels[0], levels.count(1)) == (1, 1), fragment
        assert all(after - before <= 1 for before, after in pairwise(levels)), fragment
    for fragment in (f"#/ledger/{HOSTILE}/1", f"#/letters?status={HOSTILE}", f"#/{HOSTILE}", "#/letters/%E0%A4%A/1"):
        page.evaluate("to => { location.hash = to }", fragment)
        page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None


def test_each_tab_is_named_by_its_view_and_what_is_unknown_has_a_heading(page: "Page", run: Run) -> None:
    for fragment, name in (
        ("#/", "Overview"),
        ("#/letters", "Letters"),
        ("#/letters/3/41", "Letter of partition 3, number 41 needs you"),
        ("#/runs", "Aggregation"),
        ("#/homes", "Homes"),
        ("#/letters/3/4711", "Not found"),
        ("#/no/such/page", "There is no such page"),
        ("#/nothing", "There is no such page"),
    ):
        page.evaluate("to => { location.hash = to }", fragment)
        page.wait_for_function("name => document.title === `${name} · Hubledger`", arg=name)
    assert page.locator("header nav a[aria-current]").count() == 0
    page.click("main a:text-is('Overview')")
    page.wait_for_selector("#verdict")


def test_what_is_not_loaded_is_a_grey_shape_and_the_header_stays_one_line(page: "Page", run: Run) -> None:
    page.route("**/api/tasks?*", lambda route: None)
    page.evaluate("location.hash = '#/tasks'")
    page.wait_for_selector("section[aria-label='New replay']")
    shape = "getComputedStyle(document.querySelector('[aria-label^=Newest] .place'), '::after').content"
    assert page.evaluate(shape) == '""'
    page.unroute("**/api/tasks?*")
    page.reload()
    page.wait_for_selector("[aria-label^=Newest] :is(table, p)")
    assert page.evaluate(shape) == "none"
    seen(page, "**/api/status", lambda body: body.update(event_hub="telemetry-of-all-homes-of-the-north-" * 3))
    page.goto(f"{run.address}/api/ops?long")
    page.wait_for_selector("#stream:has-text('telemetry-of-all-homes')")
    header, brand = boxes(page, "header", ".brand")
    assert header["height"] < 2 * brand["height"] + 10
    assert page.evaluate(WIDTH) <= 1280


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


def test_the_audit_is_run_from_the_page_and_an_incomplete_one_shows_its_faults_and_never_says_balanced(
    page: "Page",
) -> None:
    page.wait_for_selector("#verdict")
    fault = {"partition_id": "3", "kind": "hole", "first": "5", "last": "6", "detail": "a range is missing"}
    done = {"at": "2026-01-02T00:00:00Z", "balanced": False, "complete": False, "accounted": 9, "faults": [fault]}
    page.route("**/api/ledger/audit", lambda route: route.fulfill(json={**done, "partitions": [{"rows": None}]}))
    page.click("text=Look for events without an outcome")
    page.click("[aria-label=Audit] button:text-is('Audit the ledger')")
    page.wait_for_selector("text=a range is missing")
    for text in ("1 fault found.", "The time was over before all ranges"):
        assert page.locator(f"text={text}").count() == 1
    page.unroute("**/api/ledger/audit")
    page.click("[aria-label=Audit] button:text-is('Audit the ledger')")
    page.wait_for_selector("text=/each with one outcome/")
    page.check("section[aria-label=Audit] input")
    page.click("[aria-label=Audit] button:text-is('Audit the ledger')")
    page.wait_for_selector("#task-status .badge:text-is('done')")
    assert "16 of 16 partitions, no fault\n" in page.inner_text("main")
    page.wait_for_selector("table[aria-label=Partitions] .badge:text-is('balanced')")


def test_the_explorer_tells_where_a_number_went_by_place_time_and_key_and_refuses_what_is_none_in_words(
    open_page: Opener, run: Run, picture: Picture
) -> None:
    page = open_page("/api/ops#/ledger")
    page.wait_for_selector("#stream:has-text('telemetry · hubledger')")
    page.fill("input[name=partition]", "7")
    page.fill("input[name=number]", "12")
    page.keyboard.press("Enter")
    page.wait_for_selector("#outcome")
    assert "written" in page.inner_text("#outcome")
    assert "sensor_reading" in page.inner_text("main")
    assert "): commit 1, a batch in one trans" in page.inner_text("section[aria-label='Step by step'] li")
    picture(page, "ops-ledger")
    page.click("text=next number →")
    page.wait_for_selector("#outcome:has-text('Event 13 of partition 7')")
    page.fill("input[name=number]", "999999")
    page.click("text=Show what became of it")
    page.wait_for_selector("#outcome .badge:has-text('not yet')")
    assert "after the checkpoint" in page.inner_text("section[aria-label=Outcome]")
    page.fill("input[name=number]", "twelve")
    page.keyboard.press("Enter")
    page.wait_for_selector("main .fault")
    said = "sequence_number: a sequence number has 1 to 19 digits and nothing else, such as 4711"
    assert page.inner_text("main .fault") == said
    show(page, "#/ledger")
    assert "none" in page.evaluate("getComputedStyle(document.querySelector('.place'), '::after').content"), "it loads"
    for text in ("3/5", "2020-01-01 00:00"):
        page.fill("input[name=at]", text)
        page.click("#find-time")
        if "/" in text:
            page.wait_for_selector("main .fault:has-text('“3/5” is not a time. Write it like 20')")
    page.locator("table a").first.click()
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
    page.wait_for_selector("main:not(:has(button.main)) a.go.main:text-is('Open its letter, to retry or discard it')")
