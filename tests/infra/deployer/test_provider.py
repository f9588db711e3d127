"""infra/hooks/deployer/provider.py: the provider of the subnets is registered once, and the hook waits for the end."""

import pytest

from infra.hooks.deployer.provider import register_provider
from infra.hooks.errors import HookRefused
from tests.fakes.leaping import Leaping
from tests.infra.doubles import Services

SUBSCRIPTION = {"AZURE_SUBSCRIPTION_ID": "s"}


PATH = "https://management.azure.com/subscriptions/s/providers/Microsoft.App"


def subscription(*states: str) -> Services:
    """Return a subscription that shows these states, the last one for ever."""
    left = list(states)
    return Services(lambda method, path, body: {"registrationState": left.pop(0) if len(left) > 1 else left[0]})


def posted(there: Services) -> list[str]:
    return [path for method, path, _ in there.calls if method == "POST"]


def test_a_provider_that_is_registered_is_left_alone() -> None:
    there = subscription("Registered")
    register_provider(SUBSCRIPTION, there, Leaping())
    assert posted(there) == []


def test_a_missing_one_is_registered_and_waited_for() -> None:
    there = subscription("NotRegistered", "Registering", "Registering", "Registered")
    register_provider(SUBSCRIPTION, there, Leaping())
    assert posted(there) == [f"{PATH}/register?api-version=2021-04-01"]


def test_one_that_never_ends_is_refused() -> None:
    with pytest.raises(HookRefused, match=r"registration of Microsoft\.App: it is Registering"):
        register_provider(SUBSCRIPTION, subscription("NotRegistered", "Registering"), Leaping(60.0))


def test_without_a_subscription_the_command_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    register_provider({}, subscription("NotRegistered"), Leaping())
    assert "az provider register --namespace Microsoft.App --wait" in capsys.readouterr().out
