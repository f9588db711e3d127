"""infra/hooks/door.py: firewalls are open only while a hook runs, and never those of somebody else."""

from collections.abc import Mapping
from typing import Any

import pytest

from infra.hooks.door import open_to, rules_of
from infra.hooks.errors import HookRefused
from infra.hooks.rest import Rest, Service
from tests.infra.test_hooks import outputs

SQL = (
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.Sql/servers/q/firewallRules/deployer?api-version=2023-08-01"
)
SYNAPSE = (
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.Synapse/workspaces/w/firewallRules/deployer"
    "?api-version=2021-06-01"
)
BODY = {"properties": {"startIpAddress": "8.8.8.8", "endIpAddress": "8.8.8.8"}}


class Firewalls(Rest):
    """Rules by their paths over ARM; the second that is set may lose its answer, and none may refuse to go."""

    def __init__(self, loses: str = "", keeps: str = "") -> None:
        self.rules: dict[str, Mapping[str, Any]] = {}
        self._loses, self._keeps = loses, keeps

    def call(self, method: str, service: Service, path: str, body: Mapping[str, Any] | None = None) -> Any:
        if body is not None:
            self.rules[path] = body
        if path == self._loses and method == "PUT":
            raise HookRefused("the connection was reset")
        if path == self._keeps and method == "DELETE":
            raise HookRefused("DELETE failed with status 409")
        if method == "DELETE":
            self.rules.pop(path, None)


def test_the_rules_are_there_in_the_block_and_gone_after_it() -> None:
    rest = Firewalls()
    with open_to("8.8.8.8", outputs(), rest):
        assert rest.rules == {SQL: BODY, SYNAPSE: BODY}
    assert rest.rules == {}


def test_a_step_that_fails_closes_them_too() -> None:
    rest = Firewalls()
    with pytest.raises(HookRefused, match="the migration"), open_to("8.8.8.8", outputs(), rest):
        raise HookRefused("the migration failed")
    assert rest.rules == {}


def test_a_rule_whose_answer_was_lost_is_removed_with_the_others() -> None:
    rest = Firewalls(loses=SYNAPSE)
    with pytest.raises(HookRefused, match="reset"), open_to("8.8.8.8", outputs(), rest):
        raise AssertionError("the door is not open")
    assert rest.rules == {}


def test_a_rule_that_a_killed_hook_left_is_replaced_and_removed_by_the_next() -> None:
    rest = Firewalls()
    rest.rules[SQL] = {"properties": {"startIpAddress": "9.9.9.9"}}
    with open_to("8.8.8.8", outputs(), rest):
        assert rest.rules[SQL] == BODY
    assert rest.rules == {}


def test_a_rule_that_stays_is_said_and_the_step_is_not_undone(capsys: pytest.CaptureFixture[str]) -> None:
    rest = Firewalls(keeps=SQL)
    with open_to("8.8.8.8", outputs(), rest):
        pass
    assert list(rest.rules) == [SQL]
    assert capsys.readouterr().err.startswith("a firewall rule stays; the next deployment replaces and removes it")


def test_the_server_of_somebody_else_is_never_opened() -> None:
    assert rules_of(outputs(FIREWALL_SERVER_ID="")) == [SYNAPSE]
    assert rules_of(outputs(FIREWALL_SERVER_ID="", SYNAPSE_WORKSPACE="")) == []


def test_without_an_address_nothing_is_opened() -> None:
    rest = Firewalls()
    with open_to(None, outputs(), rest):
        assert rest.rules == {}
