"""The operator's page in trouble: on a phone and a wide screen, light and dark, the trouble is on the first screen."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.browser.conftest import Run
from tests.browser.tab import HEIGHT, SCHEMES
from tests.browser.test_lead import changed, in_trouble
from tests.browser.test_ops import boxes

if TYPE_CHECKING:
    from playwright.sync_api import Page

Portrait = Callable[["Page", str], None]


def test_a_stop_is_read_without_scrolling_and_trouble_comes_before_health(
    page: "Page", run: Run, portrait: Portrait
) -> None:
    with run.stopped("7", {"outage": "One of the errors: no such kind", "held": "1,000 held letters of 3 keys"}):
        for width in (360, 1600):
            page.set_viewport_size({"width": width, "height": HEIGHT})
            changed(page, run, in_trouble)
            page.wait_for_selector("table[aria-label='Stopped partitions'] td:has-text('no such kind')")
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                portrait(page, "ops-trouble")
                first = ("#stopped", "table[aria-label='Partitions in trouble']", "#healthy")
                told, *_, stopped, trouble, healthy = (one["y"] for one in boxes(page, ".matter.bad", *first))
                assert told < HEIGHT / 2, (width, scheme)
                assert stopped < trouble < healthy, (width, scheme)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, scheme
