"""Faults on demand, restarts, and how the SDK takes them."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from azure.eventhub import EventData

from local.event_hubs import Emulator, HubSettings
from tests.acceptance.event_hubs.clients import DEADLINE, HUB, producer, publish, reading, reading_aio, wait_until
from tests.patience import allowed


def test_dropped_connections_and_detached_links_are_opened_again_without_loss(emulator: Emulator) -> None:
    publish(emulator, range(3))
    with reading(emulator, partition_id="0") as sync, reading_aio(emulator, partition_id="0") as aio:
        for seen in (sync, aio):
            seen.wait_for_events(3)
        emulator.drop_connections()
        publish(emulator, range(3, 6))
        for seen in (sync, aio):
            seen.wait(lambda now: len(now.events) >= 6)
        emulator.detach_links(HUB)
        assert emulator.reader_count(HUB) == 0
        publish(emulator, range(6, 9))
        for seen in (sync, aio):
            seen.wait(lambda now: len(now.events) >= 9)
    assert sync.numbers == aio.numbers == list(range(9))


def test_delayed_deliveries_come_late_and_in_order(emulator: Emulator) -> None:
    delay = timedelta(seconds=1)
    emulator.delay_deliveries(delay)
    with reading_aio(emulator, partition_id="0") as seen:
        wait_until(lambda: emulator.reader_count(HUB) == 1)
        publish(emulator, range(4))
        seen.wait(lambda now: len(now.events) >= 1)
        arrived = datetime.now(UTC)
        seen.wait_for_events(4)
        emulator.delay_deliveries(timedelta(hours=1))
        publish(emulator, range(4, 6))
        assert len(seen.events) == 4
        emulator.delay_deliveries(timedelta(0))
        seen.wait_for_events(6)
    assert seen.numbers == [0, 1, 2, 3, 4, 5]
    assert arrived - seen.events[0][1].enqueued_time >= delay


def test_a_frozen_server_answers_senders_and_readers_after_the_thaw_and_not_before(emulator: Emulator) -> None:
    with producer(emulator) as client, reading_aio(emulator, partition_id="0") as seen:
        client.send_event(EventData("0"), partition_id="0")
        seen.wait_for_events(1)
        emulator.freeze()
        sending = threading.Thread(target=client.send_event, args=(EventData("1"),), kwargs={"partition_id": "0"})
        sending.start()
        sending.join(0.5)
        assert sending.is_alive()
        assert emulator.end_of(HUB)["0"] == 0
        emulator.thaw()
        sending.join(allowed(DEADLINE))
        assert not sending.is_alive()
        publish(emulator, range(2, 4))
        seen.wait_for_events(4)
    assert seen.bodies == ["0", "1", "2", "3"]


def test_clients_continue_after_a_restart_on_the_same_port() -> None:
    emulator = Emulator([HubSettings(HUB)])
    with emulator.running():
        publish(emulator, range(3))
        running = reading_aio(emulator, partition_id="0")
        seen = running.__enter__()
        seen.wait_for_events(3)
    with emulator.running(port=emulator.port):
        publish(emulator, range(3, 6))
        seen.wait(lambda now: len(now.events) >= 6)
        running.__exit__(None, None, None)
    assert seen.numbers == [0, 1, 2, 3, 4, 5]


@contextmanager
def killed_at_the_end(database: Path) -> Iterator[SimpleNamespace]:
    command = [sys.executable, "-m", "local.event_hubs", "--port", "0", "--database", str(database)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().rpartition(":")[2])
            key = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE"
            text = f"Endpoint=sb://localhost:{port};{key};UseDevelopmentEmulator=true"
            yield SimpleNamespace(port=port, connection_string=text)
        finally:
            process.kill()


@pytest.mark.slow
def test_an_event_that_was_accepted_is_there_after_a_kill(tmp_path: Path) -> None:
    for start in (0, 10):
        with killed_at_the_end(tmp_path / "hubs.db") as elsewhere, producer(elsewhere) as client:
            for number in range(start, start + 10):
                client.send_event(EventData(str(number)), partition_id="0")
    with killed_at_the_end(tmp_path / "hubs.db") as elsewhere, reading(elsewhere, partition_id="0") as seen:
        seen.wait_for_events(20)
    assert seen.numbers == list(range(20))
    assert seen.bodies == [str(number) for number in range(20)]


def test_a_hub_that_is_recreated_detaches_its_readers_and_they_go_on_at_the_old_offset_if_it_fits(
    emulator: Emulator,
) -> None:
    publish(emulator, range(3))
    with reading_aio(emulator, partition_id="0") as seen:
        seen.wait_for_events(3)
        emulator.recreate(HUB)
        assert emulator.link_count(HUB) == 0
        publish(emulator, range(10, 15))
        seen.wait(lambda now: now.numbers[-1] == 4)
    assert seen.numbers[:3] == [0, 1, 2]
    assert 0 not in seen.numbers[3:]
