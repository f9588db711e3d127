"""The policies of the parameters that an operator chooses: names, regions, sizes, logs, locks, zones, roles."""

import re
from collections.abc import Iterator
from typing import Any

from tests.infra.bicep import Declaration, Expression, File, Files, Policy, at, resources, shown, type_of
from tools.capacity.limits import DATABASES, INSTANCE_CORES, PREMIUM_UNITS

READY_GROUPS = {"function:ingest", "http", "durable"}
# By type: the resource that holds data, and the resource whose logs the workspace stores.
LOCKED = {"Microsoft.EventHub/namespaces", "Microsoft.Sql/servers/databases", "Microsoft.Storage/storageAccounts"}
LOGGED = {
    "Microsoft.EventHub/namespaces",
    "Microsoft.Sql/servers/databases",
    "Microsoft.Storage/storageAccounts/blobServices",
}
RARE = {"ArchiveLogs", "AutoScaleLogs", "DiagnosticErrorLogs", "OperationalLogs"}
RARE |= {"Blocks", "Deadlocks", "Errors", "Timeouts", "StorageDelete"}
ZONED = {
    "Microsoft.EventHub/namespaces": "properties.zoneRedundant",
    "Microsoft.Sql/servers/databases": "properties.zoneRedundant",
    "Microsoft.Storage/storageAccounts": "sku.name",
    "Microsoft.Web/serverfarms": "properties.zoneRedundant",
}
REGION = re.compile("[a-z]+[23]?")
NAMES = re.compile(r"name|(plan|workspace|component|synapse|databricks|actionGroup)Name")


def locations_are_regions_of_flex(files: Files) -> Iterator[str]:
    """Require that azd asks for a region, and offers only those of a list."""
    one = parameter(files["main.bicep"], "location")
    if one.decorators.get("metadata") != ({"azd": {"type": "location"}},):
        yield "main.bicep: location must have the metadata by which azd asks for a region"
    regions = allowed(one)
    if len(regions) < 2 or regions != sorted({*regions}) or not all(map(REGION.fullmatch, regions)):
        yield "main.bicep: location must allow the regions of Flex Consumption, in order"


def sizes_are_those_that_azure_sells(files: Files) -> Iterator[str]:
    """Require that units, cores and memory are lists, which hold each size that tools/capacity computes."""
    cores = {database.v_cores for database in DATABASES}
    sold = {"processingUnits": {*PREMIUM_UNITS}, "sqlVCores": cores, "instanceMemoryMB": {*INSTANCE_CORES}}
    for name, sizes in sold.items():
        if not sizes <= set(allowed(parameter(files["main.bicep"], name))):
            yield f"main.bicep: {name} must be a list with {sorted(sizes)}"
    if set(allowed(parameter(files["main.bicep"], "processingUnits"))) != sold["processingUnits"]:
        yield "main.bicep: processingUnits must be the units of Premium and no more"


def growth_for_ever_is_small_and_said(files: Files) -> Iterator[str]:
    """Require that the namespace grows to 2 units at most by itself, and that the parameter warns."""
    one = parameter(files["main.bicep"], "maximumThroughputUnits")
    if one.value > 2 or "never shrinks" not in str(one.decorators["description"]):
        yield "main.bicep: maximumThroughputUnits must default to 2 and say that the namespace never shrinks"


def functions_start_and_end_as_chosen(files: Files) -> Iterator[str]:
    """Require the always-ready groups of the trigger, of HTTP and of Durable, and a chosen strategy of updates."""
    file = files["app/function.bicep"]
    groups = {at(part, "name") for part in parts(file.var("alwaysReady"))}
    yield from (f"app/function.bicep: no always-ready group {name}" for name in sorted(READY_GROUPS - groups))
    app = next(one for one in file.of_kind("resource") if type_of(one) == "Microsoft.Web/sites")
    strategy = shown(at(app.value, "properties.functionAppConfig.siteUpdateStrategy.type"))
    known = allowed(parameter(files["main.bicep"], "updateStrategy"))
    if strategy != "choices.updateStrategy" or known != ["Recreate", "RollingUpdate"]:
        yield "app/function.bicep: updateStrategy must decide how instances are replaced"


def no_password_deploys(files: Files) -> Iterator[str]:
    """Require that deployment by password is off for ftp and for scm, each after the change before it (409)."""
    found = of_type(files, "Microsoft.Web/sites/basicPublishingCredentialsPolicies")
    doors = {at(one.value, "name"): shown(one.value.get("dependsOn")) for _, one in found}
    if doors != {"ftp": "[appSettings]", "scm": "[ftp]"}:
        yield "app/function.bicep: passwords must be refused by ftp and by scm, one after the other"


def zones_are_one_choice(files: Files) -> Iterator[str]:
    """Require that zoneRedundant of main.bicep decides for hub, database, storage and plan."""
    for file, one in resources(files):
        if type_of(one) in ZONED and "zoneRedundant" not in shown(at(one.value, ZONED[type_of(one)])):
            yield f"{file.name}:{one.line}: zoneRedundant must decide on {one.name}"
    yield from _decided(files, "zoneRedundant", "zoneRedundant")


def services_log_into_the_workspace(files: Files) -> Iterator[str]:
    """Require a diagnostic setting on hub, database and blobs, off by parameter and rare by default."""
    settings = of_type(files, "Microsoft.Insights/diagnosticSettings")
    yield from _scopes_missing(files, settings, LOGGED, "has no diagnostic setting")
    for file, one in settings:
        if one.head == "if (auditing)":
            continue
        categories = set(re.findall(r"'(\w+)'", shown(at(one.value, "properties.logs")))) - {"all", "allLogs"}
        sink = shown(at(one.value, "properties.workspaceId"))
        if one.head != "if (keeping.diagnosticLogs != 'none')" or sink != "keeping.workspaceId":
            yield f"{file.name}:{one.line}: diagnosticLogs must decide whether the workspace gets logs"
        if not categories or not categories <= RARE:
            yield f"{file.name}:{one.line}: {sorted(categories - RARE)} are not rare"


def audits_are_chosen_and_rare(files: Files) -> Iterator[str]:
    """Require that the audit of the database is off by default, and has no line for each statement."""
    file = files["app/sql.bicep"]
    for one in file.of_kind("resource"):
        if one.name.startswith("audit") and one.head != "if (auditing)":
            yield f"app/sql.bicep:{one.line}: auditing must decide on {one.name}"
    if parameter(files["main.bicep"], "sqlAuditing").value is not False or "'BATCH_COMPLETED_GROUP'" in file.text:
        yield "app/sql.bicep: an audit must be chosen, and must not have a line for each statement"


def silence_is_expected_until_the_app_is_there(files: Files) -> Iterator[str]:
    """Require that the alert on silence is off until the hook after a deployment says that there is an app."""
    rule = next(one for one in files["app/alerts.bicep"].of_kind("module") if one.name == "rule")
    if shown(at(rule.value, "params.enabled")) != "alert.name != 'watch-silent' || watchExpected":
        yield "app/alerts.bicep: watchExpected must decide on the alert watch-silent, and on no other"
    call = next(one for one in files["main.bicep"].of_kind("module") if one.name == "alerts")
    if shown(at(call.value, "params.watchExpected")) != "appDeployed":
        yield "main.bicep: appDeployed must decide on the alert on silence"


def data_can_be_locked(files: Files) -> Iterator[str]:
    """Require a lock against deletion on hub, database and storage, by parameter."""
    locks = of_type(files, "Microsoft.Authorization/locks")
    yield from _scopes_missing(files, locks, LOCKED, "has no lock")
    for file, one in locks:
        if one.head != "if (keeping.locked)" or at(one.value, "properties.level") != "CanNotDelete":
            yield f"{file.name}:{one.line}: a lock must be chosen and must refuse only deletions"
    yield from _decided(files, "locked", "deleteLocks")


def names_can_be_chosen(files: Files) -> Iterator[str]:
    """Require that each resource has a name that resourceNames can replace, that each kind has the limits of its
    names, and that a wrong kind is refused."""
    main = files["main.bicep"]
    given = [(one, key, value) for one in main.of_kind("module") for key, value in one.value["params"].items()]
    given += [(one, "name", one.value["name"]) for one in main.of_kind("resource")]
    kinds = set(main.var("conventionalNames"))
    used = set()
    for one, key, value in given:
        found = re.fullmatch(r"resourceName\.(\w+)", shown(value))
        if NAMES.fullmatch(key) and (found is None or found[1] not in kinds):
            yield f"main.bicep:{one.line}: {key} of {one.name} must be a name of resourceName"
        used |= {found[1]} if found else set()
    yield from (f"main.bicep: no resource has the name {kind}" for kind in sorted(kinds - used))
    yield from (f"main.bicep: names of {kind} have no limits" for kind in sorted(kinds ^ set(main.var("nameLimits"))))
    if "'resourceNames: no resource is called " not in shown(main.var("refusals")):
        yield "main.bicep: resourceNames with an unknown key must be refused"


def receivers_come_from_the_environment(files: Files) -> Iterator[str]:
    """Require that the addresses of mails and webhooks are texts of azd, of which each is checked, and that all get the
    common schema."""
    main, file = files["main.bicep"], files["app/alerts.bicep"]
    alerts = next(one for one in main.of_kind("module") if one.name == "alerts")
    group = next(one for one in file.of_kind("module") if one.name == "actionGroup")
    for name, wrong, given, kind in (
        ("alertEmails", "wrongEmails", "emails", "emailReceivers"),
        ("alertWebhooks", "wrongWebhooks", "webhooks", "webhookReceivers"),
    ):
        choice = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
        is_checked = f"'{choice}: " in shown(main.var("refusals")) and wrong in shown(main.var("refusals"))
        if parameter(main, name).of != "string" or not is_checked:
            yield f"main.bicep: {choice} must be a text whose addresses are checked"
        if shown(at(alerts.value, f"params.receivers.{given}")) != given:
            yield f"main.bicep: the alerts must get the addresses of {choice}"
        sent = shown(at(group.value, f"params.{kind}"))
        if f"in receivers.{given}" not in sent or "useCommonAlertSchema: true" not in sent:
            yield f"app/alerts.bicep: {kind} must be {given}, with the common schema"


def developers_get_the_roles_that_are_chosen(files: Files) -> Iterator[str]:
    """Require that the deployer sends by default and reads the hub by choice only."""
    main = files["main.bicep"]
    grants = re.sub(r"\s+", " ", shown(main.var("hubGrants")))
    for condition, role in (("== 'none' ? [] : [", "Sender"), ("== 'sendAndReceive' ? [", "Receiver")):
        if (
            f"developerRoles {condition} {{ target: consumerGroups.outputs.grantTarget role: 'Event Hubs Data {role}'"
            not in grants
        ):
            yield f"main.bicep: developerRoles must decide on Event Hubs Data {role}"
    if grants.count("to: toDeployer") != 2 or parameter(main, "developerRoles").value != "send":
        yield "main.bicep: the deployer may only send to the hub by default"


CHOICES: tuple[Policy, ...] = (
    locations_are_regions_of_flex,
    sizes_are_those_that_azure_sells,
    growth_for_ever_is_small_and_said,
    functions_start_and_end_as_chosen,
    no_password_deploys,
    zones_are_one_choice,
    services_log_into_the_workspace,
    audits_are_chosen_and_rare,
    silence_is_expected_until_the_app_is_there,
    data_can_be_locked,
    names_can_be_chosen,
    receivers_come_from_the_environment,
    developers_get_the_roles_that_are_chosen,
)


def parameter(file: File, name: str) -> Declaration:
    """Return a parameter of a file."""
    return next(one for one in file.of_kind("parameter") if one.name == name)


def allowed(one: Declaration) -> list[Any]:
    """Return the values of a parameter's list; an empty list where it has none."""
    return list(one.decorators.get("allowed", ([],))[0])


def of_type(files: Files, kind: str) -> list[tuple[File, Declaration]]:
    """Return the resources of a type, each with its file."""
    return [(file, one) for file, one in resources(files) if type_of(one) == kind]


def _decided(files: Files, choice: str, parameter_of_main: str) -> Iterator[str]:
    """Require that each module which keeps something gets a choice as the parameter of main.bicep has it."""
    main = files["main.bicep"]
    if shown(main.var("keeping")[choice]) != parameter_of_main:
        yield f"main.bicep: {parameter_of_main} must decide on keeping.{choice}"
    for one in main.of_kind("module"):
        module = files.get(one.of)
        known = module is not None and any(each.name == "keeping" for each in module.of_kind("parameter"))
        if known and shown(at(one.value, "params.keeping")) != "keeping":
            yield f"main.bicep:{one.line}: {one.name} must keep as the operator chose"


def parts(value: object) -> Iterator[object]:
    """Yield the objects in the arrays of an expression."""
    if isinstance(value, Expression):
        yield from (each for part in value.parts if isinstance(part, list) for each in part)


def _scopes_missing(files: Files, found: list[tuple[File, Declaration]], types: set[str], fault: str) -> Iterator[str]:
    scopes = {(file.name, shown(at(one.value, "scope"))) for file, one in found}
    for file, one in resources(files):
        if type_of(one) in types and (file.name, one.name) not in scopes:
            yield f"{file.name}:{one.line}: {one.name} {fault}"
