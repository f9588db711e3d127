"""azure.yaml, its hooks and the shell script beside them, as far as tests can check them without azd."""

import json
import subprocess
import sys
from pathlib import Path

import yaml
from jsonschema import Draft201909Validator

from tests.checkout import files_of_checkout
from tests.offenders import holds_for
from tests.repo.product import ROOT
from tests.shell import complaints

SCHEMA = json.loads((ROOT / "tests" / "fixtures" / "azure.yaml.schema.json").read_text(encoding="utf-8"))
TEXT = (ROOT / "azure.yaml").read_text(encoding="utf-8")
AZURE = yaml.safe_load(TEXT)
SCRIPTS = sorted((ROOT / "infra" / "hooks").glob("*.sh"))


def faults(text: str) -> list[str]:
    """Return the faults that azd's schema finds in an azure.yaml."""
    return [error.message for error in Draft201909Validator(SCHEMA).iter_errors(yaml.safe_load(text))]


def test_azure_yaml_keeps_azds_schema() -> None:
    assert faults(TEXT) == []


def test_azure_yaml_has_no_key_that_azd_would_pass_over() -> None:
    assert set(AZURE) <= set(SCHEMA["properties"])
    service = set(AZURE["services"]["hubledger"])
    assert service <= set(SCHEMA["properties"]["services"]["additionalProperties"]["properties"])


def test_what_the_schema_leaves_open_is_what_azd_knows() -> None:
    assert (AZURE["services"]["hubledger"]["host"], AZURE["services"]["hubledger"]["language"]) == ("function", "py")
    assert AZURE["infra"]["provider"] == "bicep"


def test_the_service_and_the_template_are_where_azure_yaml_says() -> None:
    assert (ROOT / AZURE["infra"]["path"] / f"{AZURE['infra']['module']}.bicep").exists()
    assert "'azd-service-name': 'hubledger'" in (ROOT / "infra" / "app" / "function.bicep").read_text(encoding="utf-8")
    assert list(AZURE["services"]) == ["hubledger"]


def test_each_hook_is_a_program_that_azd_runs_itself() -> None:
    """azd finds Python by the ending, and the packages by the requirements.txt beside the program."""
    assert set(AZURE["hooks"]) == {"preprovision", "postprovision", "predeploy", "postdeploy", "predown"}
    for hook, entry in AZURE["hooks"].items():
        assert entry == {"run": f"infra/hooks/{hook}.py", "interactive": True}
    assert (ROOT / "infra" / "hooks" / "requirements.txt").exists()
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "/infra/hooks/hooks_env" in ignored, "azd makes it"
    packed = (ROOT / ".funcignore").read_text(encoding="utf-8").splitlines()
    assert "/*_env" in ignored and {"/*_env", "/infra"} <= set(packed), "azd restore makes PROJECT_env at the root"
    assert [name for name in files_of_checkout() if "hooks-venv" in name or name.startswith(".azure/")] == []


@holds_for(AZURE["hooks"].items())
def test_a_hook_runs_its_step_from_its_own_folder_with_nothing_in_its_environment(
    hook: tuple[str, dict[str, str]],
) -> None:
    """azd runs a program in the folder in which it lies."""
    program = ROOT / hook[1]["run"]
    command = [sys.executable, str(program)]
    done = subprocess.run(
        command,
        cwd=program.parent,
        env={"PATH": "/usr/bin", "VNET_ENABLED": "yes", "GROUPS_OF_OTHERS": "theirs"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    step = {
        "preprovision": "preprovision",
        "postprovision": "provisioned",
        "predeploy": "deployable",
        "postdeploy": "deployed",
        "predown": "deletable",
    }
    assert all(line.startswith(f"{step[hook[0]]}: ") for line in done.stderr.splitlines()), done.stderr
    assert done.stderr


@holds_for(SCRIPTS)
def test_a_script_is_shell(path: Path) -> None:
    for shell in ("sh", "bash"):
        assert subprocess.run([shell, "-n", str(path)], check=False).returncode == 0
    assert "set -eu" in path.read_text(encoding="utf-8")


@holds_for(SCRIPTS)
def test_shellcheck_finds_nothing(path: Path) -> None:
    assert complaints(path) == ""
