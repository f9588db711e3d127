"""The parts of a worker that depend on time, in this process and on a fake clock."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
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
from core.store.sqlite.database import SqliteDatabase
from core.worker.health import main as ask
from core.worker.work import CLOCK, LONGEST_WORK, Terms, Timing, work_stream
from tests.acceptance.worker.started import DEADLINE, HUB, PARTITIONS, Workplace, settings_of
from tests.fakes.builders import FakeClock
from tests.fakes.plain_transform import PLAIN
from tests.patience import allowed


async def hurried(seconds: float) -> None:
    """Sleep for a small part of the time."""
    await asyncio.sleep(seconds / 200)


async def hurried_for_partitions(seconds: float) -> None:
    """Sleep for the whole time, except between two looks at the hub's partitions: no check for gaps comes before."""
    await asyncio.sleep(seconds / 200 if seconds == RENEWED else seconds)


class World:
    """A worker in this process over a hub with one event."""

    def __init__(self, place: Workplace, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO", "hubledger")
        self.place, self.clock = place, FakeClock()
        self._caplog = caplog
        place.send("0", b"reading home-1")

    def lines(self, action: str) -> list[dict[str, Any]]:
        records = map(vars, list(self._caplog.records))
        return [record for record in records if record.get("action") == action]

    def work(
        self,
        check: Callable[[], None],
        settings: Mapping[str, str],
        transform: Transform = PLAIN,
        sleep: Callable[[float], Awaitable[None]] = hurried,
    ) -> None:
        """Work with these settings until the check, in a thread of its own, has ended."""
        asyncio.run(self._work(check, settings, transform, sleep))

    async def _work(
        self,
        check: Callable[[], None],
        settings: Mapping[str, str],
        transform: Transform,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        path, seconds = self.place.engine.path, count(0.0, RENEWED)  # each look at the partitions is due
        read = read_settings({**settings_of(self.place.emulator.connection_string, path), **settings})
        terms = Terms(timedelta(seconds=0.5), timedelta(seconds=3), "127.0.0.1:0")
        timing = Timing(Clock(self.clock.now, CLOCK.new_id), self.clock.monotonic, sleep)
        reader = SdkHubReader(read, monotonic=lambda: next(seconds))
        with closing(SqliteDatabase(path)) as database, closing(reader) as hub:
            working = asyncio.ensure_future(work_stream(Sources(read, database, hub, transform), terms, timing))
            try:
                await asyncio.to_thread(check)
            finally:
                working.cancel()
                with suppress(asyncio.CancelledError):
                    await working


@pytest.fixture
def world(place: Workplace, caplog: pytest.LogCaptureFixture) -> World:
    return World(place, caplog)


def test_a_worker_takes_partitions_that_the_hub_gets_while_it_runs(world: World) -> None:
    emulator, place = world.place.emulator, world.place

    def check() -> None:
        place.until_shared(PARTITIONS)
        emulator.grow(HUB, PARTITIONS + 4)
        connection = emulator.connection_string  # a producer of the SDK asks once for the partitions
        with EventHubProducerClient.from_connection_string(connection, eventhub_name=HUB) as producer:
            producer.send_batch([EventData(b"reading home-1")], partition_id=str(PARTITIONS + 3))
        place.until_shared(PARTITIONS + 4)
        place.until(lambda: sum(place.accounted()) == 2)

    world.work(check, {}, sleep=hurried_for_partitions)
    assert {one.partition_id for one in place.engine.ledger()} == {"0", str(PARTITIONS + 3)}


def test_a_worker_whose_clock_is_wrong_stores_the_time_of_the_database(world: World) -> None:
    assert datetime.now(UTC) - world.clock.now() > timedelta(days=1)
    began = datetime.now(UTC)
    world.work(
        lambda: world.place.until(lambda: bool(world.place.engine.letters())), {}, replace(PLAIN, rows_of=broken)
    )
    (letter,) = world.place.engine.letters()
    assert began <= letter.failed_at <= datetime.now(UTC)
    assert letter.due_at is not None
    assert began <= letter.due_at


def broken(event: Event, references: References) -> Iterable[Row]:
    raise KeyError(event.sequence_number)


def test_a_batch_hangs_only_after_the_longest_time_that_the_settings_allow(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    transforming, go_on = threading.Event(), threading.Event()

    def hang(event: Event, references: References) -> Iterable[Row]:
        transforming.set()
        assert go_on.wait(allowed(2 * DEADLINE))
        return ()

    def health() -> str:
        ask([world.lines("ready")[0]["health"]])
        return capsys.readouterr().out.strip()

    def check() -> None:
        try:
            assert transforming.wait(allowed(DEADLINE))
            world.clock.advance(959)
            world.place.until(lambda: health() == "alive")
            world.clock.advance(2)
            world.place.until(lambda: health().endswith("/0 has been in hand for more than 960 s"))
        finally:
            go_on.set()

    deadlines = {"HEAL_DEADLINE_SECONDS": "540", "TRANSFORM_DEADLINE_SECONDS": "300", "STORE_PATIENCE_SECONDS": "120"}
    assert timedelta(seconds=960) > LONGEST_WORK
    world.work(check, deadlines, replace(PLAIN, rows_of=hang))
