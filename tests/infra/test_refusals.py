"""The choices that main.bicep refuses before it makes anything, evaluated for sets of parameters."""

from typing import Any

import pytest

from tests.infra.bicep import shown
from tests.infra.evaluate import Evaluator, Failed
from tests.infra.test_policies import FILES
from tests.offenders import holds_for

MAIN = FILES["main.bicep"]
REGISTRY = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerRegistry/registries/mine"
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("PARTITION_COUNT", {"partitionCount": 33}),
    ("SQL_VCORES", {"sqlCompute": "provisioned", "sqlVCores": 1}),
    ("SQL_VCORES", {"sqlCompute": "serverless", "sqlVCores": 128}),
    ("SQL_TIER", {"sqlTier": "BusinessCritical"}),
    ("VNET_ENABLED", {"vnetEnabled": True, "sparkEngine": "synapse"}),
    ("VNET_ENABLED", {"vnetEnabled": True, "sparkEngine": "databricks"}),
    ("WORKER_REGISTRY_ID", {"workerRegistryId": "mine", "workerImage": "mine.azurecr.io/w:1"}),
    ("WORKER_REGISTRY_ID", {"workerRegistryId": "/a/b/c/d/e/f/g/mine", "workerImage": "mine.azurecr.io/w:1"}),
    ("WORKER_REGISTRY_ID", {"workerRegistryId": f"{REGISTRY}/x", "workerImage": "x.azurecr.io/w:1"}),
    ("WORKER_IMAGE", {"workerRegistryId": REGISTRY, "workerImage": "other.azurecr.io/w:1"}),
    ("WORKER_IMAGE", {"workerRegistryId": REGISTRY, "workerImage": ""}),
]
TAKEN: list[dict[str, Any]] = [
    {},
    {"partitionCount": 32},
    {"partitionCount": 100, "hubTier": "Premium"},
    {"sqlVCores": 1},
    {"sqlTier": "BusinessCritical", "sqlCompute": "provisioned", "sqlVCores": 128},
    {"sqlTier": "Hyperscale"},
    {"vnetEnabled": True},
    {"sparkEngine": "synapse"},
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
    with pytest.raises(Failed, match=r"PARTITION_COUNT: .*; SQL_TIER: "):
        Evaluator(MAIN, {"location": "x", "partitionCount": 64, "sqlTier": "BusinessCritical"}).name("place")


def test_nothing_is_made_before_the_refusals_are_read() -> None:
    (group,) = MAIN.of_kind("resource")
    assert shown(group.value["location"]) == "place"
    assert {shown(one.value["scope"]) for one in MAIN.of_kind("module")} == {"group"}


def test_two_environments_fit_into_one_group() -> None:
    """RESOURCE_NAMES may name one group twice; each name in it has the hash of its environment."""
    calls = {one.name: one.value["params"] for one in MAIN.of_kind("module")}
    assert shown(calls["alerts"]["prefix"]) == "'${names.queryAlert}${token}-'"
    names = [shown(one["name"]) for one in calls["network"]["targets"]]
    assert len(names) == len(set(names)) == 7
    assert [name for name in names if not name.startswith("'${names.privateEndpoint}${token}-")] == []


def test_the_worker_pulls_from_the_server_of_its_image_by_a_role_of_its_own() -> None:
    """A registry may have a hash in its login server, and its group may serve many environments."""
    calls = {one.name: one.value for one in FILES["app/worker.bicep"].of_kind("module")}
    assert "uniqueString(resourceGroup().id, name)" in shown(calls["pull"]["name"])
    assert "server: first(split(image, '/'))" in shown(calls["worker"]["params"]["registries"])
