"""infra/hooks/deployer/sign_in.py: the hooks sign in as azd does, and say as whom."""

import os
from pathlib import Path

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import (
    AzureCliCredential,
    AzureDeveloperCliCredential,
    ChainedTokenCredential,
    DefaultAzureCredential,
)

from infra.hooks.deployer.sign_in import Account, Identity, account_of, in_pipeline, open_identity
from infra.hooks.errors import HookRefused
from infra.hooks.rest import ARM
from tests.infra.doubles import PERSON, PIPELINE, Credential, plant, token_of


def test_the_account_is_printed_once_and_the_token_never(capsys: pytest.CaptureFixture[str]) -> None:
    credential = Credential(token_of(PERSON))
    identity = Identity(credential)
    assert identity.token("a") == identity.token("b") == token_of(PERSON)
    assert credential.scopes == ["a", "b"]
    assert capsys.readouterr().out == f"signed in as ada@contoso.com (object id {PERSON['oid']}, tenant t)\n"


def test_a_person_has_no_application_id_and_an_application_has() -> None:
    assert account_of(token_of(PERSON)) == Account("ada@contoso.com", PERSON["oid"], "", "t")
    application = Account(PIPELINE["appid"], PIPELINE["oid"], PIPELINE["appid"], "t")
    assert Identity(Credential(token_of(PIPELINE))).account() == application


@pytest.mark.parametrize("token", ["", "opaque", "a.b.c", "a.bnVsbA.c", "a.W10.c", "a.ÿ.c", "a.gICA.c"])
def test_a_token_that_tells_nothing_is_an_account_without_ids(token: str) -> None:
    assert account_of(token) == Account("an account that its token does not name", "", "", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ERROR: AADSTS50076: use MFA\nTrace ID: 1", "ERROR: AADSTS50076: use MFA"),
        (
            "Chain failed.\nAttempted:\n\tACredential: run a\n\tBCredential: no b\nHelp: x",
            "ACredential: run a; BCredential: no b",
        ),
        ("x" * 1000, "x" * 400),
    ],
)
def test_a_sign_in_that_fails_is_one_line(text: str, said: str) -> None:
    failing = Identity(Credential(ClientAuthenticationError(text)))
    with pytest.raises(HookRefused, match=rf"no token for .*azd auth login.*; {said}$") as refusal:
        failing.account()
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize("value", ["", "0", "false", "False"])
def test_a_desk_is_no_pipeline(value: str) -> None:
    assert not in_pipeline({"CI": value})


def test_each_pipeline_tells_that_it_is_one() -> None:
    assert all(in_pipeline({name: "true"}) for name in ("CI", "GITHUB_ACTIONS", "TF_BUILD"))


def credentials(environment: dict[str, str]) -> list[type]:
    opened = open_identity(environment)._credential
    return [type(one) for one in opened.credentials] if type(opened) is ChainedTokenCredential else [type(opened)]


def test_azd_comes_first_at_a_desk_and_not_in_a_pipeline() -> None:
    assert credentials({}) == [AzureDeveloperCliCredential, AzureCliCredential]
    assert credentials({"CI": "true"}) == [DefaultAzureCredential]


AZD = """#!/bin/sh
echo "$@" > "$(dirname "$0")/asked"
echo '{"token": "@token@", "expiresOn": "2099-01-01T00:00:00Z"}'
"""


def test_at_a_desk_the_token_is_that_of_azd_in_the_tenant_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path / "azd", AZD.replace("@token@", token_of(PERSON)))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert open_identity({"AZURE_TENANT_ID": "contoso"}).account().name == "ada@contoso.com"
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("auth token ")
    assert f"--scope {ARM.scope}" in asked and "--tenant-id contoso" in asked
