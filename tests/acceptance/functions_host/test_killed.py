"""A host that is killed and started again delivers everything at least once."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.event_hubs import Emulator, HubSettings
from tests.acceptance.functions_host.command_line import StartedHost
from tests.acceptance.functions_host.publishing import HUB, publish
from tests.acceptance.functions_host.sample import write_settings

pytestmark = pytest.mark.slow

EVENTS = 120


@pytest.fixture
def emulator(app: Path) -> Iterator[Emulator]:
    emulator = Emulator([HubSettings(HUB, 2)])
    with emulator.running():
        others = {f"AzureWebJobs.{name}.Disabled": "true" for name in ("ingest_async", "ingest_texts")}
        write_settings(app, EVENTHUB=emulator.connection_string, **others)
        yield emulator


def bodies(host: StartedHost) -> list[str]:
    return [each["body"][2:-1] for batch in host.seen("ingest") for each in batch["events"]]


def test_everything_is_delivered_at_least_once_over_a_kill(app: Path, emulator: Emulator, tmp_path: Path) -> None:
    sent = {partition: [f"{partition}-{n}".encode() for n in range(EVENTS)] for partition in "01"}
    expected = {body.decode() for each in sent.values() for body in each}
    state = ("--state", str(tmp_path / "state.db"))
    publishing = threading.Thread(target=publish, args=(emulator.connection_string, sent))
    publishing.start()
    first = StartedHost(app, *state)
    first.until(lambda: len(bodies(first)) >= 20)
    assert first.stop(signal.SIGKILL)[0] == -signal.SIGKILL
    before = len(bodies(first))
    second = StartedHost(app, *state)
    publishing.join()
    second.until(lambda: set(bodies(second)) == expected)
    assert second.stop(signal.SIGTERM)[0] == 0
    again = len(bodies(second)) - len(expected)
    assert again <= 2 * 3, "at most one batch of each partition is delivered again"
    assert before > 0
