"""Our templates keep every policy, and every policy finds its planted violations."""

from tests.infra import policies
from tests.infra.bicep import File, Policy, read_folder, read_text, resources, type_of
from tests.infra.policies import POLICIES
from tests.offenders import holds_for
from tests.repo.product import ROOT

FOLDER = ROOT / "infra"
FILES = read_folder(FOLDER)

# By policy: the file, the text that stands there, and the violation that is planted in its place.
PLANTED: dict[Policy, list[tuple[str, str, str]]] = {
    policies.syntax_is_whole: [
        ("app/monitoring.bicep", "kind: 'web'", "kind: 'web"),
        ("app/storage.bicep", "networkAcls: {", "networkAcls: "),
    ],
    policies.guards_are_on: [
        ("app/storage.bicep", "allowSharedKeyAccess: false", "allowSharedKeyAccess: true"),
        ("app/storage.bicep", "    allowSharedKeyAccess: false\n", ""),
        ("app/storage.bicep", "allowSharedKeyAccess: false", "allowSharedKeyAccess: !isLake"),
        ("app/storage.bicep", "allowBlobPublicAccess: false", "allowBlobPublicAccess: true"),
        ("app/storage.bicep", "publicAccess: 'None'", "publicAccess: 'Blob'"),
        ("app/storage.bicep", "TLS1_2", "TLS1_0"),
        ("app/storage.bicep", "supportsHttpsTrafficOnly: true", "supportsHttpsTrafficOnly: false"),
        ("app/hub.bicep", "disableLocalAuth: true", "disableLocalAuth: false"),
        ("app/hub.bicep", "minimumTlsVersion: '1.2'", "minimumTlsVersion: '1.0'"),
        ("app/sql.bicep", "azureADOnlyAuthentication: true", "azureADOnlyAuthentication: false"),
        ("app/sql.bicep", "minimalTlsVersion: '1.2'", "minimalTlsVersion: '1.1'"),
        ("app/spark.bicep", "azureADOnlyAuthentication: true", "azureADOnlyAuthentication: false"),
        ("app/monitoring.bicep", "DisableLocalAuth: true", "DisableLocalAuth: false"),
        ("app/monitoring.bicep", "SamplingPercentage: 100", "SamplingPercentage: 10"),
        ("app/function.bicep", "httpsOnly: true", "httpsOnly: false"),
        ("app/function.bicep", "siteConfig: {", "siteConfig: {\n      ftpsState: 'Disabled'"),
        ("app/function.bicep", "type: 'UserAssignedIdentity'", "type: 'StorageAccountConnectionString'"),
        ("app/function.bicep", "identity: { type: 'UserAssigned'", "identity: { type: 'None'"),
        ("app/function.bicep", "properties: { allow: false }", "properties: { allow: true }"),
    ],
    policies.networks_can_be_closed: [
        (
            "app/sql.bicep",
            "publicNetworkAccess: publicAccess ? 'Enabled' : 'Disabled'",
            "publicNetworkAccess: 'Enabled'",
        ),
        ("app/hub.bicep", "    publicNetworkAccess: publicAccess ? 'Enabled' : 'Disabled'\n", ""),
        ("app/sql.bicep", "endIpAddress: '0.0.0.0'", "endIpAddress: '255.255.255.255'"),
    ],
    policies.nothing_holds_a_secret: [
        (
            "app/storage.bicep",
            "output name string = account.name",
            "output name string = account.listKeys().keys[0].value",
        ),
        ("app/hub.bicep", "output resourceId string", "output sharedKeyOfHub string"),
        (
            "main.bicep",
            "STORE_CONNECTION: storeConnection",
            "STORE_CONNECTION: '${storeConnection};Pwd=x'",
        ),
        ("app/sql.bicep", "    minimalTlsVersion", "    administratorLoginPassword: 'x'\n    minimalTlsVersion"),
    ],
    policies.settings_stay_out_of_the_history: [
        ("main.bicep", "@secure() // the history of deployments shows no secure parameter\n", ""),
        ("app/function.bicep", "@secure()\n", ""),
        ("app/worker.bicep", "@secure()\n", ""),
        ("app/function.bicep", "output resourceId string = app.id", "output all object = { id: app.id }"),
        ("app/function.bicep", "output resourceId string = app.id", "output name string = string(settings)"),
    ],
    policies.secrets_stay_in_the_vault: [
        ("app/worker.bicep", "secrets: map(", "secrets: [{ name: 'x', value: image }] // map("),
        ("app/worker.bicep", "secrets: map(", "secrets: [{ name: 'x', keyVaultUrl: image }] // map("),
    ],
    policies.every_service_takes_an_identity: [
        ("app/function.bicep", "  AzureWebJobsStorage__credential: 'managedidentity'\n", ""),
        ("app/function.bicep", "  EVENTHUB__clientId: identity.client\n", ""),
        ("app/function.bicep", ";Authorization=AAD'", "'"),
        (
            "main.bicep",
            "EVENTHUB_NAME: hubNames.hub",
            "EVENTHUB_NAME: hubNames.hub\n      EVENTHUB: 'Endpoint=sb://x'",
        ),
    ],
    policies.rights_are_named_and_explained: [
        ("main.bicep", "role: 'Event Hubs Data Receiver'", "role: 'Event Hubs Data Owner'"),
        ("main.bicep", "reason: 'Durable Functions keeps instances and history here.'", "reason: ''"),
        ("app/roles.bicep", "    scope: account[index]\n", ""),
        ("app/roles.bicep", "'Event Hubs Data Sender'", "Contributor"),
        ("app/roles.bicep", "    description: each.reason\n", ""),
        ("app/worker.bicep", "    roleName: 'AcrPull'\n", ""),
    ],
    policies.rights_are_the_least: [
        (
            "main.bicep",
            "to: { principalId: spark.outputs.synapsePrincipalId, principalType: 'ServicePrincipal' }",
            "to: toDeployer",
        ),
        ("main.bicep", "containerGrants: sparkEngine == 'none'", "containerGrants: sparkEngine == 'synapse'"),
        ("main.bicep", "'${lake.outputs.name}/default/${sparkContainer}'", "lake.outputs.name"),
        (
            "app/spark.bicep",
            "    enableTelemetry: false\n",
            "    enableTelemetry: false\n    roleAssignments: [{ roleDefinitionIdOrName: 'Contributor' }]\n",
        ),
        ("app/hub.bicep", "enabled: sizes.captureEnabled", "enabled: true"),
        ("app/hub.bicep", "captureDescription: {", "captureDescription: !sizes.captureEnabled ? null : {"),
    ],
    policies.sign_in_admits_one_tenant_and_leaves_keys_alone: [
        ("app/function.bicep", "name: 'authsettingsV2'", "name: 'authsettings'"),
        ("app/function.bicep", "platform: { enabled: signsIn", "platform: { enabled: true"),
        ("app/function.bicep", "        enabled: signsIn\n", "        enabled: false\n"),
        ("app/function.bicep", "requireAuthentication: false", "requireAuthentication: true"),
        ("app/function.bicep", "'AllowAnonymous'", "'RedirectToLoginPage'"),
        ("app/function.bicep", "'AllowAnonymous' }", "'AllowAnonymous', excludedPaths: ['/api/homes'] }"),
        ("app/function.bicep", "requireHttps: true", "requireHttps: false"),
        ("app/function.bicep", "convention: 'NoProxy'", "convention: 'Standard'"),
        ("app/function.bicep", "loginEndpoint}${tenant().tenantId}/v2.0", "loginEndpoint}common/v2.0"),
        ("app/function.bicep", "clientId: signsIn ? signInClientId : null", "clientSecretSettingName: 'X'"),
        ("app/function.bicep", "tokenStore: { enabled: false }", "tokenStore: { enabled: true }"),
        ("main.bicep", "signInClientId: signInClientId", "signInClientId: ''"),
    ],
    policies.the_administrator_is_known_to_the_database: [
        ("main.bicep", "var deployerSid = principalType == 'ServicePrincipal' ? '' : ", "var deployerSid = "),
        ("main.bicep", "empty(sqlAdministratorId) ? deployerSid", "empty(sqlAdministratorId) ? principalId"),
        ("main.bicep", "empty(sqlAdministratorId) ? deployerSid", "empty(sqlAdministratorId) ? deployer().objectId"),
        ("main.bicep", "empty(sqlAdministratorId) ? deployerSid : sqlAdministratorId", "deployerSid"),
        ("app/sql.bicep", "sid: administrator.id", "sid: databaseName"),
        ("app/sql.bicep", "administrator.type == 'ServicePrincipal' ? 'Application' : administrator.type", "'User'"),
    ],
    policies.alerts_are_there: [
        ("app/alerts.bicep", "name: 'ledger-unbalanced'", "name: 'something'"),
        ("app/alerts.bicep", "../alerts/letter-old.kql", "../alerts/lag.kql"),
        ("app/alerts.bicep", "[actionGroup.outputs.resourceId]", "[]"),
        ("main.bicep", "'app/alerts.bicep'", "'app/monitoring.bicep'"),
    ],
    policies.parameters_are_described_and_limited: [
        ("app/sql.bicep", "@description('Name of the database.')\n", ""),
        ("main.bicep", "@maxValue(4096)\n", ""),
        ("main.bicep", "@maxLength(300)\n", ""),
        ("main.bicep", "@description('Name of the function app.')\n", ""),
    ],
    policies.types_are_checked: [
        ("main.bicep", "param appSettings { *: string }", "param appSettings object"),
        ("app/roles.bicep", "param hubGrants grant[]", "param hubGrants array"),
        (
            "app/identity.bicep",
            "output ids { resource: string, client: string, principal: string }",
            "output ids object",
        ),
        ("app/function.bicep", "functionAppConfig: {", "functionAppConfig: union({}, {}) \n    other: {"),
        (
            "app/function.bicep",
            "= {\n  parent: app\n  name: 'ftp'\n  properties: { allow: false }\n  dependsOn: [appSettings]\n}",
            "= [\n  for each in ['ftp', 'scm']: {\n    parent: app\n    name: each\n  }\n]",
        ),
    ],
    policies.main_only_wires: [
        (
            "main.bicep",
            "module monitoring",
            "resource x 'Microsoft.Sql/servers@2023-08-01' = { name: 'x', location: location }\n\nmodule monitoring",
        ),
        ("main.bicep", "'app/endpoints.bicep'", "'app/storage.bicep'"),
    ],
    policies.outputs_are_read: [("app/sql.bicep", "output resourceId string", "output serverId string")],
    policies.versions_are_stable: [
        ("app/sql.bicep", "servers@2023-08-01'", "servers@2023-08-01-preview'"),
        ("app/hub.bicep", "2021-05-01-preview'", "2017-05-01-preview'"),
        ("app/network.bicep", "virtual-network:0.7.1'", "virtual-network:0.7'"),
    ],
}


def with_planted(name: str, stands: str, planted: str) -> dict[str, File]:
    """Return all files, one of them with a violation."""
    text = FILES[name].text
    assert stands in text, f"{name} no longer says {stands!r}"
    return {**FILES, name: read_text(name, text.replace(stands, planted, 1))}


def test_the_templates_are_found() -> None:
    assert {"main.bicep", "app/function.bicep", "app/hub.bicep", "app/sql.bicep", "app/storage.bicep"} <= set(FILES)
    assert len(policies.MUST) >= 8


def test_our_templates_keep_every_policy() -> None:
    assert [fault for policy in POLICIES for fault in policy(FILES)] == []


@holds_for(POLICIES)
def test_a_policy_finds_each_violation_that_is_planted(policy: Policy) -> None:
    planted = PLANTED[policy]
    assert planted
    assert [change for change in planted if not list(policy(with_planted(*change)))] == []


def test_every_guard_has_a_type_that_is_used() -> None:
    used = {type_of(one) for _, one in resources(FILES)}
    assert set(policies.MUST) <= used
