"""azure.yaml and the shell scripts of the hooks, as far as tests can check them without azd and PowerShell."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft201909Validator

from tests.offenders import holds_for
from tests.repo.product import ROOT
from tests.shell import complaints

SCHEMA = json.loads((ROOT / "tests" / "fixtures" / "azure.yaml.schema.json").read_text(encoding="utf-8"))
TEXT = (ROOT / "azure.yaml").read_text(encoding="utf-8")
AZURE = yaml.safe_load(TEXT)
SCRIPTS = sorted((ROOT / "infra" / "hooks").glob("*.sh"))
POWERSHELL = sorted((ROOT / "infra" / "hooks").glob("*.ps1"))

# A text of azure.yaml, and a text that azd would refuse in its place.
WRONG = [
    ("      shell: pwsh", "      shell: cmd"),
    ("      interactive: true", "      interactive: perhaps"),
    ("    posix:", "    linux:"),
    ("    project: .", "    projekt: ."),
    ("name: hubledger", "name: Hub Ledger"),
]


def faults(text: str) -> list[str]:
    """Return the faults that azd's schema finds in an azure.yaml."""
    return [error.message for error in Draft201909Validator(SCHEMA).iter_errors(yaml.safe_load(text))]


def test_azure_yaml_keeps_azds_schema() -> None:
    assert faults(TEXT) == []


@holds_for(WRONG)
def test_the_schema_refuses_what_azd_would(change: tuple[str, str]) -> None:
    stands, wrong = change
    assert stands in TEXT
    assert faults(TEXT.replace(stands, wrong, 1)) != []


def test_azure_yaml_has_no_key_that_azd_would_pass_over() -> None:
    assert set(AZURE) <= set(SCHEMA["properties"])
    service = set(AZURE["services"]["hubledger"])
    assert service <= set(SCHEMA["properties"]["services"]["additionalProperties"]["properties"])


def test_what_the_schema_leaves_open_is_what_azd_knows() -> None:
    assert (AZURE["services"]["hubledger"]["host"], AZURE["services"]["hubledger"]["language"]) == ("function", "py")
    assert AZURE["infra"]["provider"] == "bicep"


def test_the_service_and_the_template_are_where_azure_yaml_says() -> None:
    assert (ROOT / AZURE["infra"]["path"] / f"{AZURE['infra']['module']}.bicep").exists()
    assert "serviceName: 'hubledger'" in (ROOT / "infra" / "main.bicep").read_text(encoding="utf-8")
    assert list(AZURE["services"]) == ["hubledger"]


def test_each_hook_has_a_script_for_both_platforms_and_posix_can_run_it() -> None:
    assert set(AZURE["hooks"]) == {"preprovision", "postprovision", "predeploy", "postdeploy"}
    for hook, platforms in AZURE["hooks"].items():
        assert set(platforms) == {"posix", "windows"}
        for platform, suffix in (("posix", "sh"), ("windows", "ps1")):
            assert platforms[platform]["run"] == f"infra/hooks/{hook}.{suffix}"
            assert (ROOT / platforms[platform]["run"]).exists()
        assert (ROOT / platforms["posix"]["run"]).stat().st_mode & 0o111


@holds_for(SCRIPTS)
def test_a_script_is_shell(path: Path) -> None:
    for shell in ("sh", "bash"):
        assert subprocess.run([shell, "-n", str(path)], check=False).returncode == 0
    assert "set -eu" in path.read_text(encoding="utf-8")


@holds_for(SCRIPTS)
def test_shellcheck_finds_nothing(path: Path) -> None:
    assert complaints(path) == ""


def test_a_broken_script_is_seen(tmp_path: Path) -> None:
    broken = tmp_path / "broken.sh"
    broken.write_text("if true; then\n")
    assert subprocess.run(["sh", "-n", str(broken)], capture_output=True, check=False).returncode != 0


@holds_for(POWERSHELL)
def test_powershell_reads_a_script_where_it_is_installed(path: Path) -> None:
    pwsh = shutil.which("pwsh")
    if pwsh is None:
        pytest.skip("PowerShell is not installed: install powershell from packages.microsoft.com")
    parse = f"[scriptblock]::Create((Get-Content -Raw '{path}')) | Out-Null"
    assert subprocess.run([pwsh, "-NoProfile", "-Command", parse], check=False).returncode == 0


@holds_for(POWERSHELL)
def test_brackets_of_a_powershell_script_close(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert all(text.count(opening) == text.count(closing) for opening, closing in ("()", "{}", "[]"))
