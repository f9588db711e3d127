"""The browser, and the tab in which the tests of the pages look at the app."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import allowed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Opener = Callable[..., "Page"]
Picture = Callable[..., None]
Portrait = Callable[["Page", str], None]
HEIGHT, PATIENCE_MS = 700, 20_000
SCHEMES: tuple[Any, ...] = ("light", "dark")
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
NO_PLAYWRIGHT = "Playwright is not installed: python -m pip install -r requirements-dev.txt"
NO_BROWSER = "no Chromium: apt-get install chromium, or name one in CHROMIUM"


@contextmanager
def chromium() -> Iterator["Browser"]:
    """Chromium, without a window; a test that needs it is skipped where it is missing. Playwright holds an event loop
    until the block ends, and no asyncio test can live beside it."""
    playwright = pytest.importorskip("playwright.sync_api", reason=NO_PLAYWRIGHT)
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    with playwright.sync_playwright() as control:
        launched = control.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


class Tab:
    """A tab in a context of its own, and the complaints about what it shows: an error or a warning in the console, a
    breach of the Content-Security-Policy, a dialog, or a request to anybody but the app."""

    def __init__(self, browser: "Browser") -> None:
        self.complaints: list[str] = []
        self._app = ""
        self._context = browser.new_context()
        self._context.set_default_timeout(allowed(PATIENCE_MS))
        self.page = self._context.new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("console", self._heard)
        self.page.on("request", self._asked)

    def _heard(self, line: Any) -> None:
        refused = "the server responded with a status of" in line.text  # what the page itself tells in words
        if line.type in ("error", "warning") and not refused:
            self.complaints.append(line.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(f"{self._app}/"):
            self.complaints.append(request.url)

    def open(self, app: str, address: str, width: int, scheme: Any) -> "Page":
        """Show an address of an app."""
        self._app = app
        self.page.set_viewport_size({"width": width, "height": HEIGHT})
        self.page.emulate_media(color_scheme=scheme)
        self.page.goto(f"{app}{address}")
        return self.page

    def forget(self) -> None:
        """Leave the app as a tab that has never seen it."""
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.evaluate("[sessionStorage, localStorage].forEach(one => one.clear())")
        self.page.goto("about:blank")
        self._context.clear_cookies()

    def close(self) -> None:
        """Let the browser forget the context."""
        self._context.close()


def is_light(page: "Page") -> bool:
    """Return True when the page stands on a light colour."""
    red = page.evaluate("getComputedStyle(document.body).backgroundColor").split("(")[1].split(",")[0]
    return int(red) > 128
