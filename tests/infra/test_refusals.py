import re
from typing import Any

import pytest

from tests.infra.bicep import Expression, Files, shown
from tests.infra.plan import Evaluator, Failed, main
from tests.infra.test_policies import FILES
from tests.offenders import holds_for

MAIN = FILES["main.bicep"]
GIVEN = {"environmentName": "dev", "location": "westeurope"}
OURS = "/subscriptions/00000000-0000-0000-0000-000000000005"
REGISTRY = f"{OURS}/resourceGroups/g/providers/Microsoft.ContainerRegistry/registries/mine"
NAMESPACE = f"{OURS}/resourceGroups/g/providers/Microsoft.EventHub/namespaces/mine"
SERVER = f"{OURS}/resourceGroups/g/providers/Microsoft.Sql/servers/mine"
HUB = {"eventHubNamespaceId": NAMESPACE, "eventHubName": "orders"}
IOT_HUB = f"{OURS}/resourceGroups/g/providers/Microsoft.Devices/IotHubs/mine"
SECRET = f"{OURS}/resourceGroups/g/providers/Microsoft.KeyVault/vaults/mine/secrets/hub"
BUILT_IN = {"iotHubId": IOT_HUB, "eventHubConnectionId": SECRET, "eventHubName": "mine-1"}
NO_SECRETS = (SECRET[:-4], f"{SECRET}/1", f"{SECRET[:-3]})", SECRET.replace("/secrets/", "/keys/"), NAMESPACE, "hub")
OF_ANOTHER_REGISTRY = (
    *("mine2.azurecr.io/w:1", "mine", "mine.azurecr.io", "mine.azurecr.io.evil.example/w:1", "mine.evil.example/w:1"),
    *("mine-a1.other.azurecr.io/w:1", "mine-a1-b2.azurecr.io/w:1"),
)
NO_RANGES = (
    *(f"10.0.0.0/{size}" for size in ("7", "25", "26", "27", "33", "024", "x", "")),
    *("10.0.0.0-10.0.0.255", "10.0.0.0", "", "mine", "10.0.0.0/24/24", "10.0.0/0.24", "10.0.0/24", "10.0.0.256/24"),
    *("10.0.0.5/24", "10.0.1.0/23", "10.1.0.0/15", "010.0.0.0/24", " 10.0.0.0/24", "fd00::/24", "1/2/3.4.5"),
)
# https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq, "What address ranges can I use?"
KEPT_RANGES = ("224.0.0.0/8", "255.255.255.0/24", "127.0.0.0/8", "169.254.0.0/16", "168.63.129.0/24", "0.0.0.0/8")
# By kind: names that Azure refuses when a deployment comes to them; an empty one is refused for each.
WRONG_NAMES = (
    *((kind, "") for kind in sorted(MAIN.var("conventionalNames"))),
    *((kind, name) for kind in ("lake", "hostStorage") for name in ("a" * 25, "ab", "stMine", "st-mine")),
    *(("functionApp", name) for name in ("a" * 61, "a", "-mine", "mine-", "my_app")),
    *(("sqlServer", name) for name in ("a" * 64, "sql-Mine", "-sql", "sql-", "sql.mine")),
    *(("containerApp", name) for name in ("a" * 33, "1app", "Ca-mine", "ca-")),
    *(("virtualNetwork", name) for name in ("a" * 65, "a" * 80, "a", "-net", "net.", "my net")),
    *(("eventHubNamespace", name) for name in ("a" * 51, "abcde", "1-space", "space-")),
    *(("resourceGroup", name) for name in ("a" * 91, "mine.", "a/b", "a'b", "a\\b", "a b")),
    *(("actionGroup", name) for name in ("a" * 261, "a/b", "ag.")),
    *(("appIdentity", name) for name in ("a" * 129, "ab", "_ab")),
    *(("captureIdentity", name) for name in ("a.b.c",)),
    *(("applicationInsights", name) for name in ("a" * 261, "a%b")),
    *(("containerAppsEnvironment", name) for name in ("a" * 61, "my_place")),
    *(("databricksWorkspace", name) for name in ("a" * 65, "ab", "a.b.c")),
    *(("functionPlan", name) for name in ("a" * 61, "a.b")),
    *(("logAnalyticsWorkspace", name) for name in ("a" * 64, "abc", "log_mine")),
    *(("synapseWorkspace", name) for name in ("a" * 51, "Synw", "synw-")),
)
RIGHT_NAMES = {
    "lake": "a" * 24,
    "hostStorage": "abc",
    "functionApp": "Func-1",
    "sqlServer": "1" * 63,
    "containerApp": "c" + "a-1" * 10,
    "virtualNetwork": "Net.1_",
    "eventHubNamespace": "Spaces",
    "resourceGroup": "rg-größe_(1.2)",
    "actionGroup": "our group",
    "appIdentity": "1a_",
    "logAnalyticsWorkspace": "Log1",
}
NEVER_PAUSES = ({"sqlTier": "Hyperscale"}, {"sqlCompute": "provisioned"}, {"profile": "dev"})
SIZES = dict(zip((1, 2, 4, 6, 8, 12, 20, 24, 80), (512, 1024, 1024, 1536, 2048, 3072, 3072, 4096, 4096), strict=True))
GUID = "01234567-89ab-CDEF-0123-456789abcdef"
IDS = {
    "principalId": "principalId",
    "SQL_ADMINISTRATOR_ID": "sqlAdministratorId",
    "SIGN_IN_CLIENT_ID": "signInClientId",
}
NO_GUIDS = ("mine", "a" * 36, GUID.replace("-", ""), GUID.replace("a", "g"), f"{{{GUID}}}", GUID[:-1])
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
    *(("VNET_ENABLED", {"vnetEnabled": True, "sparkEngine": engine}) for engine in ("synapse", "databricks")),
    ("WORKER_REGISTRY_ID", {"workerRegistryId": "mine", "workerImage": "mine.azurecr.io/w:1"}),
    ("WORKER_REGISTRY_ID", {"workerRegistryId": "/a/b/c/d/e/f/g/mine", "workerImage": "mine.azurecr.io/w:1"}),
    ("WORKER_REGISTRY_ID", {"workerRegistryId": f"{REGISTRY}/x", "workerImage": "x.azurecr.io/w:1"}),
    ("WORKER_IMAGE", {"workerRegistryId": REGISTRY, "workerImage": "other.azurecr.io/w:1"}),
    ("WORKER_IMAGE", {"workerRegistryId": REGISTRY, "workerImage": ""}),
    ("EVENTHUB_NAME", {"eventHubNamespaceId": NAMESPACE}),
    ("EVENTHUB_NAMESPACE_ID", {"eventHubName": "orders"}),
    ("TRIGGER_GROUP", {"triggerGroup": "mine"}),
    ("SQL_DATABASE", {"sqlServerId": SERVER}),
    ("SQL_SERVER_ID", {"sqlDatabase": "shop"}),
    ("SQL_SERVER_ID", {"sqlServerId": SERVER.replace(OURS, "/subscriptions/mine"), "sqlDatabase": "shop"}),
    ("SQL_SERVER_ID", {"sqlServerId": SERVER.removesuffix("mine"), "sqlDatabase": "shop"}),
    ("EVENTHUB_NAMESPACE_ID", {"eventHubNamespaceId": "contoso-hub", "eventHubName": "orders"}),
    ("EVENTHUB_NAMESPACE_ID", {"eventHubNamespaceId": "/" * 8, "eventHubName": "orders"}),
    *(("EVENTHUB_NAME", {**HUB, "eventHubName": name}) for name in ("orders/x", "-orders", " ")),
    ("EVENTHUB_NAME", {**BUILT_IN, "eventHubName": ""}),
    ("EVENTHUB_CONNECTION_ID", {**BUILT_IN, "eventHubConnectionId": ""}),
    *(("EVENTHUB_CONNECTION_ID", {**BUILT_IN, "eventHubConnectionId": wrong}) for wrong in NO_SECRETS),
    ("IOT_HUB_ID", {"eventHubConnectionId": SECRET}),
    ("IOT_HUB_ID", {**BUILT_IN, "eventHubNamespaceId": NAMESPACE}),
    *(("IOT_HUB_ID", {**BUILT_IN, "iotHubId": wrong}) for wrong in (NAMESPACE, f"{IOT_HUB}/eventHubEndpoints/events")),
    ("developerRoles", {**BUILT_IN, "developerRoles": "sendAndReceive"}),
    ("TRIGGER_GROUP", {**HUB, "triggerGroup": "mine/x"}),
    ("READER_GROUP", {**HUB, "readerGroup": "a b"}),
    *(("SQL_DATABASE", {"sqlServerId": SERVER, "sqlDatabase": name}) for name in ("shop;Uid=sa", "a/b", "shop.")),
    *(("WORKER_IMAGE", {"workerRegistryId": REGISTRY, "workerImage": image}) for image in OF_ANOTHER_REGISTRY),
    *(("vnetAddressPrefix", {"vnetAddressPrefix": prefix}) for prefix in (*NO_RANGES, *KEPT_RANGES)),
    *((f"resourceNames.{kind}", {"resourceNames": {kind: name}}) for kind, name in WRONG_NAMES),
    ("resourceNames.containerApp", {"resourceNames": {"containerApp": "ca--mine"}}),
    ("resourceNames.synapseWorkspace", {"resourceNames": {"synapseWorkspace": "mine-ondemand"}}),
    *(("TRANSFORM", {"transform": name}) for name in ("apps/orders", "apps.orders 1", "1apps", ".orders", "apps.")),
    ("principalId", {"principalId": ""}),
    ("SQL_ADMINISTRATOR_ID", {"principalType": "ServicePrincipal"}),
    ("AZURE_ENV_NAME", {"environmentName": "dev."}),
    ("AZURE_ENV_NAME", {"environmentName": "a/b"}),
    ("resourceNames: hostStorage and lake", {"resourceNames": {"hostStorage": "stmine", "lake": "stmine"}}),
    (
        "resourceNames: appIdentity and captureIdentity",
        {"resourceNames": {"appIdentity": "me1", "captureIdentity": "Me1"}},
    ),
    *(("sqlAutoPauseMinutes", {"sqlAutoPauseMinutes": minutes}) for minutes in (0, 1, 14)),
    *(("sqlAutoPauseMinutes", {**size, "sqlAutoPauseMinutes": 60}) for size in NEVER_PAUSES),
    *(("sqlMaxSizeGiB", {"profile": "dev", "sqlMaxSizeGiB": size}) for size in (3, 251, 256, 4096)),
    *(
        ("sqlMaxSizeGiB", {"sqlVCores": cores, "sqlMaxSizeGiB": most + 1})
        for cores, most in SIZES.items()
        if most < 4096
    ),
    ("sqlMaxSizeGiB", {"sqlTier": "BusinessCritical", "sqlCompute": "provisioned", "sqlMaxSizeGiB": 1025}),
    *(("sqlVCores", {"sqlTier": "Hyperscale", "sqlCompute": "provisioned", "sqlVCores": cores}) for cores in (1, 128)),
    ("sqlVCores", {"sqlTier": "Hyperscale", "sqlVCores": 1}),
    ("maximumInstances", {"maximumInstances": 1}),
    ("maximumInstances", {"maximumInstances": 4, "httpAlwaysReady": 3}),
    *((name, {parameter: text}) for name, parameter in IDS.items() for text in NO_GUIDS),
    ("logDailyGigabytes", {"logDailyGigabytes": 0}),
    *(("ALERT_EMAILS", {"alertEmails": mail}) for mail in ("a", "a@", "@b", "a@b@c", "a b@c.d", "a@b.c, x")),
    *(("ALERT_WEBHOOKS", {"alertWebhooks": address}) for address in ("http://a.b", "https://", "https://a.b c")),
]
TAKEN: list[dict[str, Any]] = [
    {},
    {"partitionCount": 100, "hubTier": "Premium", "retentionHours": 2160},
    {"partitionCount": 101, "retentionHours": 2160, "eventHubNamespaceId": NAMESPACE, "eventHubName": "orders"},
    {"profile": "dev", "alertsEnabled": True, "alertEmails": "a@b.c"},
    {"resourceNames": {"sqlServer": "sql-mine", "lake": "stmine"}},
    {"resourceNames": RIGHT_NAMES},
    {"environmentName": "My_env.(1)"},
    {"sqlAutoPauseMinutes": 15},
    {"sqlTier": "Hyperscale", "sqlVCores": 80, "sqlMaxSizeGiB": 4096},
    *({"sqlVCores": cores, "sqlMaxSizeGiB": most} for cores, most in SIZES.items()),
    *({"profile": "dev", "sqlMaxSizeGiB": size} for size in (1, 100, 250)),
    {"maximumInstances": 2},
    {"maximumInstances": 1, "workerImage": "docker.io/mine/w:1"},
    *({parameter: GUID} for parameter in IDS.values()),
    {"principalType": "ServicePrincipal", "sqlAdministratorId": GUID},
    {"principalType": "ServicePrincipal", "sqlServerId": SERVER, "sqlDatabase": "shop"},
    {"transform": "apps.orders_2"},
    {"resourceNames": {"containerApp": "ca-m-1"}},
    *({"vnetAddressPrefix": prefix} for prefix in ("10.0.0.0/8", "10.0.4.0/22", "192.168.255.0/24", "169.253.0.0/16")),
    {"alertEmails": "a@b.c, d@e.f", "alertWebhooks": "https://a.b/c?d=e"},
    {**HUB, "triggerGroup": "$Default"},
    {**HUB, "readerGroup": "hubledger2"},
    {"sqlServerId": SERVER, "sqlDatabase": "Läden 1"},
    {"sqlTier": "BusinessCritical", "sqlCompute": "provisioned", "sqlVCores": 128},
    {"eventHubName": "telemetry"},
    {**HUB, "triggerGroup": "a", "readerGroup": "b"},
    {"sqlServerId": SERVER.replace("resourceGroups", "resourcegroups"), "sqlDatabase": "shop"},
    {**BUILT_IN, "triggerGroup": "a", "readerGroup": "b", "partitionCount": 128},
    {**BUILT_IN, "iotHubId": IOT_HUB.lower(), "eventHubConnectionId": SECRET.lower(), "workerImage": "docker.io/w:1"},
    {"workerImage": "docker.io/mine/w:1"},
    {"workerImage": "mine.azurecr.io/w:1", "workerRegistryId": REGISTRY},
    {"workerImage": "mine-a1b2c3.azurecr.io/w:1", "workerRegistryId": REGISTRY.replace("Microsoft", "microsoft")},
]


@holds_for(REFUSED)
def test_a_choice_that_azure_would_not_keep_is_refused_by_name(refused: tuple[str, dict[str, Any]]) -> None:
    name, chosen = refused
    with pytest.raises(Failed, match=f"^{re.escape(name)}(: | )"):
        Evaluator(MAIN, {**GIVEN, **chosen}).name("checked")
    with pytest.raises(Failed, match="logDailyGigabytes: "):  # all refusals are said at once
        Evaluator(MAIN, {**GIVEN, **chosen, "logDailyGigabytes": 0}).name("checked")


@holds_for(TAKEN)
def test_a_choice_that_azure_keeps_passes(chosen: dict[str, Any]) -> None:
    assert Evaluator(MAIN, {**GIVEN, **chosen}).name("checked")["location"] == "westeurope"


def test_nothing_is_made_before_the_refusals_are_read() -> None:
    (group,) = MAIN.of_kind("resource")
    assert shown(group.value["location"]) == "checked.location"
    assert shown(MAIN.var("common")["location"]) == "checked.location"
    assert shown(MAIN.var("resourceName")) == "checked.names"
    elsewhere = {one.name: one for one in MAIN.of_kind("module") if shown(one.value["scope"]) != "group"}
    assert set(elsewhere) == {"consumerGroups", "hubRoles", "iotHubGroups", "vaultRoles"}
    assert shown(elsewhere["consumerGroups"].value["dependsOn"]) == "[group, hub]"
    assert shown(elsewhere["iotHubGroups"].value["dependsOn"]) == "[group]"
    grants = shown(MAIN.var("hubGrants"))
    assert grants.count("target: consumerGroups!.outputs.grantTarget") == 3, "the roles wait for it"


TOGETHER: list[dict[str, Any]] = [{"sparkEngine": "databricks"}, {"vnetEnabled": True}, {"workerRegistryId": REGISTRY}]


@holds_for(TOGETHER)
def test_two_environments_of_one_group_share_no_name_and_deploy_at_once(chosen: dict[str, Any]) -> None:
    """Azure refuses a deployment whose name has one that still runs in its group."""
    given = {"workerImage": "mine.azurecr.io/w:1", "resourceNames": {"resourceGroup": "one"}, **chosen}
    both = [main(FILES, {**given, "token": sign * 13}) for sign in "ab"]
    first, second = ([*one.deployments()] for one in both)
    assert len(first) > 20
    assert set(first).isdisjoint(second)
    assert len(set(first)) == len(first), "two modules of one name wait for each other"
    assert [name for _, name in first if not re.fullmatch(r"[\w.()-]{1,64}", name)] == []
    made = [{one.key for one in each.resources() if not one.exists} for each in both]
    shared = {kind for _, kind, _ in made[0] & made[1]}
    assert {kind for kind in shared if "dns-zone" not in kind and "ole-assignment" not in kind} == SHARED


SHARED = {"Microsoft.Resources/resourceGroups"}


ODD = ("", " ", "/", "a/b", "///////", "/" * 9, ".", "-", "'", "\\", "ä", "@", "a" * 300, "10.0.0.0/24", "{}", "${x}")
TEXTS = [one.name for one in MAIN.of_kind("parameter") if one.of == "string" and "allowed" not in one.decorators]
CASES: list[dict[str, Any]] = [
    *({name: text} for name in TEXTS for text in ODD),
    *({"resourceNames": {kind: text}} for kind in MAIN.var("conventionalNames") for text in ODD),
]


def raw_ends(files: Files, given: dict[str, Any]) -> list[str]:
    """Return each variable and each module of main.bicep that ends in other words than those of `fail()`.

    Each is evaluated, because nobody knows with which one Azure begins.
    """
    deployment, found = main(files, {"vnetEnabled": True, "workerImage": "mine.azurecr.io/w:1", **given}), []
    file = files["main.bicep"]
    parts: dict[str, Any] = {one.name: Expression(one.name) for one in file.of_kind("variable")}
    parts |= {one.name: [one.value.get("scope"), one.value["params"]] for one in file.of_kind("module")}
    for name, part in parts.items():
        try:
            deployment.value(part)
        except Failed as refusal:
            found += [] if re.match(r"[\w., ]+: |resourceNames: ", str(refusal)) else [f"{name}: {refusal}"]
        except (LookupError, TypeError, ValueError, AttributeError) as raw:
            found.append(f"{name}: {type(raw).__name__}: {raw}")
    return found


@holds_for(CASES)
def test_no_text_ends_in_the_words_of_the_engine(given: dict[str, Any]) -> None:
    assert raw_ends(FILES, given) == []
