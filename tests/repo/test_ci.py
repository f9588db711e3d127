"""The workflow that runs on each change, read as GitHub reads it."""

import re
from typing import Any

import pytest

from tests.offenders import holds_for
from tests.repo.product import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install -r requirements-dev.txt")
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
JOBS: dict[str, Any] = WORKFLOW["jobs"]


def commands(job: str) -> list[str]:
    return [line for step in JOBS[job]["steps"] for line in step.get("run", "").splitlines()]


def test_every_change_is_tested_by_the_same_script_as_at_a_desk() -> None:
    assert ".ci/run" in commands("test")


def test_the_server_store_is_tested_on_sql_server() -> None:
    job = JOBS["sqlserver"]
    server = job["services"]["sqlserver"]
    assert server["image"] == "mcr.microsoft.com/mssql/server:2022-latest"
    assert server["env"]["ACCEPT_EULA"] == "Y"
    assert server["ports"] == ["1433:1433"]
    assert "--health-cmd" in server["options"]
    assert "make test-sqlserver" in commands("sqlserver")
    assert any("ACCEPT_EULA=Y" in line and "msodbcsql18" in line for line in commands("sqlserver"))


@holds_for(JOBS)
def test_a_job_ends_by_itself_and_may_only_read(job: str) -> None:
    assert JOBS[job]["timeout-minutes"] <= 60
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_a_target_that_is_called_is_in_the_makefile() -> None:
    made = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    called = {target for job in JOBS for line in commands(job) for target in re.findall(r"^make ([\w-]+)", line)}
    assert "test-sqlserver" in called
    assert called - set(made) == set()


def test_the_acceptance_runs_each_week_on_the_host_of_microsoft_and_holds_up_no_change() -> None:
    text = (ROOT / ".github" / "workflows" / "real-host.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    triggers = workflow[True]  # YAML reads the word `on` as true
    assert set(triggers) == {"schedule", "workflow_dispatch"}
    assert workflow["permissions"] == {"contents": "read"}
    job = workflow["jobs"]["acceptance"]
    runs = [step.get("run", "") for step in job["steps"]]
    assert job["timeout-minutes"] <= 60
    assert runs.index("npm install --global azure-functions-core-tools@4") < runs.index("make real-host")
