import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.hooks import __main__ as hooks
from infra.hooks.patience import Clock
from infra.hooks.smoke.app import CHECKS
from infra.hooks.smoke.event import Hub
from infra.hooks.smoke.key import FUNCTIONS
from infra.hooks.smoke.run import prove_deployment
from local.feed.event_file import FileEvent
from local.stack.processes import Children
from local.stack.stack import HUB, Place, Stack
from tests.acceptance.postdeploy.azure import DEPLOYER, DEVICE_MAKER, IOT_HUB, SENDER, Azure, token
from tests.fakes.leaping import Leaping
from tests.infra.test_hooks import ENVIRONMENT, WIRED

TRANSFORM = "examples.home_security"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, str]]:
    """Start the app with its hub, and one more hub without a reader. Return the app's address and both hubs."""
    folder, elsewhere = tmp_path_factory.mktemp("app"), tmp_path_factory.mktemp("unread")
    with Children(folder) as children, Children(elsewhere) as others:
        stack, unread = Stack(Place(folder), children, time.sleep), Stack(Place(elsewhere), others, time.sleep)
        stack.start_emulator()
        unread.start_emulator()
        stack.migrate(TRANSFORM)
        _, address = stack.start_host(TRANSFORM)
        yield address, stack.connection, unread.connection


@pytest.fixture
def azure(running: tuple[str, str, str]) -> Iterator[Azure]:
    with Azure(running[0]) as started:
        yield started


class Quick:
    """The real time, with short pauses."""

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float, /) -> None:
        time.sleep(seconds / 20)


def deploy(azure: Azure, clock: Clock | None = None, hub: str = "n.servicebus.windows.net", **changes: str) -> int:
    """Run the hook as azd does, and return its exit code."""
    wired = json.dumps({**WIRED, "EVENTHUB__fullyQualifiedNamespace": hub})
    environment = {**ENVIRONMENT, "EVENTHUB_NAME": HUB, "FUNCTION_APP_URI": azure.address, "WIRED_SETTINGS": wired}
    environment |= changes
    waits = clock or Quick()
    return hooks.main(["deployed"], {"deployed": lambda: prove_deployment(environment, azure.rest(), token, waits)})


def hub_at(port: int) -> str:
    return f"Endpoint=sb://localhost:{port};SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true"


def test_the_event_is_sent_and_its_row_is_found_or_its_counts_where_sign_in_asks_for_a_role(
    running: tuple[str, str, str], azure: Azure, capsys: pytest.CaptureFixture[str]
) -> None:
    azure.unknown_functions = 2
    assert deploy(azure, hub=running[1]) == 0
    said = capsys.readouterr().out
    lines = [line for line in said.splitlines() if not line.startswith("waiting for ")]
    assert lines[0] == f"{len(CHECKS)} routes answer as they should"
    assert lines[1].startswith("event 0/0: ") and "Its range is 0 to 0." in lines[1]
    assert lines[2:] == [f"the page of the app: {azure.address}/api/ops"]
    assert "waiting for the key of explain_number (0 s of 180)" in said
    assert (sorted(azure.given), azure.keys) == (sorted(FUNCTIONS), {})
    azure.asks_for_role = True
    assert deploy(azure, hub=running[1]) == 0
    assert "accounted for: 0/1 to 0/1; events of it that became rows: 1\n" in capsys.readouterr().out


def test_an_event_of_a_device_that_lives_for_one_sending_is_found_in_the_partition_that_the_iot_hub_chose(
    running: tuple[str, str, str], azure: Azure, capsys: pytest.CaptureFixture[str]
) -> None:
    """The IoT Hub is a double. Its built-in endpoint is the emulated hub, which the app reads."""
    reference = json.dumps({"EVENTHUB": "@Microsoft.KeyVault(SecretUri=https://kv/secrets/s)"})
    endpoint = Hub(running[1], HUB, token)
    azure.take, azure.devices = (
        (lambda body: endpoint.send(FileEvent(0, body), "2")),
        {"hubledger-smoke": "of a killed hook"},
    )
    azure.roles = [DEVICE_MAKER]
    assert deploy(azure, EVENTHUB_ID=IOT_HUB, WIRED_SETTINGS=reference) == 0
    assert re.search(r"^event 2/\d+: ", capsys.readouterr().out, re.MULTILINE)
    assert azure.devices == {}
    azure.roles = [SENDER]
    assert deploy(azure, EVENTHUB_ID=IOT_HUB, WIRED_SETTINGS=reference) == 0
    lacks = f"{DEPLOYER} lacks the role IoT Hub Registry Contributor on {IOT_HUB}: `az role assignment create"
    assert lacks in capsys.readouterr().out


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the only line on standard error."""
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("deployed: ")


def test_an_event_that_becomes_no_row_fails(
    running: tuple[str, str, str], azure: Azure, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    poison = tmp_path / "poison.json"
    poison.write_text("no event")
    assert deploy(azure, hub=running[1], SMOKE_EVENT=str(poison)) == 1
    said = "was sent and became no row: It failed in 1 attempt, and the app does not try it again: "
    said += "retry or discard its dead letter."
    assert one_line(capsys).endswith(said)


UNPROVEN: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "a route does not answer": (
        {"broken": "health/ready"},
        {},
        "waited 300 s for every route: GET /api/health/ready: 503 application/json, not 200",
    ),
    "a key is refused": ({"refuses_keys": True}, {}, r".*refuses the key of the smoke tests \(401\)$"),
    "a key cannot be made": ({"unknown_functions": 10**6}, {}, ".*for the key of explain_number: PUT"),
    "no app": (
        {},
        {"FUNCTION_APP_URI": "http://127.0.0.1:1"},
        r"waited 300 s for the app: \S+ cannot be reached: .*azd hooks run postdeploy.*azd env set SMOKE skip",
    ),
    "the event never arrives": ({}, {"hub": "unread"}, "waited 300 s for the event in the hub: "),
    "no hub": ({}, {"hub": hub_at(1)}, f"waited 600 s for the hub: {HUB} takes no event: "),
    "a wrong choice": ({}, {"SMOKE": "no"}, "SMOKE must be empty or 'skip', not 'no'$"),
    "no event": ({}, {"SMOKE_EVENT": "no-such-file"}, ".*SMOKE_EVENT names no file that can be read"),
}


@pytest.mark.parametrize("case", UNPROVEN)
def test_a_deployment_that_is_not_proven_fails_in_one_line_and_leaves_no_key(
    running: tuple[str, str, str], azure: Azure, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    front, changes, says = UNPROVEN[case]
    for name, value in front.items():
        setattr(azure, name, value)
    given = {name: running[2] if value == "unread" else value for name, value in changes.items()}
    assert deploy(azure, Leaping(), **given) == 1
    assert re.match(says, one_line(capsys))
    assert not azure.keys
    asked = not {"SMOKE", "SMOKE_EVENT"} & set(changes) and not azure.unknown_functions
    assert bool(azure.given) is asked


def test_what_cannot_be_sent_is_told(azure: Azure, capsys: pytest.CaptureFixture[str]) -> None:
    assert deploy(azure, SMOKE="skip") == 0
    assert (capsys.readouterr().out, azure.given) == ("no smoke tests: SMOKE=skip\n", [])
    assert deploy(azure, Leaping(), hub=hub_at(1), VNET_ENABLED="true") == 0
    assert "the hub is closed to this network (VNET_ENABLED=true): run `azd hooks run" in capsys.readouterr().out
    azure.roles = ["/providers/Microsoft.Authorization/roleDefinitions/another"]
    assert deploy(azure, Leaping()) == 0
    routes, nothing, page = capsys.readouterr().out.splitlines()
    assert routes.startswith(f"{len(CHECKS)} routes") and page.endswith("/api/ops")
    hub = "/subscriptions/s/resourceGroups/g/providers/Microsoft.EventHub/namespaces/n/eventhubs/telemetry"
    lacks = f"the account {DEPLOYER} lacks the role Azure Event Hubs Data Sender on {hub}"
    assert nothing.startswith(f"no event was sent, so only the routes are proven: {lacks}: give `developerRoles`")
