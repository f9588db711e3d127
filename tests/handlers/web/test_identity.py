import base64
import hmac
import json
import string
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import pytest

from core.api.problems import Problem
from core.api.room_operations import end_of_link, refuse_without_link, sign_link
from core.api.route import CHANGING, LEVELS, OPEN, READING, REVEALING
from core.model.policies import AccessPolicy
from examples.home_security.routes import LINK as KIND
from handlers.web.identity import LARGEST_PRINCIPAL, UNVERIFIED, Caller, identify, refuse_without_role

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


def test_without_sign_in_no_header_is_trusted_and_with_it_the_object_id_follows_the_name() -> None:
    forged = signed_in(("roles", "Hubledger.Operate"), ("oid", ADA), **{"x-azure-fdid": DOOR})
    for level in set(LEVELS) - {OPEN}:
        assert identify(forged, level, OFF) == UNVERIFIED == Caller("unverified (key holder)")
    assert caller(forged) == Caller(f"ada@example.org ({ADA})", frozenset({"Hubledger.Operate"}))
    assert caller(signed_in((LONG_ID, ADA))).name == f"ada@example.org ({ADA})"
    assert caller({}) == caller({"x-ms-client-principal-name": "\x00"}) == UNVERIFIED


def test_with_a_front_door_only_requests_with_its_id_are_trusted() -> None:
    given = signed_in(("roles", "Hubledger.Read"), ("oid", ADA))
    assert caller({**given, "x-azure-fdid": DOOR.upper()}, BEHIND_A_DOOR).roles == {"Hubledger.Read"}
    for forged in ({}, {"x-azure-fdid": ""}, {"x-azure-fdid": ADA}, {"x-azure-fdid": f"{DOOR},{DOOR}"}):
        assert caller({**given, **forged}, BEHIND_A_DOOR) == UNVERIFIED
    for odd in ("ß", "\ud800", "\x00", DOOR[:-1], f"{DOOR} "):
        assert caller({**given, "x-azure-fdid": odd}, BEHIND_A_DOOR) == UNVERIFIED


def test_only_claims_of_exactly_the_two_types_are_roles_and_object_ids() -> None:
    others = ("role", "Roles", "ROLES", "roles ", "groups", "/role", f"{LONG_ROLE}s", f"x{LONG_ROLE}", "my/role",
              "https://evil.example/ws/2008/06/identity/claims/role", "")  # fmt: skip
    assert caller(signed_in(*((typ, "Hubledger.Operate") for typ in others))).roles == frozenset()
    assert caller(signed_in(("roles", "a"), (LONG_ROLE, "b"), ("roles", "c"))).roles == {"a", "b", "c"}
    wrong = [(typ, ADA) for typ in ("OID", "oid ", "sub", "objectidentifier", f"{LONG_ID}/")]
    wrong += [("oid", val) for val in ("", "me", ADA[:-1], f"{ADA}\n", f"{ADA} ", "x" * 36, f"{ADA}) (root")]
    for claim in wrong:
        assert caller(signed_in(claim)).name == "ada@example.org (no object id)", claim


ROLE = {"typ": "roles", "val": "Hubledger.Operate"}
WITH_ROLE, UNCLOSED = principal(("roles", "Hubledger.Operate")), b"[" * 40_000


MALFORMED: tuple[str, ...] = (
    *("no base64!", "é" * 8, "\ud800", "\x00", WITH_ROLE[:-3], f"{WITH_ROLE},{WITH_ROLE}"),
    *(encoded(b"\xff\xfe"), encoded(b"{"), encoded([ROLE]), encoded("roles"), encoded(None)),
    *(encoded(UNCLOSED), encoded(b'{"claims":' + UNCLOSED), encoded(b'{"claims":[],"x":' + UNCLOSED)),
    *(encoded({"claims": claims}) for claims in (None, ROLE, ["roles"], [{"typ": "roles"}])),
    *(encoded({"claims": [{**ROLE, **odd}]}) for odd in ({"typ": 7}, {"val": ["Hubledger.Operate"]})),
    *(encoded({"auth_typ": "aad"}), principal(("roles", "Hubledger.Operate"), ("pad", "x" * LARGEST_PRINCIPAL))),
    base64.urlsafe_b64encode('{"claims":[{"typ":"roles","val":"ÿÿÿ>>>"}]}'.encode()).decode(),
)


@pytest.mark.parametrize("header", MALFORMED, ids=range(len(MALFORMED)))
def test_a_principal_that_is_malformed_gives_no_role_and_raises_nothing(header: str) -> None:
    for access in (ON, BEHIND_A_DOOR):
        found = caller({"x-ms-client-principal": header, "x-azure-fdid": DOOR}, access)
        assert found == UNVERIFIED
        for level in (READING, REVEALING, CHANGING):
            with pytest.raises(Problem):
                refuse_without_role(found, level, access)


NAMES = {
    "": "unnamed", "a\nb\x00c\x1b[0m": "abc[0m", "x" * 999: "x" * 160, "Zoë 🦊 \ud800": "Zoë", " ada ": "ada",
}  # fmt: skip


@pytest.mark.parametrize(("header", "name"), NAMES.items())
def test_a_name_has_nothing_that_breaks_a_log_or_a_column(header: str, name: str) -> None:
    recorded = caller(signed_in(("oid", ADA), name=header)).name
    assert recorded == f"{name} ({ADA})"
    assert len(recorded.encode("utf-16-le")) // 2 <= 200


def test_a_level_needs_its_own_role_and_that_of_changes_may_have_a_different_name() -> None:
    """test_access.py asks every route."""
    needed = {READING: "Hubledger.Read", REVEALING: "Hubledger.Reveal", CHANGING: "Hubledger.Operate"}
    for level, role in needed.items():
        refuse_without_role(Caller("ada", frozenset({role})), level, ON)
        others = set(needed.values()) - {role} | {role.lower(), f"{role} ", ""}
        with pytest.raises(Problem, match=role) as caught:
            refuse_without_role(Caller("ada", frozenset(others)), level, ON)
        assert caught.value.kind.status == 403
    access = AccessPolicy(platform_signs_in=True, operator_role="Mine")
    refuse_without_role(Caller("ada", frozenset({"Mine"})), CHANGING, access)
    for level, role in ((CHANGING, "Hubledger.Operate"), (READING, "Mine"), (REVEALING, "Mine")):
        with pytest.raises(Problem):
            refuse_without_role(Caller("ada", frozenset({role})), level, access)


NOW = datetime(2026, 11, 22, 12, 0, 0, 250_000, UTC)
SECRET, FORMER = "s" * 32, "former-secret-of-more-than-32-octets"
END = end_of_link(NOW, timedelta(hours=1))
LINK = sign_link(KIND, "H1", END, SECRET)


def opens(link: str, home_id: str = "H1", now: datetime = NOW, *secrets: str) -> bool:
    """True if the link opens the home. Every refusal is 403."""
    try:
        refuse_without_link(KIND, link, home_id, now, secrets or (SECRET, FORMER))
    except Problem as problem:
        assert problem.kind.status == 403
        return False
    return True


def test_a_link_opens_its_home_until_it_ends_and_only_a_signed_one_is_told_that_it_ended() -> None:
    assert opens(LINK)
    assert opens(LINK, now=END - timedelta(microseconds=1))
    assert not opens(LINK, now=END)
    assert not opens(LINK, now=END + timedelta(days=400))
    for home_id, told in {"H1": "has ended", "H2": "not a link for this home"}.items():
        with pytest.raises(Problem, match=told):
            refuse_without_link(KIND, LINK, home_id, END + timedelta(seconds=1), (SECRET,))


def forged() -> Iterator[str]:
    version, expires, signature = LINK.split(".")
    for moved in (int(expires) + 1, int(expires) - 1, 9_999_999_999, 0):
        yield f"{version}.{moved:010}.{signature}"
    alphabet = string.ascii_letters + string.digits + "-_."
    for at, letter in enumerate(LINK):  # also the last one, whose two lowest bits base64 ignores: a link has one text
        yield from (LINK[:at] + other + LINK[at + 1 :] for other in set(alphabet) - {letter})
    yield from (*(LINK[:at] for at in range(len(LINK))), *(LINK[at:] for at in range(1, len(LINK))))
    yield from (f"{LINK}=", f"{LINK}\n", f" {LINK}", f"{LINK} ", f"{LINK}{LINK}", f"{LINK},{LINK}", f"{LINK}A")
    yield from ("", "v1..", "null", "\ud800", "é" * 60, "A" * 10_000, f"v1.{expires}.{'A' * 43}", f"v1.{expires}.")
    yield f"v1.{''.join(chr(0x660 + int(digit)) for digit in expires)}.{signature}"
    yield from (LINK.upper(), LINK.replace("v1", "v2"), LINK.replace("v1", "v01"))
    yield from (sign_link(KIND, "H1", END, wrong) for wrong in ("t" * 32, "s" * 31, "s" * 33, SECRET.upper(), ""))
    for signed in (f"H1\n{expires}", f"H1{expires}", f"hubledger: show the activity of one home, v2\nH1\n{expires}"):
        octets = hmac.digest(SECRET.encode(), signed.encode(), "sha256")  # for a different purpose
        yield f"v1.{expires}.{base64.urlsafe_b64encode(octets).decode().rstrip('=')}"


def test_no_changed_cut_guessed_or_foreign_link_opens_anything_and_none_opens_a_different_home() -> None:
    assert [one for one in forged() if opens(one)] == []
    others = ("H2", "h1", "H", "H11", "H1 ", "H1\n", "", "H1\n1700000000", "\ud800", "H1\x00")
    assert [other for other in others if opens(LINK, other)] == []
    assert set(LINK) <= set(string.ascii_letters + string.digits + "-_."), "an address and a header can hold it"
    assert END.microsecond == 0


def test_a_link_needs_its_secret_or_after_a_rotation_the_one_before() -> None:
    assert not opens(LINK, "H1", NOW, "t" * 32)
    for link in (LINK, sign_link(KIND, "H1", END, ""), ""):
        with pytest.raises(Problem):
            refuse_without_link(KIND, link, "H1", NOW, ())
    assert opens(LINK, "H1", NOW, "n" * 32, SECRET)
    assert opens(sign_link(KIND, "H1", END, "n" * 32), "H1", NOW, "n" * 32, SECRET)
    assert not opens(sign_link(KIND, "H1", END, FORMER), "H1", NOW, "n" * 32, SECRET)
