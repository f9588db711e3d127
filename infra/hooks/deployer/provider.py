"""The resource provider that Azure does not register by itself: the template only delegates subnets to it."""

from collections.abc import Mapping

from infra.hooks.patience import Clock, Pending, wait_for
from infra.hooks.rest import ARM, Rest

PROVIDER = "Microsoft.App"
VERSION = "api-version=2021-04-01"
DEADLINE = 600.0  # seconds


def register_provider(environment: Mapping[str, str], rest: Rest, clock: Clock) -> None:
    """Register the provider with the subscription where it is not, and wait for the end."""
    subscription = environment.get("AZURE_SUBSCRIPTION_ID")
    if not subscription:  # azd has not asked for it yet
        print(f"if the subnets are refused: `az provider register --namespace {PROVIDER} --wait`")
        return
    path = f"/subscriptions/{subscription}/providers/{PROVIDER}"

    def refuse_unregistered() -> None:
        state = rest.call("GET", ARM, f"{path}?{VERSION}")["registrationState"]
        if state != "Registered":
            raise Pending(f"it is {state}")

    try:
        refuse_unregistered()
    except Pending:
        rest.call("POST", ARM, f"{path}/register?{VERSION}", {})
        wait_for(f"the registration of {PROVIDER}", refuse_unregistered, DEADLINE, clock)
