"""Pages and their opaque cursors: the place where a page ends, bound to its query.

A cursor is not secret, and anybody may write one. So its key has typed fields with limits, and is verified like every
other value of a request.
"""

import base64
import binascii
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated, TypeVar

import msgspec

from core.api.problems import invalid

Entry = TypeVar("Entry")
Key = TypeVar("Key", bound=tuple[object, ...])
_MARK = 12  # characters of the query's hash
_DAMAGED = "this is not the `next` of any page"

# The fields of keys.
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class _Bound(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    mark: str
    key: msgspec.Raw


def page_of(
    found: Sequence[Entry], limit: int, query: object, key: Callable[[Entry], Sequence[object]]
) -> tuple[Sequence[Entry], str | None]:
    """Return a page, and the cursor of the next one; None at the end. `found` has one entry more if there is one."""
    page = found[:limit]
    return page, cursor_of(query, key(page[-1])) if len(found) > limit else None


def query_of(given: msgspec.Struct) -> msgspec.Struct:
    """Return the part of a query that a cursor is bound to: all but the length of a page, which may change."""
    return msgspec.structs.replace(given, cursor=None, limit=1)


def cursor_of(query: object, key: Sequence[object]) -> str:
    """Return the cursor of a page of `query` whose last entry has this key."""
    text = msgspec.json.encode(_Bound(_mark(query), msgspec.Raw(msgspec.json.encode(list(key)))))
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def key_of(query: object, cursor: str, key: type[Key]) -> Key:
    """Return the key in a cursor; raise a problem for a damaged one or one of a different query.

    `key` is a type of tuples whose fields have limits. All its instants are in UTC, as in the cursors that we make.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=_Bound)
        read = msgspec.json.decode(found.key, type=key)
    except (binascii.Error, ValueError, RecursionError, msgspec.DecodeError):
        raise invalid("cursor", _DAMAGED) from None
    if any(one.utcoffset() != timedelta() for one in read if isinstance(one, datetime)):
        raise invalid("cursor", _DAMAGED)
    if found.mark != _mark(query):
        raise invalid("cursor", "it belongs to a different query: start without a cursor when the filter changes")
    return read


def _mark(query: object) -> str:
    return sha256(msgspec.json.encode(query)).hexdigest()[:_MARK]
