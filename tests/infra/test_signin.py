"""infra/app-roles.json: the roles of the app registration, as the code and the page name them."""

import json
import re
from uuid import UUID

from tests.infra.test_policies import FILES, FOLDER
from tests.repo.product import ROOT

ROLES = json.loads((FOLDER / "app-roles.json").read_text(encoding="utf-8"))
NAMES = ["Hubledger.Read", "Hubledger.Operate", "Hubledger.Reveal"]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
FIELDS = {"id", "value", "displayName", "description", "allowedMemberTypes", "isEnabled"}


def test_the_registration_has_the_three_roles_each_described_for_people_and_programs() -> None:
    assert [one["value"] for one in ROLES] == NAMES
    for one in ROLES:
        assert set(one) == FIELDS
        assert one["isEnabled"] is True
        assert one["allowedMemberTypes"] == ["User", "Application"]
        assert len(one["description"]) > 20


def test_each_role_has_an_id_of_its_own_that_stays_when_the_file_is_applied_again() -> None:
    assert len({UUID(one["id"]) for one in ROLES}) == len(NAMES)


def test_the_page_says_each_role_and_the_commands_that_make_them() -> None:
    assert [name for name in NAMES if f"| `{name}` |" not in PAGE] == []
    for said in ("--app-roles @infra/app-roles.json", "azd env set SIGN_IN_CLIENT_ID", "/.auth/login/aad/callback"):
        assert said in PAGE, said


def test_the_role_ids_of_the_page_are_those_of_the_file() -> None:
    assert set(re.findall(r"appRoleId\D{1,6}([0-9a-f-]{36})", PAGE)) <= {one["id"] for one in ROLES}


def test_no_sign_in_is_the_default_and_the_parameter_comes_from_the_environment() -> None:
    (parameter,) = [one for one in FILES["main.bicep"].of_kind("parameter") if one.name == "signInClientId"]
    assert parameter.value == ""
    given = json.loads((FOLDER / "main.parameters.json").read_text(encoding="utf-8"))["parameters"]
    assert given["signInClientId"]["value"] == "${SIGN_IN_CLIENT_ID=}"
