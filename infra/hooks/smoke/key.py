"""The key of the smoke tests: random, on few functions, and removed when the tests end."""

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from infra.hooks.errors import HookRefused
from infra.hooks.patience import Clock
from infra.hooks.rest import ARM, Rest
from infra.hooks.waiting import Pending, wait_for

FUNCTIONS = (
    "explain_number",
    "health_ledger",
    "show_retention",
    "status",
    "status_history",
)  # those of a monitor, and the one that explains a number
NAME = "smoke"
VERSION = "api-version=2024-04-01"
DEADLINE = 180.0  # seconds: Azure knows the functions of a package some time after its upload


@contextmanager
def smoke_key(app_id: str, rest: Rest, clock: Clock) -> Iterator[str]:
    """Set a new random key on each of the functions, and remove it at the end, after a failure too."""
    key = secrets.token_hex(32)
    made: list[str] = []
    try:
        for function in FUNCTIONS:
            made.append(function)  # before the call, whose answer may be lost
            wait_for(f"the key of {function}", partial(_set, rest, _path(app_id, function), key), DEADLINE, clock)
        yield key
    finally:
        for function in made:
            _remove(rest, app_id, function)


def _path(app_id: str, function: str) -> str:
    return f"{app_id}/functions/{function}/keys/{NAME}?{VERSION}"


def _set(rest: Rest, path: str, key: str) -> None:
    try:
        rest.put(ARM, path, {"properties": {"name": NAME, "value": key}})
    except HookRefused as error:
        raise Pending(str(error)) from error


def _remove(rest: Rest, app_id: str, function: str) -> None:
    try:
        rest.delete(ARM, _path(app_id, function))
    except HookRefused as error:
        if "status 404" in str(error):
            return
        print(
            f"the key {NAME} stays on {function}; the next deployment replaces and removes it: {error}", file=sys.stderr
        )
