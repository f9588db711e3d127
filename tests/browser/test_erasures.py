"""The form that forgets a person: what is erased was counted before, and stays named on the way."""

import json
from typing import TYPE_CHECKING
from urllib.request import urlopen

from tests.browser.conftest import Run, reading, registration
from tests.browser.test_ops import order, show
from tests.patience import allowed

if TYPE_CHECKING:
    from playwright.sync_api import Page

SUBJECT, NUMBER = "H000701", 701


def test_erase_is_offered_for_what_was_counted_and_for_nothing_else(page: "Page", run: Run) -> None:
    before = run.status()["accounted"]
    run.publish("15", registration(NUMBER), *(reading(NUMBER, at) for at in range(5)))  # each is an alert too
    run.until(lambda status: status["accounted"] == before + 6)
    show(page, "#/tasks")
    erase = page.locator("#erasure-erase")
    assert erase.is_disabled()
    page.fill("textarea[name=subjects]", SUBJECT)
    page.fill("form:has(textarea[name=subjects]) input[name=reason]", "she asked for it")
    assert erase.is_disabled()
    page.click("#erasure-count")
    page.wait_for_selector("#task-status .badge:text-is('done')")
    assert page.inner_text("#task-status").endswith("11 rows and 0 letters found")
    page.click("a:text-is('Erase what was counted')")
    page.wait_for_selector("#erasure-erase:enabled")
    page.fill("textarea[name=subjects]", f"{SUBJECT}\nH000001")
    assert erase.is_disabled()
    page.fill("textarea[name=subjects]", SUBJECT)
    erase.click()
    page.wait_for_selector("dialog:has-text('Rows, letters and windows of 1 subject are erased')")
    order(page, "1", "she asked for it")
    page.click("dialog button.grave")
    page.wait_for_selector("#task-status:has-text('11 rows and 0 letters erased')")
    page.wait_for_selector("#task-status .badge:text-is('done')")
    with urlopen(f"{run.address}/api/homes?prefix={SUBJECT}", timeout=allowed(30)) as answer:
        assert json.loads(answer.read())["homes"] == []
    assert run.status()["ledger_balanced"]
    show(page, "#/tasks")
    page.wait_for_selector("#erasure-erase:disabled")
    assert page.input_value("textarea[name=subjects]") == "", "the page forgets them too"
