"""`python -m infra.hooks preprovision`, whole, with a command azd that signs in and notes the values."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra.hooks import __main__ as hooks
from tests.infra.doubles import PERSON, PIPELINE, plant, token_of
from tests.repo.product import ROOT

AZD = """#!/bin/sh
case "$1" in
auth) echo '{{"token": "{token}", "expiresOn": "2099-01-01T00:00:00Z"}}' ;;
*) echo "$@" >> {asked} ;;
esac
"""
READ = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "AZURE_TENANT_ID", "AZURE_PRINCIPAL_TYPE", "AZURE_ENV_NAME", "VNET_ENABLED")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that gets the words of `azd env set`; the deployer has chosen its own address."""
    for name in (*READ, "SQL_ADMINISTRATOR_ID", "SQL_ADMINISTRATOR_TYPE", "TRANSFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DEPLOYER_ADDRESS", "none")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path / "asked"


def sign_in(asked: Path, claims: dict[str, str]) -> None:
    plant(asked.with_name("azd"), AZD.format(token=token_of(claims), asked=asked))


def test_a_person_who_chose_has_nothing_to_set(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sign_in(asked, PERSON)
    assert hooks.main(["preprovision"]) == 0
    assert capsys.readouterr().out.startswith("signed in as ada@contoso.com ")
    assert not asked.exists()


def test_an_application_is_named_by_its_application_id(asked: Path) -> None:
    sign_in(asked, PIPELINE)
    assert hooks.main(["preprovision"]) == 0
    named = f"SQL_ADMINISTRATOR_ID={PIPELINE['appid']} SQL_ADMINISTRATOR_TYPE=ServicePrincipal"
    assert asked.read_text() == f"env set {named} --no-prompt\n"


def test_a_deployer_who_is_signed_in_nowhere_gets_one_line(asked: Path) -> None:
    said = "ERROR: not logged in, run `azd auth login` to login"
    azd = plant(asked.with_name("azd"), f"#!/bin/sh\necho '{said}' >&2; exit 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "infra.hooks", "preprovision"],
        cwd=ROOT,
        env={"PATH": f"{azd.parent}:/usr/bin:/bin", "DEPLOYER_ADDRESS": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "preprovision: no token for https://management.azure.com/.default: sign in with `azd auth login`"
    )


def test_a_refusal_sets_nothing(
    asked: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sign_in(asked, PIPELINE)
    monkeypatch.setenv("DEPLOYER_ADDRESS", "10.0.0.4")
    assert hooks.main(["preprovision"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not asked.exists()
