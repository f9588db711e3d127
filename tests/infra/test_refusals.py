"""The choices that main.bicep refuses before it makes anything, evaluated for sets of parameters."""

from typing import Any

import pytest

from tests.infra.bicep import shown
from tests.infra.evaluate import Evaluator, Failed
from tests.infra.plan import plan
from tests.infra.test_policies import FILES
from tests.offenders import holds_for

MAIN = FILES["main.bicep"]
REGISTRY = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerRegistry/registries/mine"
NAMESPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.EventHub/namespaces/mine"
SERVER = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Sql/servers/mine"
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("PARTITION_COUNT", {"partitionCount": 33}),
    ("PARTITION_COUNT", {"partitionCount": 101, "hubTier": "Premium"}),
    ("RETENTION_HOURS", {"retentionHours": 169}),
    ("sqlVCores", {"sqlCompute": "provisioned", "sqlVCores": 1}),
    ("sqlVCores", {"sqlCompute": "serverless", "sqlVCores": 128}),
    ("sqlTier", {"sqlTier": "BusinessCritical"}),
    ("sqlTier", {"sqlTier": "Standard"}),
    ("ALERT_EMAILS, ALERT_WEBHOOKS", {"profile": "dev", "alertEmails": "a@b.c"}),
    ("zoneRedundant", {"profile": "dev", "zoneRedundant": True}),
    ("resourceNames", {"resourceNames": {"sqlserver": "sql-mine"}}),
    ("VNET_ENABLED", {"vnetEnabled": True, "sparkEngine": "synapse"}),
    ("VNET_ENABLED", {"vnetEnabled": True, "sparkEngine": "databricks"}),
    ("WORKER_REGISTRY_ID", {"workerRegistryId": "mine", "workerImage": "mine.azurecr.io/w:1"}),
    ("WORKER_REGISTRY_ID", {"workerRegistryId": "/a/b/c/d/e/f/g/mine", "workerImage": "mine.azurecr.io/w:1"}),
    ("WORKER_REGISTRY_ID", {"workerRegistryId": f"{REGISTRY}/x", "workerImage": "x.azurecr.io/w:1"}),
    ("WORKER_IMAGE", {"workerRegistryId": REGISTRY, "workerImage": "other.azurecr.io/w:1"}),
    ("WORKER_IMAGE", {"workerRegistryId": REGISTRY, "workerImage": ""}),
    ("EVENTHUB_NAME", {"eventHubNamespaceId": NAMESPACE}),
    ("EVENTHUB_NAMESPACE_ID", {"eventHubName": "orders"}),
    ("EVENTHUB_NAMESPACE_ID", {"eventHubNamespaceId": SERVER, "eventHubName": "orders"}),
    ("EVENTHUB_NAMESPACE_ID", {"eventHubNamespaceId": f"{NAMESPACE}/eventhubs/orders", "eventHubName": "orders"}),
    ("EVENTHUB_NAMESPACE_ID", {"eventHubNamespaceId": "mine.servicebus.chinacloudapi.cn", "eventHubName": "orders"}),
    ("TRIGGER_GROUP", {"triggerGroup": "mine"}),
    ("SQL_DATABASE", {"sqlServerId": SERVER}),
    ("SQL_SERVER_ID", {"sqlDatabase": "shop"}),
    ("SQL_SERVER_ID", {"sqlServerId": NAMESPACE, "sqlDatabase": "shop"}),
]
TAKEN: list[dict[str, Any]] = [
    {},
    {"partitionCount": 32},
    {"partitionCount": 100, "hubTier": "Premium", "retentionHours": 2160},
    {"partitionCount": 101, "retentionHours": 2160, "eventHubNamespaceId": NAMESPACE, "eventHubName": "orders"},
    {"sqlVCores": 1},
    {"profile": "dev"},
    {"profile": "dev", "alertsEnabled": True, "alertEmails": "a@b.c"},
    {"resourceNames": {"sqlServer": "sql-mine", "lake": "stmine"}},
    {"sqlTier": "BusinessCritical", "sqlCompute": "provisioned", "sqlVCores": 128},
    {"sqlTier": "Hyperscale"},
    {"vnetEnabled": True},
    {"sparkEngine": "synapse"},
    {"eventHubName": "telemetry"},
    {"eventHubNamespaceId": NAMESPACE, "eventHubName": "orders"},
    {"eventHubNamespaceId": NAMESPACE, "eventHubName": "orders", "triggerGroup": "a", "readerGroup": "b"},
    {"sqlServerId": SERVER.replace("resourceGroups", "resourcegroups"), "sqlDatabase": "shop"},
    {"workerImage": "docker.io/mine/w:1"},
    {"workerImage": "mine.azurecr.io/w:1", "workerRegistryId": REGISTRY},
    {"workerImage": "mine-a1b2c3.azurecr.io/w:1", "workerRegistryId": REGISTRY.replace("Microsoft", "microsoft")},
]


@holds_for(REFUSED)
def test_a_choice_that_azure_would_not_keep_is_refused_by_name(refused: tuple[str, dict[str, Any]]) -> None:
    name, chosen = refused
    with pytest.raises(Failed, match=f"^{name}: "):
        Evaluator(MAIN, {"location": "westeurope", **chosen}).name("place")


@holds_for(TAKEN)
def test_a_choice_that_azure_keeps_passes(chosen: dict[str, Any]) -> None:
    assert Evaluator(MAIN, {"location": "westeurope", **chosen}).name("place") == "westeurope"


def test_all_refusals_are_said_at_once() -> None:
    with pytest.raises(Failed, match=r"PARTITION_COUNT: .*; sqlTier: "):
        Evaluator(MAIN, {"location": "x", "partitionCount": 64, "sqlTier": "BusinessCritical"}).name("place")


def test_nothing_is_made_before_the_refusals_are_read() -> None:
    (group,) = MAIN.of_kind("resource")
    assert shown(group.value["location"]) == "place"
    elsewhere = {one.name: one for one in MAIN.of_kind("module") if shown(one.value["scope"]) != "group"}
    assert set(elsewhere) == {"consumerGroups", "hubRoles"}
    assert shown(elsewhere["consumerGroups"].value["dependsOn"]) == "[group, hub]"
    assert shown(MAIN.var("hubGrants")).count("target: consumerGroups.outputs.grantTarget") == 3, (
        "the roles wait for it"
    )


def test_two_environments_fit_into_one_group() -> None:
    """`resourceNames` may name one group twice; each name in it has the hash of its environment."""
    calls = {one.name: one.value["params"] for one in MAIN.of_kind("module")}
    assert shown(calls["alerts"]["prefix"]) == "alertPrefix"
    assert shown(MAIN.var("alertPrefix")) == "'ar-${token}-'"
    names = [name for _, kind, name in plan(FILES, {"vnetEnabled": True}) if "private-endpoint" in kind]
    assert len(names) == 7
    assert [name for name in names if not name.startswith("pep-token-")] == []


def test_the_worker_pulls_from_the_server_of_its_image_by_a_role_of_its_own() -> None:
    """A registry may have a hash in its login server, and its group may serve many environments."""
    calls = {one.name: one.value for one in FILES["app/worker.bicep"].of_kind("module")}
    assert "uniqueString(resourceGroup().id, name)" in shown(calls["pull"]["name"])
    assert "server: first(split(image, '/'))" in shown(calls["worker"]["params"]["registries"])
