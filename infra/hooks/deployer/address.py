"""The public address of the machine that runs the hooks: found, or chosen by a person."""

import ipaddress
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException

from infra.hooks.deployer.environment import in_virtual_network
from infra.hooks.deployer.sign_in import in_pipeline
from infra.hooks.errors import HookRefused

ADDRESS = "DEPLOYER_ADDRESS"
NONE = "none"
SERVICES = ("https://api.ipify.org", "https://checkip.amazonaws.com")
TIMEOUT = 10.0  # seconds
BY_HAND = f"set it by `azd env set {ADDRESS} <address>`, or to {NONE} for no firewall rule"


def address_of(environment: Mapping[str, str], find: Callable[[], str]) -> str | None:
    """Return the address that firewalls must admit for the hooks. None inside a virtual network, and by choice.

    A pipeline has only the choice `none` of a person: an address in its variables is that of a different machine.
    """
    chosen = environment.get(ADDRESS, "")
    if in_virtual_network(environment) or chosen == NONE:
        return None
    if not chosen or in_pipeline(environment):
        return find()
    try:
        public_address(chosen)
    except ValueError as error:
        raise HookRefused(f"{ADDRESS}: {error}; {BY_HAND}, or to an empty text to have it found") from error
    return chosen


def find_address(services: Sequence[str] = SERVICES) -> str:
    """Return the public IPv4 address of this machine, from the first service that returns it."""
    failures: list[str] = []
    for service in services:
        try:
            with urllib.request.urlopen(service, timeout=TIMEOUT) as answer:
                return public_address(answer.read(64).decode("ascii", "replace"))
        except (OSError, ValueError, HTTPException) as error:
            failures.append(f"{service}: {error}")
    raise HookRefused(f"this machine's public address was not found: {BY_HAND} ({'; '.join(failures)})")


def public_address(text: str) -> str:
    """Return an IPv4 address of the public internet in its plain form. Raises ValueError for any other text."""
    address = ipaddress.IPv4Address(text.strip())
    if not address.is_global:
        raise ValueError(f"{address} is not an address of the public internet")
    return str(address)
