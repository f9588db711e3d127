"""Read the app's settings: the environment wins over `local.settings.json`. %NAME% in a binding is a setting.

Source of the rules: Azure Functions Core Tools (`func start`). `ConnectionStrings` and `Host` of the file are not read.
"""

import json
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from azure.eventhub.aio import EventHubConsumerClient

from core.remote.hub.sdk_patches import take_shortcuts
from local.functions_host.event_source import HubAddress
from local.functions_host.function import FunctionDescription
from local.functions_host.sdk_messages import mark_undeliverable

PLACEHOLDER = re.compile(r"%([^%]+)%")


@dataclass(frozen=True, slots=True)
class AppSettings:
    """The settings by name. `from_file` holds those that only the file has."""

    values: Mapping[str, str]
    from_file: Mapping[str, str]

    def get(self, name: str) -> str | None:
        """Return the text of a setting, or None when it is unset or empty."""
        return self.values.get(name) or None

    def expand(self, text: str, where: str, faults: list[str]) -> str:
        """Replace each %NAME% by its setting. Add one line to `faults` for each that is unset."""

        def value_of(found: re.Match[str]) -> str:
            value = self.get(found[1])
            if value is None:
                faults.append(f"{where}: setting {found[1]} is not set (the binding says {found[0]})")
            return value or ""

        return PLACEHOLDER.sub(value_of, text)

    def is_disabled(self, function_name: str) -> bool:
        """Return True when the setting `AzureWebJobs.<function>.Disabled` is true or 1."""
        return (self.get(f"AzureWebJobs.{function_name}.Disabled") or "").lower() in ("true", "1")


def read_app_settings(directory: Path, environment: Mapping[str, str], faults: list[str]) -> AppSettings:
    """Read the settings of the app in `directory`. The file may be missing. Add a line to `faults` for each error."""
    file_values = _read_values(directory / "local.settings.json", faults)
    from_file = {name: value for name, value in file_values.items() if name not in environment}
    return AppSettings({**from_file, **environment}, from_file)


def _read_values(path: Path, faults: list[str]) -> dict[str, str]:
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        faults.append(f"{path.name}: is not JSON: {error}")
        return {}
    if not isinstance(content, dict) or not isinstance(content.get("Values", {}), dict):
        faults.append(f'{path.name}: must be an object with "Values", an object of texts')
        return {}
    if content.get("IsEncrypted"):
        faults.append(f"{path.name}: IsEncrypted: encrypted settings cannot be read")
        return {}
    values = content.get("Values", {})
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    faults.extend(f"{path.name}: Values.{name}: must be a text" for name in values if name not in texts)
    return texts


DEFAULT_CONSUMER_GROUP = "$Default"
PART = re.compile(r"\s*([^=;]+?)\s*=\s*([^;]*?)\s*(?:;|$)")


@dataclass(frozen=True, slots=True)
class HubConnection:
    """A hub and its connection string. Without one, DefaultAzureCredential gives the identity."""

    address: HubAddress
    connection_string: str | None = None

    async def open_client(self, closing: AsyncExitStack) -> EventHubConsumerClient:
        """Return a client that connects on first use and reports every failure. `closing` closes it."""
        mark_undeliverable()
        take_shortcuts()
        namespace, hub, group = self.address.namespace, self.address.hub, self.address.consumer_group
        if self.connection_string is None:
            from azure.identity.aio import DefaultAzureCredential  # heavy, and not needed with a connection string

            credential = DefaultAzureCredential()
            closing.push_async_callback(credential.close)
            client = EventHubConsumerClient(namespace, hub, group, credential, retry_total=0)
        else:
            client = EventHubConsumerClient.from_connection_string(
                self.connection_string, group, eventhub_name=hub, retry_total=0
            )
        return await closing.enter_async_context(client)


def resolve_connection(function: FunctionDescription, settings: AppSettings, faults: list[str]) -> HubConnection:
    """Return the connection of an Event Hubs trigger. Add a line to `faults` for each missing setting."""
    where, trigger = f"function {function.name}", function.trigger.settings
    hub = settings.expand(trigger["eventHubName"], f"{where}: eventHubName", faults)
    group = settings.expand(trigger.get("consumerGroup") or DEFAULT_CONSUMER_GROUP, f"{where}: consumerGroup", faults)
    name = trigger.get("connection") or ""
    text = settings.get(f"AzureWebJobs{name}") or settings.get(name)
    if text is not None:
        return _from_connection_string(text, HubAddress("", hub, group), f"{where}: setting {name}", faults)
    namespace = settings.get(f"{name}__fullyQualifiedNamespace")
    if namespace is None:
        faults.append(f"{where}: connection: neither setting {name} nor {name}__fullyQualifiedNamespace is set")
    return HubConnection(HubAddress(namespace or "", hub, group))


def _from_connection_string(text: str, address: HubAddress, where: str, faults: list[str]) -> HubConnection:
    parts = {key.lower(): value for key, value in PART.findall(text)}
    namespace = urlsplit(parts.get("endpoint", "")).hostname
    has_key = parts.get("sharedaccesskey") and parts.get("sharedaccesskeyname")
    if namespace is None or not (has_key or parts.get("sharedaccesssignature")):
        faults.append(f"{where}: must be a connection string with Endpoint, SharedAccessKeyName and SharedAccessKey")
    hub = parts.get("entitypath") or address.hub  # the connection string's hub wins, as in the Event Hubs extension
    return HubConnection(HubAddress(namespace or "", hub, address.consumer_group), text)
