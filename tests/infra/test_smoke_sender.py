"""The sending of the smoke tests' event: the role of the deployer, the time that a role takes, a closed network."""

from dataclasses import dataclass, field

import pytest

from core.model.rows import References
from core.transforms.loading import load_transform
from infra.hooks.errors import HookRefused
from infra.hooks.patience import Pending, wait_for
from infra.hooks.smoke.event import BODIES, Hub, HubRefused, body_of
from infra.hooks.smoke.key import smoke_key
from infra.hooks.smoke.sender import NotSent, Sender
from tests.acceptance.postdeploy.azure import DEPLOYER, SENDER, token
from tests.fakes.builders import event
from tests.fakes.leaping import Leaping
from tests.infra.doubles import Services
from tests.infra.test_hooks import outputs
from tests.repo.product import ROOT

OWNER = f"{SENDER.rpartition('/')[0]}/f526a384-b230-433a-b45c-95f59c4a2dec"


def roles(*ids: str) -> Services:
    """Return the role assignments of the deployer."""
    assignments = [{"properties": {"roleDefinitionId": role}} for role in ids]
    return Services(lambda method, path, body: {"value": assignments})


def no_list(method: str, path: str, body: object) -> None:
    raise HookRefused("GET failed with status 403")


@dataclass(frozen=True)
class Faulty(Hub):
    """A hub that raises the faults that it was given, one after the other, and then takes events."""

    faults: list[Pending] = field(default_factory=list)
    sent: list[tuple[bytes, str]] = field(default_factory=list)

    def send(self, body: bytes, partition_id: str) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.sent.append((body, partition_id))


def send(there: Services, *faults: Pending, private: bool = False) -> list[tuple[bytes, str]]:
    """Send an event to a hub with these faults; return what it took."""
    hub = Faulty("n.servicebus.windows.net", "telemetry", token, list(faults))
    Sender(hub, outputs().eventhub_id, there, private, Leaping(1.0)).send(b"x", "3")
    return hub.sent


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


def test_a_deployer_without_the_role_sends_nothing_and_does_not_wait() -> None:
    there = roles(SENDER[:-1] + "0")
    with pytest.raises(NotSent, match=f"{DEPLOYER} lacks the role .* `developerRoles`"):
        send(there)
    ((_, asked, _),) = there.calls
    assert "/namespaces/n/eventhubs/telemetry/providers/Microsoft.Authorization/roleAssignments?" in asked
    assert asked.endswith(f"&$filter=atScope()+and+assignedTo('{DEPLOYER}')")


@pytest.mark.parametrize(
    "fault", [Pending("Connection refused"), HubRefused("Ip has been prevented to connect to the endpoint")]
)
def test_a_closed_network_is_named(fault: Pending) -> None:
    with pytest.raises(NotSent, match="closed to this network"):
        send(roles(SENDER), fault, private=True)


def test_the_body_is_that_of_the_transform_unless_a_file_is_named() -> None:
    assert body_of(ROOT, {"TRANSFORM": "examples.flight_info"}) == BODIES["examples.flight_info"]
    assert body_of(ROOT, {"TRANSFORM": ""}) == BODIES["examples.home_security"]
    assert body_of(ROOT, {"TRANSFORM": "own", "SMOKE_EVENT": "host.json"}) == (ROOT / "host.json").read_bytes()


@pytest.mark.parametrize("name", sorted(BODIES))
def test_the_body_of_a_transform_becomes_a_row_without_any_other_event(name: str) -> None:
    rows = load_transform(name).rows_of(event(0, BODIES[name]), References({}))
    assert len(list(rows)) >= 1


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


def test_a_wait_returns_the_answer_or_refuses_with_the_last_reason_on_one_line() -> None:
    leaping = Leaping(1.0)
    assert wait_for("it", lambda: 1, 0, leaping) == 1

    def ask() -> None:
        raise Pending(f"still\n{leaping.at:.0f}")

    with pytest.raises(HookRefused, match=r"^waited 30 s for it: still 30$"):
        wait_for("it", ask, 30, leaping)
