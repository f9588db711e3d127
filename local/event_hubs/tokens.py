"""Access rights: shared access keys, the tokens signed with them, and the grants of a connection.

The token is that of learn.microsoft.com/azure/event-hubs/authenticate-shared-access-signature.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from local.event_hubs.errors import AmqpError

SEND, LISTEN, MANAGE = "Send", "Listen", "Manage"
_NEVER = 2**63  # milliseconds
_TOKEN_KIND = "SharedAccessSignature"


@dataclass(frozen=True, slots=True)
class SharedAccessKey:
    """A key and the rights that a token signed with it gives; Manage gives Send and Listen too."""

    name: str
    value: str = field(repr=False)
    rights: frozenset[str] = frozenset((MANAGE,))

    def __post_init__(self) -> None:
        if not self.rights <= {SEND, LISTEN, MANAGE}:
            raise ValueError(f"key {self.name} has rights other than {SEND}, {LISTEN} and {MANAGE}")


ROOT_KEY = SharedAccessKey("RootManageSharedAccessKey", "SAS_KEY_VALUE")  # the name and value in Microsoft's emulator


@dataclass(frozen=True, slots=True)
class Grant:
    """The grant of a valid token: rights on a path and all below it, until an instant in Unix milliseconds."""

    scope: tuple[str, ...]
    rights: frozenset[str]
    expires_at: int

    def gives(self, right: str | None, path: tuple[str, ...], now: int) -> bool:
        """Return True when the grant gives a right on a path; None is any right."""
        within = path[: len(self.scope)] == self.scope
        has_right = right is None or not self.rights.isdisjoint((right, MANAGE))
        return within and has_right and now < self.expires_at


class Grants:
    """The grants of a connection, one per scope: a newer token renews the older one."""

    def __init__(self) -> None:
        self._by_scope: dict[tuple[str, ...], Grant] = {}

    def add(self, grant: Grant) -> None:
        self._by_scope[grant.scope] = grant

    def give(self, right: str | None, path: tuple[str, ...], now: int) -> bool:
        """Return True when a grant gives a right on a path; None is any right."""
        return any(grant.gives(right, path, now) for grant in self._by_scope.values())

    def require(self, right: str | None, path: tuple[str, ...], now: int) -> None:
        """Raise AmqpError amqp:unauthorized-access unless a grant gives the right on the path."""
        if self.give(right, path, now):
            return
        if any(grant.gives(right, path, grant.expires_at - 1) for grant in self._by_scope.values()):
            raise AmqpError("amqp:unauthorized-access", f"ExpiredToken: the token for {'/'.join(path)} has expired")
        claim = "Any" if right is None else f"'{right}'"
        raise AmqpError("amqp:unauthorized-access", f"{claim} claim is required on {'/'.join(path)}")


def read_token(token: str, keys: Mapping[str, SharedAccessKey], now: int) -> Grant:
    """Return the grant in a SAS token. Raises AmqpError amqp:unauthorized-access, which never repeats the token."""
    kind, _, query = token.partition(" ")
    if kind != _TOKEN_KIND:
        raise _refused("only SharedAccessSignature tokens are emulated")
    parts = dict(pair.partition("=")[::2] for pair in query.split("&"))
    if not {"sr", "se", "skn", "sig"} <= parts.keys() or not parts["se"].isdecimal():
        raise _refused("the token lacks sr, sig, se or skn")
    key = keys.get(unquote(parts["skn"]))
    if key is None or not hmac.compare_digest(
        _signature(key, parts["sr"], parts["se"]), unquote(parts["sig"]).encode()
    ):
        raise _refused("the signature does not match a key")
    grant = Grant(split_path(unquote(parts["sr"])), key.rights, int(parts["se"]) * 1000)
    if grant.expires_at <= now:
        raise _refused("ExpiredToken: the token has expired")
    return grant


def read_key(name: str, value: str, keys: Mapping[str, SharedAccessKey]) -> Grant:
    """Return the grant of a key itself, which does not expire. Raises AmqpError amqp:unauthorized-access."""
    key = keys.get(name)
    if key is None or not hmac.compare_digest(key.value.encode(), value.encode()):
        raise _refused("the name and the value are not those of a key")
    return Grant((), key.rights, _NEVER)


def _signature(key: SharedAccessKey, encoded_resource: str, expiry: str) -> bytes:
    signed = hmac.new(key.value.encode(), f"{encoded_resource}\n{expiry}".encode(), hashlib.sha256)
    return base64.b64encode(signed.digest())


def _refused(reason: str) -> AmqpError:
    return AmqpError("amqp:unauthorized-access", f"InvalidToken: {reason}")


def split_path(address: str) -> tuple[str, ...]:
    """Return the parts of the path in an address, a URL or a path, in lower case, because names ignore case.

    Raises AmqpError amqp:invalid-field for an invalid address.
    """
    try:
        path = urlsplit(address).path
    except ValueError as error:
        raise AmqpError("amqp:invalid-field", f"'{address}' is not an address: {error}") from error
    return tuple(part for part in unquote(path).lower().split("/") if part)
