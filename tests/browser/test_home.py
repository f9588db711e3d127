"""The resident's page in a real browser, for a home with a week of readings, a silent home and a missing home."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from examples.home_security.transform import ALARMING_PPM
from tests.browser.conftest import HOSTILE, Run
from tests.browser.homes import EMPTY, HOME
from tests.browser.tab import (
    SCHEMES,
    UNLABELLED,
    WIDTH,
    Opener,
    Picture,
    Portrait,
    is_light,
    press_until,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

KINDS = {"carbon_monoxide": "Carbon monoxide", "door": "Doors", "motion": "Motion", "window": "Windows"}
BARS = (
    "[...document.querySelectorAll('section[aria-label=Motion] rect.readings')]"
    ".map(r => [Number(r.getAttribute('x')), Number(r.getAttribute('height'))])"
)
INSIDE = "[...document.querySelectorAll('main svg')].every(s => s.getBoundingClientRect().right <= innerWidth)"


@pytest.fixture
def activity(aggregated: Run) -> Any:
    return aggregated.get(f"homes/{HOME}/activity")


@pytest.fixture
def home(aggregated: Run, open_page: Opener) -> "Page":
    page = open_page(f"/api/homes/{HOME}")
    page.wait_for_selector("main svg[role=img]")
    return page


def test_the_last_day_is_shown_by_kind_of_sensor_in_bars_as_high_as_the_numbers_say(
    home: "Page", activity: Any, picture: Picture
) -> None:
    kinds = {one["kind"]: one for one in activity["day"]["kinds"]}
    assert [*kinds] == [*KINDS]
    assert home.locator("main .columns h2").all_inner_texts() == [*KINDS.values()]
    motion, told = home.locator("section[aria-label=Motion]"), kinds["motion"]
    assert motion.locator(".said").inner_text() == f"Motion in {told['active']} of {told['readings']} readings"
    assert motion.locator("svg g").count() == len(told["steps"])
    assert motion.locator("rect.active").count() == sum(1 for step in told["steps"] if step["active"])
    measured, gas = kinds["carbon_monoxide"]["ppm"], home.locator("section[aria-label='Carbon monoxide']")
    assert gas.locator(".said").inner_text() == f"Highest {measured['most']:g} ppm, average {measured['mean']:.1f}"
    assert measured["most"] > 80
    bars = home.evaluate(BARS)
    assert [at for at, _ in bars] == sorted(at for at, _ in bars)
    high, most = max(bars, key=lambda bar: bar[1]), max(step["readings"] for step in told["steps"])
    assert told["steps"][bars.index(high)]["readings"] == most
    one = next(height for (_, height), step in zip(bars, told["steps"], strict=True) if step["readings"] == 1)
    assert high[1] / one == pytest.approx(most, rel=0.02)
    assert gas.locator("circle.alarm").count() == len(activity["alerts"]) == 3
    assert gas.locator("text.limit").inner_html() == f"dangerous from {ALARMING_PPM} ppm"
    (shown,) = home.locator("#alerts li").all_inner_texts()  # one incident
    assert f"Carbon monoxide up to {max(one['ppm'] for one in activity['alerts'])} ppm, dangerous" in shown
    assert shown.endswith(" Fri 13 Mar 2026, 20:07 to 20:47, 3 alerts")
    for chart in home.locator("main svg").all():
        assert ": " in (chart.get_attribute("aria-label") or "")
    assert home.evaluate(UNLABELLED) == 0
    assert home.locator("h1").count() == 1
    picture(home, "home-wide")


def test_earlier_days_and_the_week_are_shown_on_the_clock_of_the_home_and_as_of_when(
    home: "Page", activity: Any
) -> None:
    latest = home.inner_text("#period")
    assert "Europe/Paris" in latest
    assert "Sat 14 Mar 2026, 19:00" in latest  # 18:00 in UTC
    assert home.inner_text("main .badge") == "alarm system: unknown"
    assert "No sensor has reported since Sat 14 Mar 2026" in home.inner_text("#silent")
    assert home.locator("#as-of").count() == 0, "it has been silent for long"
    home.click("[data-go=earlier]")
    home.wait_for_selector("#period:has-text('Thu 12 Mar 2026, 19:00 to Fri 13 Mar 2026, 19:00')")
    assert home.inner_text("#as-of").startswith("As of ")
    assert home.get_attribute("#as-of time", "datetime") == activity["as_of"]["committed_at"]
    home.click("[data-go=latest]")
    home.wait_for_selector("#period:has-text('Fri 13 Mar 2026, 19:00 to Sat 14 Mar 2026, 19:00')")
    assert home.inner_text("#period") == latest
    press_until(home, "Newest week")
    home.keyboard.press("Enter")
    home.wait_for_selector("[data-span=week][aria-pressed=true]")
    assert home.evaluate("document.activeElement.innerText") == "Newest week"
    press_until(home, "In numbers")
    home.keyboard.press("Enter")
    home.wait_for_selector("details[open] tr")
    doors = next(one for one in activity["week"]["kinds"] if one["kind"] == "door")
    home.wait_for_selector(f"text='Open in {doors['active']} of {doors['readings']} readings'")
    labels = home.locator("section[aria-label=Doors] svg text").all_text_contents()
    assert {"Mon", "Tue", "Wed", "Thu", "Fri"} <= set(labels)


def test_a_silent_home_and_a_missing_one_are_reported_in_words_and_an_address_with_markup_is_text(
    aggregated: Run, open_page: Opener
) -> None:
    page = open_page(f"/api/homes/{EMPTY}")
    page.wait_for_selector("#calm.warn")
    assert page.inner_text("#calm").startswith("No sensor of this home has sent a reading yet, so nobody knows")
    assert page.locator("main svg, main button").count() == 0
    page = open_page("/api/homes/NOWHERE")
    page.wait_for_selector("main .fault:has-text('no home is registered as NOWHERE')")
    page = open_page(f"/api/homes/{quote('<img|src=x|onerror=hacked=1>')}")
    page.wait_for_selector("main .fault:has-text('<img|src=x|onerror=hacked=1>')")
    assert page.locator("main img").count() == 0
    assert page.evaluate("window.hacked") is None


def test_homes_are_found_as_they_are_typed_and_page_by_page(home: "Page", aggregated: Run) -> None:
    press_until(home, "prefix")
    home.keyboard.type("H10")
    home.wait_for_selector("#found a:nth-child(1)")
    assert home.locator("#found a").all_inner_texts() == [HOME, EMPTY]
    home.fill("input[name=prefix]", HOSTILE[:32])
    home.wait_for_selector("#found p")
    home.fill("input[name=prefix]", EMPTY)
    home.wait_for_selector(f"#found a:text-is('{EMPTY}')")
    press_until(home, EMPTY)
    home.keyboard.press("Enter")
    home.wait_for_selector(f"h1:text-is('Home {EMPTY}')")
    home.click("#back")
    home.wait_for_selector("p:has-text('The first 12 homes by id, and there are more.') + ul.tiles li:nth-child(12)")
    home.click("text=Show more homes")
    home.wait_for_selector(f"ul.tiles a:text-is('{HOME}')")
    assert home.locator("ul.tiles a").count() == 18
    home.click(f"ul.tiles a:text-is('{HOME}')")
    home.wait_for_selector(f"h1:text-is('Home {HOME}')")


def lively(page: "Page", until: str) -> None:
    """Let the page see a home as it was at the end of its readings before a time, shortly after a run."""

    def answer(route: "Route") -> None:
        body = route.fetch(url=f"{route.request.url.partition('?')[0]}?until={until}").json()
        body["at"], body["as_of"]["committed_at"] = (
            f"{datetime.fromisoformat(until) + timedelta(minutes=by):%Y-%m-%dT%H:%M:%SZ}" for by in (8, 7)
        )
        body["as_of"]["is_current"] = True
        route.fulfill(json=body)

    page.route("**/homes/*/activity*", answer)
    page.reload()


def test_the_page_fits_the_screen_in_either_colour_scheme(
    aggregated: Run, open_page: Opener, picture: Picture, portrait: Portrait
) -> None:
    for width in (1600, 360):
        states = {"unknown": "NOWHERE", "empty": EMPTY, "silent": HOME, "calm": HOME, "alerts": HOME}
        for state, home_id in states.items():
            page = open_page(f"/api/homes/{home_id}", width=width)
            if state in ("calm", "alerts"):
                lively(page, "2026-03-12T17:55:00Z" if state == "calm" else "2026-03-14T17:40:00Z")
                danger = "Carbon monoxide is below the dangerous level again: 11 ppm, 21 min ago."
                said = "No alert in the last week." if state == "calm" else danger
                page.wait_for_selector(f"#safety .words:text-is('{said}')")
                assert ("Go outside at once" in page.inner_text("#safety")) == (state == "alerts")
            page.wait_for_selector("main h1")
            page.wait_for_timeout(200)
            for scheme in reversed(SCHEMES):
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate(WIDTH) <= width, (home_id, scheme)
                assert page.evaluate(INSIDE), (home_id, scheme)
                assert is_light(page) == (scheme == "light")
                portrait(page, f"home-{state}")
            page.unroute_all()
    picture(page, "home-phone")
