"""The firewalls of our database and of our Synapse workspace, open to the hooks only while one of them runs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from infra.hooks.errors import HookRefused
from infra.hooks.outputs import Outputs
from infra.hooks.rest import ARM, Rest

RULE = "deployer"
SQL_VERSION, SYNAPSE_VERSION = "api-version=2023-08-01", "api-version=2021-06-01"


@contextmanager
def open_to(address: str | None, outputs: Outputs, rest: Rest) -> Iterator[None]:
    """Admit an address for the time of the block, and no longer, after a failure too.

    A rule that a hook left when it was killed has the same name: the next hook replaces it and removes it.
    """
    rules = [] if address is None else rules_of(outputs)
    try:
        for rule in rules:
            rest.put(ARM, rule, {"properties": {"startIpAddress": address, "endIpAddress": address}})
        yield
    finally:
        for rule in rules:
            _remove(rest, rule)


def rules_of(outputs: Outputs) -> list[str]:
    """Return the paths of the rules: none for a server of somebody else, whose firewall is not ours."""
    found = {outputs.firewall_server_id: SQL_VERSION} if outputs.firewall_server_id else {}
    found |= {outputs.synapse_id: SYNAPSE_VERSION} if outputs.synapse_workspace else {}
    return [f"{server}/firewallRules/{RULE}?{version}" for server, version in found.items()]


def _remove(rest: Rest, rule: str) -> None:
    try:
        rest.delete(ARM, rule)
    except HookRefused as error:
        if "status 404" not in str(error):
            print(f"a firewall rule stays; the next deployment replaces and removes it: {error}", file=sys.stderr)
