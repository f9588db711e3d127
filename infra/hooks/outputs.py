"""The outputs of main.bicep, which `azd provision` puts into a hook's environment: read completely or refused."""

import dataclasses
import uuid
from collections.abc import Mapping

from infra.hooks.errors import HookRefused


@dataclasses.dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs that the hooks use. Those with a default are empty where there is none: `firewall_server_id` for a
    server of somebody else or without a public address, `watch_alert_id` without alerts, the others without Synapse."""

    function_app_id: str
    function_app_uri: str
    app_identity_name: str
    app_identity_client_id: uuid.UUID
    app_identity_principal_id: uuid.UUID
    store_connection: str
    hub_namespace: str
    hub_name: str
    hub_id: str
    trigger_group: str
    reader_group: str
    lake_blob_endpoint: str
    lake_container: str
    spark_engine: str
    wired_settings: str  # as JSON
    watch_alert_id: str = ""
    firewall_server_id: str = ""
    synapse_workspace: str = ""
    synapse_pool: str = ""

    @property
    def synapse_id(self) -> str:
        """The resource id of the Synapse workspace, which is in the group of the app."""
        group = self.function_app_id.partition("/providers/")[0]
        return f"{group}/providers/Microsoft.Synapse/workspaces/{self.synapse_workspace}"


OTHER_NAMES = {  # of fields whose output is not the field in capitals
    "hub_namespace": "EVENTHUB__fullyQualifiedNamespace",
    "hub_name": "EVENTHUB_NAME",
    "hub_id": "EVENTHUB_ID",
    "trigger_group": "EVENTHUB_CONSUMER_GROUP",
    "reader_group": "HUB_READER_CONSUMER_GROUP",
    "spark_engine": "SPARK_ENGINE_CHOICE",
}
NAMES = {one.name: OTHER_NAMES.get(one.name, one.name.upper()) for one in dataclasses.fields(Outputs)}


def read_outputs(environment: Mapping[str, str]) -> Outputs:
    """Return all outputs, or raise HookRefused with each one that is missing or wrong."""
    faults: list[str] = []
    values = {one.name: _read(environment, one, faults) for one in dataclasses.fields(Outputs)}
    if faults:
        raise HookRefused(*faults)
    return Outputs(**values)  # type: ignore[arg-type]


def _read(environment: Mapping[str, str], field: "dataclasses.Field[object]", faults: list[str]) -> object:
    name = NAMES[field.name]
    text = environment.get(name, "")
    if not text and field.default is dataclasses.MISSING:
        faults.append(f"{name} is not set: it is an output of infra/main.bicep; run `azd provision` first")
    if field.type is not uuid.UUID or not text:
        return text
    try:
        return uuid.UUID(text)
    except ValueError:
        faults.append(f"{name} must be an id of the form 00000000-0000-0000-0000-000000000000, not {text!r}")
        return None
