"""infra/hooks/deployer/provider.py: the provider of the subnets is registered once, and the hook waits for the end."""

from typing import Any

import pytest

from infra.hooks.deployer.provider import register_provider
from infra.hooks.errors import HookRefused
from infra.hooks.rest import Rest, Service
from tests.fakes.leaping import Leaping

SUBSCRIPTION = {"AZURE_SUBSCRIPTION_ID": "s"}


class Subscription(Rest):
    """A subscription that shows these states, the last one for ever, and notes what is asked of it."""

    def __init__(self, *states: str) -> None:
        self._states = list(states)
        self.posted: list[str] = []

    def call(self, method: str, service: Service, path: str, body: Any = None) -> Any:
        if method == "POST":
            return self.posted.append(path)
        assert path == "/subscriptions/s/providers/Microsoft.App?api-version=2021-04-01"
        return {"registrationState": self._states.pop(0) if len(self._states) > 1 else self._states[0]}


def test_a_provider_that_is_registered_is_left_alone() -> None:
    there = Subscription("Registered")
    register_provider(SUBSCRIPTION, there, Leaping())
    assert there.posted == []


def test_a_missing_one_is_registered_and_waited_for() -> None:
    there = Subscription("NotRegistered", "Registering", "Registering", "Registered")
    register_provider(SUBSCRIPTION, there, Leaping())
    assert there.posted == ["/subscriptions/s/providers/Microsoft.App/register?api-version=2021-04-01"]


def test_one_that_never_ends_is_refused() -> None:
    with pytest.raises(HookRefused, match=r"registration of Microsoft\.App: it is Registering"):
        register_provider(SUBSCRIPTION, Subscription("NotRegistered", "Registering"), Leaping(60.0))


def test_without_a_subscription_the_command_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    register_provider({}, Subscription("NotRegistered"), Leaping())
    assert "az provider register --namespace Microsoft.App --wait" in capsys.readouterr().out
