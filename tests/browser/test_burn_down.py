"""The sentence of the burn-down on the overview, from the answer of the app."""

from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Run

if TYPE_CHECKING:
    from playwright.sync_api import Page

NOTHING = {
    "open": 0,
    "gone": 0,
    "first_lost_at": None,
    "within": [{"hours": hours, "count": 0} for hours in (1, 6, 24)],
}
SOON = {
    "open": 3,
    "gone": 0,
    "first_lost_at": "2026-01-01T05:00:00Z",
    "within": [{"hours": 1, "count": 0}, {"hours": 6, "count": 3}, {"hours": 24, "count": 3}],
}
EXPIRING = [
    (
        {"letters": SOON, "letters_without_body": NOTHING, "gaps": NOTHING, "bodies_kept": True},
        "3 letters lose their event within 6 h, the first in 5 h."
        " The bodies of letters are stored here, so they outlive the hub.",
        "",
    ),
    (
        {
            "letters": {**SOON, "gone": 1},
            "letters_without_body": {**NOTHING, "open": 1, "gone": 1},
            "gaps": {**SOON, "open": 1, "within": [{"hours": 6, "count": 1}]},
            "bodies_kept": False,
        },
        "The hub no longer holds the event of 1 letter. 3 letters lose their event within 6 h, the first in 5 h. "
        "Bodies are not kept: 1 letter without. 1 gap loses its event within 6 h, the first in 5 h.",
        "bad",
    ),
]


@pytest.mark.parametrize(("shares", "sentences", "look"), EXPIRING)
def test_the_burn_down_is_a_sentence_and_red_where_it_is_a_loss(
    page: "Page", run: Run, shares: dict[str, object], sentences: str, look: str
) -> None:
    answer = {"at": "2026-01-01T00:00:00Z", "hub_retention_hours": 24.0, "hub_fault": None, "partitions": []} | shares
    page.route("**/api/retention*", lambda route: route.fulfill(json=answer))
    page.reload()
    page.wait_for_selector(f"#burn-down:text-is('{sentences}')")
    assert page.get_attribute("#burn-down", "class") == look
    page.unroute("**/api/retention*")
