"""A real browser before the whole local run: emulator, store and functions host, as a person has them on one machine.

Chromium is Debian's (`apt-get install chromium`) or the one that CHROMIUM names. Playwright comes with
requirements-dev.txt. Where either is missing these tests say so. `make screenshots` has them write docs/images/, and
the states of the pages in both colour schemes and widths to .local-run/screenshots/.
"""

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from local.feed.businesses import HOMES
from local.stack.processes import Children
from local.stack.stack import HUB, Place, Stack
from tests.browser import homes
from tests.browser.tab import Tab, chromium, keep_portrait
from tests.patience import Patience, allowed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
DEADLINE_S = 60.0  # of an idle machine
SCHEDULES = {"WATCH_SCHEDULE": "0 0 0 1 1 *", "TASK_SCHEDULE": "* * * * * *"}  # the tests store minutes
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>{{7*7}}\'; DROP TABLE home; --'
STOPPED_FOR = timedelta(minutes=4)
KEEP_STOPS = "CREATE TRIGGER stops_stay BEFORE DELETE ON partition_stop BEGIN SELECT RAISE(IGNORE); END"
STOP = """
INSERT INTO partition_stop (stream_id, partition_id, reason, detail, attempts, stopped_at)
SELECT MAX(stream_id), ?, ?, ?, 3, ? FROM event_stream
"""
MINUTE = """
INSERT INTO stream_minute (minute_at, stream_id, read_at, lag, accounted)
SELECT ?, MAX(stream_id), ?, ?, ? FROM event_stream
"""


class Run:
    """The local run, and a way to publish."""

    def __init__(self, folder: Path, children: Children) -> None:
        stack = Stack(Place(folder), children, time.sleep, SCHEDULES)
        self.store = stack.place.store
        self._emulator = stack.start_emulator()
        stack.migrate(HOMES.transform)
        _, self.address = stack.start_host(HOMES.transform)
        from azure.eventhub import EventHubProducerClient

        self._client = EventHubProducerClient.from_connection_string(stack.connection, eventhub_name=HUB)

    def publish(self, partition_id: str, *bodies: bytes, key: str | None = None, **properties: Any) -> None:
        from azure.eventhub import EventData

        place: Any = {"partition_key": key} if key else {"partition_id": partition_id}
        batch = self._client.create_batch(**place)
        for body in bodies:
            event = EventData(body)
            event.properties = properties
            event.content_type = properties.get("content_type")
            batch.add(event)
        self._client.send_batch(batch)

    def feed(self, partition_id: str, *bodies: bytes, **given: Any) -> None:
        before = self.status()["accounted"]
        self.publish(partition_id, *bodies, **given)
        self.until(lambda status: status["accounted"] == before + len(bodies))

    def counted(self) -> Any:
        """Return the status once its letters were counted after this moment: a busy app remembers its count."""
        now = datetime.now(UTC)
        return self.until(lambda status: datetime.fromisoformat(status["letters"]["counted_at"]) > now)

    @contextmanager
    def halted_hub(self) -> Iterator[None]:
        """While this is open the hub answers nothing. It goes on from there afterwards."""
        os.kill(self._emulator.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._emulator.pid, signal.SIGCONT)

    def database(self) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(self.store, isolation_level=None, timeout=allowed(DEADLINE_S)))

    @contextmanager
    def stopped(self, partition_id: str, why: dict[str, str]) -> Iterator[None]:
        """While this is open, a partition is recorded as stopped for each reason.

        The app's check ends stops of partitions where no event waits. Here it ends none, however often it comes by.
        """
        since = f"{datetime.now(UTC) - STOPPED_FOR:%Y-%m-%dT%H:%M:%S.%fZ}"
        stops = [(partition_id, reason, detail, since) for reason, detail in why.items()]
        with self.database() as connection:
            connection.execute(KEEP_STOPS)
            connection.executemany(STOP, stops)
            try:
                yield
            finally:
                connection.execute("DROP TRIGGER stops_stay")
                connection.execute("DELETE FROM partition_stop")

    @contextmanager
    def minutes(self, *stored: tuple[datetime, int, int]) -> Iterator[None]:
        """While this is open, the store has these minutes and no other: time, lag and accounted numbers."""
        rows = [(f"{at:%Y-%m-%dT%H:%M:00.000000Z}", f"{at:%Y-%m-%dT%H:%M:%S.%fZ}", *counts) for at, *counts in stored]
        with self.database() as connection:
            connection.execute("DELETE FROM stream_minute")
            connection.executemany(MINUTE, rows)
            try:
                yield
            finally:
                connection.execute("DELETE FROM stream_minute")

    def rows(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        with self.database() as connection:
            return connection.execute(statement, values).fetchall()

    def close(self) -> None:
        self._client.close()

    def status(self) -> Any:
        return self.get("status")

    def get(self, path: str) -> Any:
        with urlopen(f"{self.address}/api/{path}", timeout=allowed(DEADLINE_S)) as answer:
            return json.loads(answer.read())

    def letters(self, partition_id: str) -> Any:
        return self.get(f"dead-letters?partition_id={partition_id}")["letters"]

    def discarded(self) -> int:
        """The number of discarded letters, at most a page."""
        return len(self.get("dead-letters?status=discarded&limit=100")["letters"])

    def until(self, holds: Callable[[Any], object]) -> Any:
        patience = Patience(DEADLINE_S)
        while not holds(status := self.status()):
            patience.pause(lambda: status["accounted"], 0.2)
        return status


@pytest.fixture(scope="package")
def browser() -> Iterator["Browser"]:
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="package")
def run(browser: "Browser", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """One run for all tests: homes register, their sensors send readings, and some events are poison."""
    folder = tmp_path_factory.mktemp("run")
    with Children(folder) as children:
        made = Run(folder, children)
        for number in range(16):
            made.publish(str(number), registration(number), *(reading(number, at) for at in range(40)))
        made.publish("3", b"{", b"not json", b"\xff\x00\xfe")
        made.publish("4", b'{"kind":"motion"}', tenant="north")
        made.until(lambda status: status["accounted"] == 16 * 41 + 4)
        yield made
        made.close()


@pytest.fixture(scope="package")
def aggregated(run: Run) -> Run:
    """The run with two more homes: one with a week of readings, summed by a run, and one without readings."""
    bodies = [homes.registration(homes.EMPTY), homes.registration(homes.HOME), *homes.week()]
    for at in range(0, len(bodies), 500):
        run.feed("2", *bodies[at : at + 500])
    homes.aggregate(run.store, datetime.now(UTC))
    return run


@pytest.fixture(scope="package")
def tab(browser: "Browser") -> Iterator[Tab]:
    """The tab of all tests: a new context for each of them would load the whole page anew."""
    made = Tab(browser)
    yield made
    made.close()


@pytest.fixture
def open_page(browser: "Browser", tab: Tab, run: Run) -> Iterator[Callable[..., "Page"]]:
    """Opens addresses in the tab of all tests, or `apart`, which a test needs that changes the clock. A complaint fails
    the test."""
    tabs = [tab]

    def make(address: str = "/api/ops", width: int = 1280, scheme: Any = "light", apart: bool = False) -> "Page":
        if apart:
            tabs.append(Tab(browser))
        return tabs[-1].open(run.address, address, width, scheme)

    yield make
    complaints = [each for one in tabs for each in one.complaints]
    tab.complaints.clear()
    if tab.page.url != "about:blank":
        tab.forget()
    for one in tabs[1:]:
        one.close()
    assert complaints == []


@pytest.fixture
def page(open_page: Callable[..., "Page"]) -> "Page":
    return open_page()


@pytest.fixture
def picture() -> Callable[..., None]:
    """Keeps a picture for the documents when SCREENSHOTS is set."""

    def keep(page: "Page", name: str, seen: str = "body") -> None:
        if os.environ.get("SCREENSHOTS"):
            IMAGES.mkdir(exist_ok=True)
            page.evaluate("document.activeElement?.matches('dialog *') || document.activeElement?.blur()")
            is_phone = (page.viewport_size or {"width": 0})["width"] < 500
            page.set_viewport_size({"width": 360, "height": 880} if is_phone else {"width": 1280, "height": 860})
            page.wait_for_timeout(200)
            page.evaluate("at => document.querySelector(at).scrollIntoView({ block: 'start' })", seen)
            page.screenshot(path=str(IMAGES / f"{name}.png"), animations="disabled")

    return keep


@pytest.fixture
def portrait() -> Callable[["Page", str], None]:
    """Keeps a whole page as it looks now, for people who compare it, when SCREENSHOTS is set."""
    return keep_portrait


def registration(number: int) -> bytes:
    home = {"kind": "registration", "home_id": f"H{number:06}", "time_zone": "Europe/Paris", "armed": True}
    return json.dumps(home).encode()


def reading(number: int, at: int) -> bytes:
    moment = f"2026-11-21T12:{at:02}:00Z"
    door = {"kind": "door", "home_id": f"H{number:06}", "sensor_id": "S1", "state": "active", "observed_at": moment}
    return json.dumps(door).encode()
