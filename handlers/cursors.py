"""Opaque cursors: where a page ended, bound to the query it was a page of."""

import base64
import binascii
from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

import msgspec

from handlers.problems import invalid

Key = TypeVar("Key")
_MARK = 12  # characters of the query's hash


class _Kept(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    mark: str
    key: msgspec.Raw


def cursor_of(query: object, key: Sequence[object]) -> str:
    """The cursor of a page of `query` whose last entry has this key."""
    text = msgspec.json.encode(_Kept(_mark(query), msgspec.Raw(msgspec.json.encode(list(key)))))
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def key_of(query: object, cursor: str, key: type[Key]) -> Key:
    """The key in a cursor; a problem for one that is damaged or of another query. `key` is a tuple type."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=_Kept)
        kept = msgspec.json.decode(found.key, type=key)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise invalid("cursor", "this is not the `next` of any page") from None
    if found.mark != _mark(query):
        raise invalid("cursor", "it belongs to another query: begin without a cursor when the filter changes")
    return kept


def _mark(query: object) -> str:
    return sha256(msgspec.json.encode(query)).hexdigest()[:_MARK]
