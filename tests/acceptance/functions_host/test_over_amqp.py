"""The Event Hubs trigger over real AMQP: the SDK against the emulator."""

import asyncio
import gc
import logging
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from local.event_hubs import Emulator, HubSettings
from local.functions_host import HostOptions
from local.functions_host.clock import SystemClock
from local.functions_host.sdk_stream import LONGEST_PAUSE
from tests.acceptance.functions_host.broken_links import PARTITIONS, BreakingHub
from tests.acceptance.functions_host.publishing import HUB, publish
from tests.acceptance.functions_host.sample import running, seen, write_settings
from tests.local.functions_host.doubles import eventually

# The SDK drops the socket of a lost connection without closing it; `dropped_sockets` collects most of them in the test.
pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore:loop is closed:ResourceWarning"),
]

SOON_S = 30.0
HUBS, ROUNDS = 3, 2  # side by side, because the SDK waits about six seconds in each round


class ImpatientClock(SystemClock):
    """The clock of this machine, with a short pause between two tries to reach the hub."""

    async def sleep(self, delay: timedelta) -> None:
        await super().sleep(timedelta(milliseconds=50) if delay <= LONGEST_PAUSE else delay)


@pytest_asyncio.fixture(autouse=True)
async def dropped_sockets(caplog: pytest.LogCaptureFixture) -> AsyncIterator[None]:
    yield
    caplog.get_records("call").clear()  # the SDK's records hold the errors, whose stacks hold the sockets
    gc.collect()


async def send(emulator: Emulator, **bodies: list[bytes]) -> None:
    """Publish to partitions: `p0` are the bodies of partition 0."""
    by_partition = {name[1:]: each for name, each in bodies.items()}
    await asyncio.to_thread(publish, emulator.connection_string, by_partition)


def bodies() -> list[str]:
    return [each["body"][2:-1] for batch in seen("ingest") for each in batch["events"]]


async def arrived(*expected: str) -> None:
    await eventually(lambda: set(expected) <= set(bodies()), deadline_s=SOON_S)


def reported(caplog: pytest.LogCaptureFixture, action: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if getattr(record, "action", "") == action]


def groups(caplog: pytest.LogCaptureFixture, action: str) -> list[str]:
    return [vars(record)["consumer_group"] for record in reported(caplog, action)]


async def test_events_arrive_with_their_position_and_a_restarted_host_goes_on_after_its_checkpoint(
    app: Path, tmp_path: Path
) -> None:
    emulator, options = Emulator([HubSettings(HUB, 2)]), HostOptions(state=tmp_path / "state.db")
    with emulator.running():
        others = {f"AzureWebJobs.{name}.Disabled": "true" for name in ("ingest_async", "ingest_texts")}
        write_settings(app, EVENTHUB=emulator.connection_string, **others)
        async with running(app, options):
            await send(emulator, p0=[b"a", b"b"], p1=[b"c"])
            await arrived("a", "b", "c")
        before = len(bodies())
        async with running(app, options):
            await send(emulator, p0=[b"d"])
            await arrived("d")
    assert bodies()[before:] == ["d"]
    first = next(batch for batch in seen("ingest") if batch["partition"] == "0")
    assert [each["seq"] for each in first["events"]] == [str(n) for n in range(len(first["events"]))]
    assert first["metadata"]["PropertiesArray"][0] == {"tenant": "a"}
    assert first["metadata"]["PartitionContext"]["FullyQualifiedNamespace"] == "localhost"
    assert first["metadata"]["PartitionContext"]["EventHubName"] == HUB


async def test_a_refused_link_and_a_hub_that_goes_away_are_reported_and_the_hub_is_read_when_it_is_back(
    app: Path, caplog: pytest.LogCaptureFixture
) -> None:
    emulator = Emulator([HubSettings(HUB, 1)])  # without the consumer group of `ingest_async`
    with emulator.running():
        port = emulator.port
        write_settings(app, EVENTHUB=emulator.connection_string, **{"AzureWebJobs.ingest_texts.Disabled": "true"})
    async with running(app, HostOptions(clock=ImpatientClock())):
        await eventually(lambda: reported(caplog, "hub_unreachable"), deadline_s=SOON_S)
        with emulator.running(port=port):
            await send(emulator, p0=[b"a"])
            await arrived("a")
            await eventually(lambda: reported(caplog, "partition_refused"), deadline_s=SOON_S)
            (refused,) = reported(caplog, "partition_refused")
            emulator.drop_connections()
            await eventually(lambda: "$Default" in groups(caplog, "partition_refused"), deadline_s=SOON_S)
        with emulator.running(port=port):
            await send(emulator, p0=[b"b"])
            await arrived("b")
    assert (vars(refused)["consumer_group"], refused.levelno) == ("async", logging.ERROR)
    assert "async" in vars(refused)["error"]
    assert set(groups(caplog, "partition_received")) == {"$Default"}


async def test_events_arrive_once_and_in_order_however_often_their_links_break() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    await asyncio.gather(*(break_often(seed + one) for one in range(HUBS)))


async def break_often(seed: int) -> None:
    emulator = Emulator([HubSettings(HUB, len(PARTITIONS))])
    with emulator.running():
        hub = BreakingHub(emulator, random.Random(seed), ImpatientClock())
        async with hub.pumping():
            for _ in range(ROUNDS):
                await hub.publish_and_break()
            await hub.all_delivered()
    assert hub.delivered == {id: list(range(hub.published)) for id in PARTITIONS}
