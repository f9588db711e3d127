"""The browser, the tab in which the tests of the pages look at the app, and what a person does in it."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from math import cos, sin
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import allowed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

Opener = Callable[..., "Page"]
Picture = Callable[..., None]
Portrait = Callable[["Page", str], None]
HEIGHT, PHONE, PATIENCE_MS = 700, {"width": 390, "height": 844}, 20_000
LOOKS = Path(__file__).parents[2] / ".local-run" / "screenshots"
SCHEMES: tuple[Any, ...] = ("light", "dark")
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
NO_PLAYWRIGHT = "Playwright is not installed: python -m pip install -r requirements-dev.txt"
NO_BROWSER = "no Chromium: apt-get install chromium, or name one in CHROMIUM"
WIDTH = "document.documentElement.scrollWidth"
UNLABELLED = "[...document.querySelectorAll('input, select')].filter(i => !i.labels?.length && !i.ariaLabel).length"
FOCUSED = "document.activeElement.innerText || document.activeElement.name || document.activeElement.tagName"
BOXES = """at => {
  const found = at.map((one) => [...document.querySelectorAll(one)].map((it) => it.getBoundingClientRect().toJSON()));
  return found.every((some) => some.length) && found.flat();
}"""


@contextmanager
def chromium() -> Iterator["Browser"]:
    """Chromium, without a window. A test that needs it is skipped where it is missing. Playwright holds an event loop
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
        self._context.close()


def is_light(page: "Page") -> bool:
    red = page.evaluate("getComputedStyle(document.body).backgroundColor").split("(")[1].split(",")[0]
    return int(red) > 128


def keep_portrait(page: "Page", name: str) -> None:
    """Keep the whole page as it looks now, or the dialog before it."""
    if os.environ.get("SCREENSHOTS"):
        LOOKS.mkdir(parents=True, exist_ok=True)
        size = "phone" if page.evaluate("innerWidth") < 500 else "desktop"
        path = LOOKS / f"{name}-{size}-{'light' if is_light(page) else 'dark'}.png"
        page.screenshot(path=str(path), animations="disabled", full_page=not page.locator("dialog").count())


def portraits(page: "Page", name: str, *pressed: str) -> None:
    """Keep portraits of an address in each width and scheme, loaded anew, after a press on each of some controls."""
    for width in (360, 1600, 1280) if os.environ.get("SCREENSHOTS") else ():
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.reload()
        for one in pressed if width != 1280 else ():
            page.click(one)
        page.mouse.move(0, 0)  # nothing is pointed at
        page.wait_for_timeout(1_500)
        for scheme in SCHEMES[::-1] if width != 1280 else ():
            page.emulate_media(color_scheme=scheme)
            keep_portrait(page, name)


def show(page: "Page", fragment: str) -> None:
    page.evaluate("to => { location.hash = to }", fragment)
    page.wait_for_selector("main .card")


def boxes(page: "Page", *at: str) -> list[Any]:
    """Wait until each selector has a match, and measure all matches at one moment: a later banner would move them."""
    return page.wait_for_function(BOXES, arg=list(at)).json_value()


def order(page: "Page", count: str, button: str = "", reason: str = "known poison") -> None:
    """Fill in the dialog, and press its button of this class."""
    page.fill("dialog input[name=reason]", reason)
    if page.locator("dialog input[name=count]").count():  # a harmless move does not ask for it
        page.fill("dialog input[name=count]", count)
    if button:
        page.click(f"dialog button.{button}")


def confirmed(page: "Page", button: str, reason: str) -> None:
    page.click(f"button:text-is('{button}')")
    page.fill("dialog input[name=reason]", reason)
    page.click("dialog form button:not([type=button])")
    page.wait_for_selector("dialog", state="detached")


def press_until(page: "Page", name: str) -> None:
    """Press Tab until what has this text or name has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == name:
            return
    raise AssertionError(f"{name} cannot be reached by Tab")


def seen(page: "Page", at: str, change: Callable[[Any], object]) -> None:
    def answer(route: "Route") -> None:
        response = route.fetch()
        body = response.json()
        change(body)
        route.fulfill(response=response, json=body)

    page.route(at, answer)


def before(body: Any, seconds: float) -> str:
    """The time so many seconds before a status."""
    return (datetime.fromisoformat(body["at"]) - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def an_hour_before(body: Any, rate: float = 38.0) -> list[dict[str, Any]]:
    """The hour of watches before a status. A lag began when its partition got late, and a stop three minutes ago."""
    of = body["partitions"]
    stopped = sum(stop["attempts"] < (stop["patience"] or 99) for one in of for stop in one["stops"])
    share = min(1, (stopped + len(body["standing"])) / 16)
    rates = [rate * (1 + sin(at / 5) / 4) * (1 - share * (at < 3)) for at in range(60)]
    late = [(one["lag"] or 0, max(90.0, one["lag_seconds"] or 0)) for one in of]
    waves = [rate / 4 * (1 - cos(at / 7)) for at in range(60)]

    def minute(at: int) -> dict[str, Any]:
        accounted = body["accounted"] - round(60 * sum(rates[:at]))
        waits = round(waves[at] + sum(lag * max(0.0, 1 - 60 * at / seconds) for lag, seconds in late))
        return {"at": before(body, 60 * at + 20), "rate": rates[at], "accounted": accounted, "lag": waits}

    return [minute(at) for at in reversed(range(3 if body["lag"] is None else 0, 60))]


def with_aggregation(page: "Page", **change: Any) -> None:
    """Let the page see another state of the aggregation, such as a Spark engine: the local run has none."""
    seen(page, "**/api/aggregations?*", lambda body: body.update(change))
