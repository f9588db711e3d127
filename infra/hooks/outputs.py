"""The outputs of main.bicep, which `azd provision` puts into a hook's environment: read completely or refused."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from infra.hooks.errors import HookRefused


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs that the hooks use; `synapse_workspace` and `synapse_pool` are empty without Synapse, and
    `firewall_server_id` for a server of somebody else or without a public address, `watch_alert_id` without alerts."""

    function_app_id: str
    function_app_uri: str
    watch_alert_id: str
    app_identity_name: str
    app_identity_client_id: uuid.UUID
    app_identity_principal_id: uuid.UUID
    store_connection: str
    firewall_server_id: str
    hub_namespace: str
    hub_name: str
    hub_id: str
    trigger_group: str
    reader_group: str
    lake_blob_endpoint: str
    lake_container: str
    spark_engine: str
    synapse_workspace: str
    synapse_pool: str


NAMES = {
    "function_app_id": "FUNCTION_APP_ID",
    "function_app_uri": "FUNCTION_APP_URI",
    "watch_alert_id": "WATCH_ALERT_ID",
    "app_identity_name": "APP_IDENTITY_NAME",
    "app_identity_client_id": "APP_IDENTITY_CLIENT_ID",
    "app_identity_principal_id": "APP_IDENTITY_PRINCIPAL_ID",
    "store_connection": "STORE_CONNECTION",
    "firewall_server_id": "FIREWALL_SERVER_ID",
    "hub_namespace": "EVENTHUB__fullyQualifiedNamespace",
    "hub_name": "EVENTHUB_NAME",
    "hub_id": "EVENTHUB_ID",
    "trigger_group": "EVENTHUB_CONSUMER_GROUP",
    "reader_group": "HUB_READER_CONSUMER_GROUP",
    "lake_blob_endpoint": "LAKE_BLOB_ENDPOINT",
    "lake_container": "LAKE_CONTAINER",
    "spark_engine": "SPARK_ENGINE_CHOICE",
    "synapse_workspace": "SYNAPSE_WORKSPACE",
    "synapse_pool": "SYNAPSE_POOL",
}
MAY_BE_EMPTY = {"firewall_server_id", "watch_alert_id", "synapse_workspace", "synapse_pool"}
IDS = {"app_identity_client_id", "app_identity_principal_id"}


def read_outputs(environment: Mapping[str, str]) -> Outputs:
    """Return all outputs, or raise HookRefused with each one that is missing or wrong."""
    faults: list[str] = []
    values = {field: _read(environment, field, faults) for field in NAMES}
    if faults:
        raise HookRefused(*faults)
    return Outputs(**values)  # type: ignore[arg-type]


def _read(environment: Mapping[str, str], field: str, faults: list[str]) -> object:
    name, text = NAMES[field], environment.get(NAMES[field], "")
    if not text and field not in MAY_BE_EMPTY:
        faults.append(f"{name} is not set: it is an output of infra/main.bicep; run `azd provision` first")
    if field not in IDS or not text:
        return text
    try:
        return uuid.UUID(text)
    except ValueError:
        faults.append(f"{name} must be an id of the form 00000000-0000-0000-0000-000000000000, not {text!r}")
        return None
