"""Messages, performatives and tokens as publishers encode them."""

import base64
import hashlib
import hmac
from typing import Any
from urllib.parse import quote_plus

from local.event_hubs.codec import Described, Symbol, UByte, UInt, ULong, encode
from local.event_hubs.frames import ATTACH, SOURCE, TARGET, TRANSFER, composite
from local.event_hubs.sections import DATA, MESSAGE_ANNOTATIONS


def section(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))


def message(body: bytes = b"body", **annotations: Any) -> bytes:
    """Encode a message with a binary body. `partition_key="a"` becomes the annotation x-opt-partition-key."""
    return _annotated(annotations) + section(DATA, body)


def batch(messages: list[bytes], **annotations: Any) -> bytes:
    return _annotated(annotations) + b"".join(section(DATA, each) for each in messages)


def _annotated(annotations: dict[str, Any]) -> bytes:
    named = {Symbol("x-opt-" + name.replace("_", "-")): value for name, value in annotations.items()}
    return section(MESSAGE_ANNOTATIONS, named) if named else b""


def attach_sender(
    address: str,
    handle: int = 0,
    modes: tuple[UByte | None, UByte | None] = (None, None),
    capabilities: Any = None,
    properties: Any = None,
) -> bytes:
    ends = (Described(ULong(SOURCE), []), Described(ULong(TARGET), [address]))
    return composite(ATTACH, f"s{handle}", UInt(handle), False, *modes, *ends, *[None] * 5, capabilities, properties)


def transfer(
    payload: bytes,
    delivery: int = 0,
    handle: int = 0,
    message_format: int = 0,
    *,
    settled: bool = False,
    more: bool = False,
) -> bytes:
    head = (UInt(handle), UInt(delivery), b"tag", UInt(message_format), settled, more)
    return composite(TRANSFER, *head) + payload


def transfers(payload: bytes, delivery: int = 0, handle: int = 0, message_format: int = 0) -> list[bytes]:
    """Encode a delivery in parts that fit into frames."""
    ends = range(60_000, len(payload) + 60_000, 60_000)
    return [
        transfer(payload[end - 60_000 : end], delivery, handle, message_format, more=end < len(payload)) for end in ends
    ]


def make_token(
    resource: str = "amqp://localhost/telemetry",
    name: str = "RootManageSharedAccessKey",
    value: str = "SAS_KEY_VALUE",
    expiry: int = 2**40,
) -> str:
    """Make a token as the page on SAS in the Event Hubs documentation does. `expiry` is in Unix seconds."""
    encoded = quote_plus(resource)
    signature = base64.b64encode(hmac.new(value.encode(), f"{encoded}\n{expiry}".encode(), hashlib.sha256).digest())
    return f"SharedAccessSignature sr={encoded}&sig={quote_plus(signature)}&se={expiry}&skn={name}"
