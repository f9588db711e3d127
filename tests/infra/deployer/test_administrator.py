"""infra/hooks/deployer/administrator.py: the hooks can enter the database, or refuse before anything is made."""

import pytest

from infra.hooks.deployer.administrator import choose_administrator
from infra.hooks.deployer.sign_in import account_of
from infra.hooks.errors import HookRefused
from tests.infra.doubles import PERSON, PIPELINE, token_of

ADA, ROBOT, NOBODY = account_of(token_of(PERSON)), account_of(token_of(PIPELINE)), account_of("")
GROUP = "00000000-0000-0000-0000-0000000000ff"
APPLICATION = {"SQL_ADMINISTRATOR_ID": PIPELINE["appid"], "SQL_ADMINISTRATOR_TYPE": "ServicePrincipal"}


def named(given: str, kind: str = "") -> dict[str, str]:
    return {"SQL_ADMINISTRATOR_ID": given, "SQL_ADMINISTRATOR_TYPE": kind}


def test_a_person_is_the_administrator_without_a_setting() -> None:
    assert choose_administrator({}, ADA) == {}


def test_a_guest_whose_token_has_no_upn_is_a_person() -> None:
    guest = {name: value for name, value in PERSON.items() if name != "upn"}
    assert choose_administrator({}, account_of(token_of(guest))) == {}


def test_a_service_principal_is_the_administrator_by_its_application_id() -> None:
    assert choose_administrator({}, ROBOT) == APPLICATION
    assert choose_administrator({"AZURE_PRINCIPAL_TYPE": "ServicePrincipal"}, ROBOT) == APPLICATION


def test_a_pipeline_may_name_its_application() -> None:
    pipeline = {"CI": "true", "AZURE_PRINCIPAL_TYPE": "ServicePrincipal", "AZURE_CLIENT_ID": PIPELINE["appid"]}
    assert choose_administrator(pipeline, NOBODY) == APPLICATION


@pytest.mark.parametrize("more", [{}, {"AZURE_CLIENT_ID": PIPELINE["appid"]}, {"CI": "true"}])
def test_a_service_principal_without_its_application_id_is_refused_in_one_line(more: dict[str, str]) -> None:
    with pytest.raises(
        HookRefused, match="its application id is unknown: `azd env set SQL_ADMINISTRATOR_ID"
    ) as refusal:
        choose_administrator({"AZURE_PRINCIPAL_TYPE": "ServicePrincipal", **more}, ADA)
    assert len(refusal.value.faults) == 1


@pytest.mark.parametrize(
    ("environment", "account"),
    [
        (named(GROUP), ADA),
        (named(GROUP, "Group"), ROBOT),
        (named(PERSON["oid"].upper(), "User"), ADA),
        (named(PIPELINE["appid"], "ServicePrincipal"), ROBOT),
        (named(GROUP, "ServicePrincipal"), NOBODY),
    ],
)
def test_a_choice_that_fits_the_account_stays(environment: dict[str, str], account: object) -> None:
    assert choose_administrator(environment, account) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("environment", "account", "says"),
    [
        (named(PIPELINE["oid"], "ServicePrincipal"), ROBOT, f"takes its application id: .*{PIPELINE['appid']}"),
        (named(GROUP, "ServicePrincipal"), ROBOT, "is not .*, who is signed in"),
        (named(PIPELINE["appid"], "ServicePrincipal"), ADA, "is not ada@contoso.com, who is signed in"),
        (named(GROUP, "User"), ADA, "is not ada@contoso.com, who is signed in"),
        (named(PIPELINE["oid"], "User"), ROBOT, "is not .*, who is signed in"),
        (named(PERSON["oid"]), ADA, "is ada@contoso.com and not a group"),
        (named(PIPELINE["appid"], "Group"), ROBOT, "and not a group"),
        (named(GROUP, "Team"), ADA, "must be Group, User or ServicePrincipal, not 'Team'"),
        (named("dba@contoso.com"), ADA, "must be an id of the form .*, not 'dba@contoso.com'"),
    ],
)
def test_a_choice_that_locks_the_hooks_out_is_refused(environment: dict[str, str], account: object, says: str) -> None:
    with pytest.raises(HookRefused, match=says):
        choose_administrator(environment, account)  # type: ignore[arg-type]
