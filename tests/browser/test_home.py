"""The resident's page in a real browser, for a home with a week of readings, a silent home and a missing home."""

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.browser.conftest import HOSTILE, Run
from tests.browser.homes import EMPTY, HOME
from tests.browser.tab import SCHEMES, Opener, Picture, Portrait, is_light
from tests.browser.test_ops import UNLABELLED, press_until, show

if TYPE_CHECKING:
    from playwright.sync_api import Page

KINDS = ["Carbon monoxide", "Doors", "Motion", "Windows"]


def activity(run: Run) -> Any:
    """The JSON twin."""
    return run.get(f"homes/{HOME}/activity")


@pytest.fixture
def home(aggregated: Run, open_page: Opener) -> "Page":
    """The page of the home that has a week of readings."""
    page = open_page(f"/api/homes/{HOME}")
    page.wait_for_selector("main svg[role=img]")
    return page


def test_the_last_day_is_shown_by_kind_of_sensor(home: "Page", aggregated: Run, picture: Picture) -> None:
    day = activity(aggregated)["day"]
    assert [one["kind"] for one in day["kinds"]] == ["carbon_monoxide", "door", "motion", "window"]
    assert home.locator("main .columns h2").all_inner_texts() == KINDS
    motion = home.locator("section[aria-label=Motion]")
    told = next(one for one in day["kinds"] if one["kind"] == "motion")
    assert motion.locator(".said").inner_text() == f"Motion in {told['active']} of {told['readings']} readings"
    assert motion.locator("svg g").count() == len(told["steps"])
    assert motion.locator("rect.active").count() == sum(1 for step in told["steps"] if step["active"])
    gas = home.locator("section[aria-label='Carbon monoxide']")
    measured = day["kinds"][0]["ppm"]
    assert gas.locator(".said").inner_text() == f"Highest {measured['most']:g} ppm, average {measured['mean']:.1f}"
    assert measured["most"] > 80
    picture(home, "home-wide")


def test_bars_stand_where_and_as_high_as_the_numbers_say(home: "Page", aggregated: Run) -> None:
    day = activity(aggregated)["day"]
    told = next(one for one in day["kinds"] if one["kind"] == "motion")
    bars = home.evaluate(
        "[...document.querySelectorAll('section[aria-label=Motion] rect.readings')]"
        ".map(r => [Number(r.getAttribute('x')), Number(r.getAttribute('height'))])"
    )
    assert [at for at, _ in bars] == sorted(at for at, _ in bars)
    high = max(bars, key=lambda bar: bar[1])
    most = max(step["readings"] for step in told["steps"])
    assert told["steps"][bars.index(high)]["readings"] == most
    one = next(height for (_, height), step in zip(bars, told["steps"], strict=True) if step["readings"] == 1)
    assert high[1] / one == pytest.approx(most, rel=0.02)


def test_the_week_is_shown_by_keyboard_and_adds_up_to_more(home: "Page", aggregated: Run) -> None:
    week = activity(aggregated)["week"]
    press_until(home, "Newest week")
    home.keyboard.press("Enter")
    home.wait_for_selector("[data-span=week][aria-pressed=true]")
    assert home.evaluate("document.activeElement.innerText") == "Newest week"
    press_until(home, "In numbers")
    home.keyboard.press("Enter")
    home.wait_for_selector("details[open] tr")
    doors = next(one for one in week["kinds"] if one["kind"] == "door")
    home.wait_for_selector(f"text='Open in {doors['active']} of {doors['readings']} readings'")
    labels = home.locator("section[aria-label=Doors] svg text").all_text_contents()
    assert {"Mon", "Tue", "Wed", "Thu", "Fri"} <= set(labels)


def test_alerts_come_first_the_newest_on_top_and_the_others_on_request(home: "Page", aggregated: Run) -> None:
    alerts = activity(aggregated)["alerts"]
    assert {one["kind"] for one in alerts} == {"carbon_monoxide"}
    shown = home.locator("#alerts li")
    assert "Carbon monoxide" in shown.first.inner_text()
    assert f"{alerts[0]['ppm']} ppm" in shown.first.inner_text()
    assert shown.count() == min(5, len(alerts))


def test_the_page_says_as_of_when_and_that_more_is_coming(home: "Page", aggregated: Run) -> None:
    assert home.locator("#as-of").count() == 0, "it has been silent for long"
    home.click("[data-go=earlier]")
    home.wait_for_selector("#as-of")
    assert home.inner_text("#as-of").startswith("As of ")
    committed = home.get_attribute("#as-of time", "datetime")
    assert committed == activity(aggregated)["as_of"]["committed_at"]


def test_earlier_days_are_looked_at_and_left_again_on_the_clock_of_the_home(home: "Page") -> None:
    latest = home.inner_text("#period")
    assert "Europe/Paris" in latest
    assert "Sat 14 Mar 2026, 19:00" in latest  # 18:00 in UTC
    assert home.inner_text("main .badge").startswith("last known: ")
    assert "No sensor has reported since Sat 14 Mar 2026" in home.inner_text("#silent")
    home.click("[data-go=earlier]")
    home.wait_for_selector("#period:has-text('Thu 12 Mar 2026, 19:00 to Fri 13 Mar 2026, 19:00')")
    home.click("[data-go=latest]")
    home.wait_for_selector("#period:has-text('Fri 13 Mar 2026, 19:00 to Sat 14 Mar 2026, 19:00')")
    assert home.inner_text("#period") == latest


def test_a_silent_home_is_shown_as_silent(aggregated: Run, open_page: Opener) -> None:
    page = open_page(f"/api/homes/{EMPTY}")
    page.wait_for_selector("h2:text-is('Nothing yet')")
    assert page.inner_text("#calm").startswith("No sensor of this home has sent a reading yet.")
    assert page.locator("main svg, main button").count() == 0


def test_a_missing_home_is_reported_in_words_and_an_address_with_markup_is_text(
    aggregated: Run, open_page: Opener
) -> None:
    page = open_page("/api/homes/NOWHERE")
    page.wait_for_selector("main .fault:has-text('no home is registered as NOWHERE')")
    page = open_page(f"/api/homes/{quote('<img|src=x|onerror=hacked=1>')}")
    page.wait_for_selector("main .fault:has-text('<img|src=x|onerror=hacked=1>')")
    assert page.locator("main img").count() == 0
    assert page.evaluate("window.hacked") is None


def test_homes_are_found_as_they_are_typed_and_opened_by_keyboard(home: "Page") -> None:
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


def test_the_operator_finds_homes_page_by_page(page: "Page", aggregated: Run) -> None:
    show(page, "#/homes")
    page.wait_for_selector("ul.tiles li:nth-child(12)")
    page.click("text=More")
    page.wait_for_selector(f"ul.tiles a:text-is('{HOME}')")
    assert page.locator("ul.tiles a").count() == 18
    page.click(f"ul.tiles a:text-is('{HOME}')")
    page.wait_for_selector(f"h1:text-is('Home {HOME}')")


@pytest.mark.parametrize("width", [360, 1600])
def test_the_page_fits_the_screen_in_either_colour_scheme(
    aggregated: Run, open_page: Opener, picture: Picture, portrait: Portrait, width: int
) -> None:
    inside = "[...document.querySelectorAll('main svg')].every(s => s.getBoundingClientRect().right <= innerWidth)"
    for home_id, state in ((HOME, "alerts"), (EMPTY, "empty"), ("NOWHERE", "unknown")):
        page = open_page(f"/api/homes/{home_id}", width=width)
        page.wait_for_selector("main h1")
        page.wait_for_timeout(200)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (home_id, scheme)
            portrait(page, f"home-{state}")
            if home_id == HOME:
                assert page.evaluate(inside), scheme
                assert is_light(page) == (scheme == "light")
            if (home_id, width, scheme) == (HOME, 360, "light"):
                picture(page, "home-phone")


def test_every_chart_has_words_and_every_field_a_label(home: "Page") -> None:
    for chart in home.locator("main svg").all():
        assert ": " in (chart.get_attribute("aria-label") or "")
    assert home.evaluate(UNLABELLED) == 0
    assert home.locator("h1").count() == 1
