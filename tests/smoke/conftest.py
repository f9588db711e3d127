"""The app to smoke: that at SMOKE_BASE_URL, or one started here on the local host with an emulator and an empty store.

SMOKE_KEY is a function key. SMOKE_EVENTHUB is the hub's connection string, or its namespace to sign in with
azure-identity; SMOKE_EVENTHUB_NAME its name (telemetry). Without them, a remote app is not sent any event.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from infra.hooks.deployer.sign_in import open_identity
from infra.hooks.smoke.app import App
from infra.hooks.smoke.event import Hub
from local.stack.processes import Children
from local.stack.stack import HUB, Place, Stack

TRANSFORM = "examples.home_security"


@dataclass(frozen=True)
class Target:
    """An app, and its hub where it is known."""

    app: App
    hub: Hub | None = None


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The app that the environment names, or one on this machine."""
    if base_url := os.environ.get("SMOKE_BASE_URL"):
        app = App(base_url, os.environ.get("SMOKE_KEY"))
        hub = os.environ.get("SMOKE_EVENTHUB")
        name = os.environ.get("SMOKE_EVENTHUB_NAME", HUB)
        yield Target(app, Hub(hub, name, open_identity(os.environ).token) if hub else None)
        return
    folder = tmp_path_factory.mktemp("smoke")
    with Children(folder) as children:
        stack = Stack(Place(folder), children, time.sleep)
        stack.start_emulator()
        stack.migrate(TRANSFORM)
        _, address = stack.start_host(TRANSFORM)
        yield Target(App(address), Hub(stack.connection, HUB, open_identity(os.environ).token))
