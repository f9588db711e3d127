"""The pages of letters: totals that filter, causes, a letter whose numbers agree, and redrives."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from tests.browser.conftest import HOSTILE, Run
from tests.browser.tab import PHONE, WIDTH, Opener, boxes, order, portraits, seen, show

if TYPE_CHECKING:
    from playwright.sync_api import Page

STATUS = "#task-status .badge"


def test_the_totals_by_status_filter_and_stand_above_the_letters(page: "Page", run: Run) -> None:
    letters = run.counted()["letters"]
    show(page, "#/letters")
    page.wait_for_selector(".totals a[aria-current=true]:has-text('need you')")  # no other is asked for
    page.click(".totals a:has-text('letters')")
    page.wait_for_selector(".totals a[aria-current=true]:has-text('letters')")
    totals = page.locator(".totals a").all_inner_texts()
    assert [one for one in totals if not one.startswith("see the ")] == [
        f"{letters['open'] + letters['settled']:,} letters",
        f"{letters['exhausted']:,} need you",
        *(f"{letters[name]:,} {name}" for name in ("waiting", "retrying", "held") if letters[name]),
    ]
    assert page.inner_text(".matter .words") == f"{letters['exhausted']:,} letters need you"
    page.click(".totals a.warn")
    page.wait_for_selector(".totals a[aria-current=true]:has-text('need you')")
    page.wait_for_selector("table[aria-label=Letters] tbody tr")
    assert set(page.locator("table[aria-label=Letters] td[data-label=Status]").all_inner_texts()) == {"needs you"}
    page.set_viewport_size(PHONE)
    parts = ("main h1", ".matter", "nav.totals", "section[aria-label=Filter]", "table[aria-label='Letters by cause']")
    tops = [one["y"] for one in boxes(page, *parts, "table[aria-label=Letters]")]
    assert tops == sorted(tops)


def test_causes_lead_with_the_message_are_discarded_while_others_fail_and_are_folded_then(
    page: "Page", run: Run
) -> None:
    run.feed("6", b"{cause", b"{cause", b'"a text"')
    needy = run.counted()["letters"]["exhausted"]
    listed = page.request.get(f"{run.address}/api/revealed/dead-letters/groups?partition_id=6").json()["groups"]
    show(page, "#/letters?partition_id=6")
    causes = page.locator("table[aria-label='Letters by cause'] tbody tr")
    causes.nth(len(listed) - 1).wait_for()
    said = [one["template"] if one["variants"] > 1 else one["sample"]["error"] for one in listed]
    assert causes.locator("td a").all_inner_texts() == said
    assert set(causes.locator(".kinds .badge").all_inner_texts()) == {"poison"}
    assert page.locator("#settled").count() == 0
    page.wait_for_selector(f".totals a:has-text('need you') b:text-is('{needy:,}')")
    causes.first.locator("button.grave").click()
    page.wait_for_selector("dialog:has-text('Discard 2 letters of partition 6 for good?') .error:text('Cause: ')")
    run.feed("6", b"{cause")
    order(page, "2", "grave")
    page.wait_for_selector("#notice:text-is('2 letters discarded; 1 letter came after the preview and is not in it')")
    causes.first.locator("button.grave").click()
    order(page, "1", "grave")
    page.wait_for_selector("#notice:text-is('1 letter discarded')")
    page.wait_for_selector("#settled summary:text-is('1 settled cause')")
    page.wait_for_selector("nav.totals > span:has-text('settled: see the resolved · see the discarded')")
    page.wait_for_selector(f".totals a:has-text('need you') b:text-is('{needy - 2:,}')")
    assert run.status()["ledger_balanced"] is True
    assert causes.locator("td a").all_inner_texts() == said[1:]
    assert page.locator("table[aria-label='Settled causes']").is_hidden()
    page.click("#settled summary")
    settled = page.locator("table[aria-label='Settled causes']")
    assert settled.locator("td a").inner_text() == said[0]
    assert settled.locator("button").count() == 0  # no move can be made
    show(page, "#/letters?partition_id=14")
    page.wait_for_selector("p:text-is('No letter matches the filter.')")
    assert page.locator("button:has-text('Retry'), button:has-text('Discard')").count() == 0


def test_a_bug_is_named_by_its_error_its_line_and_an_operators_words_and_a_preview_begins_with_its_button(
    page: "Page", run: Run
) -> None:
    run.feed("1", b"{poison", b"{poison")
    run.rows(
        "UPDATE event_hub_dead_letter SET error_class = 'unknown', error_type = 'KeyError', error = '''unit''',"
        " error_at = 'transform.py:57' WHERE partition_id = '1'"
    )
    show(page, "#/letters?error_class=unknown&partition_id=1")
    cause = page.locator("table[aria-label='Letters by cause'] tbody tr td").first
    cause.wait_for()
    assert cause.inner_text().split("\n") == ["KeyError: 'unit'", "bug in the transform", "transform.py:57"]
    assert page.inner_text("summary").startswith("Filter: error class bug in the transform")
    assert page.inner_text("table[aria-label=Letters] tbody tr:first-child .error") == "KeyError: 'unit'"
    page.wait_for_selector(".matter:has-text('failed: they will fail again unless what they need was repaired.')")
    page.click("#redrive-discard")
    page.wait_for_selector("#preview:has-text('of partition 1 for good?') .error:has-text('Cause: KeyError')")
    page.click("#redrive-start")
    order(page, "2", "grave")
    page.wait_for_selector("#notice:has-text('2 letters discarded')")


def test_a_cause_shows_its_values_and_one_value_is_discarded_alone(page: "Page", run: Run) -> None:
    kinds = ("doorbell", "WINDOW", "smoke", "WINDOW")
    run.feed("2", *(b'{"kind":"%s","home_id":"H1"}' % kind.encode() for kind in kinds))
    show(page, "#/letters?partition_id=2")
    row = page.locator("table[aria-label='Letters by cause'] tbody tr", has_text="Invalid value … - at `$.kind`")
    row.locator("text=/… stands for (doorbell|WINDOW|smoke) or .* or /").wait_for()
    row.locator("td a").click()
    page.wait_for_selector("h2:text-is('By value of the message')")
    values = page.locator("table[aria-label='Letters by cause'] tbody tr")
    assert values.locator("td a").first.inner_text() == "WINDOW"
    assert sorted(values.locator("td a").all_inner_texts()) == ["WINDOW", "doorbell", "smoke"]
    values.first.locator("button.grave").click()
    order(page, "2", "grave")
    page.wait_for_selector("#settled summary:text-is('1 settled cause')")
    assert sorted(values.locator("td a").all_inner_texts()) == ["doorbell", "smoke"]


def test_the_numbers_of_a_letter_agree_after_a_retry(page: "Page", run: Run) -> None:
    run.feed("10", b"{poison")
    (letter,) = run.letters(partition_id="10")
    show(page, f"#/letters/10/{letter['sequence_number']}")
    page.wait_for_selector(".matter:has-text('says that this event is at fault'):has-text('not tried again by itself')")
    assert page.locator("dt:text-is('Attempts') + dd").inner_text() == "1"
    for tries, said in ((1, "1"), (2, "1; the history below has 2")):
        page.click("button:text-is('Retry …')")
        order(page, "1", "main")
        page.wait_for_selector("#notice:has-text('1 letter to be retried now')")
        run.until(lambda _: run.letters(partition_id="10")[0]["status"] == "exhausted")
        page.reload()
        page.wait_for_selector(f"ol.attempts li:nth-child({2 * tries})")
        assert page.locator("dt:text-is('Attempts') + dd").inner_text() == said
        assert page.locator("ol.attempts b").all_inner_texts() == ["made due", "tried"] * tries


def test_from_a_preview_to_the_end_of_a_discard_where_no_retry_is_offered(page: "Page", run: Run) -> None:
    run.feed("11", b"{poison", b"{poison", b"{poison")
    seen(page, "**/dead-letters/groups?*", lambda body: [one.update(retryable=0) for one in body["groups"]])
    show(page, "#/letters?partition_id=11")
    page.wait_for_selector("#no-retry:has-text('is held until the letter that it waits for is settled')")
    assert page.locator(".card:has(#no-retry) button:has-text('Retry')").count() == 0
    assert page.locator(".card:has(#no-retry) button:has-text('Discard')").count() == 2
    page.unroute("**/dead-letters/groups?*")
    page.reload()
    assert page.inner_text("#redrive-retry") == "Retry these 3 …"
    assert page.locator("#no-retry").count() == 0
    for move in ("retry", "discard"):
        portraits(page, f"letters-{move}-preview", f"#redrive-{move}")
        portraits(page, f"letters-{move}-dialog", f"#redrive-{move}", "#redrive-start")
    page.click("#redrive-discard")
    page.wait_for_selector("#preview.ends:has-text('This cannot be undone.'):has-text('Next you type 3 to confirm')")
    page.wait_for_selector("table[aria-label='Letters by cause']", state="hidden")  # the preview says it all
    page.click("#redrive-start")
    assert page.inner_text("#left") == "To go on, type 3 and give a reason."
    order(page, "3", "grave")
    page.wait_for_selector("#notice:text-is('3 letters discarded')")
    page.click("table[aria-label=Redrives] tr:has-text('3 letters discarded') a")
    page.wait_for_selector(f"{STATUS}:has-text('done')")
    assert page.inner_text("#task-status").split("\n")[-1] == "3 letters discarded for good."
    portraits(page, "task-discard")
    show(page, "#/letters?partition_id=11")
    page.wait_for_selector("table[aria-label=Redrives] tbody tr:has-text('known poison')")
    assert page.locator("#redrive-retry").count() == 0, "no letter can be moved any more"


def test_a_retry_of_all_or_of_chosen_letters_that_did_not_help_says_so_and_is_not_green(page: "Page", run: Run) -> None:
    run.feed("12", b"{poison", b"{poison")
    same = "The app still runs version home_security/1, with which they failed: they fail again."
    newer = "The app now runs version home_security/2; they failed with home_security/1: a retry may help."
    show(page, "#/letters?partition_id=12")
    seen(page, "**/api/status", lambda body: body.update(transform_version=f"home_security/{version}"))
    for version, said, look in ((2, newer, "main"), (1, same, None)):  # noqa: B007
        page.reload()
        page.wait_for_selector(f".matter:has-text('{said}')")
        page.click("#redrive-retry")
        page.wait_for_selector(f"#preview:has-text('Nothing has happened yet') p:text-is('{said}')")
        assert page.get_attribute("#redrive-start", "class") == look
    run.feed("12", b"{poison", b"{poison", b"{poison")
    page.click("#redrive-start")
    order(page, "2", "main")
    page.wait_for_selector(f"{STATUS}.warn:has-text('did not help')")
    assert page.inner_text("#task-status").endswith("0 resolved, 2 failed again for the same cause.")
    page.wait_for_selector("#outcome a:text-is('See why they fail')")
    page.wait_for_selector("p:has-text('3 letters failed after the preview: this task left them alone.') a")
    page.wait_for_selector("section[aria-label='Why they fail'] a:has-text('JSON is malformed')")
    page.click("summary:text-is('All figures')")
    assert re.search(r"failed before 20\S+ \S+ UTC$", page.locator("dt:text-is('Which letters') + dd").inner_text())
    portraits(page, "task-retry")
    show(page, "#/letters?partition_id=12")
    seen(page, "**/dead-letters/preview?*", lambda body: body.update(count=100))
    page.click("#redrive-retry")
    page.wait_for_selector("#preview .warned:has-text('The last retry of letters like these did not help')")
    page.click("#redrive-start")
    page.click("dialog summary:text-is('Limit the speed')")  # from 100 letters on
    page.keyboard.press("Escape")
    page.unroute("**/dead-letters/preview?*")
    show(page, "#/tasks?kind=redrive")
    page.wait_for_selector(".matter.warn:has-text('of letters did not help') a:text-is('See these retries')")
    assert page.locator("table[aria-label=Tasks] tbody tr").first.locator(".badge.warn").inner_text() == "did not help"
    show(page, "#/letters?partition_id=3")
    page.wait_for_selector("table[aria-label=Letters] input[type=checkbox]")
    for box in page.locator("table[aria-label=Letters] input[type=checkbox]").all()[:2]:
        box.check()
    page.click("button:has-text('Retry 2')")
    order(page, "2", "main")
    page.wait_for_selector("#task-status:has-text('failed again for the same cause')")


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


def test_a_letter_says_first_what_failed_then_offers_the_retry_and_discard_last_and_grave(open_page: Opener) -> None:
    for width in (390, 1280):
        page = open_page(f"/api/ops?{width}", width=width)
        show(page, "#/letters/3/42")
        page.wait_for_selector(".matter:has-text('with which it failed: it fails again.')")
        assert page.inner_text(".matter .when") == "Can wait until morning"
        page.click(".matter a:has-text('discard it')")
        page.wait_for_function("document.activeElement.textContent === 'Discard …'")
        tops = boxes(page, "h1", ".matter", ".actions button", "[aria-label=Why]", "button.grave")
        assert [one["y"] for one in tops] == sorted(one["y"] for one in tops)
        assert max(tops[2]["width"], tops[4]["width"]) < 120
        colours = "[...document.querySelectorAll('.actions button, .grave')].map(one => getComputedStyle(one).color)"
        assert len(set(page.evaluate(colours))) == 2


def test_a_letter_whose_event_is_lost_says_so_in_the_list_and_on_its_page(page: "Page") -> None:
    of = {"partition_id": "3", "events": 1}
    lost = [{**of, "kind": "unkept", "before": "42"}, {**of, "kind": "gap", "before": "99"}]
    seen(page, "**/api/status", lambda body: body["hub_forgets"].update(lost=lost))
    seen(page, "**/dead-letters?*", lambda body: [one.update(body_kept=False) for one in body["letters"]])
    long_ago = dict.fromkeys(
        ("enqueued_at", "failed_at"), f"{datetime.now(UTC) - timedelta(days=8):%Y-%m-%dT%H:%M:%SZ}"
    )
    seen(page, "**/dead-letters/3/*", lambda body: body["letter"].update(body_kept=False, **long_ago))
    show(page, "#/letters?partition_id=3")
    page.wait_for_selector("tr:has(a:text-is('3 / 41')) .badge.bad[title*='no retry can help']:text-is('lost')")
    assert page.locator(".badge:text-is('lost')").count() == 1
    page.wait_for_selector(".matter:has-text('Act tonight'):has-text('1 letter has lost the event')")
    show(page, "#/letters/3/41")
    page.wait_for_selector(
        ".matter.bad:has-text('Act tonight'):has-text('have it sent again. Then discard this letter')"
    )
    moves = page.locator("main :is(button, .go)").all_inner_texts()
    assert moves == ["Discard …"], "no retry and no dry run can help, and there is no body to show"
    assert page.inner_text("h1 .badge.bad") == "lost"
    portraits(page, "letter-lost")
    soon = {"lost": [], "loss_hours": 2.0, "letters_expiring_hours": 2.0}
    seen(page, "**/api/status", lambda body: body["hub_forgets"].update(soon))
    page.reload()
    page.wait_for_selector(".matter.warn .when:text-is('Act tonight')")


def test_hostile_letters_are_text_in_three_forms_on_a_phone_and_do_nothing(open_page: Opener, run: Run) -> None:
    body = json.dumps({"kind": HOSTILE, HOSTILE: [HOSTILE, {"</pre><script>window.hacked=1</script>": None}]})
    run.feed("15", body.encode(), **{HOSTILE: HOSTILE, "content_type": f"text/{HOSTILE}"})
    letter = run.letters(partition_id="15")[0]  # the newest
    page = open_page(width=390)
    show(page, f"#/letters/15/{letter['sequence_number']}")
    forms = {"text": body, "json": json.dumps(json.loads(body), indent=2), "hex": body.encode().hex(" ")[:47]}
    for form, told in forms.items():
        page.click(f"button[data-form={form}]")
        page.wait_for_selector(f"button[data-form={form}][aria-pressed=true]")
        page.wait_for_function("text => document.querySelector('#body')?.textContent.includes(text)", arg=told)
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate(WIDTH) <= 390
    assert HOSTILE in page.inner_text("main")
    told = page.inner_text("h3:has-text('System properties') + pre")
    assert json.loads(told)["content-type"] == f"text/{HOSTILE}"
    run.feed("", HOSTILE.encode(), key=HOSTILE[:80])
    for chosen in ("partition_id=15", urlencode({"partition_key": HOSTILE[:80]})):
        show(page, f"#/letters?{chosen}")
        page.wait_for_selector("table[aria-label=Letters] tbody tr")
        assert page.evaluate("window.hacked") is None
        page.click("td button.grave")
        order(page, "1", "grave")
        page.wait_for_selector("#notice:text-is('1 letter discarded')")
