"""The pipeline: it keeps the choices of the environment, and jobs of GitHub environments can sign in."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.infra.doubles import plant
from tests.infra.pipeline import NOT_KEPT, azure_with, choices, workflow_with
from tests.infra.test_policies import FILES
from tests.infra.test_surroundings import WORKFLOWS
from tests.repo.product import ROOT

PARAMETERS = (ROOT / "infra" / "main.parameters.json").read_text(encoding="utf-8")
AZURE = (ROOT / "azure.yaml").read_text(encoding="utf-8")
DEPLOYING = {"azure-dev.yml": "deploy", "infra.yml": "what-if"}
NAMES = choices(PARAMETERS)


def faults(names: list[str], azure: str, workflows: dict[str, str]) -> list[str]:
    """Return each file that `python -m tests.infra.pipeline` would change."""
    found = {"azure.yaml": azure_with(azure, names) != azure}
    found |= {name: workflow_with(workflows[name], names) != workflows[name] for name in DEPLOYING}
    return [name for name, differs in found.items() if differs]


def test_each_choice_is_in_azure_yaml_and_in_the_environment_of_each_workflow_that_provisions() -> None:
    assert faults(NAMES, AZURE, WORKFLOWS) == [], "run python -m tests.infra.pipeline"
    pipeline = yaml.safe_load(AZURE)["pipeline"]
    assert sorted([*pipeline["variables"], *pipeline["secrets"]]) == NAMES
    assert pipeline["secrets"] == ["ALERT_WEBHOOKS"], "who knows such an address may post there"
    for name, job in DEPLOYING.items():
        env = yaml.safe_load(WORKFLOWS[name])["jobs"][job]["env"]
        assert set(NAMES) <= set(env) and env["AZURE_PRINCIPAL_TYPE"] == "ServicePrincipal"


def test_a_variable_that_github_does_not_have_is_the_default() -> None:
    """azd replaces an empty variable by the default after `=` too (drone/envsubst), so each choice needs one; that of a
    list or an object is JSON, because azd refuses an empty text there."""
    kinds = {one.name: one.of for one in FILES["main.bicep"].of_kind("parameter")}
    for parameter, entry in json.loads(PARAMETERS)["parameters"].items():
        for name, default in re.findall(r"\$\{(\w+)(=[^}]*)?", str(entry["value"])):
            assert default or name in NOT_KEPT, f"{parameter} has no default for an empty {name}"
            if kinds[parameter] not in ("string", "int", "bool"):
                json.loads(default.removeprefix("="))


def test_no_parameter_is_a_secret_that_a_variable_would_show() -> None:
    given = json.loads(PARAMETERS)["parameters"]
    secret = {one.name for one in FILES["main.bicep"].of_kind("parameter") if "secure" in str(one.decorators)}
    assert [name for name in secret & set(given) if "${" in json.dumps(given[name])] == []


def test_an_azd_that_admits_wrong_subjects_or_misreads_funcignore_is_refused() -> None:
    assert yaml.safe_load(AZURE)["requiredVersions"]["azd"] == ">= 1.30.0"
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    assert "[azd](https://aka.ms/azd) 1.30 or newer" in page


@pytest.mark.parametrize("name", DEPLOYING)
def test_a_workflow_installs_the_newest_azd(name: str) -> None:
    steps = [step for job in yaml.safe_load(WORKFLOWS[name])["jobs"].values() for step in job["steps"]]
    installing = [step for step in steps if step.get("uses", "").startswith("Azure/setup-azd@")]
    assert {step.get("with", {}).get("version", "latest") for step in installing} == {"latest"}


AZD = """#!/bin/sh
echo "$* by $SQL_ADMINISTRATOR_TYPE $SQL_ADMINISTRATOR_ID"
exit "$CODE"
"""


def what_if(folder: Path, **variables: str) -> tuple[int, str]:
    """Run the step of the what-if with an `azd` that shows the administrator; return its code and its summary."""
    steps = yaml.safe_load(WORKFLOWS["infra.yml"])["jobs"]["what-if"]["steps"]
    script, summary = steps[-1]["run"], folder / "summary"
    plant(folder / "azd", AZD)
    summary.touch()
    given = {"AZURE_CLIENT_ID": "app", "SQL_ADMINISTRATOR_ID": "", "SQL_ADMINISTRATOR_TYPE": "", "CODE": "0"}
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "GITHUB_STEP_SUMMARY": str(summary), **given, **variables}
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=folder, env=environment, check=False)
    return done.returncode, summary.read_text()


def test_a_preview_has_an_administrator_though_it_runs_no_hook(tmp_path: Path) -> None:
    code, summary = what_if(tmp_path)
    assert (code, summary.splitlines()[1]) == (0, "provision --preview --no-prompt by ServicePrincipal app")
    _, chosen = what_if(tmp_path, SQL_ADMINISTRATOR_ID="group", SQL_ADMINISTRATOR_TYPE="Group")
    assert chosen.count("by Group group") == 1


def test_a_preview_that_fails_fails_the_pull_request(tmp_path: Path) -> None:
    assert what_if(tmp_path, CODE="3")[0] == 3


def test_the_hooks_of_a_pipeline_sign_in_as_azd_whose_sign_in_does_not_expire() -> None:
    """`az` keeps the assertion that GitHub made for it, which ends after minutes (Azure/login, 372); azd fetches a
    new one each time."""
    steps = yaml.safe_load(WORKFLOWS["azure-dev.yml"])["jobs"]["deploy"]["steps"]
    does = [step.get("run", step.get("uses", "")) for step in steps]
    assert [one for one in does[: does.index("azd deploy --no-prompt")] if one.startswith(("azure/login", "az "))] == []
