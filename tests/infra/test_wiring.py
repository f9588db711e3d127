"""The wires between modules keep every policy, and every policy finds its planted violations."""

from infra.hooks.database import PASSING
from infra.hooks.patience import RIGHTS
from infra.hooks.smoke.sender import SENDERS
from tests.infra import wiring
from tests.infra.bicep import Policy
from tests.infra.test_policies import FILES, with_planted
from tests.infra.wiring import WIRING
from tests.offenders import holds_for
from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")

# By policy: the file, the text that stands there, and the violation that is planted in its place.
PLANTED: dict[Policy, list[tuple[str, str, str]]] = {
    wiring.the_worker_is_closed: [
        ("app/worker.bicep", "disableIngress: true", "ingressExternal: true"),
        ("app/worker.bicep", "{ userAssignedResourceIds: [identity.resource] }", "{ systemAssigned: true }"),
        ("app/worker.bicep", "publicNetworkAccess: 'Disabled'", "publicNetworkAccess: 'Enabled'"),
        ("app/worker.bicep", "destination: 'azure-monitor'", "destination: 'log-analytics'"),
        ("app/worker.bicep", "{ type: 'Liveness', ", "{ type: 'Readiness', "),
        ("main.bicep", "Id: checked.registryId\n    identity: app", "Id: checked.registryId\n    identity: capture"),
    ],
    wiring.one_of_trigger_and_worker_ingests: [
        ("main.bicep", "    ingestDisabled: !empty(workerImage)", "    ingestDisabled: false"),
        ("main.bicep", "'app/worker.bicep' = if (!empty(workerImage))", "'app/worker.bicep' = if (workerReplicas > 1)"),
        ("main.bicep", "    settings: settings\n    subnetId", "    settings: appSettings\n    subnetId"),
        ("app/function.bicep", "'AzureWebJobs.ingest.Disabled': 'true'", "'AzureWebJobs.ingest.Disabled': 'false'"),
        ("app/function.bicep", "choices.ingestAlwaysReady > 0 && !ingestDisabled", "choices.ingestAlwaysReady > 0"),
    ],
    wiring.replicas_have_work: [
        ("app/worker.bicep", "maxReplicas: most", "maxReplicas: replicas.maximum"),
        ("app/worker.bicep", "min(max(replicas.always, replicas.maximum), partitions)", "replicas.maximum"),
        ("app/worker.bicep", "minReplicas: min(replicas.always, partitions)", "minReplicas: 0"),
        ("main.bicep", "partitions: partitionCount", "partitions: 1000"),
    ],
    wiring.a_worker_scales_by_its_processor: [
        ("app/worker.bicep", "{ type: 'cpu', metadata", "{ type: 'mssql', metadata"),
        ("app/worker.bicep", "rules: [{", "rules: [{ name: 'lag', custom: { type: 'mssql' } }, {"),
    ],
    wiring.settings_of_the_worker_are_secrets: [
        ("app/worker.bicep", "secretRef: each.name", "value: each.value"),
        (
            "app/worker.bicep",
            "secrets: map(ownSettings, each => { name: each.name, value: each.value })",
            "secrets: []",
        ),
    ],
    wiring.the_virtual_network_closes_all_data: [
        ("main.bicep", "access: vnetEnabled ? 'Private' : 'Public'", "access: 'Public'"),
        ("main.bicep", "access: vnetEnabled ? 'TrustedServices' : 'Public'", "access: 'Public'"),
        ("main.bicep", "    publicAccess: !vnetEnabled\n  }\n  dependsOn", "    publicAccess: true\n  }\n  dependsOn"),
        ("main.bicep", "    publicAccess: !vnetEnabled\n    appSubnetId", "    publicAccess: true\n    appSubnetId"),
    ],
    wiring.modules_wait_for_their_rights: [
        ("main.bicep", "  dependsOn: [captureRoles]\n", ""),
        (
            "main.bicep",
            "  dependsOn: [roles, hubRoles] // the first start of the host fails without them\n",
            "",
        ),
        ("main.bicep", "  dependsOn: [roles, hubRoles]", "  dependsOn: [roles]"),
        ("main.bicep", "  dependsOn: [function] ", "  dependsOn: [roles] "),
        ("main.bicep", "  dependsOn: [group, hub] ", "  dependsOn: [group] "),
        ("app/worker.bicep", "  dependsOn: [pull]\n", ""),
    ],
    wiring.no_secret_of_the_api_reaches_the_worker: [
        ("app/worker.bicep", "!contains(ofTheApi, each.key) && ", ""),
        ("app/worker.bicep", " && !startsWith(each.value, '@Microsoft.KeyVault(')", ""),
        ("app/worker.bicep", "'RESIDENT_LINK_SECRET', ", ""),
    ],
    wiring.the_database_admits_no_stranger: [
        ("app/sql.bicep", "startIpAddress: '0.0.0.0'", "startIpAddress: '8.8.8.8'"),
        ("app/sql.bicep", "if (publicAccess && admitsAzure)", "if (publicAccess)"),
        ("app/sql.bicep", "resource fromApp ", "resource other "),
        ("main.bicep", "admitsAzure: sparkEngine != 'none'", "admitsAzure: true"),
        ("app/network.bicep", ", serviceEndpoints: ['Microsoft.Sql']", ""),
    ],
    wiring.zones_of_hyperscale_have_a_replica: [
        ("app/sql.bicep", "keeping.zoneRedundant && sizes.tier == 'Hyperscale' ? 1 : null", "null"),
    ],
}


def test_the_wires_keep_every_policy() -> None:
    assert [fault for policy in WIRING for fault in policy(FILES)] == []


@holds_for(WIRING)
def test_a_policy_of_the_wires_finds_each_violation_that_is_planted(policy: Policy) -> None:
    planted = PLANTED[policy]
    assert planted
    assert [change for change in planted if not list(policy(with_planted(*change)))] == []


def test_the_role_that_the_smoke_tests_look_for_is_the_one_that_the_template_assigns() -> None:
    assert SENDERS[0] == FILES["app/roles.bicep"].var("roleIds")["Event Hubs Data Sender"]


def test_the_page_says_for_how_long_a_refusal_that_passes_is_tried_again() -> None:
    longest = max(RIGHTS, *(patience for patience, _ in PASSING.values()))
    assert f"is tried again for up to {longest.total_seconds() / 60:.0f} minutes" in PAGE
