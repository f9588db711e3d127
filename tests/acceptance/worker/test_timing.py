import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from core.app import Sources
from core.model.events import Event
from core.model.ports import Clock
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.remote.hub.reader import RENEWED, SdkHubReader
from core.settings import read_settings
from core.store.script import Outcome, Script
from core.store.sqlite.database import SqliteDatabase
from core.worker.health import main as ask
from core.worker.work import CLOCK, LONGEST_WORK, Terms, Timing, check_and_work, work_stream
from tests.acceptance.started import DEADLINE, HUB, App
from tests.fakes.builders import FakeClock
from tests.fakes.plain_transform import PLAIN
from tests.patience import allowed

TERMS = Terms(timedelta(seconds=0.5), timedelta(seconds=3), None)


async def hurried(seconds: float) -> None:
    await asyncio.sleep(seconds / 200)


async def hurried_for_partitions(seconds: float) -> None:
    await asyncio.sleep(seconds / 200 if seconds == RENEWED else seconds)


def work(
    place: App,
    check: Callable[[], object],
    transform: Transform = PLAIN,
    sleep: Callable[[float], Awaitable[None]] = hurried,
    clock: FakeClock | None = None,
    **settings: str,
) -> None:
    own, read = clock or FakeClock(), read_settings(place.settings(**settings))
    timing = Timing(Clock(own.now, CLOCK.new_id), own.monotonic, sleep)
    seconds = count(0.0, RENEWED)  # each look at the partitions is due
    place.send("0", [b"reading home-1"])

    async def until_checked() -> None:
        reader = SdkHubReader(read, monotonic=lambda: next(seconds))
        with closing(SqliteDatabase(place.engine.path)) as database, closing(reader) as hub:
            sources, terms = Sources(read, database, hub, transform), replace(TERMS, health="127.0.0.1:0")
            working = asyncio.ensure_future(work_stream(sources, terms, timing))
            try:
                await asyncio.to_thread(check)
            finally:
                working.cancel()
                with suppress(asyncio.CancelledError):
                    await working

    asyncio.run(until_checked())


def test_a_worker_takes_partitions_that_the_hub_gets_while_it_runs(place: App) -> None:
    def check() -> None:
        place.until_shared(8)
        place.emulator.grow(HUB, 12)
        connection = place.emulator.connection_string  # a producer of the SDK asks once for the partitions
        with EventHubProducerClient.from_connection_string(connection, eventhub_name=HUB) as producer:
            producer.send_batch([EventData(b"reading home-1")], partition_id="11")
        place.until_shared(12)
        place.until(lambda: sum(place.accounted().values()) == 2)

    work(place, check, sleep=hurried_for_partitions)
    assert {one.partition_id for one in place.engine.ledger()} == {"0", "11"}


def test_a_worker_whose_clock_is_wrong_stores_the_time_of_the_database(place: App) -> None:
    def broken(event: Event, references: References) -> Iterable[Row]:
        raise KeyError(event.sequence_number)

    began, clock = datetime.now(UTC), FakeClock()
    assert began - clock.now() > timedelta(days=1)
    work(place, lambda: place.until(place.engine.letters), replace(PLAIN, rows_of=broken), clock=clock)
    (letter,) = place.engine.letters()
    assert began <= letter.failed_at <= datetime.now(UTC)
    assert letter.due_at is not None and began <= letter.due_at


def test_a_batch_hangs_only_after_the_longest_time_that_the_settings_allow(
    place: App, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("INFO", "hubledger")
    transforming, go_on, clock = threading.Event(), threading.Event(), FakeClock()

    def hang(event: Event, references: References) -> Iterable[Row]:
        transforming.set()
        assert go_on.wait(allowed(2 * DEADLINE))
        return ()

    def health() -> str:
        (ready,) = [vars(one) for one in list(caplog.records) if vars(one).get("action") == "ready"]
        ask([ready["health"]])
        return capsys.readouterr().out.strip()

    def check() -> None:
        try:
            assert transforming.wait(allowed(DEADLINE))
            clock.advance(959)
            place.until(lambda: health() == "alive")
            clock.advance(2)
            place.until(lambda: health().endswith("/0 has been in hand for more than 960 s"))
        finally:
            go_on.set()

    deadlines: Any = {"HEAL_DEADLINE_SECONDS": "540", "TRANSFORM_DEADLINE_SECONDS": "300"}
    assert timedelta(seconds=960) > LONGEST_WORK
    work(place, check, replace(PLAIN, rows_of=hang), clock=clock, STORE_PATIENCE_SECONDS="120", **deadlines)


def test_a_start_that_is_cancelled_waits_for_the_thread_at_the_database(place: App) -> None:
    running, go_on, ran = threading.Event(), threading.Event(), threading.Event()

    class SlowStart(SqliteDatabase):
        def run(self, script: Script, rehearse: bool = False) -> Outcome:
            if script.steps[0].statement != "open_stream":
                return super().run(script, rehearse)
            running.set()
            assert go_on.wait(allowed(DEADLINE))
            outcome = super().run(script, rehearse)
            ran.set()
            return outcome

    async def cancelled(sources: Sources[Any]) -> bool:
        working = asyncio.ensure_future(check_and_work(sources, TERMS))
        assert await asyncio.to_thread(running.wait, allowed(DEADLINE))
        working.cancel()
        asyncio.get_running_loop().call_later(0.1, go_on.set)
        with suppress(asyncio.CancelledError):
            await working
        return ran.is_set()

    settings = read_settings(place.settings())
    with closing(SlowStart(place.engine.path)) as database, closing(SdkHubReader(settings)) as hub:
        assert asyncio.run(cancelled(Sources(settings, database, hub, PLAIN)))
