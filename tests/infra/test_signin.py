"""infra/app-roles.json: the roles of the app registration, as the code and the page name them."""

import json
import re
from typing import Any
from uuid import UUID

from tests.infra.test_policies import FILES, FOLDER
from tests.repo.product import ROOT

ROLES = json.loads((FOLDER / "app-roles.json").read_text(encoding="utf-8"))
NAMES = ["Hubledger.Read", "Hubledger.Operate", "Hubledger.Reveal"]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
ACCESS = (ROOT / "docs" / "access.md").read_text(encoding="utf-8")
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
    assert [name for name in NAMES if f"`{name}`" not in PAGE] == []
    assert [name for name in NAMES if f"`{name}`" not in ACCESS] == []
    for said in ("--app-roles @infra/app-roles.json", "azd env set SIGN_IN_CLIENT_ID", "/.auth/login/aad/callback"):
        assert said in PAGE, said


def test_the_role_ids_of_the_page_are_those_of_the_file() -> None:
    assert set(re.findall(r"appRoleId\D{1,6}([0-9a-f-]{36})", PAGE)) <= {one["id"] for one in ROLES}


AZURE_CLI = "04b07795-8ddb-461a-bbee-02f9e1bf7b46"


def document(name: str) -> dict[str, Any]:
    """Return the part `api` of a registration, as one request sends it."""
    body: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    assert list(body) == ["api"]
    api: dict[str, Any] = body["api"]
    return api


def test_the_registration_exposes_a_scope_and_asks_for_tokens_that_the_app_takes() -> None:
    """A token of version 1 has the issuer sts.windows.net, and the app admits that of version 2 only."""
    api = document("app-scope.json")
    assert set(api) == {"requestedAccessTokenVersion", "oauth2PermissionScopes"}
    assert api["requestedAccessTokenVersion"] == 2
    assert "${tenant().tenantId}/v2.0'" in FILES["app/function.bicep"].text
    (scope,) = api["oauth2PermissionScopes"]
    assert (scope["type"], scope["isEnabled"], scope["value"]) == ("User", True, "access")
    assert UUID(scope["id"]) not in {UUID(one["id"]) for one in ROLES}
    for who in ("admin", "user"):
        assert scope[f"{who}ConsentDisplayName"] and len(scope[f"{who}ConsentDescription"]) > 20


def test_the_azure_cli_alone_may_ask_for_that_scope_without_consent() -> None:
    (scope,) = document("app-scope.json")["oauth2PermissionScopes"]
    allowed = [{"appId": AZURE_CLI, "delegatedPermissionIds": [scope["id"]]}]
    assert document("app-command-line.json") == {"preAuthorizedApplications": allowed}


def test_the_page_sends_the_scope_before_the_application_that_names_it() -> None:
    (parts,) = re.findall(r"for part in ([\w -]+); do az rest --method PATCH --body @infra/app-\$part\.json", PAGE)
    assert parts.split() == ["scope", "command-line"]
    assert "graph.microsoft.com/v1.0/applications(appId='$CLIENT_ID')" in PAGE


def test_no_sign_in_is_the_default_and_the_parameter_comes_from_the_environment() -> None:
    (parameter,) = [one for one in FILES["main.bicep"].of_kind("parameter") if one.name == "signInClientId"]
    assert parameter.value == ""
    given = json.loads((FOLDER / "main.parameters.json").read_text(encoding="utf-8"))["parameters"]
    assert given["signInClientId"]["value"] == "${SIGN_IN_CLIENT_ID=}"
