"""Rights that Bicep cannot give: the app's role in Synapse, and the users of the database."""

import uuid
from collections.abc import Mapping

from infra.hooks.database import APP, JOB, DatabaseUser
from infra.hooks.errors import HookRefused
from infra.hooks.outputs import Outputs
from infra.hooks.rest import ARM, Rest, Service

SYNAPSE_ROLE = "Synapse Compute Operator"  # may only submit batches to a pool and read their status
SYNAPSE_VERSION = "api-version=2020-12-01"
IDENTITY_VERSION = "api-version=2023-01-31"
JOB_IDENTITY = ("JOB_IDENTITY_NAME", "JOB_IDENTITY_CLIENT_ID")  # the identity of the jobs on Databricks


def allow_submitting(outputs: Outputs, rest: Rest) -> None:
    """Let the app submit batches to the Synapse pool. Safe to repeat, because the assignment's id is derived."""
    if outputs.spark_engine_choice != "synapse":
        print(f"Spark engine {outputs.spark_engine_choice}: no Synapse role to assign")
        return
    workspace = Service(
        f"https://{outputs.synapse_workspace}.dev.azuresynapse.net", "https://dev.azuresynapse.net/.default"
    )
    scope = f"workspaces/{outputs.synapse_workspace}/bigDataPools/{outputs.synapse_pool}"
    principal = str(outputs.app_identity_principal_id)
    assignment = uuid.uuid5(uuid.NAMESPACE_URL, f"{scope}/{SYNAPSE_ROLE}/{principal}")
    body = {
        "roleId": _role_id(rest, workspace),
        "principalId": principal,
        "principalType": "ServicePrincipal",
        "scope": scope,
    }
    rest.call("PUT", workspace, f"/roleAssignments/{assignment}?{SYNAPSE_VERSION}", body)
    print(f"{outputs.app_identity_name} has the role {SYNAPSE_ROLE} in {scope}")


def database_users(outputs: Outputs, rest: Rest, environment: Mapping[str, str]) -> list[DatabaseUser]:
    """Return the users of the database: the app, and the identity of the Spark jobs where there is an engine."""
    users = [DatabaseUser(outputs.app_identity_name, outputs.app_identity_client_id, APP)]
    if outputs.spark_engine_choice == "synapse":
        # The token of a job is the workspace's or the submitter's: both are admitted.
        users.append(DatabaseUser(outputs.synapse_workspace, _client_id(outputs, rest), JOB))
        users.append(DatabaseUser(outputs.app_identity_name, outputs.app_identity_client_id, JOB))
    if outputs.spark_engine_choice == "databricks":
        users += _named_user(environment)
    return users


def _client_id(outputs: Outputs, rest: Rest) -> uuid.UUID:
    """Return the client id of the workspace's identity. The workspace resource itself shows only the object id."""
    workspace = outputs.synapse_id
    found = rest.call(
        "GET", ARM, f"{workspace}/providers/Microsoft.ManagedIdentity/identities/default?{IDENTITY_VERSION}"
    )
    try:
        return uuid.UUID(found["properties"]["clientId"])
    except (KeyError, TypeError, ValueError) as error:
        raise HookRefused(f"{workspace} has no managed identity, so its jobs cannot use the database") from error


def _named_user(environment: Mapping[str, str]) -> list[DatabaseUser]:
    name, client_id = (environment.get(one, "") for one in JOB_IDENTITY)
    if not name and not client_id:
        print(f"no database user for jobs: azd env set {' and '.join(JOB_IDENTITY)}, then azd provision")
        return []
    try:
        return [DatabaseUser(name or client_id, uuid.UUID(client_id), JOB)]
    except ValueError as error:
        raise HookRefused(f"{JOB_IDENTITY[1]} must be the client id of an identity, not {client_id!r}") from error


def _role_id(rest: Rest, workspace: Service) -> str:
    found = rest.call("GET", workspace, f"/roleDefinitions?{SYNAPSE_VERSION}&isBuiltIn=true")
    for role in found if isinstance(found, list) else found.get("value", []):
        if role.get("name") == SYNAPSE_ROLE:
            return str(role["id"])
    raise HookRefused(f"{workspace.address} shows no role {SYNAPSE_ROLE!r}: make the deployer a Synapse Administrator")
