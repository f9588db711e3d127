"""The overview: what needs an operator, the gravest first and with the way there, then the figures and the chart."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import sin
from typing import TYPE_CHECKING, Any

from tests.browser.conftest import HOSTILE, Run, reading
from tests.browser.tab import (
    HEIGHT,
    PHONE,
    SCHEMES,
    WIDTH,
    Opener,
    Picture,
    Portrait,
    boxes,
    press_until,
    seen,
    show,
    with_aggregation,
)
from tests.browser.test_ops import PAGES, show_whole
from tests.patience import allowed

if TYPE_CHECKING:
    from playwright.sync_api import Page

STATUS = "**/api/status"
SIZES = "[...document.querySelectorAll('main *')].map((one) => parseFloat(getComputedStyle(one).fontSize))"
LETTERS = dict.fromkeys(("waiting", "retrying", "held", "exhausted", "resolved", "discarded", "open"), 0)
Minutes = list[tuple[datetime, int, int]]


def changed(page: "Page", change: Callable[[Any], None]) -> None:
    seen(page, STATUS, change)
    page.reload()
    page.wait_for_selector("#verdict")


def test_the_first_screen_says_at_once_whether_the_ledger_is_balanced_and_proves_it(
    page: "Page", run: Run, picture: Picture
) -> None:
    page.wait_for_selector("#verdict")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert paint < 1_000 * allowed(1.0)
    numbers, accounted = page.inner_text("#numbers"), page.inner_text("#accounted")
    assert (page.inner_text("#verdict"), numbers) == ("Balanced", accounted)
    assert int(accounted.replace(",", "")) == run.status()["accounted"]
    page.click("#healthy summary:text-is('16 partitions healthy')")
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


def a_calm_hour(accounted: int) -> Minutes:
    """An hour of watches up to now: 20 to 55 events a minute come in waves, and few of them wait."""
    waves = [sin(at / 5) + sin(at / 2) / 3 for at in range(60)]
    after = [round(sum(38 + 13 * wave for wave in waves[at + 1 :])) for at in range(60)]
    now = datetime.now(UTC).replace(second=15)
    return [
        (now - timedelta(minutes=60 - at), max(0, round(12 * waves[at])), accounted - after[at]) for at in range(60)
    ]


def an_hour() -> Minutes:
    """An hour of watches: the rate grows to 200 events/s, and the lag falls from 590 events to none."""
    now = datetime.now(UTC).replace(second=15)
    return [(now - timedelta(minutes=60 - at), 590 - 10 * at, 1_000 + 100 * at * (at + 1)) for at in range(60)]


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
        page.unroute("**/api/status/history*")
    with run.minutes(minutes[-1]):
        look(".now.rate:text('rate unknown')")
        assert page.locator(".chart polyline.lag").count() == 1
    look("p:text('The chart begins after the first minute')")
    with run.minutes(*((at - timedelta(hours=2), lag, accounted) for at, lag, accounted in minutes)):
        look("#late-watch:text('The watch stored the last minute 2 h ago.')")
        assert page.inner_text(".now.rate") == "rate unknown"
    assert page.evaluate("window.hacked") is None


NO_OUTAGE = {"patience": None, "failure": None, "failed": None, "tried": None, "letters": 0}


def stopped(body: Any, reason: str, ids: range, detail: str) -> None:
    of = {one["partition_id"]: one for one in body["partitions"]}
    for id in map(str, ids):
        said = f"telemetry/hubledger/{id}: {detail.replace('40', str(40 - int(id)))}"
        stop = {"partition_id": id, "reason": reason, "detail": said, "stopped_at": body["at"], "attempts": int(id) + 1}
        share = {"failure": "KeyError at transform.py:57", "failed": 40 - int(id), "tried": 50}
        of[id]["stops"] = [{**stop, **NO_OUTAGE, **({"patience": 20, **share} if reason == "outage" else {})}]
    body["stops"] = len(ids)


def well(body: Any) -> None:
    body["letters"].update(LETTERS)


def needy(body: Any) -> None:
    body["letters"].update(LETTERS, exhausted=3_776, open=3_776)


def outage(body: Any) -> None:
    needy(body)
    stopped(body, "outage", range(16), f"40 of 50 events fail: {HOSTILE}")


def accepting(body: Any) -> None:
    well(body)
    stopped(body, "outage", range(3), f"40 of 50 events fail: {HOSTILE}")
    for one in body["partitions"][:3]:
        one["stops"][0].update(attempts=20, letters=5_034)


def several(body: Any) -> None:
    outage(body)
    stopped(body, "store", range(2), "the log of the database is full")
    body.update(ledger_balanced=False, accounted=body["accounted"] - 1, written=body["written"] - 1, lag=None)
    body["partitions"][2]["balanced"] = False
    for one in body["partitions"]:
        one.update(hub_end=None, lag=None, lag_seconds=None)
    body["hub_fault"] = "no route"
    body["unknown_fields"] = [{"name": HOSTILE, "events": 12_000}, {"name": "", "events": 1}]


def late(body: Any) -> None:
    well(body)
    body["partitions"][3].update(lag=5_400, lag_seconds=7_200, hub_end="5443")
    body["lag"] = 5_400


def standing(body: Any) -> None:
    late(body)
    outage(body)
    body["partitions"][3]["stops"] = []
    body["standing"] = [{"partition_id": id, "since": body["at"], "fault": "StoreUnavailable"} for id in ("2", "3")]


def keyless(body: Any) -> None:
    well(body)
    lost = {"key_hash": "0f", "erased_at": body["at"]}
    body["lost_erasure_keys"] = [{**lost, "subjects": 2}, {**lost, "subjects": 1}]


def uneven(body: Any) -> None:
    well(body)
    body["partitions"][5]["balanced"] = False
    body.update(accounted=body["accounted"] - 1, written=body["written"] - 1)


TIME = re.compile(r"\b\d\d:\d\d:\d\d UTC")
NEEDY = "warn 3,776 letters need you"
STATES: dict[Callable[[Any], None], list[str]] = {
    well: ["good All is well, as of …"],
    needy: [NEEDY],
    late: ["warn Partition 3 is late by 2 h"],
    keyless: ["bad The key of 3 subjects is lost"],
    uneven: ["bad The ledger does not balance in partition 5"],
    standing: ["bad 15 partitions stopped: outage", "bad Partition 3 stands: StoreUnavailable", NEEDY],
    outage: ["bad 16 partitions stopped: outage", NEEDY],
    accepting: ["bad Partitions 0, 1, 2 go on: failing events become letters"],
    several: [
        "bad The ledger does not balance in partition 2",
        "bad Partitions 0, 1 stopped: store",
        "bad 14 partitions stopped: outage",
        "bad The hub does not answer",
        NEEDY,
    ],
}


def test_the_first_lines_say_what_needs_an_operator(page: "Page", run: Run, portrait: Portrait) -> None:
    with_aggregation(page, runs=[])
    for change, said in STATES.items():
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            changed(page, change)
            page.wait_for_selector(".matter")
            lines = page.locator(".matter").all()
            found = [f"{one.get_attribute('class')} {one.locator('.words').inner_text()}" for one in lines]
            assert [TIME.sub("…", one) for one in found] == [f"matter {words}" for words in said]
            largest = page.locator(".words").first.evaluate("(one) => parseFloat(getComputedStyle(one).fontSize)")
            assert max(page.evaluate(SIZES)) == largest
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate(WIDTH) <= width, (change, scheme)
                portrait(page, f"needs-{change.__name__}")
    assert page.evaluate("window.hacked") is None


def test_stops_of_one_error_are_one_row_and_each_matter_leads_to_its_place_and_its_section(
    page: "Page", run: Run
) -> None:
    changed(page, several)
    rows = page.locator("table[aria-label='Stopped partitions'] tbody tr")
    told = [rows.locator(f"td[data-label={name}]").all_inner_texts() for name in ("Partitions", "Detail", "Attempts")]
    assert told == [
        ["0, 1", "2, 3, 4, 5, 6, 7, 8, 9, and 6 more"],
        ["The same error: the log of the database is full", f"As in partition 2: 38 of 50 events fail: {HOSTILE}"],
        ["1 to 2", "3 to 16 of 20"],
    ], "one paragraph for one error, whatever its numbers"
    outage = page.inner_text(".matter:has-text('stopped: outage') .detail")
    assert (
        TIME.sub("…", outage).startswith("441 of 700 events fail, most with KeyError at transform.py:57. Since ")
        and "Attempts used: 3 to 16 of 20. Nothing is written. After the last one, failing events become letters."
        in outage
    )
    said = f"12,000 events had the unknown field {HOSTILE}; 1 event had other unknown fields. The app ignored them."
    assert page.inner_text("#unknown-fields") == said
    for link in page.locator(".matter a.guide").all():
        leads_to_a_section(page, run, str(link.get_attribute("href")))
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollHeight") <= 5 * PHONE["height"]
    ids = page.locator("table[aria-label='Partitions in trouble'] td[data-label=Partition]:visible")
    assert ids.all_inner_texts() == [str(id) for id in (2, 0, 1, 3, 4, 5, 6, 7)]
    page.click(".matter:has-text('stopped: store') button")
    assert page.evaluate("document.activeElement.id") == "stopped"
    page.click(".matter:has-text('does not balance') button")
    assert page.evaluate("document.activeElement.innerText") == "Audit the ledger"
    page.click(".matter a:text-is('Show them')")
    page.wait_for_selector("h1:text-is('Letters')")
    assert page.evaluate("location.hash") == "#/letters?status=exhausted"
    assert page.evaluate("window.hacked") is None


def in_trouble(body: Any) -> None:
    """Five partitions in trouble, and a healthy one whose end at the hub was read before its checkpoint."""
    of = {one["partition_id"]: one for one in body["partitions"]}
    stop = {
        "partition_id": "9",
        "reason": "held",
        "detail": HOSTILE,
        "stopped_at": body["at"],
        "attempts": 1,
        **NO_OUTAGE,
    }
    of["2"].update(lag=5_400, lag_seconds=7200.0, hub_end=str(int(of["2"]["checkpoint"]) + 5_400))
    body["lag"] = 5_400
    of["3"]["lag_seconds"] = 59.0
    of["5"]["open_gaps"] = 2
    of["9"]["stops"] = [stop]
    body["standing"] = [{"partition_id": id, "since": body["at"], "fault": None} for id in ("7", "9")]
    of["11"].update(balanced=False, accounted=of["11"]["accounted"] - 1)
    body.update(accounted=body["accounted"] - 1, written=body["written"] - 1)
    of["14"].update(hub_end="39", checkpoint="40")
    body["hub_read_at"] = (datetime.fromisoformat(body["at"]) - timedelta(seconds=4)).isoformat()


def test_trouble_comes_before_health_and_healthy_partitions_are_one_line_that_unfolds_by_keyboard(
    page: "Page", portrait: Portrait
) -> None:
    for width in (360, 1600):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        changed(page, in_trouble)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            portrait(page, "ops-trouble")
            first = ("#stopped", "table[aria-label='Partitions in trouble']", "#healthy")
            told, *_, stop, trouble, healthy = (one["y"] for one in boxes(page, ".matter.bad", *first))
            assert told < HEIGHT / 2, (width, scheme)
            assert stop < trouble < healthy, (width, scheme)
            assert page.evaluate(WIDTH) <= width, scheme
    rows = page.locator("table[aria-label='Partitions in trouble'] tbody tr")
    cells = [row.locator("td").all_inner_texts()[:2] for row in rows.all()]
    assert [(id, trouble.strip()) for id, trouble in cells] == [
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
    assert page.evaluate("document.activeElement.innerText") == "11 partitions healthy", "the focus stays"
    ends = page.locator('table[aria-label=Partitions] td[data-label="Hub\'s end"]').all_inner_texts()
    assert ([end for end in ends if "read" in end], len(ends)) == (["39 read 4 s ago"], 11)


def test_a_stop_says_until_when_it_holds_and_afterwards_that_its_events_become_letters(page: "Page") -> None:
    changed(page, accepting)
    detail = page.inner_text(".matter.bad .detail")
    assert "117 of 150 events fail, most with KeyError at transform.py:57." in detail
    assert "The 20 attempts of the fuse are used up, so failing events become letters now: 15,102 so far." in detail
    assert page.inner_text("#stopped") == "3 partitions go on nevertheless: the lines above say how."
    assert page.locator("table[aria-label='Partitions in trouble'] .badge:text-is('fails')").count() == 3
    assert not re.search("nothing.* is written|neither read nor written", page.inner_text("main"))


def test_all_is_well_has_its_time_and_is_not_said_of_a_lag_of_open_gaps_or_of_running_tasks(
    page: "Page", run: Run
) -> None:
    with_aggregation(page, runs=[])
    changed(page, well)
    was = page.inner_text(".matter.good")
    assert TIME.sub("…", was) == "All is well, as of …"
    page.wait_for_function("was => document.querySelector('.matter.good').innerText !== was", arg=was)

    def behind(body: Any) -> None:
        well(body)
        body["lag"] = body["partitions"][3]["lag"] = 24_777
        body["partitions"][3]["lag_seconds"] = 30.0
        body["partitions"][5]["open_gaps"] = 2

    now = datetime.now(UTC).replace(second=0, microsecond=0)
    task = {"kind": "replay", "task_id": "1", "status": "running"}
    seen(page, "**/api/tasks?status=running*", lambda body: body.update(tasks=[task]))
    for growth, last in ((540, "The lag grows: it cannot be caught up at this rate."), (-1_800, "about 14 min.")):
        with run.minutes(
            *((now - timedelta(minutes=at), 24_777 - growth * at, 99_999 - 2_460 * at) for at in range(9))
        ):
            changed(page, behind)
            words = page.locator(".matter .words").all_inner_texts()
            assert words == ["25,000 events behind", "2 gaps are open", "1 task is running"]
            assert page.locator(".matter .detail").first.inner_text().endswith(last)
            assert page.locator(".matter.warn").count() == (growth > 0)
    assert "Written: 41 events/s. Arriving: 11 events/s." in page.inner_text(".lead")


def test_an_app_that_does_not_answer_is_said_first_since_when_and_its_figures_fade(open_page: Opener, run: Run) -> None:
    page, kept = open_page("/api/ops/icon.svg", apart=True), list[Any]()
    page.clock.install()
    page.goto(f"{run.address}/api/ops")
    page.wait_for_selector("#verdict:text('Balanced')")
    page.route(STATUS, lambda route: kept.append(route))
    with page.expect_request(STATUS):
        page.clock.fast_forward(2_000)
    page.clock.fast_forward(10_000)
    page.wait_for_selector("#stale .words:text-matches('^No answer from the app since [0-9:]{8} UTC$')")
    stale, verdict = boxes(page, "#stale", "#verdict")
    assert stale["y"] < verdict["y"]
    opacity = "getComputedStyle(document.querySelector('[aria-label=Ledger]')).opacity"
    assert float(page.evaluate(opacity)) < 0.5
    page.unroute(STATUS)  # which lets the kept requests go on
    page.wait_for_selector("#stale", state="detached")
    assert page.evaluate(opacity) == "1"
    page.route(STATUS, lambda route: route.fulfill(status=503, json={"detail": HOSTILE}))
    page.clock.fast_forward(2_000)
    page.wait_for_selector("#stale .words:text('No new figures since')")
    assert HOSTILE in page.inner_text("#stale")
    page.route("**/api/tasks?*", lambda route: route.fulfill(status=503, json={"detail": HOSTILE}))
    page.evaluate("location.hash = '#/tasks'")
    page.wait_for_selector("h1:text-is('Tasks') + #stale")
    page.evaluate("location.hash = '#/letters'")
    page.wait_for_selector("h1:text-is('Letters')")
    assert page.locator("main.stale").count() == 0


def test_on_a_phone_sixteen_healthy_partitions_are_two_screens_and_the_filter_is_folded(page: "Page") -> None:
    page.set_viewport_size(PHONE)
    with_aggregation(page, runs=[])
    page.reload()
    page.wait_for_selector("#healthy summary:text-is('16 partitions healthy')")
    assert page.evaluate("document.documentElement.scrollHeight") <= 2 * PHONE["height"]
    show(page, "#/letters?partition_id=3")
    assert page.locator("select[name=status]").is_hidden()
    press_until(page, "Filter: partition id 3")
    page.keyboard.press("Enter")
    page.wait_for_selector("select[name=status]")
    assert page.evaluate(WIDTH) <= PHONE["width"]


def test_a_stopped_partition_is_shown_with_its_reason_its_time_and_the_action(page: "Page", run: Run) -> None:
    page.wait_for_selector("#verdict")
    assert page.locator("#stopped").count() == 0
    with run.stopped("7", {"incarnation": HOSTILE, "outage": "40 of 50 events fail", "held": "too many wait"}):
        page.wait_for_selector("#stopped:text-is('1 partition is stopped: none of its events is written.')")
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


def leads_to_a_section(page: "Page", run: Run, href: str) -> None:
    path, _, anchor = href.partition("#")
    guide = page.request.get(f"{run.address}{path}")
    assert (guide.status, guide.headers["content-type"]) == (200, "text/html; charset=utf-8"), href
    assert f'id="{anchor}"' in guide.text(), href


def test_every_panel_leads_to_its_section_of_the_guide_a_page_of_the_app_in_its_theme(
    aggregated: Run, page: "Page", portrait: Portrait
) -> None:
    met: set[str] = set()

    def look() -> None:
        for head in page.locator(".card .head").all():
            link = head.locator("a.guide")
            assert link.count() == 1, head.inner_text()
            assert link.get_attribute("aria-label") == f"Guide to {head.locator('h2').inner_text()}"
            met.add(str(link.get_attribute("href")))

    page.wait_for_selector("#verdict")
    with aggregated.stopped("7", {"held": "too many wait"}):
        page.wait_for_selector("#stopped")
        for fragment in PAGES:
            show_whole(page, fragment)
            look()
    show_whole(page, "#/runs")
    page.locator("td[data-label=Run] a").first.click()
    page.wait_for_selector("#quality")
    look()
    assert len(met - {"/api/ops/operator.html#many-letters-at-once"}) == 10  # which only a redrive shows
    for href in met:
        leads_to_a_section(page, aggregated, href)
    for _ in range(2):
        page.click("#theme")  # to dark
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        page.goto(f"{aggregated.address}/api/ops/runbook.html#lag")
        page.wait_for_selector("h2#lag")
        sections = page.locator("nav[aria-label=Sections]")
        assert sections.is_visible() == (width == 1280)  # folded on a phone
        for summary in page.locator("main summary:visible").all():
            summary.click()
        assert sections.locator("a:text-is('lag')").is_visible()
        assert page.evaluate(WIDTH) <= width
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
        portrait(page, "guide")
    page.click("nav a:text-is('Aggregation')")
    page.wait_for_selector("nav a[aria-current=page]:text-is('Aggregation')")
    assert page.evaluate("document.querySelector('article img').decode().then(() => 'shown')") == "shown"
    page.click("a.brand")
    page.wait_for_selector("#verdict")
