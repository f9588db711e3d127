"""The order of the operator's page: trouble before health, the message before its type, ages before instants."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import HOSTILE, Run, seen, with_aggregation, with_engine
from tests.browser.tab import HEIGHT, SCHEMES, Opener, Portrait
from tests.browser.test_ops import PAGES, boxes, order, press_until, show, show_whole

if TYPE_CHECKING:
    from playwright.sync_api import Page

PHONE = {"width": 390, "height": 844}
STATUS = "**/api/status"


def changed(page: "Page", change: Callable[[Any], None]) -> None:
    """Let the overview see a status with a change."""
    seen(page, STATUS, change)
    page.reload()
    page.wait_for_selector("#verdict")


def in_trouble(body: Any) -> None:
    """Five partitions in trouble, and a healthy one whose end at the hub was read before its checkpoint."""
    of = {one["partition_id"]: one for one in body["partitions"]}
    stop = {"partition_id": "9", "reason": "held", "detail": HOSTILE, "stopped_at": body["at"], "attempts": 1}
    of["2"].update(lag=5_400, lag_seconds=7200.0, hub_end=str(int(of["2"]["checkpoint"]) + 5_400))
    body["lag"] = 5_400
    of["3"]["lag_seconds"] = 299.0
    of["5"]["open_gaps"] = 2
    of["9"]["stops"] = [stop]
    body["standing"] = [{"partition_id": id, "since": body["at"], "fault": None} for id in ("7", "9")]
    of["11"].update(balanced=False, accounted=of["11"]["accounted"] - 1)
    body.update(accounted=body["accounted"] - 1, written=body["written"] - 1)
    of["14"].update(hub_end="39", checkpoint="40")
    body["hub_read_at"] = (datetime.fromisoformat(body["at"]) - timedelta(seconds=4)).isoformat()


def test_partitions_in_trouble_come_first_and_healthy_ones_are_one_line_that_unfolds_by_keyboard(page: "Page") -> None:
    changed(page, in_trouble)
    rows = page.locator("table[aria-label='Partitions in trouble'] tbody tr")
    told = [row.locator("td").all_inner_texts()[:2] for row in rows.all()]
    assert [(id, trouble.strip()) for id, trouble in told] == [
        ("11", "not balanced"), ("7", "stands"), ("9", "stopped"), ("5", "2 open gaps"), ("2", "late by 2 h"),
    ]  # fmt: skip
    assert page.locator("table[aria-label=Partitions]").is_hidden()
    press_until(page, "11 partitions healthy")
    page.keyboard.press("Enter")
    page.wait_for_selector("table[aria-label=Partitions] tbody tr:nth-child(11)")
    for _ in range(2):
        with page.expect_response(STATUS):
            pass
    assert page.locator("table[aria-label=Partitions]").is_visible()
    assert page.evaluate("document.activeElement.innerText") == "11 partitions healthy"
    ends = page.locator('table[aria-label=Partitions] td[data-label="Hub\'s end"]').all_inner_texts()
    assert ([end for end in ends if "read" in end], len(ends)) == (["39 read 4 s ago"], 11)


def test_on_a_phone_sixteen_healthy_partitions_are_two_screens_and_the_filter_is_folded(open_page: Opener) -> None:
    page = open_page(width=PHONE["width"])
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    with_aggregation(page, runs=[])
    page.reload()
    page.wait_for_selector("#healthy summary:text-is('16 partitions healthy')")
    assert page.evaluate("document.documentElement.scrollHeight") <= 2 * PHONE["height"]
    show(page, "#/letters?partition_id=3")
    assert page.locator("select[name=status]").is_hidden()
    press_until(page, "Filter: partition id 3")
    page.keyboard.press("Enter")
    page.wait_for_selector("select[name=status]")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_causes_lead_with_the_message_and_settled_ones_are_folded(page: "Page", run: Run) -> None:
    run.feed("1", b"{1", b'"a text"')
    listed = page.request.get(f"{run.address}/api/revealed/dead-letters/groups?partition_id=1").json()["groups"]
    show(page, "#/letters?partition_id=1")
    causes = page.locator("table[aria-label='Letters by cause'] tbody tr")
    causes.nth(len(listed) - 1).wait_for()
    assert causes.locator("td a").all_inner_texts() == [one["template"] for one in listed]
    assert set(causes.locator(".badge.type").all_inner_texts()) == {"core.errors.PoisonEvent"}
    assert page.locator("#settled").count() == 0
    gone = causes.first.locator("td a").inner_text()
    causes.first.locator("button.grave").click()
    order(page, "1")
    page.click("dialog button.grave")
    page.wait_for_selector("#settled summary:text-is('1 settled cause')")
    assert causes.locator("td a").all_inner_texts() == [one["template"] for one in listed[1:]]
    assert page.locator("table[aria-label='Settled causes']").is_hidden()
    page.click("#settled summary")
    settled = page.locator("table[aria-label='Settled causes']")
    assert settled.locator("td a").inner_text() == gone
    assert settled.locator("button").count() == 0  # no move can be made


def test_a_cause_shows_its_values_and_one_value_is_discarded_alone(page: "Page", run: Run) -> None:
    kinds = ("doorbell", "WINDOW", "smoke", "WINDOW")
    run.feed("2", *(b'{"kind":"%s","home_id":"H1"}' % kind.encode() for kind in kinds))
    show(page, "#/letters?partition_id=2")
    row = page.locator("table[aria-label='Letters by cause'] tbody tr", has_text="Invalid value … - at `$.kind`")
    row.locator("text=3 values, e.g.").wait_for()
    row.locator("td a").click()
    page.wait_for_selector("h2:text-is('By value of the message')")
    values = page.locator("table[aria-label='Letters by cause'] tbody tr")
    assert values.locator("td a").first.inner_text() == "WINDOW"
    assert sorted(values.locator("td a").all_inner_texts()) == ["WINDOW", "doorbell", "smoke"]
    values.first.locator("button.grave").click()
    order(page, "2")
    page.click("dialog button.grave")
    page.wait_for_selector("#settled summary:text-is('1 settled cause')")
    assert sorted(values.locator("td a").all_inner_texts()) == ["doorbell", "smoke"]


def test_a_time_is_an_age_that_grows_and_its_instant_is_on_hover(open_page: Opener, run: Run) -> None:
    page = open_page(apart=True)
    page.clock.install()
    page.reload()
    show(page, "#/letters/3/41")
    failed = page.request.get(f"{run.address}/api/dead-letters/3/41").json()["letter"]["failed_at"]
    shown = page.locator("time.ago").first
    assert shown.get_attribute("datetime") == failed
    assert shown.get_attribute("title") == re.sub(r"T(.*?)(\.\d+)?Z$", r" \1 UTC", failed)
    age = datetime.now(UTC) - datetime.fromisoformat(failed)
    page.clock.fast_forward("03:00:00")
    page.wait_for_selector(f"time.ago:has-text('{3 + int(age.total_seconds() / 3600)} h ago')")


@pytest.mark.parametrize("width", [390, 1280])
def test_actions_of_a_letter_are_small_beside_its_title_and_discard_is_apart_and_quiet(
    open_page: Opener, width: int
) -> None:
    page = open_page(width=width)
    show(page, "#/letters/3/42")
    page.wait_for_selector(".title .apart button")  # the previous screen has a title too, in another place
    title, retry, discard = boxes(page, "h1", ".title .actions button", ".title .apart button")
    assert max(retry["width"], discard["width"]) < 120
    assert retry["y"] < title["y"] + 2 * title["height"]
    assert discard["x"] + discard["width"] > width - 40
    if width > 1000:
        assert retry["y"] < title["y"] + title["height"]
        assert discard["x"] - retry["x"] > 300
    looks = "getComputedStyle(document.querySelector('.apart button'))"
    quiet = page.evaluate(f"[{looks}.color, {looks}.borderColor]")
    assert quiet[1] == page.evaluate("getComputedStyle(document.querySelector('.card')).borderColor")
    press_until(page, "Discard")
    asked = page.evaluate(f"[{looks}.color, {looks}.borderColor]")
    assert asked[0] != quiet[0]
    assert asked[1] == asked[0]


def test_hostile_letters_are_text_in_three_forms_on_a_phone_and_do_nothing(open_page: Opener, run: Run) -> None:
    body = json.dumps({"kind": HOSTILE, HOSTILE: [HOSTILE, {"</pre><script>window.hacked=1</script>": None}]})
    run.feed("15", body.encode(), **{HOSTILE: HOSTILE})
    (letter,) = run.letters(partition_id="15")
    page = open_page(width=390)
    show(page, f"#/letters/15/{letter['sequence_number']}")
    forms = {"text": body, "json": json.dumps(json.loads(body), indent=2), "hex": body.encode().hex(" ")[:47]}
    for form, told in forms.items():
        page.click(f"button[data-form={form}]")
        page.wait_for_selector(f"button[data-form={form}][aria-pressed=true]")
        page.wait_for_function("text => document.querySelector('#body')?.textContent.includes(text)", arg=told)
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert HOSTILE in page.inner_text("main")
    show(page, "#/letters?partition_id=15")
    page.wait_for_selector("table[aria-label=Letters] tbody tr")
    assert page.evaluate("window.hacked") is None


def test_the_aggregation_offers_only_what_can_work_and_says_what_a_step_does(page: "Page", run: Run) -> None:
    show(page, "#/runs")
    page.wait_for_selector("#no-engine:has-text('SPARK_ENGINE')")
    assert page.locator("main .row button").count() == 0
    assert page.locator("main h2:text-is('Cut')").count() == 0
    with_engine(page)
    page.reload()
    step = page.locator("button:text-is('Take the next step now')")
    step.wait_for()
    described = page.inner_text(f"#{step.get_attribute('aria-describedby')}")
    assert "plans a run, submits its Spark job" in described
    step.click()
    page.click("dialog form button:not([type=button])")
    page.wait_for_selector("dialog .fault:has-text('SPARK_ENGINE')")  # the app itself has none
    page.keyboard.press("Escape")


def leads_to_a_section(page: "Page", run: Run, href: str) -> None:
    path, _, anchor = href.partition("#")
    guide = page.request.get(f"{run.address}{path}")
    assert (guide.status, guide.headers["content-type"]) == (200, "text/html; charset=utf-8"), href
    assert f'id="{anchor}"' in guide.text(), href


def guides(page: "Page") -> set[str]:
    """The address of the guide of each panel in sight; each panel has one."""
    found = set()
    for head in page.locator(".card .head").all():
        link = head.locator("a.guide")
        assert link.count() == 1, head.inner_text()
        assert link.get_attribute("aria-label") == f"Guide to {head.locator('h2').inner_text()}"
        found.add(str(link.get_attribute("href")))
    return found


def test_every_panel_leads_to_its_section_of_the_guide(aggregated: Run, page: "Page") -> None:
    page.wait_for_selector("#verdict")
    met: set[str] = set()
    with aggregated.stopped("7", {"held": "too many wait"}):
        page.wait_for_selector("#stopped")
        for fragment in PAGES:
            show_whole(page, fragment)
            met |= guides(page)
    show_whole(page, "#/runs")
    page.locator("td[data-label=Run] a").first.click()
    page.wait_for_selector("#quality")
    met |= guides(page)
    assert len(met - {"/api/ops/operator.html#many-letters-at-once"}) == 10  # which only a redrive shows
    for href in met:
        leads_to_a_section(page, aggregated, href)


def test_a_stop_is_read_without_scrolling_and_trouble_comes_before_health(
    page: "Page", run: Run, portrait: Portrait
) -> None:
    with run.stopped("7", {"outage": "One of the errors: no such kind", "held": "1,000 held letters of 3 keys"}):
        for width in (360, 1600):
            page.set_viewport_size({"width": width, "height": HEIGHT})
            changed(page, in_trouble)
            page.wait_for_selector("table[aria-label='Stopped partitions'] td:has-text('no such kind')")
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                portrait(page, "ops-trouble")
                first = ("#stopped", "table[aria-label='Partitions in trouble']", "#healthy")
                told, *_, stopped, trouble, healthy = (one["y"] for one in boxes(page, ".matter.bad", *first))
                assert told < HEIGHT / 2, (width, scheme)
                assert stopped < trouble < healthy, (width, scheme)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, scheme
