"""The first line of the overview: what needs an operator, the gravest first, and the way there."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import HOSTILE, Run, with_aggregation
from tests.browser.tab import SCHEMES, Portrait
from tests.browser.test_lead import changed, leads_to_a_section

if TYPE_CHECKING:
    from playwright.sync_api import Page

SIZES = "[...document.querySelectorAll('main *')].map((one) => parseFloat(getComputedStyle(one).fontSize))"
LETTERS = dict.fromkeys(("waiting", "retrying", "held", "exhausted", "resolved", "discarded", "open"), 0)


def stopped(body: Any, reason: str, ids: range, detail: str) -> None:
    of = {one["partition_id"]: one for one in body["partitions"]}
    for id in map(str, ids):
        said = f"telemetry/hubledger/{id}: {detail}"
        stop = {"partition_id": id, "reason": reason, "detail": said, "stopped_at": body["at"], "attempts": int(id) + 1}
        of[id]["stops"] = [stop]
    body["stops"] = len(ids)


def well(body: Any) -> None:
    body["letters"].update(LETTERS)


def needy(body: Any) -> None:
    body["letters"].update(LETTERS, exhausted=3_776, open=3_776)


def outage(body: Any) -> None:
    needy(body)
    stopped(body, "outage", range(16), f"40 of 50 events fail: {HOSTILE}")


def several(body: Any) -> None:
    outage(body)
    stopped(body, "store", range(2), "the log of the database is full")
    body.update(ledger_balanced=False, accounted=body["accounted"] - 1, written=body["written"] - 1, lag=None)
    body["partitions"][2]["balanced"] = False
    for one in body["partitions"]:
        one.update(hub_end=None, lag=None, lag_seconds=None)
    body["hub_fault"] = "no route"


def late(body: Any) -> None:
    well(body)
    body["partitions"][3].update(lag=5_400, lag_seconds=7_200, hub_end="5443")
    body["lag"] = 5_400


def standing(body: Any) -> None:
    late(body)
    outage(body)
    body["partitions"][3]["stops"] = []
    body["standing"] = [{"partition_id": id, "since": body["at"], "fault": "StoreUnavailable"} for id in ("2", "3")]


def uneven(body: Any) -> None:
    well(body)
    body["partitions"][5]["balanced"] = False
    body.update(accounted=body["accounted"] - 1, written=body["written"] - 1)


STATES: list[tuple[Callable[[Any], None], list[tuple[str, str]]]] = [
    (well, [("good", "All is well")]),
    (needy, [("warn", "3,776 letters need you")]),
    (late, [("warn", "Partition 3 is late by 2 h")]),
    (uneven, [("bad", "The ledger does not balance in partition 5")]),
    (standing, [
        ("bad", "15 partitions stopped: outage"), ("bad", "Partition 3 stands"), ("warn", "3,776 letters need you"),
    ]),
    (outage, [("bad", "16 partitions stopped: outage"), ("warn", "3,776 letters need you")]),
    (several, [
        ("bad", "The ledger does not balance in partition 2"), ("bad", "Partitions 0, 1 stopped: store"),
        ("bad", "14 partitions stopped: outage"), ("bad", "The hub does not answer"),
        ("warn", "3,776 letters need you"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), STATES, ids=lambda one: getattr(one, "__name__", ""))
def test_the_first_lines_say_what_needs_an_operator(
    page: "Page", run: Run, portrait: Portrait, change: Callable[[Any], None], said: list[tuple[str, str]]
) -> None:
    with_aggregation(page, runs=[])
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        changed(page, change)
        page.wait_for_selector(".matter")
        lines = [
            (one.get_attribute("class"), one.locator(".words").inner_text()) for one in page.locator(".matter").all()
        ]
        assert lines == [(f"matter {tone}", words) for tone, words in said]
        sizes = page.evaluate(SIZES)
        assert max(sizes) == page.locator(".words").first.evaluate(
            "(one) => parseFloat(getComputedStyle(one).fontSize)"
        )
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, scheme
            portrait(page, f"needs-{change.__name__}")
    assert page.evaluate("window.hacked") is None


def test_partitions_with_one_reason_and_one_error_are_one_row(page: "Page", run: Run) -> None:
    changed(page, several)
    rows = page.locator("table[aria-label='Stopped partitions'] tbody tr")
    assert rows.locator("td[data-label=Partitions]").all_inner_texts() == [
        "0, 1",
        "2, 3, 4, 5, 6, 7, 8, 9, and 6 more",
    ]
    assert rows.locator("td[data-label=Detail]").all_inner_texts() == [
        "The same error: the log of the database is full",
        f"The same error: 40 of 50 events fail: {HOSTILE}",
    ]
    assert rows.locator("td[data-label=Attempts]").all_inner_texts() == ["2", "16"]
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollHeight") <= 5 * 844
    ids = page.locator("table[aria-label='Partitions in trouble'] td[data-label=Partition]:visible")
    assert ids.all_inner_texts() == [str(id) for id in (2, 0, 1, 3, 4, 5, 6, 7)]
    assert page.evaluate("window.hacked") is None


def test_each_matter_leads_to_its_place_and_to_its_section_of_the_runbook(page: "Page", run: Run) -> None:
    changed(page, several)
    for link in page.locator(".matter a.guide").all():
        leads_to_a_section(page, run, str(link.get_attribute("href")))
    page.click(".matter:has-text('stopped: store') button")
    assert page.evaluate("document.activeElement.id") == "stopped"
    page.click(".matter:has-text('does not balance') button")
    assert page.evaluate("document.activeElement.innerText") == "Audit the ledger"
    page.click(".matter a:text-is('Show them')")
    page.wait_for_selector("h1:text-is('Letters')")
    assert page.evaluate("location.hash") == "#/letters?status=exhausted"


def test_a_guide_is_a_page_of_the_app_in_its_theme_and_leads_to_the_others(
    page: "Page", run: Run, portrait: Portrait
) -> None:
    page.wait_for_selector("#verdict")
    for _ in range(2):
        page.click("#theme")  # to dark
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        page.goto(f"{run.address}/api/ops/runbook.html#lag")
        page.wait_for_selector("h2#lag")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
        portrait(page, "guide")
    page.click("nav a:text-is('alerts')")
    page.wait_for_selector("nav a[aria-current=page]:text-is('alerts')")
    page.click("a.brand")
    page.wait_for_selector("#verdict")


def test_a_field_that_the_room_does_not_know_is_told(page: "Page", run: Run) -> None:
    fields = [{"name": HOSTILE, "events": 12_000}, {"name": "", "events": 1}]
    changed(page, lambda body: body.update(unknown_fields=fields))
    said = f"12,000 events had the unknown field {HOSTILE}; 1 event had other unknown fields. The app ignored them."
    assert page.inner_text("#unknown-fields") == said
    assert page.evaluate("window.hacked") is None
