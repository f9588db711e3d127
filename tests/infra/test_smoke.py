"""The smoke tests: an event is sent by the role of the deployer, and proven to be a row where others send too."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from core.model.rows import References
from core.transforms.loading import load_transform
from infra.hooks.errors import HookRefused
from infra.hooks.patience import Pending
from infra.hooks.smoke.app import Answer, App, Check, fault_of
from infra.hooks.smoke.event import BODIES, Hub, HubRefused, body_of
from infra.hooks.smoke.key import smoke_key
from infra.hooks.smoke.proof import prove_event
from infra.hooks.smoke.sender import NotSent, Sender
from tests.acceptance.postdeploy.azure import DEPLOYER, SENDER, token
from tests.fakes.builders import event
from tests.fakes.leaping import Leaping
from tests.infra.doubles import Services
from tests.infra.test_hooks import outputs
from tests.repo.product import ROOT

EXPLAINED = {"outcome": "written", "sentence": "Commit 1 wrote 1 row of it.", "range": {"first": "5", "last": "5"}}
FOUND = Answer(200, "application/json", json.dumps(EXPLAINED).encode())


def told(*statuses: Mapping[str, Any], explained: Answer = FOUND) -> App:
    """Return an app that gives one status after the other, and then the last one again."""
    left = list(statuses)

    class Told(App):
        def get(self, path: str) -> Answer:
            if path != "/api/status":
                return explained
            body = left.pop(0) if len(left) > 1 else left[0]
            return Answer(200, "application/json", json.dumps(body).encode())

    return Told("http://app")


def status(second: int, *, read: int, end: int, **books: Any) -> dict[str, Any]:
    """Return a status of one second, of a hub that was read at another."""
    own = {"hub_end": str(end), "checkpoint": str(books.pop("checkpoint", end))}
    partition = {**own, "written": 0, "stops": [], "balanced": True, **books}
    stopped = {**partition, "partition_id": "0", "stops": [{"reason": "outage"}]}
    return {
        "at": f"2026-01-01T00:00:{second:02}Z",
        "hub_read_at": f"2026-01-01T00:00:{read:02}Z",
        "hub_fault": None,
        "partitions": [stopped, {**partition, "partition_id": "1"}],
    }


BEFORE = status(1, read=1, end=4)


def prove(*statuses: Mapping[str, Any], explained: Answer = FOUND) -> tuple[str, list[str]]:
    """Prove an event, and return the sentence with the partitions to which it was sent."""
    sent: list[str] = []
    return prove_event(told(*statuses, explained=explained), sent.append, Leaping(1.0)), sent


def test_the_event_goes_to_a_partition_that_is_not_stopped_and_its_range_is_named() -> None:
    said, sent = prove(BEFORE, status(2, read=1, end=4), status(3, read=3, end=5, written=1))
    assert sent == ["1"]
    assert said == "event 1/5: Commit 1 wrote 1 row of it. Its range is 5 to 5."


def test_an_end_that_was_read_before_the_sending_is_not_taken_for_the_event() -> None:
    """Others send too: number 5 is theirs, and ours is 6."""
    theirs = status(2, read=1, end=5, written=1)
    said, _ = prove(status(1, read=0, end=4), theirs, theirs, status(4, read=3, end=6, written=2))
    assert said == "the range 1/5 to 1/6 is accounted for; events of it that became rows: 2"


WAITED = "waited 300 s for the ledger range of event 1/5: .*partition 1"
NO_ROW = "event 1/5 was sent and became no row"
WRITTEN = status(2, read=2, end=5, written=1)
LOOSE = Answer(200, "application/json", json.dumps({**EXPLAINED, "range": None}).encode())
LOST = Answer(404, "application/problem+json", b"{}")


@pytest.mark.parametrize(
    ("after", "explained", "says"),
    [
        pytest.param(status(2, read=2, end=6), FOUND, "partition 1 has no new row for its 2 events up to 6", id="none"),
        pytest.param(
            status(2, read=2, end=5, written=1, checkpoint=4), FOUND, f"{WAITED} is committed up to 4", id="not yet"
        ),
        pytest.param(
            status(2, read=2, end=5, written=1, balanced=False), FOUND, f"{WAITED} do not balance", id="unbalanced"
        ),
        pytest.param(status(2, read=2, end=5), LOST, f"{NO_ROW}: the app answers 404", id="not explained"),
        pytest.param(WRITTEN, LOOSE, NO_ROW, id="a row without a range"),
    ],
)
def test_an_event_that_is_not_proven_is_refused_after_a_wait(
    after: dict[str, Any], explained: Answer, says: str
) -> None:
    with pytest.raises(HookRefused, match=says):
        prove(BEFORE, after, explained=explained)


def test_a_hub_that_the_app_does_not_reach_is_named() -> None:
    with pytest.raises(HookRefused, match="waited 300 s for a partition: the app does not reach the hub: no answer"):
        prove({**BEFORE, "hub_fault": "no answer", "hub_read_at": None})


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (Answer(200, "application/json", b'{"minutes": [], "more": 1}'), None),
        (Answer(200, "application/json", b"{}"), "GET /api/route: the answer has no minutes"),
        (Answer(503, "application/json", b"{}"), "GET /api/route: 503 application/json, not 200 application/json: {}"),
        (Answer(200, "text/html", b"<p>"), "GET /api/route: 200 text/html, not 200 application/json: <p>"),
    ],
)
def test_an_answer_that_differs_from_its_check_is_named(answer: Answer, fault: str | None) -> None:
    assert fault_of(told(explained=answer), Check("route", holds=("minutes",))) == fault


OWNER = f"{SENDER.rpartition('/')[0]}/f526a384-b230-433a-b45c-95f59c4a2dec"


def roles(*ids: str) -> Services:
    """Return the role assignments of the deployer."""
    assignments = [{"properties": {"roleDefinitionId": role}} for role in ids]
    return Services(lambda method, path, body: {"value": assignments})


def no_list(method: str, path: str, body: object) -> None:
    raise HookRefused("GET failed with status 403")


def send(there: Services, *faults: Pending, private: bool = False) -> list[tuple[bytes, str]]:
    """Send an event to a hub that raises these faults, one after the other, and then takes events; return those."""
    left, sent = list(faults), list[tuple[bytes, str]]()

    class Faulty(Hub):
        def send(self, body: bytes, partition_id: str) -> None:
            if left:
                raise left.pop(0)
            sent.append((body, partition_id))

    hub = Faulty("n.servicebus.windows.net", "telemetry", token)
    Sender(hub, outputs().eventhub_id, there, private, Leaping(1.0)).send(b"x", "3")
    return sent


@pytest.mark.parametrize(
    ("role", "faults", "private"),
    [
        pytest.param(SENDER, 100, False, id="a role that takes minutes"),
        pytest.param(OWNER, 0, False, id="an owner of the hub's data"),
        pytest.param(SENDER, 1, True, id="a new role in a closed network"),
    ],
)
def test_the_event_is_sent_when_the_role_is_in_force(
    role: str, faults: int, private: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert send(roles(role), *[HubRefused("Unauthorized access")] * faults, private=private) == [(b"x", "3")]
    if faults > 1:
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 7
        assert lines[1] == "waiting for the hub (15 s of 600): Unauthorized access"


@pytest.mark.parametrize("there", [roles(SENDER), Services(no_list)], ids=["role", "unknown"])
def test_a_hub_that_refuses_until_the_deadline_names_the_role(there: Services) -> None:
    with pytest.raises(NotSent) as refusal:
        send(there, *[HubRefused("Unauthorized\naccess")] * 1000)
    assert str(refusal.value).startswith(f"waited 600 s for the hub: Unauthorized access; the account {DEPLOYER} lacks")


def test_the_body_is_that_of_the_transform_unless_a_file_is_named() -> None:
    assert body_of(ROOT, {"TRANSFORM": "examples.flight_info"}) == BODIES["examples.flight_info"]
    assert body_of(ROOT, {"TRANSFORM": ""}) == BODIES["examples.home_security"]
    assert body_of(ROOT, {"TRANSFORM": "own", "SMOKE_EVENT": "host.json"}) == (ROOT / "host.json").read_bytes()
    for name, body in BODIES.items():
        rows = load_transform(name).rows_of(event(0, body), References({}))
        assert list(rows), f"the body of {name} becomes no row without another event"


def test_a_key_whose_answer_was_lost_is_removed() -> None:
    keys: set[str] = set()

    def losing(method: str, path: str, body: object) -> None:
        if method == "DELETE":
            return keys.remove(path)
        keys.add(path)
        raise HookRefused("the connection was reset")

    with pytest.raises(HookRefused, match="the connection was reset"), smoke_key("/app", Services(losing), Leaping()):
        raise AssertionError("no key was given")
    assert keys == set()
