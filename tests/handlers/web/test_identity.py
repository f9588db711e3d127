"""handlers/web/identity.py: the app trusts no header that a client can forge, and no header raises."""

import base64
import json
from collections.abc import Mapping

import pytest

from core.api.problems import Problem
from core.api.route import CHANGING, LEVELS, OPEN, READING, REVEALING, linked
from core.model.policies import AccessPolicy
from examples.home_security.routes import LINK
from handlers.web.identity import LARGEST_PRINCIPAL, UNVERIFIED, Caller, identify, refuse_without_role

LINKED = linked(LINK)

ADA, DOOR = "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
OFF, ON, BEHIND_A_DOOR = AccessPolicy(), AccessPolicy(platform_signs_in=True), AccessPolicy(front_door=DOOR)
LONG_ROLE = "http://schemas.microsoft.com/ws/2008/06/identity/claims/role"
LONG_ID = "http://schemas.microsoft.com/identity/claims/objectidentifier"


def encoded(value: object) -> str:
    return base64.b64encode(value if isinstance(value, bytes) else json.dumps(value).encode()).decode()


def principal(*claims: tuple[str, str]) -> str:
    return encoded({"auth_typ": "aad", "claims": [{"typ": typ, "val": val} for typ, val in claims]})


def signed_in(*claims: tuple[str, str], name: str = "ada@example.org", **more: str) -> dict[str, str]:
    return {"x-ms-client-principal-name": name, "x-ms-client-principal": principal(*claims), **more}


def caller(headers: Mapping[str, str], access: AccessPolicy = ON) -> Caller:
    return identify(headers, READING, access)


def test_without_sign_in_no_header_is_trusted() -> None:
    forged = signed_in(("roles", "Hubledger.Operate"), ("oid", ADA), **{"x-azure-fdid": DOOR})
    for level in set(LEVELS) - {OPEN}:
        assert identify(forged, level, OFF) == UNVERIFIED == Caller("unverified (key holder)")


def test_the_platform_is_trusted_and_the_object_id_follows_the_name() -> None:
    found = caller(signed_in(("roles", "Hubledger.Read"), ("oid", ADA)))
    assert found == Caller(f"ada@example.org ({ADA})", frozenset({"Hubledger.Read"}))
    assert caller(signed_in((LONG_ID, ADA))).name == f"ada@example.org ({ADA})"


def test_with_a_front_door_only_requests_with_its_id_are_trusted() -> None:
    given = signed_in(("roles", "Hubledger.Read"), ("oid", ADA))
    assert caller({**given, "x-azure-fdid": DOOR.upper()}, BEHIND_A_DOOR).roles == {"Hubledger.Read"}
    for forged in ({}, {"x-azure-fdid": ""}, {"x-azure-fdid": ADA}, {"x-azure-fdid": f"{DOOR},{DOOR}"}):
        assert caller({**given, **forged}, BEHIND_A_DOOR) == UNVERIFIED
    for odd in ("ß", "\ud800", "\x00", DOOR[:-1], f"{DOOR} "):
        assert caller({**given, "x-azure-fdid": odd}, BEHIND_A_DOOR) == UNVERIFIED


def test_only_claims_of_exactly_the_two_types_are_roles() -> None:
    others = ("role", "Roles", "ROLES", "roles ", "groups", "/role", f"{LONG_ROLE}s", f"x{LONG_ROLE}", "my/role",
              "https://evil.example/ws/2008/06/identity/claims/role", "")  # fmt: skip
    assert caller(signed_in(*((typ, "Hubledger.Operate") for typ in others))).roles == frozenset()
    assert caller(signed_in(("roles", "a"), (LONG_ROLE, "b"), ("roles", "c"))).roles == {"a", "b", "c"}


def test_only_claims_of_exactly_the_two_types_are_object_ids() -> None:
    for typ in ("OID", "oid ", "sub", "objectidentifier", f"{LONG_ID}/"):
        assert caller(signed_in((typ, ADA))).name == "ada@example.org (no object id)"
    for val in ("", "me", ADA[:-1], f"{ADA}\n", f"{ADA} ", "x" * 36, f"{ADA}) (root"):
        assert caller(signed_in(("oid", val))).name == "ada@example.org (no object id)"


MALFORMED: dict[str, str] = {
    "not base64": "no base64!",
    "not ASCII": "é" * 8,
    "a surrogate": "\ud800",
    "a NUL": "\x00",
    "cut": principal(("roles", "Hubledger.Operate"))[:-3],
    "not UTF-8": encoded(b"\xff\xfe"),
    "not JSON": encoded(b"{"),
    "deep": encoded(b"[" * 40_000),
    "deep in claims": encoded(b'{"claims":' + b"[" * 40_000),
    "deep in a field that is not read": encoded(b'{"claims":[],"x":' + b"[" * 40_000),
    "a list": encoded([{"typ": "roles", "val": "Hubledger.Operate"}]),
    "a text": encoded("roles"),
    "null": encoded(None),
    "no claims": encoded({"auth_typ": "aad"}),
    "claims that are null": encoded({"claims": None}),
    "claims that are an object": encoded({"claims": {"typ": "roles", "val": "Hubledger.Operate"}}),
    "a claim that is a text": encoded({"claims": ["roles"]}),
    "a claim without a value": encoded({"claims": [{"typ": "roles"}]}),
    "a claim of a number": encoded({"claims": [{"typ": 7, "val": "Hubledger.Operate"}]}),
    "a claim with a list": encoded({"claims": [{"typ": "roles", "val": ["Hubledger.Operate"]}]}),
    "two headers in one": f"{principal(('roles', 'Hubledger.Operate'))},{principal(('roles', 'Hubledger.Operate'))}",
    "oversize": principal(("roles", "Hubledger.Operate"), ("pad", "x" * LARGEST_PRINCIPAL)),
    "URL alphabet": base64.urlsafe_b64encode('{"claims":[{"typ":"roles","val":"ÿÿÿ>>>"}]}'.encode()).decode(),
}


@pytest.mark.parametrize("header", MALFORMED.values(), ids=MALFORMED)
def test_a_principal_that_is_malformed_gives_no_role_and_raises_nothing(header: str) -> None:
    for access in (ON, BEHIND_A_DOOR):
        found = caller({"x-ms-client-principal": header, "x-azure-fdid": DOOR}, access)
        assert found == UNVERIFIED
        for level in (READING, REVEALING, CHANGING):
            with pytest.raises(Problem):
                refuse_without_role(found, level, access)


NAMES = {"": "unnamed", "a\nb\x00c\x1b[0m": "abc[0m", "x" * 999: "x" * 160, "Zoë 🦊 \ud800": "Zoë", " ada ": "ada"}


@pytest.mark.parametrize(("header", "name"), NAMES.items())
def test_a_name_has_nothing_that_breaks_a_log_or_a_column(header: str, name: str) -> None:
    recorded = caller(signed_in(("oid", ADA), name=header)).name
    assert recorded == f"{name} ({ADA})"
    assert len(recorded.encode("utf-16-le")) // 2 <= 200


def test_a_key_holder_who_did_not_sign_in_is_unverified() -> None:
    assert caller({}) == caller({"x-ms-client-principal-name": "\x00"}) == UNVERIFIED


class TestRoles:
    """Each level has a role of its own, and none stands for a different one; test_access.py asks every route."""

    def test_a_level_needs_its_own_role(self) -> None:
        needed = {READING: "Hubledger.Read", REVEALING: "Hubledger.Reveal", CHANGING: "Hubledger.Operate"}
        for level, role in needed.items():
            refuse_without_role(Caller("ada", frozenset({role})), level, ON)
            others = set(needed.values()) - {role} | {role.lower(), f"{role} ", ""}
            with pytest.raises(Problem, match=role) as caught:
                refuse_without_role(Caller("ada", frozenset(others)), level, ON)
            assert caught.value.kind.status == 403

    def test_the_role_of_changes_may_have_a_different_name(self) -> None:
        access = AccessPolicy(platform_signs_in=True, operator_role="Mine")
        refuse_without_role(Caller("ada", frozenset({"Mine"})), CHANGING, access)
        for level, role in ((CHANGING, "Hubledger.Operate"), (READING, "Mine"), (REVEALING, "Mine")):
            with pytest.raises(Problem):
                refuse_without_role(Caller("ada", frozenset({role})), level, access)
