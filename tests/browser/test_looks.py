"""The operator's page in trouble: on a phone and a wide screen, light and dark, the trouble is on the first screen."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import HEIGHT, Run
from tests.browser.test_lead import changed, in_trouble

if TYPE_CHECKING:
    from playwright.sync_api import Page

Portrait = Callable[["Page", str], None]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1600])
def test_a_stop_is_read_without_scrolling_and_trouble_comes_before_health(
    open_page: Callable[..., "Page"], run: Run, portrait: Portrait, width: int, scheme: str
) -> None:
    page = open_page(width=width, scheme=scheme)
    with run.stopped("7", {"outage": "One of the errors: no such kind", "held": "1,000 held letters of 3 keys"}):
        changed(page, run, in_trouble)
        page.wait_for_selector("table[aria-label='Stopped partitions'] td:has-text('no such kind')")
        portrait(page, "ops-trouble")
        first = ("#stopped", "table[aria-label='Partitions in trouble']", "#healthy")
        stopped, trouble, healthy = (one["y"] for at in first if (one := page.locator(at).bounding_box()))
        assert stopped < HEIGHT / 2
        assert stopped < trouble < healthy
        assert page.evaluate("document.documentElement.scrollWidth") <= width
