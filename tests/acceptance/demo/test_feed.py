"""The feed against the emulator over AMQP: the hub holds the events of the record, after every fault."""

import json
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, PartitionContext

from local.event_hubs import Emulator, HubSettings, partition_index
from local.feed.record import Copies, published_copies
from local.programs import APP
from tests.acceptance.demo.started import DEADLINE, wait_until
from tests.patience import allowed, ended


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    hub = Emulator([HubSettings("telemetry", 4, ("hubledger",))])
    with hub.running():
        yield hub


class Feeding:
    """A feed in a separate process."""

    def __init__(self, emulator: Emulator, record: Path, *options: str) -> None:
        self._popen = subprocess.Popen(
            [*feed_command(emulator), "--homes", "100", "--record", str(record), *options],
            cwd=APP,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_ready(self) -> None:
        assert self._popen.stdout is not None
        assert self._popen.stdout.readline().startswith("feed ready for telemetry")

    def stop(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def wait(self) -> dict:
        """Return its last line."""
        out, err = ended(self._popen, DEADLINE)
        assert (self._popen.returncode, err) == (0, "")
        last: dict = json.loads(out.splitlines()[-1])
        return last


def feed_command(emulator: Emulator) -> list[str]:
    return [sys.executable, "-m", "local.feed", "--connection", emulator.connection_string]


def in_hub(emulator: Emulator) -> int:
    return sum(end + 1 for end in emulator.end_of("telemetry").values())


def test_the_hub_holds_the_events_of_the_record_each_under_the_key_of_its_home(
    emulator: Emulator, tmp_path: Path
) -> None:
    record = tmp_path / "record.db"
    feeding = Feeding(emulator, record, "--events", "1000", "--rate", "full")
    assert (feeding.wait()["published"], in_hub(emulator)) == (1_000, 1_000)
    assert published_copies(record) == Copies(1_000, 1_000)
    found = keys(emulator, 1_000)
    assert all(key is not None and partition == str(partition_index(key.decode(), 4)) for partition, key in found)
    assert Counter(key.decode() for _, key in found if key) == Counter(recorded_keys(record))


def keys(emulator: Emulator, events: int) -> list[tuple[str, bytes | None]]:
    """Return partition and partition key of the first events of the hub."""
    found: list[tuple[str, bytes | None]] = []
    connection = emulator.connection_string
    consumer = EventHubConsumerClient.from_connection_string(
        connection,
        "hubledger",
        eventhub_name="telemetry",
        socket_timeout=0.02,  # seconds that it waits at one partition before it goes to the next
    )

    def take(context: PartitionContext, event: EventData) -> None:
        found.append((context.partition_id, event.partition_key))
        if len(found) == events:
            consumer.close()

    consumer.receive(take, starting_position="-1")
    return found


def recorded_keys(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as record:
        return [home for (home,) in record.execute("SELECT partition_key FROM event")]


def test_lost_connections_leave_a_record_of_the_certain_and_the_doubtful_copies(
    emulator: Emulator, tmp_path: Path
) -> None:
    feeding = Feeding(emulator, tmp_path / "record.db", "--events", "4000", "--rate", "2000")
    feeding.wait_ready()

    def holds(events: int) -> bool:
        return in_hub(emulator) >= events

    for wanted in (500, 1_500, 2_500):
        wait_until(partial(holds, wanted))
        emulator.drop_connections()
    last = feeding.wait()
    copies = published_copies(tmp_path / "record.db")
    assert copies.at_least == 4_000
    assert copies.at_most > 4_000, "three lost connections left no doubt"
    assert last["doubtful_sends"] > 0
    assert copies.at_least <= in_hub(emulator) <= copies.at_most


def test_a_missing_hub_is_one_clear_line(emulator: Emulator) -> None:
    feed = [*feed_command(emulator), "--hub", "missing"]
    done = subprocess.run(feed, cwd=APP, capture_output=True, text=True, timeout=allowed(DEADLINE), check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("feed: ")
    assert len(done.stderr.splitlines()) == 1
