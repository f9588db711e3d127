"""The alert on an app that is silent: off until the app was deployed, so that the time before it wakes nobody."""

from infra.hooks.outputs import Outputs
from infra.hooks.rest import ARM, Rest

DEPLOYED = "APP_DEPLOYED"  # the parameter of main.bicep that keeps the alert on
VERSION = "api-version=2023-12-01"


def expect_watch(outputs: Outputs, rest: Rest) -> dict[str, str]:
    """Turn the alert on, and return the value of azd's environment by which the next provisioning keeps it on."""
    if not outputs.watch_alert_id:
        return {}  # an environment without alerts
    rest.call("PATCH", ARM, f"{outputs.watch_alert_id}?{VERSION}", {"properties": {"enabled": True}})
    return {DEPLOYED: "true"}
