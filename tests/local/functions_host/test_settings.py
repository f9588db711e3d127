import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from local.functions_host.app_settings import AppSettings, HubConnection, resolve_connection
from local.functions_host.event_source import END, START, HubAddress
from local.functions_host.function import Binding, FunctionDescription
from local.functions_host.settings import EventHubOptions, HostJson, read_host_json


def read(
    folder: Path, content: dict[str, Any], environment: dict[str, str] | None = None
) -> tuple[HostJson, list[str]]:
    (folder / "host.json").write_text(json.dumps({"version": "2.0", **content}))
    faults: list[str] = []
    return read_host_json(folder, environment or {}, faults), faults


def test_every_used_value_is_read_over_the_defaults_of_the_extension_and_the_environment_wins(tmp_path: Path) -> None:
    options = EventHubOptions(100, 1, timedelta(minutes=1), 1, None, START)
    assert read(tmp_path, {}) == (HostJson("api", timedelta(minutes=30), options), [])
    event_hubs = {
        "maxEventBatchSize": 50,
        "minEventBatchSize": 10,
        "maxWaitTime": "00:00:05",
        "batchCheckpointFrequency": 3,
        "prefetchCount": 500,
        "targetUnprocessedEventThreshold": 8000,
        "initialOffsetOptions": {"type": "fromEnd"},
    }
    content = {"functionTimeout": "-1", "extensions": {"http": {"routePrefix": ""}, "eventHubs": event_hubs}}
    options = EventHubOptions(50, 10, timedelta(seconds=5), 3, 500, END)
    assert read(tmp_path, content) == (HostJson("", None, options), [])
    overrides = {
        "AzureFunctionsJobHost__Extensions__eventhubs__MaxEventBatchSize": "70",
        "AzureFunctionsJobHost__functionTimeout": "00:01:00",
    }
    host, faults = read(tmp_path, content, overrides)
    assert (host.event_hubs.max_event_batch_size, host.function_timeout, faults) == (70, timedelta(minutes=1), [])


def test_placeholders_are_expanded_and_each_unset_one_is_a_fault_with_its_name() -> None:
    faults: list[str] = []
    settings = AppSettings({"A": "x", "EMPTY": ""}, {})
    assert settings.expand("%A%-%A%", "here", faults) == "x-x"
    assert settings.expand("plain", "here", faults) == "plain"
    assert faults == []
    settings.expand("%NONE%%EMPTY%", "function f: eventHubName", faults)
    assert faults == [
        "function f: eventHubName: setting NONE is not set (the binding says %NONE%)",
        "function f: eventHubName: setting EMPTY is not set (the binding says %EMPTY%)",
    ]


KEY = "SharedAccessKeyName=n;SharedAccessKey=abc="


def resolve(values: dict[str, str], **trigger: Any) -> tuple[HubConnection, list[str]]:
    settings = {"eventHubName": "telemetry", "connection": "HUB", **trigger}
    binding = Binding("events", "eventHubTrigger", "IN", settings)
    faults: list[str] = []
    function = FunctionDescription("f", binding, (binding,), None)
    return resolve_connection(function, AppSettings(values, {}), faults), faults


def test_a_hub_is_resolved_from_its_settings_and_the_hub_of_the_connection_string_wins() -> None:
    text = f"Endpoint=sb://localhost:5672/;{KEY};UseDevelopmentEmulator=true"
    assert resolve({"HUB": text}) == (HubConnection(HubAddress("localhost", "telemetry", "$Default"), text), [])
    namespace = {"HUB__fullyQualifiedNamespace": "ns.servicebus.windows.net"}
    without_key = HubConnection(HubAddress("ns.servicebus.windows.net", "telemetry", "$Default"), None)
    assert resolve(namespace) == (without_key, [])
    connection, _ = resolve({"HUB": f"Endpoint=sb://ns.servicebus.windows.net/;{KEY};EntityPath=other"})
    assert connection.address == HubAddress("ns.servicebus.windows.net", "other", "$Default")
    values = {"AzureWebJobsHUB": f"Endpoint=sb://a/;{KEY}", "HUB": f"Endpoint=sb://b/;{KEY}"}
    assert resolve(values)[0].address.namespace == "a", "a setting with the prefix comes first"


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
