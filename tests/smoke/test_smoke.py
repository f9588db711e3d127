"""Smoke: the same tests for the app on the local host, on `func start`, and in Azure."""

import json

import pytest

from infra.hooks.smoke.app import CHECKS, Check, fault_of
from tests.patience import Patience
from tests.smoke.conftest import Target

DEADLINE_S = 60.0  # of an idle machine
HOME = "H-smoke"
REGISTRATION = {"kind": "registration", "home_id": HOME, "time_zone": "Europe/Paris", "armed": False}
READING = {"kind": "door", "home_id": HOME, "sensor_id": "S1", "state": "active", "observed_at": "2026-01-01T12:00:00Z"}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.route)
def test_a_route_answers(target: Target, check: Check) -> None:
    assert fault_of(target.app, check) is None


def test_a_path_that_is_not_there_is_not_found(target: Target) -> None:
    assert target.app.get("/api/no-such-path").status == 404


def test_events_are_accounted_for(target: Target) -> None:
    if target.hub is None:
        pytest.skip("SMOKE_EVENTHUB names no hub to publish to")
    before = target.app.status()
    for body in (REGISTRATION, READING):
        target.hub.send(json.dumps(body).encode(), "0")
    target.hub.send(b"no JSON at all", "0")
    patience = Patience(DEADLINE_S)
    while (after := target.app.status())["accounted"] < before["accounted"] + 3:
        patience.pause(lambda: after["accounted"], 0.2)
    assert after["dead_lettered"] == before["dead_lettered"] + 1
    assert after["ledger_balanced"] is True
