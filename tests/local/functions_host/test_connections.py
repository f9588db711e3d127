from contextlib import AsyncExitStack
from typing import Any

import pytest

from local.functions_host.app_settings import AppSettings, HubConnection, resolve_connection
from local.functions_host.event_source import HubAddress
from local.functions_host.function import Binding, FunctionDescription

KEY = "SharedAccessKeyName=n;SharedAccessKey=abc="


def resolve(values: dict[str, str], **trigger: Any) -> tuple[HubConnection, list[str]]:
    settings = {"eventHubName": "telemetry", "connection": "HUB", **trigger}
    binding = Binding("events", "eventHubTrigger", "IN", settings)
    faults: list[str] = []
    function = FunctionDescription("f", binding, (binding,), None)
    return resolve_connection(function, AppSettings(values, {}), faults), faults


def test_a_hub_is_resolved_from_its_settings() -> None:
    text = f"Endpoint=sb://localhost:5672/;{KEY};UseDevelopmentEmulator=true"
    assert resolve({"HUB": text}) == (HubConnection(HubAddress("localhost", "telemetry", "$Default"), text), [])
    namespace = {"HUB__fullyQualifiedNamespace": "ns.servicebus.windows.net"}
    without_key = HubConnection(HubAddress("ns.servicebus.windows.net", "telemetry", "$Default"), None)
    assert resolve(namespace) == (without_key, [])


def test_the_hub_of_the_connection_string_and_a_setting_with_the_azurewebjobs_prefix_win() -> None:
    connection, _ = resolve({"HUB": f"Endpoint=sb://ns.servicebus.windows.net/;{KEY};EntityPath=other"})
    assert connection.address == HubAddress("ns.servicebus.windows.net", "other", "$Default")
    values = {"AzureWebJobsHUB": f"Endpoint=sb://a/;{KEY}", "HUB": f"Endpoint=sb://b/;{KEY}"}
    assert resolve(values)[0].address.namespace == "a"


def test_names_are_expanded() -> None:
    values = {"HUB": f"Endpoint=sb://a/;{KEY}", "NAME": "flights", "GROUP": "g"}
    assert resolve(values, eventHubName="%NAME%", consumerGroup="%GROUP%")[0].address == HubAddress("a", "flights", "g")


def test_a_missing_or_wrong_connection_is_a_fault_that_names_the_setting() -> None:
    wrong: list[tuple[dict[str, str], str]] = [
        ({}, "neither setting HUB nor HUB__fullyQualifiedNamespace is set"),
        ({"HUB": "SharedAccessKeyName=n;SharedAccessKey=secret"}, "setting HUB: must be a connection string"),
        ({"HUB": "Endpoint=sb://a/"}, "setting HUB: must be a connection string"),
    ]
    for values, expected in wrong:
        (fault,) = resolve(values)[1]
        assert expected in fault
        assert "secret" not in fault


@pytest.mark.asyncio
@pytest.mark.parametrize("text", [None, f"Endpoint=sb://localhost:5672/;{KEY};UseDevelopmentEmulator=true"])
async def test_a_client_is_opened_without_connecting_and_closed(text: str | None) -> None:
    async with AsyncExitStack() as closing:
        client = await HubConnection(HubAddress("localhost", "telemetry", "cg"), text).open_client(closing)
        assert client.eventhub_name == "telemetry"
