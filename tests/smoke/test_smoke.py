"""Smoke: the same tests for the app on the local host, on `func start`, and in Azure.

The app is that at SMOKE_BASE_URL, or one started here on the local host with an emulator and an empty store. SMOKE_KEY
is a function key. SMOKE_EVENTHUB is the hub's connection string, or its namespace to sign in with azure-identity.
SMOKE_EVENTHUB_NAME is the hub's name (telemetry). Without them, a remote app is not sent any event.
"""

import json
import os
import time
from collections.abc import Iterator

import pytest

from infra.hooks.deployer.sign_in import open_identity
from infra.hooks.smoke.app import CHECKS, App, Check, fault_of
from infra.hooks.smoke.event import Hub
from local.feed.event_file import FileEvent
from local.stack.processes import Children
from local.stack.stack import HUB, Place, Stack
from tests.patience import Patience

TRANSFORM, HOME = "examples.home_security", "H-smoke"
REGISTRATION = {"kind": "registration", "home_id": HOME, "time_zone": "Europe/Paris", "armed": False}
READING = {"kind": "door", "home_id": HOME, "sensor_id": "S1", "state": "active", "observed_at": "2026-01-01T12:00:00Z"}

Target = tuple[App, Hub | None]  # an app, and its hub where it is known


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    token = open_identity(os.environ).token
    if base_url := os.environ.get("SMOKE_BASE_URL"):
        hub, name = os.environ.get("SMOKE_EVENTHUB"), os.environ.get("SMOKE_EVENTHUB_NAME", HUB)
        yield App(base_url, os.environ.get("SMOKE_KEY")), Hub(hub, name, token) if hub else None
        return
    folder = tmp_path_factory.mktemp("smoke")
    with Children(folder) as children:
        stack = Stack(Place(folder), children, time.sleep)
        stack.start_emulator()
        stack.migrate(TRANSFORM)
        _, address = stack.start_host(TRANSFORM)
        yield App(address), Hub(stack.connection, HUB, token)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.route)
def test_a_route_answers(target: Target, check: Check) -> None:
    assert fault_of(target[0], check) is None


def test_events_are_accounted_for_and_a_path_that_is_not_there_is_not_found(target: Target) -> None:
    app, hub = target
    assert app.get("/api/no-such-path").status == 404
    if hub is None:
        pytest.skip("SMOKE_EVENTHUB names no hub to publish to")
    before = app.status()
    for body in (json.dumps(REGISTRATION), json.dumps(READING), "no JSON at all"):
        hub.send(FileEvent(0, body.encode()), "0")
    patience = Patience(60)
    while (after := app.status())["accounted"] < before["accounted"] + 3:
        patience.pause(lambda: after["accounted"], 0.2)
    assert after["dead_lettered"] == before["dead_lettered"] + 1
    assert after["ledger_balanced"] is True
