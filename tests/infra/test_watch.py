"""infra/hooks/watch.py: the alert on silence begins with the first deployment."""

from collections.abc import Mapping
from typing import Any

from infra.hooks.rest import Rest, Service
from infra.hooks.watch import expect_watch
from tests.infra.test_hooks import outputs


class Alerts(Rest):
    """The rules of alerts over ARM."""

    def __init__(self) -> None:
        self.patched: dict[str, Mapping[str, Any]] = {}

    def call(self, method: str, service: Service, path: str, body: Mapping[str, Any] | None = None) -> Any:
        assert method == "PATCH" and body is not None
        self.patched[path] = body


def test_after_a_deployment_the_alert_on_silence_is_on_and_stays_on() -> None:
    rest = Alerts()
    assert expect_watch(outputs(), rest) == {"APP_DEPLOYED": "true"}
    ((path, body),) = rest.patched.items()
    assert path.endswith("/scheduledQueryRules/w?api-version=2023-12-01")
    assert expect_watch(outputs(WATCH_ALERT_ID=""), rest) == {}
    assert len(rest.patched) == 1
    assert body == {"properties": {"enabled": True}}
