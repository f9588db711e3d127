"""The choices of an operator keep every policy, and every policy finds its planted violations."""

import re

from infra.hooks.deployer.address import ADDRESS
from infra.hooks.deployer.provider import PROVIDER
from tests.infra import choices
from tests.infra.bicep import Policy
from tests.infra.choices import CHOICES
from tests.infra.test_policies import FILES, FOLDER, with_planted
from tests.offenders import holds_for
from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
YOUR_HUB = (
    (ROOT / "docs" / "your-hub.md").read_text(encoding="utf-8").partition("\n## By azd\n")[2].partition("\n## ")[0]
)

# By policy: the file, the text that stands there, and the violation that is planted in its place.
PLANTED: dict[Policy, list[tuple[str, str, str]]] = {
    choices.locations_are_regions_of_flex: [
        ("main.bicep", "type: 'location'", "type: 'generate'"),
        ("main.bicep", "@metadata({ azd: { type: 'location' } })\n", ""),
        ("main.bicep", "  'australiaeast'\n", "  'Australia East'\n"),
        ("main.bicep", "  'australiaeast'\n", "  'westus4'\n"),
    ],
    choices.sizes_are_those_that_azure_sells: [
        ("main.bicep", " | 12 | 16 = 1", " | 16 = 1"),
        ("main.bicep", " | 12 | 16 = 1", " | 12 | 16 | 20 = 1"),
        ("main.bicep", "param sqlVCores 1 | 2 | 4 | 6 | 8 | ", "param sqlVCores 1 | 2 | 4 | 6 | "),
        ("main.bicep", " | 4096 = 2048", " = 2048"),
    ],
    choices.growth_for_ever_is_small_and_said: [
        ("main.bicep", "param maximumThroughputUnits int = 2", "param maximumThroughputUnits int = 10"),
        ("main.bicep", "it never shrinks by itself", "it grows"),
    ],
    choices.functions_start_and_end_as_chosen: [
        ("app/function.bicep", "name: 'durable'", "name: 'function:durable'"),
        ("app/function.bicep", "name: 'function:ingest'", "name: 'ingest'"),
        ("app/function.bicep", "siteUpdateStrategy: { type: choices.updateStrategy }", "x: {}"),
        ("app/function.bicep", "{ type: choices.updateStrategy }", "{ type: 'Recreate' }"),
        ("main.bicep", " | 'RollingUpdate'", ""),
    ],
    choices.no_password_deploys: [
        ("app/function.bicep", "name: 'scm'", "name: 'ftp'"),
        ("app/function.bicep", "dependsOn: [ftp]", "dependsOn: [app]"),
        ("app/function.bicep", "  dependsOn: [appSettings]\n", ""),
    ],
    choices.zones_are_one_choice: [
        ("app/hub.bicep", "keeping.zoneRedundant ? true : null", "null"),
        ("app/sql.bicep", "    zoneRedundant: keeping.zoneRedundant\n", "    zoneRedundant: false\n"),
        ("app/storage.bicep", "keeping.zoneRedundant ? 'Standard_ZRS' : 'Standard_LRS'", "'Standard_LRS'"),
        ("app/function.bicep", ", zoneRedundant: choices.zoneRedundant }", " }"),
        ("main.bicep", "  zoneRedundant: zoneRedundant\n  workspaceId", "  zoneRedundant: false\n  workspaceId"),
        (
            "main.bicep",
            "    keeping: keeping\n",
            "    keeping: { zoneRedundant: false, diagnosticLogs: 'all', locked: false }\n",
        ),
    ],
    choices.services_log_into_the_workspace: [
        ("app/hub.bicep", "  scope: namespace\n", "  scope: hub\n"),
        ("app/sql.bicep", "keeping.diagnosticLogs != 'none'", "true"),
        ("app/sql.bicep", "'Blocks', ", "'DatabaseWaitStatistics', "),
        ("app/storage.bicep", "['StorageDelete']", "['StorageDelete', 'StorageRead']"),
        ("app/storage.bicep", "    workspaceId: keeping.workspaceId\n", ""),
    ],
    choices.audits_are_chosen_and_rare: [
        ("main.bicep", "param sqlAuditing bool = false", "param sqlAuditing bool = true"),
        ("app/sql.bicep", "      'DATABASE_PERMISSION_CHANGE_GROUP'", "      'BATCH_COMPLETED_GROUP'"),
        ("app/sql.bicep", "auditingSettings@2023-08-01' = if (auditing)", "auditingSettings@2023-08-01' = if (true)"),
    ],
    choices.silence_is_expected_until_the_app_is_there: [
        ("app/alerts.bicep", "alert.name != 'watch-silent' || watchExpected", "watchExpected"),
        ("main.bicep", "watchExpected: appDeployed", "watchExpected: true"),
    ],
    choices.data_can_be_locked: [
        ("app/hub.bicep", "if (keeping.locked)", "if (!keeping.locked)"),
        ("app/sql.bicep", "  scope: database\n  properties: { level", "  scope: server\n  properties: { level"),
        ("app/storage.bicep", "'CanNotDelete'", "'ReadOnly'"),
        ("main.bicep", "  locked: deleteLocks\n", "  locked: false\n"),
    ],
    choices.names_can_be_chosen: [
        ("main.bicep", "name: resourceName.sqlServer", "name: 'sql-${token}'"),
        ("main.bicep", "  name: resourceName.resourceGroup\n", "  name: 'rg'\n"),
        ("main.bicep", "name: resourceName.functionApp", "name: resourceName.funktionApp"),
        ("main.bicep", "planName: resourceName.functionPlan", "planName: resourceName.functionApp"),
        ("main.bicep", "['resourceNames: no resource is called ", "['"),
        ("main.bicep", "  lake: { least: 3, most: 24, shape: shapes.account }\n", ""),
    ],
    choices.receivers_come_from_the_environment: [
        ("main.bicep", "param alertEmails string = ''", "param alertEmails string[] = []"),
        ("main.bicep", "'ALERT_EMAILS: ", "'EMAILS: "),
        ("main.bicep", "map(wrongEmails, ", "map([], "),
        ("main.bicep", "emails: emails,", "emails: wrongEmails,"),
        ("main.bicep", "empty(wrongWebhooks) ? [] : ['ALERT_WEBHOOKS: ", "empty(wrongWebhooks) ? [] : ['"),
        ("main.bicep", "webhooks: webhooks }", "webhooks: [] }"),
        ("app/alerts.bicep", "serviceUri: address, useCommonAlertSchema: true", "serviceUri: address"),
        ("app/alerts.bicep", "emailAddress: email, useCommonAlertSchema: true", "emailAddress: email"),
    ],
    choices.developers_get_the_roles_that_are_chosen: [
        ("main.bicep", "developerRoles == 'none'", "developerRoles == 'no'"),
        ("main.bicep", "developerRoles == 'sendAndReceive'", "developerRoles != 'none'"),
        ("main.bicep", "'sendAndReceive' = 'send'", "'sendAndReceive' = 'sendAndReceive'"),
    ],
}


def test_the_choices_keep_every_policy() -> None:
    assert [fault for policy in CHOICES for fault in policy(FILES)] == []


@holds_for(CHOICES)
def test_a_policy_finds_each_violation_that_is_planted(policy: Policy) -> None:
    planted = PLANTED[policy]
    assert planted
    assert [change for change in planted if not list(policy(with_planted(*change)))] == []


def test_the_page_names_each_setting_of_the_parameters_with_its_default() -> None:
    """Compare the tables of deploy.md and your-hub.md with main.parameters.json; azd itself sets AZURE_*."""
    given = (FOLDER / "main.parameters.json").read_text(encoding="utf-8")
    settings = dict(re.findall(r"\$\{([A-Z_]+)=?(.*?)\}", given))
    choices = PAGE.partition("\n## Choices\n")[2].partition("\n## ")[0] + YOUR_HUB
    rows = re.findall(r"^\| (`[A-Z_`, ]+`) \|([^|\n]*)\|", choices, flags=re.MULTILINE)
    said = {
        name: default.strip(" `")
        for names, defaults in rows
        for name, default in zip(re.findall(r"\w+", names), defaults.split(","), strict=True)
    }
    known = {name: default for name, default in settings.items() if not name.startswith("AZURE_")}
    assert said == {**known, ADDRESS: ""}


def test_the_kinds_of_names_are_where_the_page_says() -> None:
    assert "`conventionalNames` in `infra/main.bicep`" in PAGE
    assert {"sqlServer", "lake"} < set(FILES["main.bicep"].var("conventionalNames"))


def test_the_hook_registers_the_provider_of_the_subnets() -> None:
    (provider,) = set(re.findall(r"delegation: '([\w.]+)/", FILES["app/network.bicep"].text))
    assert provider == PROVIDER
