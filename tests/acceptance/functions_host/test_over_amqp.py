"""The Event Hubs trigger over real AMQP: the SDK against the emulator."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from local.event_hubs import Emulator, HubSettings
from local.functions_host import HostOptions
from tests.acceptance.functions_host.publishing import HUB, publish
from tests.acceptance.functions_host.sample import running, seen, write_settings
from tests.unit.local.functions_host.doubles import eventually

# The SDK drops the socket of a lost connection without closing it; `dropped_sockets` lets most come out in the test.
pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore:loop is closed:ResourceWarning"),
]

SOON_S = 30.0


@pytest_asyncio.fixture(autouse=True)
async def dropped_sockets() -> AsyncIterator[None]:
    yield
    gc.collect()


@pytest.fixture
def emulator(app: Path) -> Iterator[Emulator]:
    emulator = Emulator([HubSettings(HUB, 2, ("async", "texts"))])
    with emulator.running():
        use(app, emulator.connection_string)
        yield emulator


def use(app: Path, connection_string: str, **changes: str) -> None:
    """Only `ingest` runs, which reads the group $Default."""
    others = {f"AzureWebJobs.{name}.Disabled": "true" for name in ("ingest_async", "ingest_texts")}
    write_settings(app, EVENTHUB=connection_string, **others, **changes)


def bodies() -> set[str]:
    return {each["body"][2:-1] for batch in seen("ingest") for each in batch["events"]}


async def arrived(*expected: str) -> None:
    await eventually(lambda: set(expected) <= bodies(), deadline_s=SOON_S)


async def test_events_of_every_partition_arrive_with_position_key_and_properties(app: Path, emulator: Emulator) -> None:
    async with running(app):
        await asyncio.to_thread(publish, emulator.connection_string, "0", [b"a", b"b"])
        await asyncio.to_thread(publish, emulator.connection_string, "1", [b"c"])
        await arrived("a", "b", "c")
    first = next(batch for batch in seen("ingest") if batch["partition"] == "0")
    assert [each["seq"] for each in first["events"]] == [str(n) for n in range(len(first["events"]))]
    assert first["metadata"]["PropertiesArray"][0] == {"tenant": "a"}
    assert first["metadata"]["PartitionContext"]["FullyQualifiedNamespace"] == "localhost"
    assert first["metadata"]["PartitionContext"]["EventHubName"] == HUB


async def test_a_restarted_host_goes_on_after_its_checkpoint(app: Path, emulator: Emulator, tmp_path: Path) -> None:
    options = HostOptions(state=tmp_path / "state.db")
    async with running(app, options):
        await asyncio.to_thread(publish, emulator.connection_string, "0", [b"a", b"b"])
        await arrived("a", "b")
    before = len(seen("ingest"))
    await asyncio.to_thread(publish, emulator.connection_string, "0", [b"c"])
    async with running(app, options):
        await arrived("c")
    assert [each["body"] for batch in seen("ingest")[before:] for each in batch["events"]] == ["b'c'"]


async def test_a_lost_connection_is_taken_up_again(app: Path, emulator: Emulator) -> None:
    async with running(app):
        await asyncio.to_thread(publish, emulator.connection_string, "0", [b"a"])
        await arrived("a")
        emulator.drop_connections()
        await asyncio.to_thread(publish, emulator.connection_string, "0", [b"b"])
        await arrived("b")


async def test_a_hub_that_goes_away_is_reported_and_taken_up_again_when_it_is_back(
    app: Path, caplog: pytest.LogCaptureFixture
) -> None:
    emulator = Emulator([HubSettings(HUB, 1)])
    with emulator.running():
        use(app, emulator.connection_string)
        port = emulator.port
    async with running(app):
        await eventually(lambda: actions(caplog) >= {"hub_unreachable"}, deadline_s=SOON_S)
        with emulator.running(port=port):
            await asyncio.to_thread(publish, emulator.connection_string, "0", [b"a"])
            await arrived("a")
        await eventually(lambda: actions(caplog) >= {"partition_refused"}, deadline_s=SOON_S)
        with emulator.running(port=port):
            await asyncio.to_thread(publish, emulator.connection_string, "0", [b"b"])
            await arrived("b")
    assert "partition_received" in actions(caplog)


async def test_a_refused_link_is_one_clear_error(app: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = Emulator([HubSettings(HUB, 1)])
    with other.running():
        write_settings(app, EVENTHUB=other.connection_string, **{"AzureWebJobs.ingest_texts.Disabled": "true"})
        async with running(app):
            await eventually(lambda: "partition_refused" in actions(caplog), deadline_s=SOON_S)
            await asyncio.to_thread(publish, other.connection_string, "0", [b"a"])
            await arrived("a")
    refused = [record for record in caplog.records if getattr(record, "action", "") == "partition_refused"]
    assert [vars(record)["consumer_group"] for record in refused] == ["async"]
    assert refused[0].levelno == logging.ERROR
    assert "async" in vars(refused[0])["error"]


def actions(caplog: pytest.LogCaptureFixture) -> set[str]:
    return {getattr(record, "action", "") for record in caplog.records}
