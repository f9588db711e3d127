"""Events that the trigger cannot deliver, over real AMQP: each way in which it fails, and what frees the partition."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from local.event_hubs import Emulator, HubSettings
from local.functions_host import HostOptions
from local.functions_host.event_source import HubAddress, StartAt
from local.functions_host.state_file import StateFile
from tests.acceptance.functions_host.publishing import HUB, publish_raw
from tests.acceptance.functions_host.sample import running, seen, write_settings
from tests.acceptance.functions_host.test_over_amqp import ImpatientClock, bodies, reported
from tests.fakes import trigger_events
from tests.local.functions_host.doubles import eventually

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore:loop is closed:ResourceWarning"),
]

ADDRESS = HubAddress("localhost", HUB, "$Default")
MESSAGES = {one.name: one.message for one in trigger_events.published()}
SOON_S = 30.0


def good(body: str) -> bytes:
    return b"\x00\x53\x75\xa0" + bytes((len(body),)) + body.encode()


class Hub:
    """A hub of one partition that the sample app reads; `state` is the file of its host."""

    def __init__(self, emulator: Emulator, state: Path) -> None:
        self._emulator = emulator
        self._state = state

    async def send(self, *messages: bytes) -> None:
        """Publish encoded messages, which come together."""
        await asyncio.to_thread(publish_raw, self._emulator.connection_string, "0", messages)

    def checkpoint(self) -> int:
        state = StateFile(self._state)
        found = state.read_checkpoint(ADDRESS, "0")
        state.close()
        return -1 if found is None or found.sequence_number is None else found.sequence_number

    def lift(self, number: int) -> None:
        """Write a checkpoint that has a number and no offset."""
        state = StateFile(self._state)
        state.write_checkpoint(ADDRESS, "0", StartAt("", None, number))
        state.close()

    async def arrived(self, body: str) -> None:
        await eventually(lambda: body in bodies(), SOON_S)


@asynccontextmanager
async def reading(app: Path, tmp_path: Path) -> AsyncIterator[Hub]:
    emulator, state = Emulator([HubSettings(HUB, 1)]), tmp_path / "state.db"
    options = HostOptions(state=state, clock=ImpatientClock(), reopen_after=timedelta(seconds=0.2))
    with emulator.running():
        others = {f"AzureWebJobs.{name}.Disabled": "true" for name in ("ingest_async", "ingest_texts")}
        write_settings(app, EVENTHUB=emulator.connection_string, **others)
        async with running(app, options):
            yield Hub(emulator, state)


@asynccontextmanager
async def reading_after_the_first(app: Path, tmp_path: Path) -> AsyncIterator[Hub]:
    """Read a hub whose first event has arrived."""
    async with reading(app, tmp_path) as hub:
        await hub.send(good("first"))
        await hub.arrived("first")
        yield hub


async def test_a_batch_that_cannot_be_bound_is_retried_and_passed_whole(
    app: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading_after_the_first(app, tmp_path) as hub:
        await hub.send(good("beside"), MESSAGES["body value string"], good("with it"))  # a batch has three
        await eventually(lambda: hub.checkpoint() == 3, SOON_S)
        await hub.send(MESSAGES["two sequences"])
        await hub.send(good("last"))
        await hub.arrived("last")
    assert bodies() == ["first", "last"]
    failed = [vars(one) for one in reported(caplog, "function_failed")]
    assert [one["retry_count"] for one in failed] == [0, 1, 2] * 2
    assert all(one["error"].startswith("Exception binding parameter 'events' ---> NotSupported") for one in failed)
    assert len({one["invocation_id"] for one in failed}) == 2
    assert [vars(one)["first"] for one in reported(caplog, "batch_unbound")] == [1, 4]


async def test_a_reader_stands_on_an_event_until_the_checkpoint_in_the_store_is_lifted(
    app: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading_after_the_first(app, tmp_path) as hub:
        await hub.send(good("before it"), MESSAGES["prop empty map"], good("after it"))
        await eventually(lambda: len(reported(caplog, "reader_stopped")) > 1, SOON_S)
        assert (bodies(), hub.checkpoint()) == (["first"], 0)
        hub.lift(2)
        await hub.arrived("after it")
        await eventually(lambda: hub.checkpoint() == 3)
    assert bodies() == ["first", "after it"]
    assert {vars(one)["sequence_number"] for one in reported(caplog, "reader_stopped")} == {2}


async def test_an_event_is_dropped_in_silence_with_its_neighbours_and_the_checkpoint_passes_them(
    app: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading_after_the_first(app, tmp_path) as hub:
        await hub.send(good("beside"), MESSAGES["prop decimal64"], good("with it"))
        await eventually(lambda: reported(caplog, "events_dropped"), SOON_S)
        await hub.send(good("last"))
        await hub.arrived("last")
        await eventually(lambda: hub.checkpoint() == 4)
    assert bodies() == ["first", "last"]
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


async def test_a_listener_does_not_start_where_the_oldest_event_stops_the_reader(
    app: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading(app, tmp_path) as hub:
        await hub.send(MESSAGES["footer map in map"], good("after it"))
        await eventually(lambda: len(reported(caplog, "listener_failed")) > 1, SOON_S)
        assert seen("ingest") == []
        hub.lift(0)
        await hub.arrived("after it")


async def test_a_healthy_partition_overwrites_a_checkpoint_from_outside(app: Path, tmp_path: Path) -> None:
    async with reading_after_the_first(app, tmp_path) as hub:
        await eventually(lambda: hub.checkpoint() == 0)
        hub.lift(7)
        await hub.send(good("second"))
        await hub.arrived("second")
        await eventually(lambda: hub.checkpoint() == 1)
    assert bodies() == ["first", "second"]
