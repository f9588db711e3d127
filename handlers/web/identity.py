"""Identify the caller: a person if App Service or a front door signs callers in, else an unverified key holder."""

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hmac import compare_digest

import msgspec

from core.api.problems import NOT_ALLOWED, FieldFault, Problem
from core.api.route import CHANGING, Level
from core.model.policies import GUID, AccessPolicy
from core.model.shapes import reader_of

PRINCIPAL, PRINCIPAL_NAME, FRONT_DOOR = "x-ms-client-principal", "x-ms-client-principal-name", "x-azure-fdid"
LARGEST_PRINCIPAL = 64 * 1024  # characters of the header; a token with 200 groups has some 20,000
MOST_NAME = 160  # characters: with the object id, a caller has at most 200
ROLE_CLAIMS = {"roles", "http://schemas.microsoft.com/ws/2008/06/identity/claims/role"}
OBJECT_ID_CLAIMS = {"oid", "http://schemas.microsoft.com/identity/claims/objectidentifier"}


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request: the name that is recorded, and the app roles."""

    name: str
    roles: frozenset[str] = frozenset()


ANYBODY = Caller("anybody")
RESIDENT = Caller("resident (signed link)")
UNVERIFIED = Caller("unverified (key holder)")


class _Claim(msgspec.Struct):
    typ: str
    val: str


class _Principal(msgspec.Struct):
    claims: list[_Claim]


def identify(headers: Mapping[str, str], level: Level, access: AccessPolicy) -> Caller:
    """Return the caller of a route. Reads the principal headers only where a trusted party has set them.

    A header that is malformed, too long or not ASCII gives no name and no role.
    """
    if not level.needs_key:
        return ANYBODY if level.link is None else RESIDENT
    if not _is_trusted(headers, access):
        return UNVERIFIED
    claims: Sequence[_Claim] = ()
    with suppress(ValueError, RecursionError):  # msgspec's faults are ValueErrors
        if len(principal := headers.get(PRINCIPAL, "")) <= LARGEST_PRINCIPAL:
            claims = reader_of(_Principal).decode(base64.b64decode(principal, validate=True)).claims
    # The name may pass to a different person, the object id never does.
    ids = [one.val for one in claims if one.typ in OBJECT_ID_CLAIMS and GUID.fullmatch(one.val)]
    # A letter beyond U+FFFF would count twice in a column of SQL Server.
    letters = [one for one in headers.get(PRINCIPAL_NAME, "") if one.isprintable() and one <= "\uffff"]
    name = "".join(letters)[:MOST_NAME].strip()
    known = f"{name or 'unnamed'} ({ids[0] if ids else 'no object id'})" if name or ids else UNVERIFIED.name
    return Caller(known, frozenset(claim.val for claim in claims if claim.typ in ROLE_CLAIMS))


def refuse_without_role(caller: Caller, level: Level, access: AccessPolicy, fields: Sequence[str] = ()) -> None:
    """Raise a problem unless the caller has the app role of the level, which the route or some fields need. Without
    sign-in, the key alone decides."""
    role = (access.operator_role if level is CHANGING else None) or level.role
    if access.signs_in and role and role not in caller.roles:
        faults = tuple(FieldFault(name, f"needs the app role {role}") for name in fields)
        needs = f"{', '.join(fields)}: this request" if fields else "this route"
        raise Problem(NOT_ALLOWED, f"{needs} needs the app role {role}: sign in with an account that has it", faults)


def _is_trusted(headers: Mapping[str, str], access: AccessPolicy) -> bool:
    """Return True if no client set the principal headers: the platform replaces them, or a front door sends its id."""
    if access.platform_signs_in:
        return True
    door = (access.front_door or "").lower().encode()
    return bool(door) and compare_digest(headers.get(FRONT_DOOR, "").lower().encode("utf-8", "replace"), door)
