"""The outputs of main.bicep, which `azd provision` puts into a hook's environment: read completely or refused."""

import dataclasses
import json
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
    eventhub_name: str
    eventhub_id: str
    lake_blob_endpoint: str
    lake_container: str
    spark_engine_choice: str
    wired_settings: str
    watch_alert_id: str = ""
    firewall_server_id: str = ""
    synapse_workspace: str = ""
    synapse_pool: str = ""

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the app that main.bicep computes."""
        settings: dict[str, str] = json.loads(self.wired_settings)
        return settings

    @property
    def synapse_id(self) -> str:
        """The resource id of the Synapse workspace, which is in the group of the app."""
        group = self.function_app_id.partition("/providers/")[0]
        return f"{group}/providers/Microsoft.Synapse/workspaces/{self.synapse_workspace}"


def read_outputs(environment: Mapping[str, str]) -> Outputs:
    """Return all outputs, or raise HookRefused with each one that is missing or wrong."""
    faults: list[str] = []
    values = {one.name: _read(environment, one, faults) for one in dataclasses.fields(Outputs)}
    if faults:
        raise HookRefused(*faults)
    return Outputs(**values)  # type: ignore[arg-type]


def _read(environment: Mapping[str, str], field: "dataclasses.Field[object]", faults: list[str]) -> object:
    name = field.name.upper()
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
