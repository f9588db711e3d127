"""The alert on an app that is silent: off until the app was deployed, so that the time before it wakes nobody."""

from collections.abc import Mapping
from typing import Any, Protocol

from infra.hooks.outputs import Outputs
from infra.hooks.rest import ARM, Service

DEPLOYED = "APP_DEPLOYED"  # the parameter of main.bicep that keeps the alert on
VERSION = "api-version=2023-12-01"


class Changes(Protocol):
    """The call of Rest that this module makes."""

    def patch(self, service: Service, path: str, body: Mapping[str, Any]) -> Any: ...


def expect_watch(outputs: Outputs, rest: Changes) -> dict[str, str]:
    """Turn the alert on, and return the value of azd's environment by which the next provisioning keeps it on."""
    if not outputs.watch_alert_id:
        return {}  # an environment without alerts
    rest.patch(ARM, f"{outputs.watch_alert_id}?{VERSION}", {"properties": {"enabled": True}})
    return {DEPLOYED: "true"}
