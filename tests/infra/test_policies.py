"""Our templates keep every policy, and every policy finds its planted violations."""

import pytest

from tests.infra import policies
from tests.infra.bicep import File, read_folder, read_text
from tests.infra.policies import POLICIES, Policy
from tests.repo.product import ROOT

FOLDER = ROOT / "infra"
FILES = read_folder(FOLDER)
each_policy = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.__name__)

# policy, file, what stands there, what is planted
PLANTED: list[tuple[Policy, str, str, str]] = [
    (policies.syntax_is_whole, "app/monitoring.bicep", "kind: 'web'", "kind: 'web"),
    (policies.syntax_is_whole, "app/storage.bicep", "sku: { name: redundancy }", "sku: { name: redundancy"),
    (policies.guards_are_on, "app/storage.bicep", "allowSharedKeyAccess: false", "allowSharedKeyAccess: true"),
    (policies.guards_are_on, "app/storage.bicep", "    allowSharedKeyAccess: false\n", ""),
    (policies.guards_are_on, "app/storage.bicep", "allowSharedKeyAccess: false", "allowSharedKeyAccess: !isLake"),
    (policies.guards_are_on, "app/storage.bicep", "allowBlobPublicAccess: false", "allowBlobPublicAccess: true"),
    (policies.guards_are_on, "app/storage.bicep", "publicAccess: 'None'", "publicAccess: 'Blob'"),
    (policies.guards_are_on, "app/storage.bicep", "TLS1_2", "TLS1_0"),
    (policies.guards_are_on, "app/storage.bicep", "supportsHttpsTrafficOnly: true", "supportsHttpsTrafficOnly: false"),
    (policies.guards_are_on, "app/hub.bicep", "disableLocalAuth: true", "disableLocalAuth: false"),
    (policies.guards_are_on, "app/hub.bicep", "minimumTlsVersion: '1.2'", "minimumTlsVersion: '1.0'"),
    (policies.guards_are_on, "app/sql.bicep", "azureADOnlyAuthentication: true", "azureADOnlyAuthentication: false"),
    (policies.guards_are_on, "app/sql.bicep", "minimalTlsVersion: '1.2'", "minimalTlsVersion: '1.1'"),
    (policies.guards_are_on, "app/spark.bicep", "azureADOnlyAuthentication: true", "azureADOnlyAuthentication: false"),
    (policies.guards_are_on, "app/monitoring.bicep", "DisableLocalAuth: true", "DisableLocalAuth: false"),
    (policies.guards_are_on, "app/function.bicep", "httpsOnly: true", "httpsOnly: false"),
    (policies.guards_are_on, "app/function.bicep", "ftpsState: 'Disabled'", "ftpsState: 'AllAllowed'"),
    (
        policies.guards_are_on,
        "app/function.bicep",
        "type: 'UserAssignedIdentity'",
        "type: 'StorageAccountConnectionString'",
    ),
    (policies.guards_are_on, "app/function.bicep", "identity: { type: 'UserAssigned'", "identity: { type: 'None'"),
    (
        policies.networks_can_be_closed,
        "app/sql.bicep",
        "publicNetworkAccess: publicAccess ? 'Enabled' : 'Disabled'",
        "publicNetworkAccess: 'Enabled'",
    ),
    (
        policies.networks_can_be_closed,
        "app/hub.bicep",
        "    publicNetworkAccess: publicAccess ? 'Enabled' : 'Disabled'\n",
        "",
    ),
    (
        policies.networks_can_be_closed,
        "app/sql.bicep",
        "endIpAddress: '0.0.0.0'",
        "endIpAddress: '255.255.255.255'",
    ),
    (
        policies.nothing_holds_a_secret,
        "app/storage.bicep",
        "output name string = account.name",
        "output name string = account.listKeys().keys[0].value",
    ),
    (
        policies.nothing_holds_a_secret,
        "app/hub.bicep",
        "output name string = namespace.name",
        "output sharedKeyOfHub string = namespace.name",
    ),
    (
        policies.nothing_holds_a_secret,
        "main.bicep",
        "STORE_CONNECTION: sql.outputs.connection",
        "STORE_CONNECTION: '${sql.outputs.connection};Pwd=x'",
    ),
    (
        policies.nothing_holds_a_secret,
        "app/sql.bicep",
        "    minimalTlsVersion",
        "    administratorLoginPassword: 'x'\n    minimalTlsVersion",
    ),
    (
        policies.every_door_takes_an_identity,
        "app/function.bicep",
        "  AzureWebJobsStorage__credential: 'managedidentity'\n",
        "",
    ),
    (policies.every_door_takes_an_identity, "app/function.bicep", "  EVENTHUB__clientId: identityClientId\n", ""),
    (policies.every_door_takes_an_identity, "app/function.bicep", ";Authorization=AAD'", "'"),
    (
        policies.every_door_takes_an_identity,
        "main.bicep",
        "EVENTHUB_NAME: hub.outputs.hubName",
        "EVENTHUB_NAME: hub.outputs.hubName\n      EVENTHUB: 'Endpoint=sb://x'",
    ),
    (
        policies.rights_are_named_and_explained,
        "main.bicep",
        "role: 'Event Hubs Data Receiver'",
        "role: 'Event Hubs Data Owner'",
    ),
    (
        policies.rights_are_named_and_explained,
        "main.bicep",
        "reason: 'Durable Functions keeps instances and history here.'",
        "reason: ''",
    ),
    (policies.rights_are_named_and_explained, "app/roles.bicep", "    scope: account[index]\n", ""),
    (policies.rights_are_named_and_explained, "app/roles.bicep", "'Event Hubs Data Sender'", "Contributor"),
    (policies.rights_are_named_and_explained, "app/roles.bicep", "    description: grant.reason\n", ""),
    (policies.alerts_are_there, "app/alerts.bicep", "name: 'ledger-unbalanced'", "name: 'something'"),
    (policies.alerts_are_there, "app/alerts.bicep", "../alerts/letter-old.kql", "../alerts/lag.kql"),
    (policies.alerts_are_there, "app/alerts.bicep", "[actionGroup.outputs.resourceId]", "[]"),
    (policies.alerts_are_there, "main.bicep", "'app/alerts.bicep'", "'app/monitoring.bicep'"),
    (
        policies.parameters_are_described_and_limited,
        "app/sql.bicep",
        "@description('Largest size of the data in GiB.')\n",
        "",
    ),
    (policies.parameters_are_described_and_limited, "app/sql.bicep", "@maxValue(128)\n", ""),
    (policies.parameters_are_described_and_limited, "app/hub.bicep", "@minLength(6)\n@maxLength(50)\n", ""),
    (
        policies.parameters_are_described_and_limited,
        "main.bicep",
        "@description('Name of the function app.')\n",
        "",
    ),
    (
        policies.main_only_wires,
        "main.bicep",
        "module monitoring",
        "resource x 'Microsoft.Sql/servers@2023-08-01' = { name: 'x', location: location }\n\nmodule monitoring",
    ),
    (policies.main_only_wires, "main.bicep", "'app/network.bicep'", "'app/storage.bicep'"),
    (policies.versions_are_stable, "app/sql.bicep", "servers@2023-08-01'", "servers@2023-08-01-preview'"),
    (policies.versions_are_stable, "app/network.bicep", "virtual-network:0.7.1'", "virtual-network:0.7'"),
]


def with_planted(name: str, stands: str, planted: str) -> dict[str, File]:
    """All files, one of them changed."""
    text = FILES[name].text
    assert stands in text, f"{name} no longer says {stands!r}"
    return {**FILES, name: read_text(name, text.replace(stands, planted, 1))}


def test_the_templates_are_found() -> None:
    assert {"main.bicep", "app/function.bicep", "app/hub.bicep", "app/sql.bicep", "app/storage.bicep"} <= set(FILES)
    assert len(policies.MUST) >= 8


@each_policy
def test_our_templates_keep_the_policy(policy: Policy) -> None:
    assert list(policy(FILES)) == []


@pytest.mark.parametrize(("policy", "name", "stands", "planted"), PLANTED)
def test_a_planted_violation_is_found(policy: Policy, name: str, stands: str, planted: str) -> None:
    assert list(policy(with_planted(name, stands, planted))) != []


@each_policy
def test_every_policy_has_a_planted_violation(policy: Policy) -> None:
    assert policy in {row[0] for row in PLANTED}


def test_every_guard_has_a_type_that_is_used() -> None:
    used = {policies.type_of(one) for _, one in policies.resources(FILES)}
    assert set(policies.MUST) <= used
