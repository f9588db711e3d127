"""The key of the smoke tests: random, on few functions, and removed when the tests end."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from infra.hooks.errors import HookRefused
from infra.hooks.patience import Clock, Pending, wait_for
from infra.hooks.rest import ARM, Rest, made_for_now

FUNCTIONS = (
    "explain_number",
    "health_ledger",
    "status",
    "status_history",
)  # those of a monitor, and the one that explains a number
NAME = "smoke"
VERSION = "api-version=2024-04-01"
DEADLINE = 180.0  # seconds: Azure knows the functions of a package some time after its upload


@contextmanager
def smoke_key(app_id: str, rest: Rest, clock: Clock) -> Iterator[str]:
    """Set a new random key on each of the functions for the time of the block."""
    key = {"properties": {"name": NAME, "value": secrets.token_hex(32)}}

    def set_key(path: str) -> None:
        try:
            rest.call("PUT", ARM, path, key)
        except HookRefused as error:
            raise Pending(str(error)) from error

    def make(path: str) -> None:
        wait_for(f"the key of {functions[path]}", partial(set_key, path), DEADLINE, clock)

    functions = {f"{app_id}/functions/{function}/keys/{NAME}?{VERSION}": function for function in FUNCTIONS}
    with made_for_now(rest, f"a key {NAME}", list(functions), make):
        yield key["properties"]["value"]
