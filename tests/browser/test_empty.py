"""The operator's page before the first event: the hub of this app is empty, and each part says so."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from local.stack.processes import Children
from tests.browser.conftest import Run
from tests.browser.tab import HEIGHT, SCHEMES, WIDTH, Portrait, show

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def run(browser: "Browser", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("empty")
    with Children(folder) as children:
        made = Run(folder, children)
        yield made
        made.close()


SAID = {  # by each part before the first event
    "": "No event has arrived yet",
    "letters": "No event has failed: there is no letter.",
    "tasks": "No task has been requested yet.",
    "runs": "This app makes no sums: there is nothing to do.",
    "homes": "No home is registered yet: a home appears after its first registration event.",
}


def test_each_part_of_an_empty_app_says_that_it_is_empty_or_that_nothing_matches_a_filter(
    page: "Page", portrait: Portrait
) -> None:
    for width in (360, 1600):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        for part, said in SAID.items():
            show(page, f"#/{part}")
            page.wait_for_selector(f"main p:text-is('{said}')")
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                assert page.locator("main table:visible").count() == 0, (part, width, scheme)
                assert page.evaluate(WIDTH) <= width, (part, scheme)
                portrait(page, f"ops-empty-{part or 'overview'}")
    for query, said in (("partition_id=1", "matches the filter"), ("status=exhausted", "needs you")):
        show(page, f"#/letters?{query}")
        page.wait_for_selector(f"main p:text-is('No letter {said}.')")
