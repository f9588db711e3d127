import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from azure.eventhub import EventHubProducerClient

from local.event_hubs import Emulator, HubSettings
from local.functions_host import HostOptions
from local.functions_host.clock import SystemClock
from local.functions_host.event_source import HubAddress, StartAt
from local.functions_host.sdk_stream import LONGEST_PAUSE
from local.functions_host.state_file import StateFile
from tests.acceptance.functions_host.sample import ALONE, bodies, running, seen, write_settings
from tests.acceptance.started import HUB, publish_raw
from tests.fakes import trigger_events
from tests.local.functions_host.doubles import eventually

# The SDK drops the socket of a lost connection without closing it; `dropped_sockets` collects most of them in the test.
pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore:loop is closed:ResourceWarning"),
]

ADDRESS = HubAddress("localhost", HUB, "$Default")
MESSAGES = {one.name: one.message for one in trigger_events.published()}
SOON_S = 30.0


class ImpatientClock(SystemClock):
    """The clock of this machine, with a short pause between two tries to reach the hub."""

    async def sleep(self, delay: timedelta) -> None:
        await super().sleep(timedelta(milliseconds=50) if delay <= LONGEST_PAUSE else delay)


@pytest_asyncio.fixture(autouse=True)
async def dropped_sockets(caplog: pytest.LogCaptureFixture) -> AsyncIterator[None]:
    yield
    caplog.get_records("call").clear()  # the SDK's records hold the errors, whose stacks hold the sockets
    gc.collect()


def reported(caplog: pytest.LogCaptureFixture, action: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if getattr(record, "action", "") == action]


def groups(caplog: pytest.LogCaptureFixture, action: str) -> list[str]:
    return [one["consumer_group"] for one in reported(caplog, action)]


def arrivals() -> list[str]:
    return [body for batch in bodies() for body in batch]


async def arrived(*expected: str) -> None:
    await eventually(lambda: set(expected) <= set(arrivals()), SOON_S)


def good(body: str) -> bytes:
    return b"\x00\x53\x75\xa0" + bytes((len(body),)) + body.encode()


async def send(emulator: Emulator, *messages: bytes, partition_id: str = "0") -> None:
    def publish() -> None:
        connection = emulator.connection_string
        with EventHubProducerClient.from_connection_string(connection, eventhub_name=HUB) as producer:
            publish_raw(producer, messages, partition_id)

    await asyncio.to_thread(publish)


async def test_a_refused_link_and_a_hub_that_goes_away_are_reported_and_the_hub_is_read_when_it_is_back(
    app: Path, caplog: pytest.LogCaptureFixture
) -> None:
    emulator = Emulator([HubSettings(HUB, 1)])  # without the consumer group of `ingest_async`
    with emulator.running():
        port = emulator.port
        write_settings(app, EVENTHUB=emulator.connection_string, **{"AzureWebJobs.ingest_texts.Disabled": "true"})
    async with running(app, HostOptions(clock=ImpatientClock())):
        await eventually(lambda: reported(caplog, "hub_unreachable"), SOON_S)
        with emulator.running(port=port):
            await send(emulator, good("a"))
            await arrived("a")
            await eventually(lambda: reported(caplog, "partition_refused"), SOON_S)
            (refused,) = reported(caplog, "partition_refused")
            for cut in (emulator.drop_connections, lambda: emulator.detach_links(HUB)):
                cut()
                await send(emulator, good("b"))
                await eventually(lambda: arrivals()[-1] == "b", SOON_S)
            await eventually(lambda: "$Default" in groups(caplog, "partition_refused"), SOON_S)
        with emulator.running(port=port):
            await send(emulator, good("c"))
            await arrived("c")
    assert arrivals() == ["a", "b", "b", "c"]
    assert (refused["consumer_group"], refused["levelno"]) == ("async", logging.ERROR)
    assert "async" in refused["error"]
    assert set(groups(caplog, "partition_received")) == {"$Default"}


class Hub:
    """A hub of one partition that the sample app reads. `state` is the file of its host."""

    def __init__(self, emulator: Emulator, state: Path) -> None:
        self._emulator, self._state = emulator, state

    async def send(self, *messages: bytes) -> None:
        await send(self._emulator, *messages)

    def checkpoint(self) -> int:
        state = StateFile(self._state)
        found = state.read_checkpoint(ADDRESS, "0")
        state.close()
        return -1 if found is None or found.sequence_number is None else found.sequence_number

    async def is_at(self, number: int) -> None:
        await eventually(lambda: self.checkpoint() == number, SOON_S)

    def lift(self, number: int) -> None:
        state = StateFile(self._state)
        state.write_checkpoint(ADDRESS, "0", StartAt("", None, number))
        state.close()


@asynccontextmanager
async def reading(app: Path, tmp_path: Path, *first: bytes) -> AsyncIterator[Hub]:
    """Read a hub, by default one whose first event has arrived."""
    emulator, state = Emulator([HubSettings(HUB, 1)]), tmp_path / "state.db"
    options = HostOptions(state=state, clock=ImpatientClock(), reopen_after=timedelta(seconds=0.2))
    with emulator.running():
        write_settings(app, EVENTHUB=emulator.connection_string, **ALONE)
        async with running(app, options):
            hub = Hub(emulator, state)
            await hub.send(*(first or (good("first"),)))
            if not first:
                await arrived("first")
            yield hub


async def test_a_batch_that_cannot_be_bound_is_retried_and_passed_whole(
    app: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading(app, tmp_path) as hub:
        await hub.send(good("beside"), MESSAGES["body value string"], good("with it"))  # a batch has three
        await hub.is_at(3)
        await hub.send(MESSAGES["two sequences"])
        await hub.send(good("last"))
        await arrived("last")
    assert arrivals() == ["first", "last"]
    failed = reported(caplog, "function_failed")
    assert [one["retry_count"] for one in failed] == [0, 1, 2] * 2
    assert all(one["error"].startswith("Exception binding parameter 'events' ---> NotSupported") for one in failed)
    assert [one["first"] for one in reported(caplog, "batch_unbound")] == [1, 4]


async def test_a_reader_stands_on_an_event(app: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with reading(app, tmp_path) as hub:
        await hub.send(good("before it"), MESSAGES["prop empty map"], good("after it"))
        await eventually(lambda: len(reported(caplog, "reader_stopped")) > 1, SOON_S)
        assert (arrivals(), hub.checkpoint()) == (["first"], 0)
        hub.lift(2)
        await arrived("after it")
        await hub.is_at(3)
        hub.lift(7)  # a healthy partition overwrites a checkpoint from outside
        await hub.send(good("second"))
        await arrived("second")
        await hub.is_at(4)
    assert arrivals() == ["first", "after it", "second"]
    assert {one["sequence_number"] for one in reported(caplog, "reader_stopped")} == {2}


async def test_an_event_is_dropped_in_silence_with_its_neighbours_and_the_checkpoint_passes_them(
    app: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading(app, tmp_path) as hub:
        await hub.send(good("beside"), MESSAGES["prop decimal64"], good("with it"))
        await eventually(lambda: reported(caplog, "events_dropped"), SOON_S)
        await hub.send(good("last"))
        await arrived("last")
        await hub.is_at(4)
    assert arrivals() == ["first", "last"]
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


async def test_a_listener_does_not_start_where_the_oldest_event_stops_the_reader(
    app: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading(app, tmp_path, MESSAGES["footer map in map"], good("after it")) as hub:
        await eventually(lambda: len(reported(caplog, "listener_failed")) > 1, SOON_S)
        assert seen("ingest") == []
        hub.lift(0)
        await arrived("after it")
