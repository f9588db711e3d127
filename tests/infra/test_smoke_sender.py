"""The sending of the smoke tests' event: the role of the deployer, the time that a role takes, a closed network."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from core.model.rows import References
from core.transforms.loading import load_transform
from infra.hooks.errors import HookRefused
from infra.hooks.patience import Pending, wait_for
from infra.hooks.rest import Rest, Service
from infra.hooks.smoke.event import BODIES, Hub, HubRefused, body_of
from infra.hooks.smoke.key import smoke_key
from infra.hooks.smoke.sender import NotSent, Sender
from tests.acceptance.postdeploy.azure import DEPLOYER, SENDER, token
from tests.fakes.builders import event
from tests.fakes.leaping import Leaping
from tests.infra.test_hooks import outputs
from tests.repo.product import ROOT


class Roles(Rest):
    """A list of role assignments, or the refusal to show it."""

    def __init__(self, *roles: str, refuses: bool = False) -> None:
        self._roles = roles
        self._refuses = refuses
        self.asked: list[str] = []

    def call(self, method: str, service: Service, path: str, body: Any = None) -> Any:
        self.asked.append(service.address + path)
        if self._refuses:
            raise HookRefused("GET failed with status 403")
        return {"value": [{"properties": {"roleDefinitionId": role}} for role in self._roles]}


@dataclass(frozen=True)
class Faulty(Hub):
    """A hub that raises the faults that it was given, one after the other, and then takes events."""

    faults: list[Pending] = field(default_factory=list)
    sent: list[tuple[bytes, str]] = field(default_factory=list)

    def send(self, body: bytes, partition_id: str) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.sent.append((body, partition_id))


def faulty(*faults: Pending) -> Faulty:
    return Faulty("n.servicebus.windows.net", "telemetry", token, list(faults))


def sender(hub: Faulty, roles: Roles, private: bool = False, leap: float = 1.0) -> Sender:
    return Sender(hub, outputs().eventhub_id, roles, private, Leaping(leap))


def test_a_new_role_that_takes_minutes_is_waited_for_with_lines_of_progress(capsys: pytest.CaptureFixture[str]) -> None:
    hub = faulty(*(HubRefused("Unauthorized access") for _ in range(100)))
    sender(hub, Roles(SENDER)).send(b"x", "3")
    assert hub.sent == [(b"x", "3")]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert lines[1] == "waiting for the hub (15 s of 600): Unauthorized access"


@pytest.mark.parametrize("roles", [Roles(SENDER), Roles(refuses=True)], ids=["role", "unknown"])
def test_a_hub_that_refuses_until_the_deadline_names_the_role(roles: Roles) -> None:
    hub = faulty(*(HubRefused("Unauthorized\naccess") for _ in range(1000)))
    with pytest.raises(NotSent) as refusal:
        sender(hub, roles).send(b"x", "3")
    assert str(refusal.value).startswith(f"waited 600 s for the hub: Unauthorized access; the account {DEPLOYER} lacks")
    assert hub.sent == []


def test_a_deployer_without_the_role_sends_nothing_and_does_not_wait() -> None:
    hub, roles = faulty(), Roles(SENDER[:-1] + "0")
    with pytest.raises(NotSent, match=f"{DEPLOYER} lacks the role .* `developerRoles`"):
        sender(hub, roles).send(b"x", "3")
    assert hub.sent == []
    (asked,) = roles.asked
    assert "/namespaces/n/eventhubs/telemetry/providers/Microsoft.Authorization/roleAssignments?" in asked
    assert asked.endswith(f"&$filter=atScope()+and+assignedTo('{DEPLOYER}')")


def test_an_owner_of_the_hubs_data_may_send_too() -> None:
    hub = faulty()
    owner = SENDER.rpartition("/")[0] + "/f526a384-b230-433a-b45c-95f59c4a2dec"
    sender(hub, Roles(owner)).send(b"x", "3")
    assert hub.sent == [(b"x", "3")]


def test_a_closed_network_is_named_and_a_role_that_is_new_there_is_not_taken_for_it() -> None:
    for fault in (Pending("Connection refused"), HubRefused("Ip has been prevented to connect to the endpoint")):
        with pytest.raises(NotSent, match="closed to this network"):
            sender(faulty(fault), Roles(SENDER), private=True).send(b"x", "3")
    inside = faulty(HubRefused("Unauthorized access"))
    sender(inside, Roles(SENDER), private=True).send(b"x", "3")
    assert inside.sent == [(b"x", "3")]


def test_the_body_is_that_of_the_transform_unless_a_file_is_named() -> None:
    assert body_of(ROOT, {"TRANSFORM": "examples.flight_info"}) == BODIES["examples.flight_info"]
    assert body_of(ROOT, {"TRANSFORM": ""}) == BODIES["examples.home_security"]
    assert body_of(ROOT, {"TRANSFORM": "own", "SMOKE_EVENT": "host.json"}) == (ROOT / "host.json").read_bytes()


@pytest.mark.parametrize("name", sorted(BODIES))
def test_the_body_of_a_transform_becomes_a_row_without_any_other_event(name: str) -> None:
    rows = load_transform(name).rows_of(event(0, BODIES[name]), References({}))
    assert len(list(rows)) >= 1


class Losing(Rest):
    """Keys of functions; Azure sets each one, and its answer is lost."""

    def __init__(self) -> None:
        self.keys: set[str] = set()

    def call(self, method: str, service: Service, path: str, body: Any = None) -> Any:
        if method == "DELETE":
            return self.keys.remove(path)
        self.keys.add(path)
        raise HookRefused("the connection was reset")


def test_a_key_whose_answer_was_lost_is_removed() -> None:
    rest = Losing()
    with pytest.raises(HookRefused, match="the connection was reset"), smoke_key("/app", rest, Leaping()):
        raise AssertionError("no key was given")
    assert rest.keys == set()


def test_a_wait_returns_the_answer_or_refuses_with_the_last_reason_on_one_line() -> None:
    leaping = Leaping(1.0)
    assert wait_for("it", lambda: 1, 0, leaping) == 1

    def ask() -> None:
        raise Pending(f"still\n{leaping.at:.0f}")

    with pytest.raises(HookRefused, match=r"^waited 30 s for it: still 30$"):
        wait_for("it", ask, 30, leaping)
