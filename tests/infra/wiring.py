"""The policies of the wires between modules: networks, the order of roles, the settings of the worker."""

from collections.abc import Iterator

from tests.infra.policies import Files, Policy, at, shown

# By module of main.bicep: the parameter by which the choice of a virtual network closes it, and its value.
CLOSED = {
    "hostStorage": ("access", "vnetEnabled ? 'Private' : 'Public'"),
    "lake": ("access", "vnetEnabled ? 'TrustedServices' : 'Public'"),
    "hub": ("publicAccess", "!vnetEnabled"),
    "sql": ("publicAccess", "!vnetEnabled"),
}
WAITS = {"hub": "captureRoles", "function": "roles", "worker": "function"}  # Azure refuses, or the host fails, without


def the_virtual_network_closes_all_data(files: Files) -> Iterator[str]:
    """Require that vnetEnabled closes storage, hub and database, and that the word none is no address of a rule."""
    calls = {one.name: one.value["params"] for one in files["main.bicep"].of_kind("module")}
    for name, (parameter, wanted) in CLOSED.items():
        if shown(calls[name].get(parameter)) != wanted:
            yield f"main.bicep: {parameter} of {name} must be {wanted}"
    if shown(files["main.bicep"].var("admittedAddress")) != "deployerAddress == 'none' ? '' : deployerAddress":
        yield "main.bicep: DEPLOYER_ADDRESS=none must make no firewall rule"


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
    if replicas != "zoneRedundant && tier == 'Hyperscale' ? 1 : null":
        yield "app/sql.bicep: a zone-redundant Hyperscale database needs one replica"


WIRING: tuple[Policy, ...] = (
    the_virtual_network_closes_all_data,
    modules_wait_for_their_rights,
    no_secret_of_the_api_reaches_the_worker,
    zones_of_hyperscale_have_a_replica,
)
