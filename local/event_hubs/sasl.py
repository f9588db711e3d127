"""SASL (AMQP 1.0 part 5.3): the mechanisms that a peer may choose from, its choice, and the outcome."""

from __future__ import annotations

from local.event_hubs.codec import Array, Symbol, UByte
from local.event_hubs.errors import AmqpError
from local.event_hubs.frames import SASL_FRAME, SASL_MECHANISMS, SASL_OUTCOME, Fields, composite, frame

_WITH_A_KEY = "PLAIN"
_WITH_A_TOKEN = ("MSSBCBS", "ANONYMOUS")  # a peer shows its token to $cbs later


def mechanisms() -> bytes:
    """Return the frame that names the mechanisms."""
    return _frame(composite(SASL_MECHANISMS, Array(map(Symbol, (*_WITH_A_TOKEN, _WITH_A_KEY)))))


def outcome(*, is_welcome: bool) -> bytes:
    """Return the frame that ends SASL."""
    return _frame(composite(SASL_OUTCOME, UByte(not is_welcome)))


def read_choice(fields: Fields) -> tuple[str, str] | None:
    """Return the name and the value of the key with which a peer signs in; None for a peer with a token.

    Raises AmqpError amqp:unauthorized-access for an unknown mechanism, or a key that cannot be read.
    """
    mechanism = fields.text(0)
    if mechanism in _WITH_A_TOKEN:
        return None
    if mechanism != _WITH_A_KEY:
        raise _refused(f"the mechanism {mechanism[:64]!r} is not emulated")
    response = fields.value(1)
    parts = response.split(b"\0") if isinstance(response, bytes) else []
    if len(parts) != 3:  # the identity to act as, the name, the password (RFC 4616)
        raise _refused("the response of PLAIN is not a name and a password")
    return parts[1].decode(errors="replace"), parts[2].decode(errors="replace")


def _frame(performative: bytes) -> bytes:
    return frame(performative, kind=SASL_FRAME)


def _refused(reason: str) -> AmqpError:
    return AmqpError("amqp:unauthorized-access", f"SASL: {reason}")
