"""An event hub and a database that somebody else made: their ids, and what the template must know of the hub."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.hooks.errors import HookRefused
from infra.hooks.rest import ARM, Rest

OWN_HUB = "telemetry"  # of infra/main.bicep; azd keeps the output EVENTHUB_NAME, which names it
VERSION = "api-version=2024-01-01"
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

    def faults(self, environment: Mapping[str, str]) -> list[str]:
        """Return why these choices name nothing."""
        given, part = environment.get(self.id_name, ""), environment.get(self.part_name, "")
        if not given:
            alone = part not in ("", self.own)
            return [f"{self.part_name} is set without {self.id_name}: {self._remedy(part)}"] if alone else []
        form = rf"/subscriptions/[0-9a-f-]{{36}}/resourceGroups/[\w.()-]+/providers/{self.provider}/[\w-]{{3,63}}"
        faults = [] if re.fullmatch(form, given, re.IGNORECASE) else [self._wrong(given)]
        return faults if part else [*faults, f"{self.id_name} is set without {self.part_name}, the name in it"]

    def _remedy(self, part: str) -> str:
        return f"set {self.id_name} for {part!r}, or `azd env set {self.part_name} ''` to have one made"

    def _wrong(self, given: str) -> str:
        return f'{self.id_name}: "{given}" is not the resource id of {self.said}'


HUB = Pair(
    "EVENTHUB_NAMESPACE_ID",
    "EVENTHUB_NAME",
    "Microsoft.EventHub/namespaces",
    "a namespace: az eventhubs namespace show --resource-group GROUP --name NAME --query id",
    OWN_HUB,
)
SERVER = Pair(
    "SQL_SERVER_ID",
    "SQL_DATABASE",
    "Microsoft.Sql/servers",
    "a server: az sql server show --resource-group GROUP --name NAME --query id",
)


def refuse_halves(environment: Mapping[str, str]) -> None:
    """Raise HookRefused with each id of the wrong form, each choice without its other half, and one group for two."""
    faults = HUB.faults(environment) + SERVER.faults(environment)
    if not environment.get(HUB.id_name):
        named = [name for name in GROUPS if environment.get(name)]
        faults += [f"{name} is set without {HUB.id_name}: our own hub has groups of its own" for name in named]
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
    """Return the values of azd's environment that have to change for an existing hub: its partitions and its retention.

    Raise HookRefused for a hub that is not there, that lacks a consumer group which a choice names, or that forgets
    events by their keys.
    """
    if not is_given(HUB, environment):
        return {}
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
    return {name: value for name, value in values.items() if environment.get(name) != value}


def refuse_to_delete(environment: Mapping[str, str]) -> None:
    """Refuse `azd down` where groups of others had a part in the deployment: azd may delete such a group whole."""
    groups = environment.get("GROUPS_OF_OTHERS", "")
    if not groups and not is_given(HUB, environment):
        return
    groups = groups or f"that of {environment[HUB.id_name]}"
    own = environment.get("AZURE_RESOURCE_GROUP", "GROUP")
    raise HookRefused(
        f"azd down may delete the resource groups of others ({groups}) with all that is in them: delete ours by"
        f" `az group delete --name {own}`, then our consumer groups and role assignments there by hand"
    )


def _found(rest: Rest, choice: str, path: str) -> Any:
    try:
        return rest.call("GET", ARM, f"{path}?{VERSION}")
    except HookRefused as error:
        raise HookRefused(f"{choice}: {error}") from error
