"""The resources that the templates make keep every guard, right and choice, by the values of the plan.

With an existing hub and database, little is made there and nothing in their place.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.infra.bicep import at
from tests.infra.plan import CHOSEN, DEPLOYER, SETS, Resource, given_by, main, plan
from tests.infra.snapshots import expected, read_rows
from tests.infra.test_policies import ALERTS, FILES
from tests.offenders import holds_for
from tests.repo.product import ROOT

OF_OURS = ("new", "dev", "kept", "network", "worker", "synapse", "databricks", "existing", "iot-hub")
# By type: values that hold in every set. Some regions of Flex Consumption refuse `ftpsState` (error 51021), and
# sampling would drop facts that alerts read.
GUARDS: dict[str, dict[str, Any]] = {
    "Microsoft.Storage/storageAccounts": {
        "properties.allowSharedKeyAccess": False,
        "properties.allowBlobPublicAccess": False,
        "properties.allowCrossTenantReplication": False,
        "properties.defaultToOAuthAuthentication": True,
        "properties.minimumTlsVersion": "TLS1_2",
        "properties.supportsHttpsTrafficOnly": True,
    },
    "Microsoft.Storage/storageAccounts/blobServices/containers": {"properties.publicAccess": "None"},
    "Microsoft.EventHub/namespaces": {"properties.disableLocalAuth": True, "properties.minimumTlsVersion": "1.2"},
    "Microsoft.Sql/servers": {
        "properties.administrators.azureADOnlyAuthentication": True,
        "properties.minimalTlsVersion": "1.2",
        "properties.restrictOutboundNetworkAccess": "Enabled",
    },
    "Microsoft.Sql/servers/firewallRules": {  # all of Azure; the hooks admit an address for their own time
        "properties.startIpAddress": "0.0.0.0",
        "properties.endIpAddress": "0.0.0.0",
    },
    "Microsoft.Synapse/workspaces": {"properties.azureADOnlyAuthentication": True},
    "Microsoft.Insights/components": {"properties.DisableLocalAuth": True, "properties.SamplingPercentage": 100},
    "Microsoft.OperationalInsights/workspaces": {"properties.features.disableLocalAuth": True},
    "Microsoft.Web/sites": {
        "identity.type": "UserAssigned",
        "properties.httpsOnly": True,
        "properties.siteConfig.ftpsState": None,
        "properties.siteConfig.minTlsVersion": "1.2",
        "properties.siteConfig.scmMinTlsVersion": "1.2",
        "properties.functionAppConfig.deployment.storage.authentication.type": "UserAssignedIdentity",
    },
    "Microsoft.Web/sites/basicPublishingCredentialsPolicies": {"properties.allow": False},
    "avm/res/app/managed-environment": {
        "publicNetworkAccess": "Disabled",
        "appLogsConfiguration.destination": "azure-monitor",
    },
    "avm/res/app/container-app": {"disableIngress": True},
}
APP = "id-app-token.properties.principalId"
CAPTURE = "id-capture-token.properties.principalId"
SYNAPSE = "synw-token.identity.principalId"
BLOBS = "Storage Blob Data Contributor"
RIGHTS = {
    ("evhns-token/telemetry", APP, "Event Hubs Data Receiver"),
    ("evhns-token/telemetry", DEPLOYER, "Event Hubs Data Sender"),
    ("stlaketoken", CAPTURE, BLOBS),
    ("sthosttoken", APP, "Storage Blob Data Owner"),
    ("sthosttoken", APP, "Storage Queue Data Contributor"),
    ("sthosttoken", APP, "Storage Table Data Contributor"),
    ("appi-token", APP, "Monitoring Metrics Publisher"),
}
WITH_SPARK = RIGHTS | {("stlaketoken", APP, BLOBS), ("stlaketoken/default/spark", DEPLOYER, BLOBS)}
GUID = "01234567-89ab-cdef-0123-456789abcdef"


@cache
def of_set(name: str) -> list[Resource]:
    """Return the resources that a set of tests/infra/sets makes."""
    return made(**given_by(CHOSEN / f"{name}.bicepparam"))


def made(**given: Any) -> list[Resource]:
    return [one for one in plan(FILES, given).values() if not one.exists]


def of(resources: list[Resource], kind: str) -> dict[str, Any]:
    """Return the values of each resource of a type, whatever its version, by its name."""
    return {one.name: one.value for one in resources if one.type.partition(":")[0] == kind}


def the(resources: list[Resource], kind: str) -> Any:
    (value,) = of(resources, kind).values()
    return value


def test_every_guard_is_on_in_every_set() -> None:
    assert set(GUARDS) <= {one.type.partition(":")[0] for name in OF_OURS for one in of_set(name)}
    wrong = [
        f"{name}: {resource}.{path}: {at(value, path)!r}"
        for name in OF_OURS
        for kind, guards in GUARDS.items()
        for resource, value in of(of_set(name), kind).items()
        for path, wanted in guards.items()
        if at(value, path) != wanted or type(at(value, path)) is not type(wanted)
    ]
    assert wrong == []


HAS_RIGHTS: list[tuple[dict[str, Any], set[tuple[str, str, str]]]] = [
    ({}, RIGHTS),
    ({"vnetEnabled": True}, RIGHTS),
    ({"workerImage": "docker.io/w:1"}, RIGHTS),
    ({"sparkEngine": "databricks"}, WITH_SPARK),
    ({"sparkEngine": "synapse"}, WITH_SPARK | {("stlaketoken", SYNAPSE, BLOBS)}),
    ({"developerRoles": "none"}, {one for one in RIGHTS if one[1] != DEPLOYER}),
    (
        {"developerRoles": "sendAndReceive"},
        RIGHTS | {("evhns-token/telemetry", DEPLOYER, "Event Hubs Data Receiver")},
    ),
]


IOT_HUB = given_by(CHOSEN / "iot-hub.bicepparam")
OF_THE_HUB = ("evhns-token/telemetry", "stlaketoken")  # no Event Hubs role can be assigned on an IoT Hub
READS = {("kv-theirs/built-in", APP, "Key Vault Secrets User")}
HAS_RIGHTS.append((IOT_HUB, {one for one in RIGHTS if one[0] not in OF_THE_HUB} | READS))


@holds_for(HAS_RIGHTS)
def test_each_identity_has_its_rights_and_no_others(case: tuple[dict[str, Any], set[tuple[str, str, str]]]) -> None:
    given, rights = case
    ids = FILES["app/roles.bicep"].var("roleIds")
    found = set()
    for name, value in of(made(**given), "Microsoft.Authorization/roleAssignments").items():
        right = value["properties"]
        scope, _, last = name.rpartition("/")
        role = last.removeprefix(f"{right['principalId']} ")
        assert right["roleDefinitionId"].endswith(f"/{ids[role]}")
        assert len(right["description"]) >= 20, f"{name} says no reason"
        assert right["principalType"] == ("User" if right["principalId"] == DEPLOYER else "ServicePrincipal")
        found.add((scope, right["principalId"], role))
    assert found == rights


def test_the_administrator_is_known_to_the_database() -> None:
    """Azure SQL knows a service principal by its application id. Without one the deployment is refused."""
    of_group = {"sqlAdministratorId": GUID, "sqlAdministratorType": "Group"}
    for given, known in (
        ({}, (DEPLOYER, "User")),
        (of_group, (GUID, "Group")),
        ({**of_group, "sqlAdministratorType": "ServicePrincipal"}, (GUID, "Application")),
    ):
        administrators = the(made(**given), "Microsoft.Sql/servers")["properties"]["administrators"]
        assert (administrators["sid"], administrators["principalType"]) == known


def test_a_virtual_network_closes_all_data() -> None:
    closed = {
        name: (value["properties"]["publicNetworkAccess"], at(value, "properties.networkAcls.defaultAction"))
        for kind in ("Microsoft.Storage/storageAccounts", "Microsoft.EventHub/namespaces", "Microsoft.Sql/servers")
        for name, value in of(of_set("network"), kind).items()
    }
    assert closed == {
        "sthosttoken": ("Disabled", "Deny"),
        "stlaketoken": ("Enabled", "Deny"),  # Capture writes as a service that Azure trusts
        "evhns-token": ("Disabled", None),
        "sql-token": ("Disabled", None),
    }
    lake = of(of_set("network"), "Microsoft.Storage/storageAccounts")["stlaketoken"]
    assert lake["properties"]["networkAcls"]["bypass"] == "AzureServices"


def test_the_database_admits_our_subnets_and_all_of_azure_only_with_a_spark_engine() -> None:
    kinds, ours = ("virtualNetworkRules", "firewallRules"), {"virtualNetworkRules"}
    rules = {"new": ours, "network": set(), "worker": ours, "synapse": {*kinds}, "databricks": {*kinds}}
    for name, wanted in rules.items():
        assert {kind for kind in kinds if of(of_set(name), f"Microsoft.Sql/servers/{kind}")} == wanted, name
        own = of(of_set(name), "Microsoft.Sql/servers/virtualNetworkRules").values()
        assert all(rule["properties"]["virtualNetworkSubnetId"].endswith(("/app", "/worker")) for rule in own)
        subnets = the(of_set(name), "avm/res/network/virtual-network")["subnets"]
        assert {one["name"] for one in subnets if one.get("serviceEndpoints") == ["Microsoft.Sql"]} == {"app", "worker"}


def test_sign_in_admits_one_tenant_and_leaves_callers_with_keys_alone() -> None:
    """A caller without a token reaches the app, which checks keys and roles, and no path is left to forged headers."""
    for client in ("", GUID):
        configs = of(made(signInClientId=client), "Microsoft.Web/sites/config")
        assert set(configs) == {"func-token/appsettings", "func-token/authsettingsV2"}
        properties = configs["func-token/authsettingsV2"]["properties"]
        assert properties["platform"] == {"enabled": bool(client), "runtimeVersion": "~1"}
        assert properties["globalValidation"] == {
            "requireAuthentication": False,
            "unauthenticatedClientAction": "AllowAnonymous",
        }
        assert properties["httpSettings"] == {"requireHttps": True, "forwardProxy": {"convention": "NoProxy"}}
        assert properties["login"] == {"preserveUrlFragmentsForLogins": True, "tokenStore": {"enabled": False}}
        (entra,) = properties["identityProviders"].values()
        assert entra["enabled"] is bool(client)
        issuer = "https://login.microsoftonline.com/tenant/v2.0"
        assert entra["registration"] == {"clientId": client or None, "openIdIssuer": issuer}


def test_the_host_connects_by_identity_alone() -> None:
    settings = of(of_set("new"), "Microsoft.Web/sites/config")["func-token/appsettings"]["properties"]
    for prefix in ("AzureWebJobsStorage", "EVENTHUB"):
        assert settings[f"{prefix}__credential"] == "managedidentity"
        assert settings[f"{prefix}__clientId"] == "id-app-token.properties.clientId"
        assert prefix not in settings, "a connection string"
    assert settings["APPLICATIONINSIGHTS_AUTHENTICATION_STRING"].endswith(";Authorization=AAD")
    found = of(of_set("new"), "Microsoft.Web/sites/basicPublishingCredentialsPolicies")
    assert set(found) == {"func-token/ftp", "func-token/scm"}, "no password deploys"


def test_one_of_trigger_and_worker_ingests_with_the_settings_of_the_app() -> None:
    alone, beside = (of_set(name) for name in ("new", "worker"))
    settings = [
        of(each, "Microsoft.Web/sites/config")["func-token/appsettings"]["properties"] for each in (alone, beside)
    ]
    assert [one.get("AzureWebJobs.ingest.Disabled") for one in settings] == [None, "true"]
    assert of(alone, "avm/res/app/container-app") == {}
    path = "properties.functionAppConfig.scaleAndConcurrency.alwaysReady"
    ready = [{one["name"] for one in at(the(each, "Microsoft.Web/sites"), path)} for each in (alone, beside)]
    assert ready == [{"function:ingest", "durable"}, {"durable"}]
    worker = the(beside, "avm/res/app/container-app")
    secrets = {one["name"]: one["value"] for one in worker["secrets"]}
    own = {one["name"]: secrets[one["secretRef"]] for one in worker["containers"][0]["env"]}
    assert len(own) == len(secrets) > 30, "a reader of the container app sees names and no value"
    assert own.items() - {("AZURE_CLIENT_ID", "id-app-token.properties.clientId")} <= settings[1].items()
    secret = {"RESIDENT_LINK_SECRET": "a", "RESIDENT_LINK_SECRET_PREVIOUS": "b", "ERASURE_KEY": "c"}
    references = {
        "IN_VAULT": "@Microsoft.KeyVault(VaultName=x)",
        "BY_URI": "@Microsoft.KeyVault(SecretUri=https://v/s)",
    }
    given = made(workerImage="docker.io/w:1", appSettings={"OWN": "1", **references, **secret})
    own_worker = the(given, "avm/res/app/container-app")
    names = {one["name"] for one in own_worker["containers"][0]["env"]}
    assert "OWN" in names and "IN_VAULT" not in names, "Container Apps refers to a secret by its address only"
    assert [one["keyVaultUrl"] for one in own_worker["secrets"] if one["name"] == "by-uri"] == ["https://v/s"]
    assert names & {"RESIDENT_LINK_SECRET", "RESIDENT_LINK_SECRET_PREVIOUS"} == set()


def test_the_worker_runs_as_the_app_behind_both_probes_and_scales_by_its_processor() -> None:
    """A scaler that has to sign in and can't freezes the number of replicas."""
    worker = the(of_set("worker"), "avm/res/app/container-app")
    identity = "rg-dev/Microsoft.ManagedIdentity/userAssignedIdentities/id-app-token"
    assert worker["managedIdentities"] == {"userAssignedResourceIds": [identity]}
    assert worker["registries"] == [{"server": "contosoimages.azurecr.io", "identity": identity}]
    assert [one["type"] for one in worker["containers"][0]["probes"]] == ["Startup", "Liveness"]
    assert [rule["custom"]["type"] for rule in worker["scaleSettings"]["rules"]] == ["cpu"]
    pull = the(of_set("worker"), "avm/ptn/authorization/resource-role-assignment")
    assert (pull["roleName"], pull["principalId"], pull["principalType"]) == ("AcrPull", APP, "ServicePrincipal")
    assert pull["roleDefinitionId"].endswith("/7f951dda-4ed3-4680-a7ca-43fe172d538d") and len(pull["description"]) > 20
    replicas: list[tuple[dict[str, int], tuple[int, int]]] = [
        ({}, (1, 4)),
        ({"partitionCount": 2}, (1, 2)),
        ({"workerReplicas": 9, "workerMaximumReplicas": 3}, (9, 9)),
        ({"workerReplicas": 9, "partitionCount": 2}, (2, 2)),
    ]
    for given, bounds in replicas:
        scale = the(made(workerImage="docker.io/w:1", **given), "avm/res/app/container-app")["scaleSettings"]
        assert (scale["minReplicas"], scale["maxReplicas"]) == bounds, "never more replicas than partitions"


def test_one_choice_decides_on_the_zones_of_everything() -> None:
    kinds = ("EventHub/namespaces", "Sql/servers/databases", "Web/serverfarms")
    for zoned, each, sku in ((None, [None, False, False], "LRS"), (True, [True] * 3, "ZRS")):
        resources = made(**({"zoneRedundant": True} if zoned else {}))
        found = [at(the(resources, f"Microsoft.{kind}"), "properties.zoneRedundant") for kind in kinds]
        storage = of(resources, "Microsoft.Storage/storageAccounts").values()
        assert (found, [one["sku"]["name"] for one in storage]) == (each, [f"Standard_{sku}"] * 2)
    for zoned, replicas in ((True, 1), (False, None)):  # a replica of Hyperscale is its second zone
        database = the(made(sqlTier="Hyperscale", zoneRedundant=zoned), "Microsoft.Sql/servers/databases")
        assert database["properties"]["highAvailabilityReplicaCount"] == replicas


def test_data_is_locked_against_deletion_by_choice() -> None:
    locks = of(of_set("kept"), "Microsoft.Authorization/locks")
    assert {one["properties"]["level"] for one in locks.values()} == {"CanNotDelete"}
    locked = {"evhns-token", "sql-token/hubledger", "sthosttoken", "stlaketoken"}
    assert {name.rpartition("/")[0] for name in locks} == locked
    assert of(of_set("new"), "Microsoft.Authorization/locks") == {}


def logs(resources: list[Resource]) -> dict[str, set[str]]:
    """Return what each resource logs into the workspace."""
    workspace = "rg-dev/Microsoft.OperationalInsights/workspaces/log-token"
    found = of(resources, "Microsoft.Insights/diagnosticSettings")
    assert {one["properties"]["workspaceId"] for one in found.values()} <= {workspace}
    return {
        name.removesuffix("/to-workspace"): {
            each.get("category") or each["categoryGroup"] for each in one["properties"]["logs"]
        }
        for name, one in found.items()
    }


def test_services_log_what_is_rare_by_default_and_all_nothing_or_an_audit_by_choice() -> None:
    assert logs(of_set("new")) == {
        "evhns-token": {"ArchiveLogs", "AutoScaleLogs", "DiagnosticErrorLogs", "OperationalLogs"},
        "sql-token/hubledger": {"Blocks", "Deadlocks", "Errors", "Timeouts"},
        "sthosttoken/default": {"StorageDelete"},
        "stlaketoken/default": {"StorageDelete"},
    }
    audit = "sql-token/hubledger/audit-to-workspace"
    kept = {name: found for name, found in logs(of_set("kept")).items() if name != audit}
    assert set(kept) == set(logs(of_set("new"))) and all(found == {"allLogs"} for found in kept.values())
    assert logs(made(diagnosticLogs="none")) == {}
    audits = "Microsoft.Sql/servers/databases/auditingSettings"
    assert of(of_set("new"), audits) == {}
    assert logs(of_set("kept"))[audit] == {"SQLSecurityAuditEvents"}
    properties = the(of_set("kept"), audits)["properties"]
    assert (properties["state"], len(properties["auditActionsAndGroups"])) == ("Enabled", 6)
    assert "BATCH_COMPLETED_GROUP" not in properties["auditActionsAndGroups"], "never statement by statement"


RULES = "avm/res/insights/scheduled-query-rule"


def test_each_alert_notifies_people_by_its_own_query_and_helps() -> None:
    rules = {name.removeprefix("ar-token-"): rule for name, rule in of(of_set("new"), RULES).items()}
    assert set(rules) == ALERTS
    for name, rule in rules.items():
        query = (ROOT / "infra" / "alerts" / f"{name}.kql").read_text(encoding="utf-8")
        asked = re.sub(r"\\\{\w+\\\}", r"[\\w.]+", re.escape(query))
        assert re.fullmatch(asked, rule["criterias"]["allOf"][0]["query"]), name
        assert rule["actions"] == {"actionGroupResourceIds": ["actionGroup.outputs.resourceId"]}
        assert isinstance(rule["severity"], int) and len(rule["alertDescription"]) > 30
    for deployed, silent in ((True, []), (False, ["ar-token-watch-silent"])):
        found = of(made(appDeployed=deployed), RULES)
        assert [name for name, rule in found.items() if not rule["enabled"]] == silent


def test_receivers_are_the_addresses_of_the_environment_in_the_common_schema() -> None:
    group = the(made(alertEmails="a@b.c, d@e.f", alertWebhooks="https://x.y"), "avm/res/insights/action-group")
    common = {"useCommonAlertSchema": True}
    assert group["emailReceivers"] == [
        {"name": f"email-{number}", "emailAddress": address, **common}
        for number, address in enumerate(("a@b.c", "d@e.f"))
    ]
    assert group["webhookReceivers"] == [{"name": "webhook-0", "serviceUri": "https://x.y", **common}]


def test_every_resource_has_the_name_that_is_chosen_for_its_kind() -> None:
    kinds = FILES["main.bicep"].var("conventionalNames")
    chosen = {kind: f"x{kind.lower()[:20]}{number:02}" for number, kind in enumerate(kinds)}
    given = [{"sparkEngine": engine, "workerImage": "docker.io/w:1"} for engine in ("synapse", "databricks")]
    names = {one.name for each in given for one in made(**each, resourceNames=chosen)}
    assert [name for name in chosen.values() if name not in names] == []
    assert set(FILES["main.bicep"].var("nameLimits")) == set(kinds)
    assert [name for name in names if "token" in name.split("/")[0] and not name.startswith("ar-token-")] == []


ROLE, CONSUMERS = "Microsoft.Authorization/roleAssignments", "Microsoft.EventHub/namespaces/eventhubs/consumergroups"
THEIRS = "rg-theirs"


@pytest.mark.parametrize("vnet", [False, True])
def test_with_existing_ids_only_consumer_groups_and_roles_are_made_there(vnet: bool) -> None:
    found = made(**SETS["existing"], vnetEnabled=vnet, sparkEngine="none", deleteLocks=True)
    ours = [one.key for one in found if one.type.startswith(("Microsoft.EventHub/", "Microsoft.Sql/"))]
    there = [one for one in found if one.group == THEIRS]
    assert {key[0] for key in ours} == {THEIRS} and {one.type for one in there} == {ROLE, CONSUMERS}
    groups = {"evhns-theirs/orders/hubledger", "evhns-theirs/orders/hubledger-reader"}
    assert {one.name for one in there if one.type == CONSUMERS} == groups
    roles = sorted(one.name for one in there if one.type == ROLE)
    assert all(name.startswith("evhns-theirs/orders/") for name in roles), "the scope is the hub"
    assert [name.rpartition("Hubs ")[2] for name in roles] == ["Data Sender", "Data Receiver"]
    zones = set(of(found, "avm/res/network/private-dns-zone"))
    own = {f"privatelink.{service}.core.windows.net" for service in ("blob", "queue", "table", "dfs")}
    assert zones == (own if vnet else set()), "a zone without their record would hide the public address"


def test_the_connections_of_the_app_are_those_of_the_existing_ones() -> None:
    given = of(of_set("existing"), "Microsoft.Web/sites/config")["func-token/appsettings"]["properties"]
    assert given["EVENTHUB__fullyQualifiedNamespace"] == "evhns-theirs.servicebus.windows.net"
    assert (given["EVENTHUB_NAME"], given["EVENTHUB_CONSUMER_GROUP"]) == ("orders", "hubledger")
    assert "Server=tcp:sql-theirs.database.windows.net,1433;Database=shop;" in given["STORE_CONNECTION"]


def test_with_an_iot_hub_only_consumer_groups_are_made_there_and_the_app_may_read_one_secret() -> None:
    found = of_set("iot-hub")
    assert [one.key for one in found if one.type.startswith("Microsoft.EventHub/")] == []
    assert {(one.type, one.name.rpartition("/")[0]) for one in found if one.group == THEIRS} == {
        ("Microsoft.Devices/IotHubs/eventHubEndpoints/ConsumerGroups", "iot-theirs/events")
    }
    groups = of(found, "Microsoft.Devices/IotHubs/eventHubEndpoints/ConsumerGroups")
    assert [one["properties"] for one in groups.values()] == [{"name": "hubledger"}, {"name": "hubledger-reader"}]
    assert {one.type for one in found if one.group == "rg-vault"} == {ROLE}
    outputs = main(FILES, IOT_HUB)
    assert outputs.member("EVENTHUB_ID") == IOT_HUB["iotHubId"]
    assert outputs.member("GROUPS_OF_OTHERS") == f"{THEIRS},rg-vault"


def test_the_connection_string_of_an_iot_hub_is_a_reference_for_trigger_and_worker_and_nothing_signs_in_to_it() -> None:
    found, address = of_set("iot-hub"), "https://kv-theirs.vault.azure.net/secrets/built-in"
    settings = of(found, "Microsoft.Web/sites/config")["func-token/appsettings"]["properties"]
    hub = {name: value for name, value in settings.items() if name.startswith("EVENTHUB")}
    assert hub == {
        "EVENTHUB": f"@Microsoft.KeyVault(SecretUri={address})",
        "EVENTHUB_CONSUMER_GROUP": "hubledger",
        "EVENTHUB_NAME": "iothub-ehub-iot-theirs-1",
    }
    worker = the(found, "avm/res/app/container-app")
    identity = "rg-dev/Microsoft.ManagedIdentity/userAssignedIdentities/id-app-token"
    (secret,) = [one for one in worker["secrets"] if "value" not in one]
    assert secret == {"name": "eventhub", "keyVaultUrl": address, "identity": identity}
    assert {"name": "EVENTHUB", "secretRef": "eventhub"} in worker["containers"][0]["env"]
    wired = json.loads(main(FILES, IOT_HUB).member("WIRED_SETTINGS"))
    assert {name: value for name, value in wired.items() if name.startswith("EVENTHUB")} == hub


PATHS = sorted(CHOSEN.glob("*.bicepparam"))


@holds_for(PATHS)
def test_the_expectation_of_each_set_is_that_of_the_plan(path: Path) -> None:
    """`python -m tests.infra.snapshots --write` writes them anew."""
    assert path.read_text(encoding="utf-8").startswith("using '../../../infra/")
    assert read_rows(CHOSEN)[path.stem] == expected(FILES, path)


def test_each_set_has_an_expectation_and_github_compares_them_with_the_compiler() -> None:
    names = {path.stem for path in PATHS}
    assert set(read_rows(CHOSEN)) == names and len([one for one in names if one.startswith("refused-")]) == 4
    assert {path.name for path in CHOSEN.iterdir()} == {path.name for path in PATHS} | {"expected.jsonl"}
    make = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ncheck-infra: ")[2].partition("\n\n")[0]
    assert "$(BIN)/python -m tests.infra.snapshots\n" in f"{make}\n"
    workflow = (ROOT / ".github" / "workflows" / "infra.yml").read_text(encoding="utf-8")
    assert workflow.index("az bicep install") < workflow.index("make check-infra")
