"""An event hub, an IoT Hub or a database that somebody else made: their ids, and the facts of the hub that the template
needs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.hooks.errors import HookRefused
from infra.hooks.rest import ARM, Rest

OWN_HUB = "telemetry"  # of infra/main.bicep; azd keeps the output EVENTHUB_NAME, which names it
VERSION = "api-version=2024-01-01"
IOT_HUB_VERSION, VAULT_VERSION = "api-version=2023-06-30", "api-version=2023-07-01"
GROUPS = {"TRIGGER_GROUP": "hubledger", "READER_GROUP": "hubledger-reader"}  # with the names of those that are made
HOURS_OF_DAY = 24


@dataclass(frozen=True, slots=True)
class Pair:
    """Two choices that name one thing of somebody else: the resource around it by its id, and the thing by its name."""

    id_name: str
    part_name: str
    provider: str
    said: str  # the noun of the template, and the command that shows the id
    own: str = ""  # a part of this name is ours
    part_said: str = "the name in it"

    def faults(self, environment: Mapping[str, str]) -> list[str]:
        """Return why these choices name nothing."""
        given, part = environment.get(self.id_name, ""), environment.get(self.part_name, "")
        if not given:
            alone = part not in ("", self.own)
            return [f"{self.part_name} is set without {self.id_name}: {self._remedy(part)}"] if alone else []
        faults = _wrong_id(self.id_name, given, self.provider, self.said)
        return faults if part else [*faults, f"{self.id_name} is set without {self.part_name}, {self.part_said}"]

    def _remedy(self, part: str) -> str:
        return f"set {self.id_name} for {part!r}, or `azd env set {self.part_name} ''` to have one made"


def _wrong_id(name: str, given: str, provider: str, said: str, inner: str = "") -> list[str]:
    form = rf"/subscriptions/[0-9a-f-]{{36}}/resourceGroups/[\w.()-]+/providers/{provider}/[\w-]{{3,63}}{inner}"
    right = re.fullmatch(form, given, re.IGNORECASE)
    return [] if right else [f'{name}: "{given}" is not the resource id of {said}']


HUB = Pair(
    "EVENTHUB_NAMESPACE_ID",
    "EVENTHUB_NAME",
    "Microsoft.EventHub/namespaces",
    "a namespace: az eventhubs namespace show --resource-group GROUP --name NAME --query id"
    "; an IoT Hub is for IOT_HUB_ID",
    OWN_HUB,
)
IOT_HUB = Pair(
    "IOT_HUB_ID",
    "EVENTHUB_CONNECTION_ID",
    "Microsoft.Devices/IotHubs",
    "an IoT Hub: az iot hub show --name NAME --query id",
    part_said="the secret with the connection string of its built-in endpoint",
)
SERVER = Pair(
    "SQL_SERVER_ID",
    "SQL_DATABASE",
    "Microsoft.Sql/servers",
    "a server: az sql server show --resource-group GROUP --name NAME --query id",
)


def refuse_halves(environment: Mapping[str, str]) -> None:
    """Raise HookRefused with each id of the wrong form, each choice without its other half, and one group for two."""
    reads_iot_hub = is_given(IOT_HUB, environment)
    faults = [] if reads_iot_hub else HUB.faults(environment)  # with it, the hook sets the name of the hub
    faults += IOT_HUB.faults(environment) + SERVER.faults(environment)
    if reads_iot_hub and is_given(HUB, environment):
        faults += [f"{IOT_HUB.id_name}: {HUB.id_name} names a hub too; choose one"]
    if connection := environment.get(IOT_HUB.part_name, ""):
        said = "a secret: az keyvault show --name VAULT --query id, and /secrets/NAME after it"
        faults += _wrong_id(IOT_HUB.part_name, connection, "Microsoft.KeyVault/vaults", said, "/secrets/[0-9a-z-]+")
    if not reads_iot_hub and not is_given(HUB, environment):
        named = [name for name in GROUPS if environment.get(name)]
        either = f"{HUB.id_name} or {IOT_HUB.id_name}"
        faults += [f"{name} is set without {either}: our own hub has groups of its own" for name in named]
    trigger, reader = (environment.get(name) or made for name, made in GROUPS.items())
    if trigger.lower() == reader.lower():
        faults += [
            f'{", ".join(GROUPS)}: both would be "{trigger}", and the trigger admits no other reader to its group'
        ]
    if faults:
        raise HookRefused(*faults)


def is_given(pair: Pair, environment: Mapping[str, str]) -> bool:
    """Return True when a person named an existing one."""
    return bool(environment.get(pair.id_name))


def hub_values(environment: Mapping[str, str], rest: Rest) -> dict[str, str]:
    """Return the values of azd's environment that have to change for an existing hub: its partitions and its retention,
    and its name in an IoT Hub.

    Raise HookRefused for a hub that is not there, that lacks a consumer group which a choice names, or that forgets
    events by their keys.
    """
    if is_given(IOT_HUB, environment):
        values = _iot_hub_values(environment, rest)
    elif is_given(HUB, environment):
        values = _event_hub_values(environment, rest)
    else:
        return {}
    return {name: value for name, value in values.items() if environment.get(name) != value}


def _event_hub_values(environment: Mapping[str, str], rest: Rest) -> dict[str, str]:
    namespace = environment[HUB.id_name]
    hub = f"{namespace}/eventhubs/{environment[HUB.part_name]}"
    if _found(rest, HUB.id_name, namespace)["sku"]["name"] == "Basic":
        raise HookRefused(f"{HUB.id_name}: a Basic namespace has one consumer group, and the app needs two")
    said = _found(rest, HUB.part_name, hub)["properties"]
    for name in GROUPS:
        if group := environment.get(name):
            _found(rest, name, f"{hub}/consumergroups/{group}")
    retention = said.get("retentionDescription") or {}
    if retention.get("cleanupPolicy", "Delete") != "Delete":
        raise HookRefused(f"{HUB.part_name}: a compacted hub forgets events, which the ledger would count as lost")
    hours = retention.get("retentionTimeInHours") or HOURS_OF_DAY * said["messageRetentionInDays"]
    values = {"PARTITION_COUNT": str(said["partitionCount"]), "RETENTION_HOURS": str(hours)}
    print(f"{hub} has {values['PARTITION_COUNT']} partitions, and retains events for {hours} hours")
    return values


def _iot_hub_values(environment: Mapping[str, str], rest: Rest) -> dict[str, str]:
    hub, connection = environment[IOT_HUB.id_name], environment[IOT_HUB.part_name]
    found = _found(rest, IOT_HUB.id_name, hub, IOT_HUB_VERSION)["properties"]
    endpoint, routing = found["eventHubEndpoints"]["events"], found.get("routing") or {}
    for name in GROUPS:
        if group := environment.get(name):
            _found(rest, name, f"{hub}/eventHubEndpoints/events/ConsumerGroups/{group}", IOT_HUB_VERSION)
    vault = connection.rpartition("/")[0].rpartition("/")[0]
    if not _found(rest, IOT_HUB.part_name, vault, VAULT_VERSION)["properties"].get("enableRbacAuthorization"):
        raise HookRefused(f"{IOT_HUB.part_name}: {vault} must use role-based access control: the app reads by a role")
    _found(rest, IOT_HUB.part_name, connection, VAULT_VERSION)
    routes = [
        one for one in (*(routing.get("routes") or ()), routing.get("fallbackRoute") or {}) if one.get("isEnabled")
    ]
    if routing and not any("events" in one.get("endpointNames", ()) for one in routes):
        print(f"{hub}: no route of it leads to its built-in endpoint (events), which then gets no event")
    days = endpoint["retentionTimeInDays"]
    values = {HUB.part_name: endpoint["path"], "PARTITION_COUNT": str(endpoint["partitionCount"])}
    print(
        f"{hub} has the hub {endpoint['path']} of {endpoint['partitionCount']} partitions, and retains for {days} days"
    )
    return {**values, "RETENTION_HOURS": str(HOURS_OF_DAY * days)}


def refuse_to_delete(environment: Mapping[str, str]) -> None:
    """Refuse `azd down` where groups of others had a part in the deployment: azd may delete such a group whole."""
    groups = environment.get("GROUPS_OF_OTHERS", "")
    given = environment.get(HUB.id_name) or environment.get(IOT_HUB.id_name)
    if not groups and not given:
        return
    groups = groups or f"that of {given}"
    own = environment.get("AZURE_RESOURCE_GROUP", "GROUP")
    raise HookRefused(
        f"azd down may delete the resource groups of others ({groups}) with all that is in them: delete ours by"
        f" `az group delete --name {own}`, then our consumer groups and role assignments there by hand"
    )


def _found(rest: Rest, choice: str, path: str, version: str = VERSION) -> Any:
    try:
        return rest.call("GET", ARM, f"{path}?{version}")
    except HookRefused as error:
        raise HookRefused(f"{choice}: {error}") from error
