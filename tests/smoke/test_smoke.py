"""Smoke: the same tests for the app on the local host, on `func start`, and in Azure."""

import json
import time
from typing import Any

import pytest

from tests.smoke.checks import CHECKS, Check, registered
from tests.smoke.conftest import Target

DEADLINE_S = 60.0
HOME = "H-smoke"
REGISTRATION = {"kind": "registration", "home_id": HOME, "time_zone": "Europe/Paris", "armed": False}
READING = {
    "kind": "door",
    "home_id": HOME,
    "sensor_id": "S1",
    "state": "active",
    "observed_at": "2026-01-01T12:00:00Z",
}


def status_of(target: Target) -> dict[str, Any]:
    """The body of the app's status."""
    answer = target.app.get("/api/status")
    assert answer.status == 200, answer.body[:500]
    body: dict[str, Any] = answer.json()
    return body


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.route)
def test_a_route_answers(target: Target, check: Check) -> None:
    if check.route not in registered():
        pytest.skip(f"function_app registers no route {check.route}")
    answer = target.app.get(f"/api/{check.route}")
    assert (answer.status, answer.content_type) == (200, check.content_type)
    assert set(check.holds) <= set(answer.json() if check.holds else ())


def test_a_path_that_is_not_there_is_not_found(target: Target) -> None:
    assert target.app.get("/api/no-such-path").status == 404


def test_events_are_accounted_for(target: Target) -> None:
    if target.hub is None:
        pytest.skip("SMOKE_EVENTHUB names no hub to publish to")
    before = status_of(target)
    target.publish(*(json.dumps(body).encode() for body in (REGISTRATION, READING)), b"no JSON at all")
    deadline = time.monotonic() + DEADLINE_S
    while (after := status_of(target))["accounted"] < before["accounted"] + 3:
        assert time.monotonic() < deadline, "the events were not accounted for in time"
        time.sleep(0.25)
    assert after["dead_lettered"] == before["dead_lettered"] + 1
    assert after["ledger_balanced"] is True
