"""Messages as publishers encode them, for tests."""

from __future__ import annotations

from typing import Any

from local.event_hubs.codec import Described, Symbol, ULong, encode
from local.event_hubs.sections import DATA, MESSAGE_ANNOTATIONS


def message(body: bytes = b"body", **annotations: Any) -> bytes:
    """A message with a binary body; `partition_key="a"` becomes the annotation x-opt-partition-key."""
    named = {Symbol("x-opt-" + name.replace("_", "-")): value for name, value in annotations.items()}
    head = encode(Described(ULong(MESSAGE_ANNOTATIONS), named)) if named else b""
    return head + encode(Described(ULong(DATA), body))


def batch(messages: list[bytes], **annotations: Any) -> bytes:
    """A batch of messages, with outer annotations as in `message`."""
    inner = b"".join(encode(Described(ULong(DATA), each)) for each in messages)
    empty = message(b"", **annotations)
    return empty[: len(empty) - len(encode(Described(ULong(DATA), b"")))] + inner
