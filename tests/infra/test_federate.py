"""The jobs of GitHub environments can sign in: infra/hooks/federate.sh with stand-ins for `az`, `azd` and `gh`."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.infra.doubles import plant
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


CREDENTIAL = {"audiences": ["api://AzureADTokenExchange"], "issuer": "https://token.actions.githubusercontent.com"}


def federate(
    folder: Path, *arguments: str, answer: object = None, gh: str = "gh", **more: str
) -> tuple[int, list[str], list[str], list[dict[str, Any]]]:
    """Run the script with an `az` that stores its calls, and a `gh` that gives this answer by jq, as gh itself.

    Return the code, the lines of both outputs, and the credentials that it made for the identity `c`."""
    jq = shutil.which("jq") or pytest.skip("jq is not installed: apt-get install jq")
    for program in ("grep", "tr"):
        (folder / program).symlink_to(str(shutil.which(program)))
    plant(folder / "az", AZ)
    if answer is not None:
        plant(folder / gh, GH.format(jq=jq))
    calls = folder / "calls"
    calls.touch()
    given = {"PATH": str(folder), "CALLS": str(calls), "ANSWER": json.dumps(answer), **more}
    script = str(ROOT / "infra" / "hooks" / "federate.sh")
    done = subprocess.run([script, *arguments], env=given, capture_output=True, text=True, check=False)
    made = calls.read_text().split("ad app federated-credential create --id c ")
    assert made[0] == ""
    made_for = [json.loads(one[one.index("{") :]) for one in made[1:]]
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), made_for


def test_an_environment_that_is_not_admitted_yet_gets_a_credential(tmp_path: Path) -> None:
    code, said, faults, made = federate(tmp_path, "o/r", "dev", "what-if", answer=OLD, AZURE_PIPELINE_CLIENT_ID="c")
    assert (code, faults) == (0, [])
    assert said == ["repo:o/r:environment:dev may already sign in", "repo:o/r:environment:what-if may sign in"]
    assert made == [{"name": "o-r-environment-what-if", "subject": "repo:o/r:environment:what-if", **CREDENTIAL}]


NO_PREFIX = "federate: GitHub names no prefix of the subjects, so they have the names alone"


@pytest.mark.parametrize(
    ("answer", "subject", "said"),
    [
        pytest.param(NEW, "repo:o@1/r@2:environment:what-if", [], id="with the ids of a new repository"),
        pytest.param(SILENT, "repo:o/r:environment:what-if", [NO_PREFIX], id="without a prefix"),
    ],
)
def test_the_subject_is_the_one_that_github_will_send(
    tmp_path: Path, answer: dict[str, Any], subject: str, said: list[str]
) -> None:
    code, _, faults, made = federate(tmp_path, "o/r", "what-if", answer=answer, AZURE_PIPELINE_CLIENT_ID="c")
    assert (code, faults, [one["subject"] for one in made]) == (0, said, [subject])
    assert (made[0]["name"] == "o-r-environment-what-if") is (answer == SILENT), "the one without ids has that name"


FOR_DEV = ("o/r", "dev")
TEMPLATE = "o/r has a template of its own for subjects"


@pytest.mark.parametrize(
    ("answer", "arguments", "says"),
    [
        *(pytest.param(answer, FOR_DEV, f"{TEMPLATE}.*AADSTS700213", id="a template") for answer in (OWN, STRANGE, {})),
        pytest.param(NEW, ("o/other", "dev"), "GitHub did not say how the subjects of o/other begin", id="not shown"),
        pytest.param(None, FOR_DEV, "install gh, and sign in with `gh auth login`$", id="no gh"),
        *(
            pytest.param(OLD, wrong, "", id="arguments")
            for wrong in ((), ("o/r",), ("r", "dev"), ("o/r/x", "dev"), ("o/r", 'a"b'), ("o/r", ""))
        ),
    ],
)
def test_what_nobody_can_foresee_is_refused_and_nothing_is_made(
    tmp_path: Path, answer: object, arguments: tuple[str, ...], says: str
) -> None:
    code, said, faults, made = federate(tmp_path, *arguments, answer=answer, AZURE_PIPELINE_CLIENT_ID="c")
    assert (code, said, made) == (1, [], [])
    assert re.search(says, faults[-1])
    assert len(faults) == 1 or "gh" in faults[0], "gh says its own fault first"


def test_the_gh_that_azd_keeps_for_itself_is_enough(tmp_path: Path) -> None:
    home = {"AZURE_PIPELINE_CLIENT_ID": "c", "AZD_CONFIG_DIR": str(tmp_path / "azd-home")}
    code, said, _, _ = federate(tmp_path, "o/r", "dev", answer=NEW, gh="azd-home/bin/gh", **home)
    assert (code, said) == (0, ["repo:o@1/r@2:environment:dev may sign in"])


def test_the_identity_is_that_of_azds_environment_and_without_one_the_command_that_makes_it_is_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "without").mkdir()
    code, _, faults, _ = federate(tmp_path / "without", "o/r", "dev", answer=NEW)
    assert (code, faults) == (1, ["federate: run `azd pipeline config` first: it makes the identity"])
    plant(tmp_path / "azd", '#!/bin/sh\n[ "$*" = "env get-value AZURE_PIPELINE_CLIENT_ID" ] && echo c\n')
    assert len(federate(tmp_path, "o/r", "dev", answer=NEW)[3]) == 1
