"""The policies of the connections between modules: networks, the order of roles, and the worker beside the trigger."""

from collections.abc import Iterator

from tests.infra.bicep import Files, Policy, all_of, at, nodes_in, shown

# By module of main.bicep: the parameter by which the choice of a virtual network closes it, and its value.
CLOSED = {
    "hostStorage": ("access", "vnetEnabled ? 'Private' : 'Public'"),
    "lake": ("access", "vnetEnabled ? 'TrustedServices' : 'Public'"),
    "hub": ("publicAccess", "!vnetEnabled"),
    "sql": ("publicAccess", "!vnetEnabled"),
}
WAITS = {  # Azure refuses, or the host fails, without
    "hub": "captureRoles",
    "consumerGroups": "group, hub",
    "function": "roles, hubRoles",
    "worker": "function",
}


def the_virtual_network_closes_all_data(files: Files) -> Iterator[str]:
    """Require that vnetEnabled closes storage, hub and database."""
    calls = {one.name: one.value["params"] for one in files["main.bicep"].of_kind("module")}
    for name, (parameter, wanted) in CLOSED.items():
        if shown(calls[name].get(parameter)) != wanted:
            yield f"main.bicep: {parameter} of {name} must be {wanted}"


def modules_wait_for_their_rights(files: Files) -> Iterator[str]:
    """Require that a module which needs roles or an earlier module depends on it."""
    calls = {one.name: one.value for one in files["main.bicep"].of_kind("module")}
    for name, first in WAITS.items():
        if shown(calls[name].get("dependsOn")) != f"[{first}]":
            yield f"main.bicep: {name} must wait for {first}"
    worker = next(one for one in files["app/worker.bicep"].of_kind("module") if one.name == "worker")
    if shown(worker.value.get("dependsOn")) != "[pull]":
        yield "app/worker.bicep: the image cannot be pulled before its role"


def no_secret_of_the_api_reaches_the_worker(files: Files) -> Iterator[str]:
    """Require that the worker gets no setting of the API, and no reference to Key Vault, which only Functions reads."""
    file = files["app/worker.bicep"]
    kept, api = shown(file.var("ownSettings")), set(file.var("ofTheApi"))
    for condition in ("!contains(ofTheApi, each.key)", "!startsWith(each.value, '@Microsoft.KeyVault(')"):
        if condition not in kept:
            yield f"app/worker.bicep: the settings of the worker must have {condition}"
    if not {"RESIDENT_LINK_SECRET", "RESIDENT_LINK_SECRET_PREVIOUS"} <= api:
        yield "app/worker.bicep: ofTheApi must name the secrets of links"


def zones_of_hyperscale_have_a_replica(files: Files) -> Iterator[str]:
    """Require that a zone-redundant Hyperscale database has a replica, which is its second zone."""
    database = next(one for one in files["app/sql.bicep"].of_kind("resource") if one.name == "database")
    replicas = shown(at(database.value, "properties.highAvailabilityReplicaCount"))
    if replicas != "keeping.zoneRedundant && sizes.tier == 'Hyperscale' ? 1 : null":
        yield "app/sql.bicep: a zone-redundant Hyperscale database needs one replica"


def the_worker_is_closed(files: Files) -> Iterator[str]:
    """Require the identity of the app, no ingress, no public environment, logs without a key, and both probes."""
    file = files["app/worker.bicep"]
    calls = {one.name: one.value["params"] for one in file.of_kind("module")}
    app, place = calls["worker"], calls["place"]
    wanted = {
        "disableIngress": app.get("disableIngress") is True,
        "managedIdentities": shown(at(app, "managedIdentities.userAssignedResourceIds")) == "[identity.resource]",
        "publicNetworkAccess": place.get("publicNetworkAccess") == "Disabled",
        "appLogsConfiguration": at(place, "appLogsConfiguration.destination") == "azure-monitor",
        "probes": {each["type"] for each in app["containers"][0]["probes"]} == {"Startup", "Liveness"},
    }
    yield from (f"app/worker.bicep: {name} is not as the policy has it" for name, holds in wanted.items() if not holds)
    call = next(one for one in files["main.bicep"].of_kind("module") if one.name == "worker")
    if shown(at(call.value, "params.identity")) != "appIdentity.outputs.ids":
        yield f"main.bicep:{call.line}: the worker must run as the identity of the app"


def one_of_trigger_and_worker_ingests(files: Files) -> Iterator[str]:
    """Require that the image of the worker turns the trigger off."""
    main, function = files["main.bicep"], files["app/function.bicep"]
    calls = {one.name: one.value["params"] for one in main.of_kind("module")}
    if "module worker 'app/worker.bicep' = if (!empty(workerImage))" not in main.text:
        yield "main.bicep: the worker must depend on workerImage"
    if shown(calls["function"].get("ingestDisabled")) != "!empty(workerImage)":
        yield "main.bicep: the trigger must be off where there is a worker"
    if {shown(calls[name].get("settings")) for name in ("function", "worker")} != {"settings"}:
        yield "main.bicep: the worker must have the settings of the app"
    settings = next(one for one in function.of_kind("resource") if one.name == "appSettings")
    if "ingestDisabled ? { 'AzureWebJobs.ingest.Disabled': 'true' } : {}" not in shown(
        at(settings.value, "properties")
    ):
        yield "app/function.bicep: ingestDisabled must turn the trigger off"
    if "choices.ingestAlwaysReady > 0 && !ingestDisabled" not in shown(function.var("alwaysReady")):
        yield "app/function.bicep: a trigger that is off needs no instance"


def replicas_have_work(files: Files) -> Iterator[str]:
    """Require that there are never more replicas of the worker than partitions."""
    file = files["app/worker.bicep"]
    scale = next(one for one in file.of_kind("module") if one.name == "worker").value["params"]["scaleSettings"]
    if (shown(scale["maxReplicas"]), shown(file.var("most"))) != (
        "most",
        "min(max(replicas.always, replicas.maximum), partitions)",
    ):
        yield "app/worker.bicep: maxReplicas must be limited by the partitions"
    if shown(scale["minReplicas"]) != "min(replicas.always, partitions)":
        yield "app/worker.bicep: minReplicas must be limited by the partitions"
    call = next(one for one in files["main.bicep"].of_kind("module") if one.name == "worker")
    if shown(at(call.value, "params.partitions")) != "partitionCount":
        yield f"main.bicep:{call.line}: the worker must know the partitions of the hub"


def a_worker_scales_by_its_processor(files: Files) -> Iterator[str]:
    """Require one rule, which needs no sign-in: a scaler that cannot sign in freezes the number of replicas."""
    app = next(one for one in files["app/worker.bicep"].of_kind("module") if one.name == "worker").value["params"]
    if [at(rule, "custom.type") for rule in app["scaleSettings"]["rules"]] != ["cpu"]:
        yield "app/worker.bicep: the processor must be the one rule"


def settings_of_the_worker_are_secrets(files: Files) -> Iterator[str]:
    """Require that a reader of the container app sees the names of settings and no value."""
    app = next(one for one in files["app/worker.bicep"].of_kind("module") if one.name == "worker").value["params"]
    given = (shown(app.get("secrets")), shown(app["containers"][0]["env"]))
    if given != (
        "map(ownSettings, each => { name: each.name, value: each.value })",
        "map(ownSettings, each => { name: each.key, secretRef: each.name })",
    ):
        yield "app/worker.bicep: each setting must be a secret, which the environment names"


def the_database_admits_no_stranger(files: Files) -> Iterator[str]:
    """Require that the rules of the server are for our subnets, that only a Spark engine opens it to all of Azure, and
    that no rule names an address: the hooks make one for their own time."""
    for file, one in all_of(files, "resource"):
        if (
            one.of.partition("@")[0].endswith("/firewallRules")
            and at(one.value, "properties.startIpAddress") != "0.0.0.0"
        ):
            yield f"{file.name}:{one.line}: {one.name} admits an address for ever"
    heads = {one.name: one.head for one in files["app/sql.bicep"].of_kind("resource")}
    if heads.get("fromAzure") != "if (publicAccess && admitsAzure)" or heads.get("fromApp") != "if (publicAccess)":
        yield "app/sql.bicep: the server must admit the subnet of the app, and all of Azure only by admitsAzure"
    call = next(one for one in files["main.bicep"].of_kind("module") if one.name == "sql")
    if shown(at(call.value, "params.admitsAzure")) != "sparkEngine != 'none'":
        yield f"main.bicep:{call.line}: only a Spark engine needs all of Azure"
    subnets = [
        each for _, each in nodes_in(files["app/network.bicep"].of_kind("module")[0].value) if isinstance(each, dict)
    ]
    if any(each.get("serviceEndpoints") != ["Microsoft.Sql"] for each in subnets if "delegation" in each):
        yield "app/network.bicep: a rule needs the service endpoint of its subnet"


WIRING: tuple[Policy, ...] = (
    the_virtual_network_closes_all_data,
    modules_wait_for_their_rights,
    no_secret_of_the_api_reaches_the_worker,
    zones_of_hyperscale_have_a_replica,
    the_worker_is_closed,
    one_of_trigger_and_worker_ingests,
    replicas_have_work,
    a_worker_scales_by_its_processor,
    settings_of_the_worker_are_secrets,
    the_database_admits_no_stranger,
)
