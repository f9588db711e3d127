"""Access rights: SASL (AMQP 1.0 part 5.3), shared access keys, the tokens signed with them, the grants of a connection.

The token has the form of learn.microsoft.com/azure/event-hubs/authenticate-shared-access-signature.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from local.event_hubs.codec import Array, Symbol, UByte
from local.event_hubs.errors import AmqpError
from local.event_hubs.frames import SASL_FRAME, SASL_MECHANISMS, SASL_OUTCOME, Fields, composite, frame

SEND, LISTEN, MANAGE = "Send", "Listen", "Manage"
_NEVER = 2**63  # milliseconds
_TOKEN_KIND = "SharedAccessSignature"


@dataclass(frozen=True, slots=True)
class SharedAccessKey:
    """A key and the rights that a token signed with it gives. Manage gives Send and Listen too."""

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
        """Return True when the grant gives a right on a path. None is any right."""
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
        raise _refused("InvalidToken: only SharedAccessSignature tokens are emulated")
    parts = dict(pair.partition("=")[::2] for pair in query.split("&"))
    if not {"sr", "se", "skn", "sig"} <= parts.keys() or not parts["se"].isdecimal():
        raise _refused("InvalidToken: the token lacks sr, sig, se or skn")
    key = keys.get(unquote(parts["skn"]))
    signed = hmac.new((key.value if key else "").encode(), f"{parts['sr']}\n{parts['se']}".encode(), hashlib.sha256)
    given = unquote(parts["sig"]).encode()
    if key is None or not hmac.compare_digest(base64.b64encode(signed.digest()), given):
        raise _refused("InvalidToken: the signature does not match a key")
    grant = Grant(split_path(unquote(parts["sr"])), key.rights, int(parts["se"]) * 1000)
    if grant.expires_at <= now:
        raise _refused("InvalidToken: ExpiredToken: the token has expired")
    return grant


def read_key(name: str, value: str, keys: Mapping[str, SharedAccessKey]) -> Grant:
    """Return the grant of a key itself, which does not expire. Raises AmqpError amqp:unauthorized-access."""
    key = keys.get(name)
    if key is None or not hmac.compare_digest(key.value.encode(), value.encode()):
        raise _refused("InvalidToken: the name and the value are not those of a key")
    return Grant((), key.rights, _NEVER)


def _refused(reason: str) -> AmqpError:
    return AmqpError("amqp:unauthorized-access", reason)


def split_path(address: str) -> tuple[str, ...]:
    """Return the parts of the path in an address, a URL or a path, in lower case, because names ignore case.

    Raises AmqpError amqp:invalid-field for an invalid address.
    """
    try:
        path = urlsplit(address).path
    except ValueError as error:
        raise AmqpError("amqp:invalid-field", f"'{address}' is not an address: {error}") from error
    return tuple(part for part in unquote(path).lower().split("/") if part)


_WITH_A_KEY = "PLAIN"
_WITH_A_TOKEN = ("MSSBCBS", "ANONYMOUS")  # a peer shows its token to $cbs later


def sasl_mechanisms() -> bytes:
    return frame(composite(SASL_MECHANISMS, Array(map(Symbol, (*_WITH_A_TOKEN, _WITH_A_KEY)))), kind=SASL_FRAME)


def sasl_outcome(*, is_welcome: bool) -> bytes:
    return frame(composite(SASL_OUTCOME, UByte(not is_welcome)), kind=SASL_FRAME)


def read_sasl_choice(fields: Fields) -> tuple[str, str] | None:
    """Return the name and the value of the key with which a peer signs in, or None for a peer with a token.

    Raises AmqpError amqp:unauthorized-access for an unknown mechanism, or a key that cannot be read.
    """
    mechanism = fields.text(0)
    if mechanism in _WITH_A_TOKEN:
        return None
    if mechanism != _WITH_A_KEY:
        raise _refused(f"SASL: the mechanism {mechanism[:64]!r} is not emulated")
    response = fields.value(1)
    parts = response.split(b"\0") if isinstance(response, bytes) else []
    if len(parts) != 3:  # the identity to act as, the name, the password (RFC 4616)
        raise _refused("SASL: the response of PLAIN is not a name and a password")
    return parts[1].decode(errors="replace"), parts[2].decode(errors="replace")
