"""The app to smoke: that at SMOKE_BASE_URL, or one started here on the local host with an emulator and an empty store.

SMOKE_KEY is a function key. SMOKE_EVENTHUB is the hub's connection string, or its namespace to sign in with
azure-identity; SMOKE_EVENTHUB_NAME its name (telemetry). Without them, a remote app is not sent any event.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from local.processes import Children
from local.stack import HUB, Place, Stack
from tests.smoke.checks import App

TRANSFORM = "core.transforms.home_security"


@dataclass(frozen=True)
class Target:
    """An app, and its hub where it is known."""

    app: App
    hub: str | None = None
    hub_name: str = HUB

    def publish(self, *bodies: bytes) -> None:
        """Send events to the hub."""
        with self._producer() as producer:
            batch = producer.create_batch(partition_key="smoke")
            for body in bodies:
                batch.add(EventData(body))
            producer.send_batch(batch)

    def _producer(self) -> Any:
        assert self.hub is not None
        if "=" in self.hub:
            return EventHubProducerClient.from_connection_string(self.hub, eventhub_name=self.hub_name)
        from azure.identity import DefaultAzureCredential

        return EventHubProducerClient(self.hub, self.hub_name, DefaultAzureCredential())


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The app that the environment names, or one on this machine."""
    if base_url := os.environ.get("SMOKE_BASE_URL"):
        app = App(base_url, os.environ.get("SMOKE_KEY"))
        yield Target(app, os.environ.get("SMOKE_EVENTHUB"), os.environ.get("SMOKE_EVENTHUB_NAME", HUB))
        return
    folder = tmp_path_factory.mktemp("smoke")
    with Children(folder) as children:
        stack = Stack(Place(folder), children, time.sleep)
        stack.start_emulator()
        stack.migrate()
        _, address = stack.start_host(TRANSFORM)
        yield Target(App(address), stack.connection)
