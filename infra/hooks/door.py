"""The firewalls of our database and of our Synapse workspace, open to the hooks only while one of them runs."""

from contextlib import AbstractContextManager

from infra.hooks.outputs import Outputs
from infra.hooks.rest import ARM, Rest, made_for_now

RULE = "deployer"
SQL_VERSION, SYNAPSE_VERSION = "api-version=2023-08-01", "api-version=2021-06-01"


def open_to(address: str | None, outputs: Outputs, rest: Rest) -> AbstractContextManager[None]:
    """Admit an address for the time of the block."""
    admitted = {"properties": {"startIpAddress": address, "endIpAddress": address}}
    rules = [] if address is None else rules_of(outputs)
    return made_for_now(rest, "a firewall rule", rules, lambda rule: rest.call("PUT", ARM, rule, admitted))


def rules_of(outputs: Outputs) -> list[str]:
    """Return the paths of the rules: none for a server of somebody else, whose firewall is not ours."""
    found = {outputs.firewall_server_id: SQL_VERSION} if outputs.firewall_server_id else {}
    found |= {outputs.synapse_id: SYNAPSE_VERSION} if outputs.synapse_workspace else {}
    return [f"{server}/firewallRules/{RULE}?{version}" for server, version in found.items()]
