"""The overview: what needs an operator, the gravest first and with the way there, then the figures and the chart."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from types import MappingProxyType
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
    an_hour_before,
    before,
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
LABELS = "all => all.map((one) => getComputedStyle(one, '::before').content)"
SIZES = "[...document.querySelectorAll('main *')].map((one) => parseFloat(getComputedStyle(one).fontSize))"
OUTCOMES = ("numbers", "accounted", "written", "filtered", "dead_lettered", "held", "absent", "open_gaps")
Minutes = list[tuple[datetime, int, int]]


def tell(
    body: Any,
    exhausted: int = 0,
    lags: Mapping[int, tuple[int, float]] = MappingProxyType({}),
    missing: int = -1,
    held: int = 0,
    among: int = 16,
) -> None:
    """Tell of a system of which all numbers follow from these facts: the letters that need an operator, in the first
    partitions, the events that wait in partitions and for how long, the partition with an event without an outcome, and
    the events held in partition 9."""
    of = body["partitions"]
    for id, one in enumerate(of):
        lag, seconds = lags.get(id, (0, 0.0))
        numbers, is_whole, holds = 24_000 + 137 * id, id != missing, held * (id == 9)
        letters, filtered = 2 + (exhausted // among if id < among else 0), 40 + id
        accounted = numbers - (not is_whole)
        one.update(numbers=numbers, accounted=accounted, written=accounted - letters - filtered - holds, held=holds)
        one.update(filtered=filtered, dead_lettered=letters, absent=0, open_gaps=0)
        one.update(first="0", checkpoint=f"{numbers - 1}", hub_end=f"{numbers - 1 + lag}", lag=lag)
        one.update(lag_seconds=seconds, balanced=is_whole, stops=[], enqueued_at=before(body, int(seconds)))
    body.update({name: sum(one[name] for one in of) for name in OUTCOMES}, lag=sum(one["lag"] for one in of))
    body.update(ledger_balanced=missing < 0, stops=0, standing=[], hub_fault=None)
    body["letters"].update(waiting=0, retrying=0, held=held, exhausted=exhausted, open=exhausted + held, settled=32)
    body["letters"].update(dead_lettered=body["dead_lettered"] + held, replayed=0)
    failed = {"partition_id": "4", "sequence_number": "11041", "failed_at": before(body, 1_500)}
    body["oldest_open_letter"] = failed if exhausted else None
    body["hub_forgets"] = {
        "letters_expiring_hours": 23.6 if exhausted else 24.0,
        "loss_hours": 24.0,
        "events_lost": 0,
        "lost": [],
    }


def changed(page: "Page", change: Callable[[Any], None], of_run: bool = False) -> None:
    """Show a status, with the hour before it or with the minutes of the run."""
    body = page.request.get(f"{page.url.partition('/api/')[0]}/api/status").json()
    change(body)
    seen(page, STATUS, change)
    page.unroute(f"{STATUS}/history*")
    if not of_run:
        seen(page, f"{STATUS}/history*", lambda found: found.update(minutes=an_hour_before(body)))
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
    page.click("#healthy summary:text-is('16 partitions read on time')")
    page.wait_for_selector("table[aria-label=Partitions] tbody tr:nth-child(16)")
    lags = page.locator("table[aria-label=Partitions] tbody td[data-label=Lag]").all_inner_texts()
    assert lags == ["0"] * 16
    run.feed("0", *(reading(0, at) for at in range(40)))
    so_far = int(accounted.replace(",", "")) + 40
    page.wait_for_selector(f"#accounted:text-is('{so_far:,}')")
    with_aggregation(page, runs=[])
    seen(page, f"{STATUS}/history*", lambda found: found.update(minutes=an_hour_before(run.status(), 0.5)))
    page.reload()
    page.wait_for_selector(".chart polyline.rate", state="attached")
    picture(page, "ops-overview")


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
        assert page.inner_text(".now.rate") == "197 events/s read in the last minute"
        assert [page.locator(f".chart polyline.{name}").count() for name in ("lag", "rate")] == [2, 2], "a break"
        page.route("**/api/status/history*", lambda route: route.fulfill(status=503, json={"detail": HOSTILE}))
        look("#minutes-fault:text('The minutes were not read')")
        assert HOSTILE in page.inner_text("#minutes-fault")
        assert page.locator(".chart polyline").count() == 4, "those of before stay"
        page.unroute("**/api/status/history*")
    with run.minutes(minutes[-1]):
        look(".now.rate:text('Rate unknown')")
        assert page.locator(".chart polyline.lag").count() == 1
    look("p:text('The chart begins when the app has measured a minute')")
    with run.minutes(*((at - timedelta(hours=2), lag, accounted) for at, lag, accounted in minutes)):
        look("#late-watch:text('once a minute, but did so last 2 h ago.')")
        assert "Rate unknown" in page.inner_text(".now.rate")
    assert page.evaluate("window.hacked") is None


MOST_FAIL = "40 of 50 events fail, most with KeyError. One of the errors: {}".format
NO_OUTAGE = {"patience": None, "failure": None, "failed": None, "tried": None, "letters": 0}


def stopped(body: Any, reason: str, ids: range, detail: str) -> None:
    for id in ids:
        said = f"telemetry/hubledger/{id}: {detail.replace('40', str(40 - id))}"
        tries = 4 + id % 3
        stop = {"partition_id": f"{id}", "reason": reason, "detail": said, "stopped_at": before(body, 12 * tries)}
        share = {"failure": "KeyError at transform.py:57", "failed": 40 - id, "tried": 50}
        outage = {"patience": 10, **share} if reason == "outage" else {}
        body["partitions"][id]["stops"] = [{**stop, "attempts": tries, **NO_OUTAGE, **outage}]
    body["stops"] = len(ids)


def well(body: Any) -> None:
    tell(body)


def needy(body: Any) -> None:
    tell(body, exhausted=3_776)


WAITING = {id: (170 + 3 * id, 75 + id / 4) for id in range(16)}


def outage(body: Any) -> None:
    tell(body, 3_776, WAITING)
    stopped(body, "outage", range(16), MOST_FAIL("KeyError: 'celsius'"))


def accepting(body: Any) -> None:
    tell(body, exhausted=15_102, among=3)
    stopped(body, "outage", range(3), MOST_FAIL("KeyError: 'celsius'"))
    for one in body["partitions"][:3]:
        one["stops"][0].update(attempts=10, letters=5_034, stopped_at=before(body, 7_500))
    body["oldest_open_letter"].update(partition_id="0", sequence_number="18964", failed_at=before(body, 7_290))


def several(body: Any, error: str = "KeyError: 'celsius'", field: str = "firmware_build") -> None:
    tell(body, 3_776, WAITING, missing=2)
    stopped(body, "outage", range(2, 16), MOST_FAIL(error))
    stopped(body, "store", range(2), "the log of the database is full")
    body.update(lag=None, hub_fault="ServiceBusy: the namespace telemetry is being throttled", stops=16)
    for one in body["partitions"]:
        one.update(hub_end=None, lag=None, lag_seconds=None)
    body["unknown_fields"] = [{"name": field, "events": 12_000}, {"name": "", "events": 1}]


def late(body: Any) -> None:
    tell(body, lags={3: (5_400, 7_200)})


def standing(body: Any) -> None:
    tell(body, 3_776, {**WAITING, 3: (17_100, 7_200)})
    stopped(body, "outage", range(16), MOST_FAIL("KeyError: 'celsius'"))
    body["partitions"][3]["stops"] = []
    since = {"since": before(body, 7_200), "fault": "StoreUnavailable"}
    body.update(standing=[{"partition_id": id, **since} for id in ("2", "3")], stops=15)


def keyless(body: Any) -> None:
    tell(body)
    lost = {"key_hash": "0f", "erased_at": before(body, 200_000)}
    body["lost_erasure_keys"] = [{**lost, "subjects": 2}, {**lost, "subjects": 1}]


def lost(body: Any) -> None:
    tell(body, exhausted=16)
    gone = {"partition_id": "4", "kind": "unkept", "before": "11076", "events": 2}
    body["hub_forgets"] = {"letters_expiring_hours": 2.1, "loss_hours": 2.1, "events_lost": 2, "lost": [gone]}
    body["oldest_open_letter"]["failed_at"] = before(body, 90_000)


def unsure(body: Any) -> None:
    tell(body, exhausted=48)
    body["hub_forgets"].update(letters_expiring_hours=-1.0, loss_hours=-1.0)


def uneven(body: Any) -> None:
    tell(body, missing=5)


TIME = re.compile(r"\b\d\d:\d\d(:\d\d)? UTC")
NEEDY = "warn Can wait until morning: none is lost by waiting: 3,776 letters need you"
STOPPED = ": no rows are written: {} partitions stopped: most events fail"
STATES: dict[Callable[[Any], None], list[str]] = {
    well: ["good All is well, as of …"],
    needy: [NEEDY],
    late: ["warn Can wait until morning: Lag: partition 3 is late by 2 h"],
    keyless: ["warn Can wait until morning: no event waits yet: The erasure key of 3 deleted people is missing"],
    lost: [
        "bad 1. Act tonight: 14 letters need you: the hub drops the next event at about …",
        "bad 2. Act tonight: their publisher may still have them: 2 events are lost",
    ],
    unsure: ["warn Can wait until morning: if the hub keeps their events until then: 48 letters need you"],
    uneven: ["bad Act now: rows may be wrong: The ledger does not balance in partition 5"],
    standing: [
        "bad 1. Act now" + STOPPED.format(15),
        "bad 2. Act tonight: it has not ended by itself: Partition 3 stopped: the database does not answer",
        NEEDY.replace("Can", "3. Can"),
    ],
    outage: ["bad 1. Act now" + STOPPED.format(16), NEEDY.replace("Can", "2. Can")],
    accepting: ["bad Act now: rows are missing: 78 % of the events of partitions 0 to 2 fail: they become letters"],
    several: [
        "bad 1. Act now" + STOPPED.format(14),
        "bad 2. Act now: it does not end by itself: Partitions 0, 1 stopped: the database refuses a batch",
        "bad 3. Act now: rows may be wrong: The ledger does not balance in partition 2",
        "bad 4. Act tonight: nothing is lost yet: The hub throttles the app",
        NEEDY.replace("Can", "5. Can"),
    ],
}


ADVICE: dict[Callable[[Any], None], str] = {
    needy: "None has failed for ten minutes, so the cause may be gone: retry one letter",
    lost: "lengthen the hub's message retention in the Azure portal.",
    unsure: "If they are bad, tell their publisher, and discard them.",
    outage: "Suspect the last deployment, as no partition goes on",
    accepting: "Suspect what is sent to these partitions, as others go on.",
}


def failing(partitions: int, count: int = 50, minutes: int = 20, error_class: str = "unknown") -> dict[str, Any]:
    """The newest letters that need an operator, of the first partitions in turn: nine of ten with one error."""
    now, letters = datetime.now(UTC) - timedelta(minutes=minutes), list[dict[str, Any]]()
    for at in range(count):
        of = {"partition_id": f"{at % partitions}", "sequence_number": f"{11_041 + at}", "error_class": error_class}
        error = (
            ("KeyError", "'celsius'", "transform.py:57") if at % 10 else ("ValueError", "no unit", "transform.py:40")
        )
        why = dict(zip(("error_type", "error", "error_at"), error, strict=True))
        letters.append({**of, **why, "failed_at": f"{now - timedelta(seconds=7 * at):%Y-%m-%dT%H:%M:%SZ}"})
    return {"letters": letters, "next": None}


LETTERS = "**/dead-letters?*"


def test_the_first_lines_say_what_needs_an_operator(page: "Page", run: Run, portrait: Portrait) -> None:
    with_aggregation(page, runs=[])
    few: dict[Callable[[Any], None], dict[str, Any]] = {
        well: failing(1, 0),
        keyless: failing(1, 0),
        late: failing(1, 0),
        uneven: failing(1, 0),
        lost: failing(16, 16),
        unsure: failing(16, 48, 0, "poison"),
    }
    for change, said in STATES.items():
        page.unroute(LETTERS)
        seen(page, LETTERS, partial(dict.update, **few.get(change, failing(16))))
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            changed(page, change)
            page.wait_for_selector(".matter")
            lines = page.locator(".matter").all()
            told = [": ".join(one.locator(".when, .words").all_inner_texts()) for one in lines]
            found = [f"{one.get_attribute('class')} {words}" for one, words in zip(lines, told, strict=True)]
            assert [TIME.sub("…", one) for one in found] == [f"matter {words}" for words in said]
            needs = f"{len(said)} things need you" if len(said) > 1 else "1 thing needs you"
            assert page.locator(f".sum:has-text('{needs}, as of ')").count() == (change is not well)
            folded = page.locator(".matter > details:not([open])").count()
            assert folded == (sum("Act now" not in one for one in said[1:]) if len(said) > 2 else 0)
            assert page.locator("#hub-forgets.bad:visible").count() == (change is lost)
            assert ADVICE.get(change, "") in str(page.locator(".lead").text_content())
            if change in (needy, lost):
                facts = page.locator(".matter").first.inner_text()
                assert "The newest failed 20 min ago. Most" in facts and "Error: KeyError: 'celsius'" in facts
                assert (
                    f"Most{' of the newest 50' * (change is needy)} failed with KeyError at transform.py:57." in facts
                )
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
    with_aggregation(page, runs=[])
    changed(page, lambda body: several(body, HOSTILE, HOSTILE))
    assert page.locator(".matter q").all_text_contents()[:2] == [HOSTILE, "the log of the database is full"]
    outage = page.inner_text(".matter:has-text('most events fail')")
    assert "No event of partitions 2 to 15 has been written since " in outage
    assert "441 of the 700 events last tried fail, most with KeyError at transform.py:57." in outage
    assert "in under two minutes, after 10 attempts (4 to 6 so far), failing events become letters." in outage
    assert f": {HOSTILE} in 12,000 events; others in 1 event. The" in page.inner_text("#unknown-fields")
    for link in page.locator(".matter a.guide").all():
        assert link.text_content() == f"Runbook: {str(link.get_attribute('href')).partition('#')[2]}"
        leads_to_a_section(page, run, str(link.get_attribute("href")))
    page.set_viewport_size(PHONE)
    page.reload()
    page.wait_for_selector("#troubled summary:text-is('The 16 partitions in trouble, one by one')")
    assert page.evaluate("document.documentElement.scrollHeight") <= 4.3 * PHONE["height"]
    ids = page.locator("table[aria-label='Partitions in trouble'] td[data-label=Partition]:visible")
    assert ids.all_inner_texts() == ["2", "0, 1", "3 to 15"], "the worst first, one row for one trouble"
    page.click(".matter:has-text('does not balance') button")
    page.wait_for_selector("section[aria-label=Audit] :text('each with one outcome')")
    page.click(".matter:has-text('letters need you') summary")
    page.click(".matter a:text-is('Show the letters')")
    page.wait_for_url("**#/letters?status=exhausted")
    assert page.evaluate("window.hacked") is None


def in_trouble(body: Any) -> None:
    """Five partitions in trouble, and a healthy one whose end at the hub was read before its checkpoint."""
    tell(body, 16, {2: (5_400, 7_200), 3: (18, 59), 7: (1_000, 430), 9: (1_440, 610)}, missing=11, held=1_000)
    of = body["partitions"]
    stop = {"reason": "held", "detail": "1,000 events wait", "stopped_at": before(body, 600), "attempts": 10}
    of[9]["stops"] = [{"partition_id": "9", **stop, **NO_OUTAGE}]
    of[5]["open_gaps"] = body["open_gaps"] = 2
    since = {"since": before(body, 420), "fault": "StoreUnavailable"}
    body["standing"] = [{"partition_id": id, **since} for id in ("7", "9")]
    of[14]["hub_end"] = str(int(of[14]["checkpoint"]) - 1)
    body.update(stops=1, hub_read_at=before(body, 4))


def test_trouble_comes_before_health_and_healthy_partitions_are_one_line_that_unfolds_by_keyboard(
    page: "Page", portrait: Portrait
) -> None:
    seen(page, LETTERS, partial(dict.update, **failing(16, 16)))
    for width in (360, 1600):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        changed(page, in_trouble)
        assert page.locator(".words:text-is('15 other letters need you')").count() == 1
        assert "It writes other partitions, so it is up" in str(page.locator(".lead").text_content())
        assert page.locator(".matter:has-text('Partition 9 stopped') a:text-is('Show the letter')").count() == 1
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            portrait(page, "ops-trouble")
            first = ("table[aria-label='Partitions in trouble']", "#healthy")
            told, trouble, healthy = (one["y"] for one in boxes(page, ".sum", *first))
            assert told < HEIGHT / 2 < trouble < healthy, (width, scheme)
            assert page.evaluate(WIDTH) <= width, scheme
    rows = page.locator("table[aria-label='Partitions in trouble'] tbody tr")
    cells = [row.locator("td").all_inner_texts()[:2] for row in rows.all()]
    assert [(id, trouble.strip()) for id, trouble in cells] == [
        ("9", "stopped: too many events wait for a letter late by 10 min"),
        ("7", "stopped: the database does not answer late by 7 min"),
        ("11", "1 event without an outcome"), ("2", "late by 2 h"), ("5", "2 open gaps"),
    ]  # fmt: skip
    outcomes = rows.nth(2).locator("td[data-label=Outcomes]").inner_text()
    assert outcomes == "25,506 of 25,507", "the row at fault says what is missing"
    assert page.locator("table[aria-label=Partitions]").is_hidden()
    page.click(".matter:has-text('Lag: partition 2') summary")
    page.click(".matter:has-text('Lag: partition 2') button")
    assert page.evaluate("document.activeElement.id") == "partition-2"
    press_until(page, "11 partitions read on time")
    page.keyboard.press("Enter")
    page.wait_for_selector("table[aria-label=Partitions] tbody tr:nth-child(11)")
    for _ in range(2):
        with page.expect_response(STATUS):
            pass
    assert page.locator("table[aria-label=Partitions]").is_visible()
    assert page.evaluate("document.activeElement.innerText") == "11 partitions read on time", "the focus stays"
    ends = page.locator('table[aria-label=Partitions] td[data-label="Hub\'s end"]').all_inner_texts()
    assert ([end for end in ends if "read" in end], len(ends)) == (["25,916 read 4 s ago"], 11)


def test_a_stop_says_until_when_it_holds_and_afterwards_that_its_events_become_letters(page: "Page") -> None:
    changed(page, accepting)
    told = page.inner_text(".matter.bad")
    assert "117 of the 150 events last tried fail, most with KeyError at transform.py:57." in told
    assert "15,102 letters so far; events that succeed are written." in told
    assert page.locator("table .badge:text-is('letters instead of rows: most events fail'):visible").count() == 1
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
        tell(body, lags={3: (24_777, 30)})
        body["open_gaps"] = body["partitions"][5]["open_gaps"] = 2

    now = datetime.now(UTC).replace(second=0, microsecond=0)
    task = {"kind": "replay", "task_id": "1", "status": "running"}
    seen(page, "**/api/tasks?status=running*", lambda body: body.update(tasks=[task]))
    for growth, last in ((540, "The lag grows."), (-1_800, "about 14 min.")):
        with run.minutes(
            *((now - timedelta(minutes=at), 24_777 - growth * at, 99_999 - 2_460 * at) for at in range(9))
        ):
            changed(page, behind, of_run=True)
            words = page.locator(".matter .words").all_inner_texts()
            assert sorted(words) == ["1 task is running", "2 gaps are open", "Lag: 25,000 events behind"]
            assert (last in page.inner_text(".lead"), "Infinity" in page.inner_text("main")) == (True, False)
            assert page.locator(".matter.warn").count() == (growth > 0)
    assert "In all partitions: 41 events/s read, 11 events/s arriving." in page.inner_text(".lead")


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
    page.wait_for_selector("#healthy summary:text-is('16 partitions read on time')")
    assert page.evaluate("document.documentElement.scrollHeight") <= 2.3 * PHONE["height"]
    show(page, "#/letters?partition_id=3")
    assert page.locator("select[name=status]").is_hidden()
    press_until(page, "Filter: partition 3")
    page.keyboard.press("Enter")
    page.wait_for_selector("select[name=status]")
    assert page.evaluate(WIDTH) <= PHONE["width"]


def test_a_stopped_partition_is_shown_with_its_reason_its_time_and_the_action(page: "Page", run: Run) -> None:
    of_seven = page.locator(".matter.bad:has-text('artition 7')")
    page.wait_for_selector("#verdict")
    assert of_seven.count() == 0
    with run.stopped("7", {"incarnation": HOSTILE, "outage": "40 of 50 events fail", "held": "too many wait"}):
        page.wait_for_selector(".matter:has-text('Partition 7 stopped: the hub is another one')")
        stops = of_seven.all_text_contents()
        assert len(stops) == 3 and all("No event of partition 7 has been written since " in one for one in stops)
        assert HOSTILE in next(one for one in stops if "another" in one)
        since = of_seven.locator("time").first
        assert since.get_attribute("title") == f"{since.get_attribute('datetime')[:19].replace('T', ' ')} UTC"
        assert since.inner_text() == "4 min ago"
        assert page.locator("text=Open the next incarnation of the stream").count() == 1
        assert page.locator("text=leave the held ones alone").count() == 1
        assert page.evaluate("window.hacked") is None
    page.wait_for_selector(".matter.bad:has-text('artition 7')", state="detached")


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
        page.wait_for_selector(".matter.bad")
        for fragment in PAGES:
            show_whole(page, fragment)
            look()
    show_whole(page, "#/runs")
    page.locator("td[data-label=Run] a").first.click()
    page.wait_for_selector("#quality")
    look()
    assert len(met - {"/api/ops/operator.html#many-letters-at-once"}) == 9  # which only a redrive shows
    for href in met:
        leads_to_a_section(page, aggregated, href)
    for scheme in ("light", "dark"):
        page.goto(f"{aggregated.address}/api/ops")
        page.click("#theme")
        for width in (360, 1600):
            page.set_viewport_size({"width": width, "height": 844})
            page.goto(f"{aggregated.address}/api/ops/runbook.html#lag")
            page.wait_for_selector("h2#lag ~ p >> visible=true")
            assert {*page.eval_on_selector_all("pre", LABELS)} == {'"Query of the log"', '"Terminal"'}
            top = page.locator("details:has(#lag) > summary").evaluate("one => one.getBoundingClientRect().top")
            assert top >= 0, "the title of the linked section is above the screen"
            sections = page.locator("nav[aria-label=Sections]")
            seen = page.locator("h2#log-cap ~ p >> visible=true").count()  # a phone opens only the linked section
            assert (sections.is_visible(), seen > 0) == (width == 1600, width == 1600)
            assert page.evaluate(WIDTH) <= width
            assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == scheme
            portrait(page, "guide")
    for summary in page.locator("main summary:visible").all():
        summary.click()
    assert sections.locator("a[href='#lag']").inner_text() == "Rows come late lag"
    page.click("summary:text-is('All guides')")
    page.click("nav a:text-is('Aggregation')")
    page.wait_for_selector("nav a[aria-current=page]:text-is('Aggregation')", state="attached")
    assert page.evaluate("document.querySelector('article img').decode().then(() => 'shown')") == "shown"
    page.click("a.brand")
    page.wait_for_selector("#verdict")
