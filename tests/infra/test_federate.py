"""The jobs of GitHub environments can sign in: infra/hooks/federate.sh with stand-ins for `az`, `azd` and `gh`."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.repo.product import ROOT

# GitHub's answers. The flag was false for a new repository whose subjects had ids (azure-dev, 9382).
NEW = {"use_default": True, "use_immutable_subject": False, "sub_claim_prefix": "repo:o@1/r@2"}
OLD = {"use_default": True, "use_immutable_subject": False, "sub_claim_prefix": "repo:o/r"}
SILENT = {"use_default": True}
OWN = {"use_default": False, "include_claim_keys": ["repository_owner_id"], "sub_claim_prefix": "repo:o/r"}
STRANGE = {"use_default": True, "sub_claim_prefix": 'repo:o/r", "x'}

AZ = """#!/bin/sh
case "$*" in
    *" list "*) printf '%s\\n' repo:o/r:pull_request repo:o/r:environment:dev ;;
    *) printf '%s\\n' "$*" >> "$CALLS" ;;
esac
"""
GH = """#!/bin/sh
if [ "$*" != "api repos/o/r/actions/oidc/customization/sub --jq $4" ]; then
    echo "gh: Not Found (HTTP 404)" >&2
    exit 1
fi
printf '%s' "$ANSWER" | {jq} -r "$4"
"""


def federate(folder: Path, *arguments: str, **more: str) -> tuple["subprocess.CompletedProcess[str]", str]:
    """Run the script with an `az` that stores its calls, and two programs of this machine; return the calls too."""
    calls = folder / "calls"
    for program in ("grep", "tr"):
        (folder / program).symlink_to(str(shutil.which(program)))
    plant(folder / "az", AZ)
    calls.touch()
    environment = {"PATH": str(folder), "CALLS": str(calls), **more}
    script = str(ROOT / "infra" / "hooks" / "federate.sh")
    done = subprocess.run([script, *arguments], env=environment, capture_output=True, text=True, check=False)
    return done, calls.read_text()


def answered(
    folder: Path, answer: dict[str, Any], *arguments: str
) -> tuple["subprocess.CompletedProcess[str]", list[dict[str, Any]]]:
    """Run the script with a `gh` that gives this answer; return the credentials that it made, too."""
    plant(folder / "gh", gh())
    done, calls = federate(folder, *arguments, AZURE_PIPELINE_CLIENT_ID="c", ANSWER=json.dumps(answer))
    made = calls.split("ad app federated-credential create --id c ")[1:]
    return done, [json.loads(one[one.index("{") :]) for one in made]


def gh() -> str:
    """Return the text of a `gh` that answers as GitHub does, by jq as gh itself."""
    jq = shutil.which("jq")
    if jq is None:
        pytest.skip("jq is not installed: apt-get install jq")
    return GH.format(jq=jq)


def plant(path: Path, text: str) -> None:
    """Write a program."""
    path.write_text(text)
    path.chmod(0o755)


def test_an_environment_that_is_not_admitted_yet_gets_a_credential(tmp_path: Path) -> None:
    done, made = answered(tmp_path, OLD, "o/r", "dev", "what-if")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "repo:o/r:environment:dev may already sign in",
        "repo:o/r:environment:what-if may sign in",
    ]
    assert made == [
        {
            "name": "o-r-environment-what-if",
            "subject": "repo:o/r:environment:what-if",
            "audiences": ["api://AzureADTokenExchange"],
            "issuer": "https://token.actions.githubusercontent.com",
        }
    ]


def test_the_subject_of_a_new_repository_has_the_ids_that_github_puts_into_it(tmp_path: Path) -> None:
    done, made = answered(tmp_path, NEW, "o/r", "dev")
    assert (done.returncode, done.stderr) == (0, "")
    assert [one["subject"] for one in made] == ["repo:o@1/r@2:environment:dev"]
    assert made[0]["name"] != "o-r-environment-dev", "the credential without ids has that name"


def test_a_github_that_names_no_prefix_has_subjects_without_ids(tmp_path: Path) -> None:
    done, made = answered(tmp_path, SILENT, "o/r", "what-if")
    assert (done.returncode, [one["subject"] for one in made]) == (0, ["repo:o/r:environment:what-if"])
    assert done.stderr == "federate: GitHub names no prefix of the subjects, so they have the names alone\n"


@pytest.mark.parametrize("answer", [OWN, STRANGE, {}])
def test_a_subject_that_nobody_can_foresee_is_refused_with_the_way_to_it(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    done, made = answered(tmp_path, answer, "o/r", "dev")
    assert (done.returncode, done.stdout, made) == (1, "", [])
    assert len(done.stderr.splitlines()) == 1
    assert "o/r has a template of its own for subjects" in done.stderr
    assert "AADSTS700213" in done.stderr


def test_a_repository_that_github_does_not_show_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    done, made = answered(tmp_path, NEW, "o/other", "dev")
    assert (done.returncode, done.stdout, made) == (1, "", [])
    assert done.stderr.splitlines()[-1].startswith("federate: GitHub did not say how the subjects of o/other begin")


def test_without_gh_nothing_is_guessed(tmp_path: Path) -> None:
    done, calls = federate(tmp_path, "o/r", "dev", AZURE_PIPELINE_CLIENT_ID="c")
    assert (done.returncode, done.stdout, calls) == (1, "", "")
    assert done.stderr.splitlines()[-1].endswith("install gh, and sign in with `gh auth login`")


def test_the_gh_that_azd_keeps_for_itself_is_enough(tmp_path: Path) -> None:
    (tmp_path / "azd-home" / "bin").mkdir(parents=True)
    plant(tmp_path / "azd-home" / "bin" / "gh", gh())
    given = {"AZURE_PIPELINE_CLIENT_ID": "c", "AZD_CONFIG_DIR": str(tmp_path / "azd-home"), "ANSWER": json.dumps(NEW)}
    done, _ = federate(tmp_path, "o/r", "dev", **given)
    assert (done.returncode, done.stdout) == (0, "repo:o@1/r@2:environment:dev may sign in\n")


@pytest.mark.parametrize("arguments", [(), ("o/r",), ("r", "dev"), ("o/r/x", "dev"), ("o/r", 'a"b'), ("o/r", "")])
def test_a_wrong_argument_is_refused_in_one_line_and_nothing_is_made(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done, calls = federate(tmp_path, *arguments, AZURE_PIPELINE_CLIENT_ID="c")
    assert (done.returncode, done.stdout, calls) == (1, "", "")
    assert len(done.stderr.splitlines()) == 1


def test_without_an_identity_the_command_that_makes_it_is_named(tmp_path: Path) -> None:
    done, _ = federate(tmp_path, "o/r", "dev")
    assert done.returncode == 1
    assert done.stderr == "federate: run `azd pipeline config` first: it makes the identity\n"


def test_the_identity_is_that_of_azds_environment(tmp_path: Path) -> None:
    plant(tmp_path / "gh", gh())
    plant(tmp_path / "azd", '#!/bin/sh\n[ "$*" = "env get-value AZURE_PIPELINE_CLIENT_ID" ] && echo of-azd\n')
    _, calls = federate(tmp_path, "o/r", "dev", ANSWER=json.dumps(NEW))
    assert calls.startswith("ad app federated-credential create --id of-azd ")
