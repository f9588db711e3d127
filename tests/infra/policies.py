"""The policies of our templates. A policy takes all files and yields each violation."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.infra.bicep import Expression, Files, Policy, all_of, at, nodes_in, resources, shown, type_of

# By resource type: the paths that must be there, with the values that they may have.
MUST: dict[str, dict[str, tuple[Any, ...]]] = {
    "Microsoft.Storage/storageAccounts": {
        "properties.allowSharedKeyAccess": (False,),
        "properties.allowBlobPublicAccess": (False,),
        "properties.allowCrossTenantReplication": (False,),
        "properties.defaultToOAuthAuthentication": (True,),
        "properties.minimumTlsVersion": ("TLS1_2", "TLS1_3"),
        "properties.supportsHttpsTrafficOnly": (True,),
    },
    "Microsoft.Storage/storageAccounts/blobServices/containers": {"properties.publicAccess": ("None",)},
    "Microsoft.EventHub/namespaces": {
        "properties.disableLocalAuth": (True,),
        "properties.minimumTlsVersion": ("1.2", "1.3"),
    },
    "Microsoft.Sql/servers": {
        "properties.administrators.azureADOnlyAuthentication": (True,),
        "properties.minimalTlsVersion": ("1.2", "1.3"),
        "properties.restrictOutboundNetworkAccess": ("Enabled",),
    },
    "Microsoft.Synapse/workspaces": {"properties.azureADOnlyAuthentication": (True,)},
    "Microsoft.Insights/components": {
        "properties.DisableLocalAuth": (True,),
        "properties.SamplingPercentage": (100,),  # ingestion would drop facts that alerts read
    },
    "Microsoft.OperationalInsights/workspaces": {"properties.features.disableLocalAuth": (True,)},
    "Microsoft.Web/sites": {
        "identity.type": ("UserAssigned",),
        "properties.httpsOnly": (True,),
        "properties.siteConfig.ftpsState": (None,),  # some regions of Flex Consumption refuse it: error 51021
        "properties.siteConfig.minTlsVersion": ("1.2", "1.3"),
        "properties.siteConfig.scmMinTlsVersion": ("1.2", "1.3"),
        "properties.functionAppConfig.deployment.storage.authentication.type": ("UserAssignedIdentity",),
    },
    "Microsoft.Web/sites/basicPublishingCredentialsPolicies": {"properties.allow": (False,)},
}
ENTRA = "properties.identityProviders.azureActiveDirectory"
SIGN_IN: dict[str, object] = {
    "properties.globalValidation.requireAuthentication": False,
    "properties.globalValidation.unauthenticatedClientAction": "AllowAnonymous",
    "properties.httpSettings.requireHttps": True,
    "properties.httpSettings.forwardProxy.convention": "NoProxy",
    "properties.login.tokenStore.enabled": False,
}
# Paths that no middleware would look at, and a secret that somebody would have to store.
NOT_OF_SIGN_IN = (
    "properties.globalValidation.excludedPaths",
    "properties.platform.configFilePath",
    f"{ENTRA}.registration.clientSecretSettingName",
    "properties.login.allowedExternalRedirectUrls",
)
NO_OBJECT_ID = "principalType == 'ServicePrincipal' ? '' : principalId"
CLOSABLE = ("Microsoft.Storage/storageAccounts", "Microsoft.EventHub/namespaces", "Microsoft.Sql/servers")
ALERTS = {
    "aggregation-failed",
    "aggregation-lag",
    "aggregation-quality",
    "events-absent",
    "events-expiring",
    "events-lost",
    "lag",
    "ledger-unbalanced",
    "letter-old",
    "letters-open",
    "log-cap",
    "partition-stopped",
    "stop-recorded",
    "watch-silent",
}
# The released version, 2016-09-01, knows no category groups; every template of Azure uses this one.
PREVIEW_ONLY = {"Microsoft.Insights/diagnosticSettings@2021-05-01-preview"}
SECRET_CALL = re.compile(r"\blist(Keys|Secrets|Sas|AccountSas|ServiceSas|ConnectionStrings|Credentials|\w*Key\w*)\s*\(")
SECRET_TEXT = re.compile(r"AccountKey=|SharedAccessKey|\bPwd=|Password=|\bsig=|primaryKey|secondaryKey", re.IGNORECASE)
IN_THE_VAULT = re.compile(r"secrets(\[\d+\])?|secretRef")  # parameters that may only refer to Key Vault
SECRET_NAME = re.compile(r"password|secret|sharedKey|accountKey|sasToken", re.IGNORECASE)


def syntax_is_whole(files: Files) -> Iterator[str]:
    """Require that each file parses."""
    yield from (f"{file.name}:{line}: not Bicep" for file in files.values() for line in file.errors)


def guards_are_on(files: Files) -> Iterator[str]:
    """Forbid shared keys, anonymous blobs, SQL logins, old TLS and plain HTTP."""
    for file, one in resources(files):
        for path, allowed in MUST.get(type_of(one), {}).items():
            value = at(one.value, path)
            if value not in allowed or isinstance(value, bool) != isinstance(allowed[0], bool):
                yield f"{file.name}:{one.line}: {one.name}.{path} must be {allowed[0]!r}, not {shown(value)}"


def networks_can_be_closed(files: Files) -> Iterator[str]:
    """Require that a parameter decides on the public access to each resource with data."""
    for file, one in resources(files):
        value = at(one.value, "properties.publicNetworkAccess")
        if type_of(one) in CLOSABLE and (value is None or value == "Enabled"):
            yield f"{file.name}:{one.line}: {one.name}.publicNetworkAccess must depend on a parameter"
        if type_of(one).endswith("/firewallRules") and at(one.value, "properties.endIpAddress") == "255.255.255.255":
            yield f"{file.name}:{one.line}: {one.name} admits the whole internet"


def nothing_holds_a_secret(files: Files) -> Iterator[str]:
    """Forbid requests for keys, values that look like keys, and names that sound like keys."""
    for file in files.values():
        for number, line in enumerate(file.text.splitlines(), 1):
            code = line.split("//")[0] if not line.lstrip().startswith("@description") else ""
            if SECRET_CALL.search(code) or SECRET_TEXT.search(code):
                yield f"{file.name}:{number}: holds or requests a key: {line.strip()[:60]}"
        for one in file.declarations:
            names = [one.name, *(path.rpartition(".")[2] for path, _ in nodes_in(one.value))]
            yield from (f"{file.name}:{one.line}: {name} sounds like a secret" for name in names if _secret(name))


def settings_stay_out_of_the_history(files: Files) -> Iterator[str]:
    """Require that the history of deployments shows no setting of an operator: secure parameters, and no output."""
    for file, one in all_of(files, "parameter"):
        if one.name in ("settings", "appSettings") and "secure" not in one.decorators:
            yield f"{file.name}:{one.line}: {one.name} must be @secure()"
    for file, one in all_of(files, "output"):
        if one.of == "object" or re.search(r"\b(s|appS)ettings\b", shown(one.value)):
            yield f"{file.name}:{one.line}: output {one.name} shows more than a name, an id or an address"


def secrets_stay_in_the_vault(files: Files) -> Iterator[str]:
    """Require that a secret that is written out is read from Key Vault by identity, and has no value there."""
    for file, one in all_of(files, "module"):
        for path, given in nodes_in(one.value):
            is_secret = re.search(r"\.secrets\[\d+\]$", path) and isinstance(given, dict)
            if is_secret and set(given) != {"name", "keyVaultUrl", "identity"}:
                yield f"{file.name}:{one.line}: {one.name}{path} must have keyVaultUrl and identity, and no value"


def every_service_takes_an_identity(files: Files) -> Iterator[str]:
    """Require that the host's storage and the hub are connected by identity, and never by a connection string."""
    settings = files["app/function.bicep"].var("hostSettings")
    for prefix in ("AzureWebJobsStorage", "EVENTHUB"):
        if settings.get(f"{prefix}__credential") != "managedidentity" or f"{prefix}__clientId" not in settings:
            yield f"app/function.bicep: {prefix} must be connected by __credential and __clientId"
    if not str(shown(settings.get("APPLICATIONINSIGHTS_AUTHENTICATION_STRING"))).endswith("Authorization=AAD'"):
        yield "app/function.bicep: telemetry must be sent with Authorization=AAD"
    for file, one in (*all_of(files, "module"), *all_of(files, "variable")):
        for path, _ in nodes_in(one.value):
            if path.rpartition(".")[2] in ("AzureWebJobsStorage", "EVENTHUB"):
                yield f"{file.name}:{one.line}: {one.name}{path} is a connection string; connect by identity"


def rights_are_named_and_explained(files: Files) -> Iterator[str]:
    """Require that each assignment has one resource as scope, and each grant a known role and a reason."""
    roles = files["app/roles.bicep"].var("roleIds")
    yield from (f"app/roles.bicep: {name} is too wide" for name in roles if name in ("Owner", "Contributor"))
    for file, one in resources(files):
        if type_of(one) == "Microsoft.Authorization/roleAssignments" and "scope" not in one.value:
            yield f"{file.name}:{one.line}: {one.name} has no scope: it would hold for the whole group"
    main = files["main.bicep"]
    for file, one in (*all_of(files, "module"), *((main, one) for one in main.of_kind("variable"))):
        for path, grant in nodes_in(one.value):
            keys = set(grant) if isinstance(grant, dict) else set()
            if keys & {"to", "principalId"} and keys != {"principalId", "principalType"} and "scope" not in keys:
                yield from (f"{file.name}:{one.line}: {one.name}{path}: {fault}" for fault in _grant(grant, roles))
    if "description: each.reason" not in files["app/roles.bicep"].text:
        yield "app/roles.bicep: the reason of a grant must be its description"


def rights_are_the_least(files: Files) -> Iterator[str]:
    """Require that the deployer has no right on a whole account, and one on the jobs only with an engine; that no
    module assigns a wide role; and that Capture can be turned off again."""
    roles = next(one for one in files["main.bicep"].of_kind("module") if one.name == "roles")
    if re.search(r"to: toDeployer\b", shown(at(roles.value, "params.storageGrants"))):
        yield "main.bicep: the deployer must have no right on a whole account"
    grants = " ".join(shown(at(roles.value, "params.containerGrants")).split())
    if not grants.startswith("sparkEngine == 'none' ? [] :") or "/default/${sparkContainer}'" not in grants:
        yield "main.bicep: the deployer may write to the container of the jobs, and only with an engine"
    for file, one in all_of(files, "module"):
        for path, value in nodes_in(one.value):
            if path.endswith(("roleDefinitionIdOrName", "roleName")) and value in ("Contributor", "Owner"):
                yield f"{file.name}:{one.line}: {one.name}{path} is too wide"
    if shown(at(_hub(files), "properties.captureDescription.enabled")) != "sizes.captureEnabled":
        yield "app/hub.bicep: captureDescription must be there with enabled: sizes.captureEnabled"


def _hub(files: Files) -> Any:
    return next(one.value for one in files["app/hub.bicep"].of_kind("resource") if one.name == "hub")


def sign_in_admits_one_tenant_and_leaves_keys_alone(files: Files) -> Iterator[str]:
    """Require that a parameter turns sign-in on, that only our tenant may sign in, that a caller with a key and without
    a token reaches the app, which checks roles, and that no path is left to forged headers."""
    found = [
        (file, one)
        for file, one in resources(files)
        if type_of(one) == "Microsoft.Web/sites/config" and at(one.value, "name") == "authsettingsV2"
    ]
    if len(found) != 1:
        yield f"the templates must configure sign-in once, not {len(found)} times"
    for file, one in found:
        where = f"{file.name}:{one.line}: {one.name}"
        yield from (
            f"{where}.{path} must be {value!r}" for path, value in SIGN_IN.items() if at(one.value, path) != value
        )
        for path in ("properties.platform.enabled", f"{ENTRA}.enabled"):
            if not isinstance(at(one.value, path), Expression):
                yield f"{where}.{path} must depend on a parameter"
        if "${tenant().tenantId}" not in shown(at(one.value, f"{ENTRA}.registration.openIdIssuer")):
            yield f"{where}: the issuer must be that of the tenant"
        yield from (f"{where} must not have {path}" for path in NOT_OF_SIGN_IN if at(one.value, path) is not None)
    for file, call in all_of(files, "module"):
        if call.name == "function" and shown(at(call.value, "params.signInClientId")) != "signInClientId":
            yield f"{file.name}:{call.line}: the client id of sign-in must be the parameter signInClientId"


def the_administrator_is_known_to_the_database(files: Files) -> Iterator[str]:
    """Require that the object id of a service principal never becomes the SID of the server's administrator.

    Azure SQL knows a service principal by its application id; an empty id is refused before the server is made.
    """
    server = next((one for _, one in resources(files) if type_of(one) == "Microsoft.Sql/servers"), None)
    if server is None or shown(at(server.value, "properties.administrators.sid")) != "administrator.id":
        yield "app/sql.bicep: the sid of the administrator must be the parameter administrator"
    kind = shown(at(server.value, "properties.administrators.principalType")) if server else ""
    if kind != "administrator.type == 'ServicePrincipal' ? 'Application' : administrator.type":
        yield "app/sql.bicep: a service principal is an Application to the server"
    main = files["main.bicep"]
    given = next(one for one in main.of_kind("module") if one.name == "sql").value["params"]
    sid = shown(at(given, "administrator.id"))
    for one in main.of_kind("variable"):
        sid = f"({shown(one.value)})".join(re.split(rf"\b{one.name}\b", sid))
    if re.search(r"\bprincipalId\b|deployer\(\)", sid.replace(NO_OBJECT_ID, "")):
        yield "main.bicep: the object id of a service principal must not become the administrator of the database"
    if "sqlAdministratorId" not in sid:
        yield "main.bicep: the administrator of the database must be a parameter"


def alerts_are_there(files: Files) -> Iterator[str]:
    """Require that each alert has a severity, a description and a query file, and that its rule notifies people."""
    file = files["app/alerts.bicep"]
    alerts = {alert["name"]: alert for alert in file.var("alerts")}
    yield from (f"app/alerts.bicep: alert {name} is missing" for name in sorted(ALERTS - set(alerts)))
    for name, alert in alerts.items():
        if f"alerts/{name}.kql" not in shown(alert["query"]):
            yield f"app/alerts.bicep: {name} must use the query alerts/{name}.kql"
        if not isinstance(alert["severity"], int) or len(str(alert["description"])) < 30:
            yield f"app/alerts.bicep: {name} needs a severity and a description that helps"
    rule = next(one for one in file.of_kind("module") if one.name == "rule")
    if "actionGroup" not in shown(at(rule.value, "params.actions.actionGroupResourceIds")):
        yield "app/alerts.bicep: the rules must name the action group"
    if "app/alerts.bicep" not in {one.of for one in files["main.bicep"].of_kind("module")}:
        yield "main.bicep: the alerts are not deployed"


def parameters_are_described_and_limited(files: Files) -> Iterator[str]:
    """Require a @description on each. What comes in from outside has limits: in main.bicep a text has a length or a
    list of values, a number a range."""
    for file, one in all_of(files, "parameter"):
        where = f"{file.name}:{one.line}: {one.name}"
        if len(str(one.decorators.get("description", [""])[0])) < 10:
            yield f"{where} has no @description"
        limits = set(one.decorators)
        if file.name != "main.bicep":
            continue
        if (one.of == "string" or one.of.endswith("[]")) and not limits & {"allowed", "maxLength"}:
            yield f"{where} has no @maxLength or @allowed"
        if one.of == "int" and "allowed" not in limits and not {"minValue", "maxValue"} <= limits:
            yield f"{where} has no @minValue and @maxValue"
    for file, one in all_of(files, "output"):
        if "description" not in one.decorators:
            yield f"{file.name}:{one.line}: output {one.name} has no @description"


def types_are_checked(files: Files) -> Iterator[str]:
    """Require that the compiler sees the type of each value: no bare array or object, and no resource out of `union`,
    which switches the types of its properties off; settings and tags have names of the operator."""
    for kind in ("parameter", "output"):
        for file, one in all_of(files, kind):
            if one.of in ("array", "object"):
                yield f"{file.name}:{one.line}: {kind} {one.name} must say the type of its parts"
    for file, one in resources(files):
        for path, value in nodes_in(one.value):
            is_open = path == ".tags" or type_of(one) == "Microsoft.Web/sites/config"
            if isinstance(value, Expression) and value.text.startswith("union(") and not is_open:
                yield f"{file.name}:{one.line}: {one.name}{path} must be a plain object"
        if re.search(r"for \w+ in \['", one.head):
            yield f"{file.name}:{one.line}: {one.name} needs one resource for each name, which decides on its type"


def main_only_wires(files: Files) -> Iterator[str]:
    """Require that the group is the only resource of main.bicep, and that each file of app/ is used."""
    main = files["main.bicep"]
    for one in main.of_kind("resource"):
        if type_of(one) != "Microsoft.Resources/resourceGroups":
            yield f"main.bicep:{one.line}: {one.name} belongs into a file of app/"
    used = {one.of for one in main.of_kind("module")}
    yield from (f"{name} is not used" for name in files if name != "main.bicep" and name not in used)


def outputs_are_read(files: Files) -> Iterator[str]:
    """Require that main.bicep reads each output of a module; the compiler finds only parameters that nobody reads."""
    read = set(re.findall(r"\.outputs\.(\w+)", files["main.bicep"].text))
    for file, one in all_of(files, "output"):
        if file.name != "main.bicep" and one.name not in read:
            yield f"{file.name}:{one.line}: nobody reads the output {one.name}"


def versions_are_stable(files: Files) -> Iterator[str]:
    """Forbid preview APIs where Azure has a released one, and modules of the registry without one version."""
    for file, one in all_of(files, "resource"):
        if one.of in PREVIEW_ONLY:
            continue
        if "preview" in one.of or not re.search(r"@\d{4}-\d\d-\d\d$", one.of):
            yield f"{file.name}:{one.line}: {one.name} must have a released API version, not {one.of}"
    for file, one in all_of(files, "module"):
        if one.of.startswith("br") and not re.search(r":\d+\.\d+\.\d+$", one.of):
            yield f"{file.name}:{one.line}: {one.of} must name one version"


POLICIES: tuple[Policy, ...] = (
    syntax_is_whole,
    guards_are_on,
    networks_can_be_closed,
    nothing_holds_a_secret,
    settings_stay_out_of_the_history,
    secrets_stay_in_the_vault,
    every_service_takes_an_identity,
    rights_are_named_and_explained,
    rights_are_the_least,
    sign_in_admits_one_tenant_and_leaves_keys_alone,
    the_administrator_is_known_to_the_database,
    alerts_are_there,
    parameters_are_described_and_limited,
    types_are_checked,
    main_only_wires,
    outputs_are_read,
    versions_are_stable,
)


def _secret(name: str) -> bool:
    allowed = name.startswith("allow") or IN_THE_VAULT.fullmatch(name)
    return bool(SECRET_NAME.search(name)) and not allowed


def _grant(grant: Mapping[str, Any], roles: Mapping[str, str]) -> Iterator[str]:
    known = grant.get("role") in roles if "role" in grant else {"roleDefinitionIdOrName", "roleName"} & set(grant)
    if not known:
        yield f"role {shown(grant.get('role'))} is not one of app/roles.bicep"
    if len(str(grant.get("reason", grant.get("description", "")))) < 20:
        yield "says no reason"
    if not {"to", "principalType"} & set(grant):
        yield "says no principalType"
