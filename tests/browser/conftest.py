"""A real browser before the whole local run: emulator, store and functions host, as a person has them on one machine.

Chromium is Debian's (`apt-get install chromium`) or the one that CHROMIUM names; Playwright comes with
requirements-dev.txt. Where either is missing these tests say so. With SCREENSHOTS=1 they write docs/images/.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from local.feed.domains import HOMES
from local.processes import Children
from local.stack import HUB, Place, Stack

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
NO_PLAYWRIGHT = "Playwright is not installed: python -m pip install -r requirements-dev.txt"
NO_BROWSER = "no Chromium: apt-get install chromium, or name one in CHROMIUM"
DEADLINE_S = 60.0
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>{{7*7}}\'; DROP TABLE home; --'


class Run:
    """The local run, and a way to publish."""

    def __init__(self, folder: Path, children: Children) -> None:
        stack = Stack(Place(folder), children, time.sleep)
        stack.start_emulator()
        stack.migrate()
        _, self.address = stack.start_host(HOMES.transform)
        self._client = self._open(stack.connection)

    def _open(self, connection: str) -> Any:
        from azure.eventhub import EventHubProducerClient

        return EventHubProducerClient.from_connection_string(connection, eventhub_name=HUB)

    def publish(self, partition_id: str, *bodies: bytes, key: str | None = None, **properties: Any) -> None:
        """Send events to one partition, or by key."""
        from azure.eventhub import EventData

        place: Any = {"partition_key": key} if key else {"partition_id": partition_id}
        batch = self._client.create_batch(**place)
        for body in bodies:
            event = EventData(body)
            event.properties = properties
            batch.add(event)
        self._client.send_batch(batch)

    def close(self) -> None:
        """Publish nothing more."""
        self._client.close()

    def status(self) -> Any:
        """The JSON twin of the first screen."""
        with urlopen(f"{self.address}/api/status", timeout=DEADLINE_S) as answer:
            return json.loads(answer.read())

    def until(self, holds: Callable[[Any], object]) -> Any:
        """Wait until the status is as it should be."""
        deadline = time.monotonic() + DEADLINE_S
        while not holds(status := self.status()):
            assert time.monotonic() < deadline, status
            time.sleep(0.2)
        return status


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    """Chromium, without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason=NO_PLAYWRIGHT)
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    with playwright.sync_playwright() as control:
        launched = control.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def run(browser: "Browser", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """One for all tests: homes register, their sensors speak, and some events are poison."""
    folder = tmp_path_factory.mktemp("run")
    with Children(folder) as children:
        made = Run(folder, children)
        for number in range(16):
            made.publish(str(number), registration(number), *(reading(number, at) for at in range(40)))
        made.publish("3", b"{", b"not json", b"\xff\x00\xfe")
        made.publish("4", HOSTILE.encode(), key=HOSTILE[:80], tenant=HOSTILE)
        made.until(lambda status: status["accounted"] == 16 * 41 + 4)
        yield made
        made.close()


@pytest.fixture
def page(browser: "Browser", run: Run) -> Iterator["Page"]:
    """A page in a context of its own; whatever its scripts complain of fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("dialog", lambda dialog: complaints.append(dialog.message))
    opened.on("console", lambda line: complaints.append(line.text) if "Security Policy" in line.text else None)
    opened.goto(f"{run.address}/api/ops")
    yield opened
    context.close()
    assert complaints == []


@pytest.fixture
def picture() -> Callable[["Page", str], None]:
    """Keeps a picture for the documents when SCREENSHOTS is set."""

    def keep(page: "Page", name: str) -> None:
        if os.environ.get("SCREENSHOTS"):
            IMAGES.mkdir(exist_ok=True)
            page.screenshot(path=str(IMAGES / f"{name}.png"))

    return keep


def registration(number: int) -> bytes:
    """A home registers."""
    home = {"kind": "registration", "home_id": f"H{number:06}", "time_zone": "Europe/Paris", "armed": True}
    return json.dumps(home).encode()


def reading(number: int, at: int) -> bytes:
    """A door of a home."""
    moment = f"2026-11-21T12:{at:02}:00Z"
    door = {"kind": "door", "home_id": f"H{number:06}", "sensor_id": "S1", "state": "active", "observed_at": moment}
    return json.dumps(door).encode()
