"""Replays, erasures and purges on the operator's page: from a dry run to one that is committed, and on the way."""

from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import HOSTILE, Run, reading, registration
from tests.browser.tab import Picture
from tests.browser.test_ops import order, press_until, show
from tests.patience import allowed

if TYPE_CHECKING:
    from playwright.sync_api import Page

STATUS = "#task-status .badge"


def rows(run: Run, statement: str, *values: object) -> list[tuple[object, ...]]:
    with run.database() as connection:
        return connection.execute(statement, values).fetchall()


def ask(
    page: "Page", partitions: str = "", first: str = "", last: str = "", reason: str = "a mended transform"
) -> None:
    """Fill in the form of a new replay, and send it."""
    page.fill("input[name=partitions]", partitions)
    page.select_option("select[name=way]", "sequence_number" if first else "")
    if first:
        page.fill("input[name=first]", first)
        page.fill("input[name=last]", last)
    else:
        assert page.locator("input[name=first]").is_hidden()
    page.fill("input[name=reason]", reason)
    page.click("button:text-is('Dry run')")


def confirmed(page: "Page", reason: str) -> None:
    """Say why in the dialog, and go on."""
    page.fill("dialog input[name=reason]", reason)
    page.click("dialog form button:not([type=button])")
    page.wait_for_selector("dialog", state="detached")


@pytest.fixture
def poisoned(run: Run) -> str:
    """A partition with a poisoned batch behind good readings, of which two rows were spoilt by hand."""
    run.feed("9", reading(9, 50), reading(9, 51), b"{poison", b"{poison")
    rows(run, "DELETE FROM sensor_reading WHERE partition_id = '9' AND sequence_number = 5")
    rows(run, "UPDATE sensor_reading SET state = 'idle' WHERE partition_id = '9' AND sequence_number = 6")
    return "9"


def test_from_a_poisoned_batch_to_a_discarded_letter_and_a_committed_replay(
    page: "Page", run: Run, poisoned: str, picture: Picture
) -> None:
    show(page, f"#/letters?partition_id={poisoned}")
    page.click("table[aria-label='Letters by cause'] button.grave")
    order(page, "2")
    page.click("dialog button.grave")
    page.wait_for_selector("#notice:has-text('2 letters discarded')")
    show(page, "#/tasks")
    ask(page, poisoned)
    page.wait_for_selector(f"{STATUS}:has-text('done')")
    assert page.inner_text("#task-status").split("\n")[-1] == "45 of 45"
    page.wait_for_selector("table[aria-label=Differences] > tbody > tr:nth-child(2)")
    told = page.locator("table[aria-label=Differences] > tbody > tr").all_inner_texts()
    assert len(told) == 2
    assert "9 / 5" in told[0]
    assert "added sensor_reading" in told[0]
    changed = page.locator("table.diff[aria-label='changed sensor_reading'] tbody tr")
    assert changed.locator("th, td").all_inner_texts() == ["state", "idle", "active"]
    summed = page.locator("table[aria-label='Changes by column'] tbody tr").all_inner_texts()
    assert sorted(" ".join(one.split()) for one in summed) == [
        "sensor_reading rows added 1",
        "sensor_reading state 1 idle → active",
    ]
    picture(page, "ops-replay", seen="section[aria-label='What would change']")
    assert rows(run, "SELECT COUNT(*) FROM sensor_reading WHERE partition_id = '9'") == [(41,)]
    page.click("#commit")
    order(page, "45")
    page.click("dialog button.main")
    page.wait_for_selector("h2:text-is('Replay')")
    page.wait_for_selector(f"{STATUS}:has-text('done')")
    assert rows(run, "SELECT COUNT(*) FROM sensor_reading WHERE partition_id = '9'") == [(42,)]
    states = "SELECT DISTINCT state FROM sensor_reading WHERE partition_id = '9'"
    assert rows(run, states) == [("active",)]
    after = run.status()
    assert after["ledger_balanced"] is True
    show(page, "#/ledger/9/5")
    page.wait_for_selector("table[aria-label=Changes] .badge:has-text('replay')")
    show(page, "#/letters/9/44")
    page.wait_for_selector("h1 .badge:has-text('discarded')")


def test_a_replay_by_key_is_told_by_the_number_of_its_keys_and_leaves_other_events_alone(
    page: "Page", run: Run
) -> None:
    show(page, "#/tasks")
    page.fill("textarea[name=keys]", "nobody\nno one\n")
    ask(page, "10", "0", "40", HOSTILE)
    page.wait_for_selector(f"{STATUS}:has-text('done')")
    page.wait_for_selector("p:has-text('No event of the range has one of these partition keys.')")
    told = " ".join(page.inner_text("main").split())
    assert "Partition keys 2" in told
    assert "Events of other keys, left alone 41" in told
    assert "nobody" not in told
    assert HOSTILE in page.inner_text("main")
    assert page.evaluate("window.hacked") is None
    assert page.locator("#commit").count() == 0


def test_a_replay_is_paused_resumed_and_goes_through(page: "Page", run: Run) -> None:
    show(page, "#/tasks")
    with run.halted_hub():
        ask(page, "10", "0", "40", "to be paused")
        page.wait_for_selector(f"{STATUS}:has-text('running')")
        page.click("button:text-is('Pause')")
        confirmed(page, "the night shift")
        page.wait_for_selector(f"{STATUS}:has-text('paused')")
    page.wait_for_selector("ol.attempts li:has-text('pause'):has-text('the night shift')")
    page.click("button:text-is('Resume')")
    confirmed(page, "the morning shift")
    page.wait_for_selector(f"{STATUS}:has-text('done')", timeout=allowed(60_000))
    page.wait_for_selector("#no-change:has-text('Nothing would change.')")
    assert page.locator("#commit").count() == 0, "there is nothing to replay for good"


def test_a_replay_is_cancelled_and_only_after_a_reason(page: "Page", run: Run) -> None:
    show(page, "#/tasks")
    with run.halted_hub():
        ask(page, "11", "0", "40", "to be cancelled")
        page.wait_for_selector(f"{STATUS}:has-text('running')")
        page.click("button:text-is('Cancel')")
        assert page.is_disabled("dialog button.grave")
        confirmed(page, "asked by mistake")
        page.wait_for_selector(f"{STATUS}:has-text('cancelled')")
    assert page.locator("button:text-is('Pause')").count() == 0
    assert page.locator("#commit").count() == 0


def test_a_range_that_is_none_is_refused_in_words_and_stays_in_the_form(page: "Page") -> None:
    show(page, "#/tasks")
    for partitions, first, last, field in (
        ("0", "40", "0", "to: the range is backwards"),
        ("0", "twelve", "", "from.sequence_number: a sequence number has 1 to 19 digits and nothing else"),
        ("nowhere", "", "", "partitions"),
        (HOSTILE, "", "", "partitions[0]: the id of a partition has 1 to 40 letters"),
    ):
        ask(page, partitions, first, last)
        page.wait_for_selector("section[aria-label='New replay'] .fault")
        assert field in page.inner_text("section[aria-label='New replay'] .fault")
        assert page.input_value("input[name=partitions]") == partitions
        page.evaluate("document.querySelector(\"section[aria-label='New replay'] .fault\").remove()")
    assert page.evaluate("window.hacked") is None


def test_a_place_that_is_filled_again_leaves_the_focus_where_it_was(page: "Page") -> None:
    page.wait_for_selector("#verdict")
    press_until(page, "Show the letters")
    with page.expect_response("**/api/status"):
        pass
    with page.expect_response("**/api/status"):
        pass
    assert page.evaluate("document.activeElement.innerText") == "Show the letters"


def test_erase_is_offered_for_what_was_counted_and_for_nothing_else(page: "Page", run: Run) -> None:
    subject, number = "H000701", 701
    run.feed("15", registration(number), *(reading(number, at) for at in range(5)))  # each is an alert too
    show(page, "#/tasks")
    erase = page.locator("#erasure-erase")
    assert erase.is_disabled()
    page.fill("textarea[name=subjects]", subject)
    page.fill("form:has(textarea[name=subjects]) input[name=reason]", "she asked for it")
    assert erase.is_disabled()
    page.click("#erasure-count")
    page.wait_for_selector("#task-status .badge:text-is('done')")
    assert page.inner_text("#task-status").endswith("11 rows and 0 letters found")
    page.click("a:text-is('Erase what was counted')")
    page.wait_for_selector("#erasure-erase:enabled")
    page.fill("textarea[name=subjects]", f"{subject}\nH000001")
    assert erase.is_disabled()
    page.fill("textarea[name=subjects]", subject)
    erase.click()
    page.wait_for_selector("dialog:has-text('Rows, letters and windows of 1 subject are erased')")
    order(page, "1", "she asked for it")
    page.click("dialog button.grave")
    page.wait_for_selector("#task-status:has-text('11 rows and 0 letters erased')")
    page.wait_for_selector("#task-status .badge:text-is('done')")
    assert run.get(f"homes?prefix={subject}")["homes"] == []
    assert run.status()["ledger_balanced"]
    show(page, "#/tasks")
    page.wait_for_selector("#erasure-erase:disabled")
    assert page.input_value("textarea[name=subjects]") == "", "the page forgets them too"


def test_a_dry_run_counts_the_old_rows_and_is_among_the_tasks_then(page: "Page", run: Run) -> None:
    run.feed("12", reading(12, 55))
    show(page, "#/tasks")
    page.click("#purge-count")
    page.wait_for_selector("#task-status .badge:text-is('done')")
    assert "0 rows counted" in page.inner_text("#task-status")
    page.wait_for_selector("h2:text-is('Dry run: nothing is deleted')")
    page.wait_for_selector("table[aria-label=Tables] tr:has-text('its newest batch stays')")
    assert "a dry run from the operator's page" in page.inner_text("main")
    show(page, "#/tasks")
    page.wait_for_selector("table[aria-label=Tasks] tr:has-text('purge, dry run') .badge:text-is('done')")
