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


def test_the_connection_names_the_server_and_a_password_of_this_run_only() -> None:
    job = JOBS["sqlserver"]
    password = job["services"]["sqlserver"]["env"]["MSSQL_SA_PASSWORD"]
    assert "${{ github.run_id }}" in password
    assert f";PWD={password};" in job["env"]["MSSQL_CONNECTION"]
    assert "SERVER=localhost,1433;" in job["env"]["MSSQL_CONNECTION"]
    assert password in job["services"]["sqlserver"]["options"]


def test_the_database_of_the_connection_is_made_before_the_tests() -> None:
    runs = [step.get("run", "") for step in JOBS["sqlserver"]["steps"]]
    (made,) = (at for at, run in enumerate(runs) if "CREATE DATABASE hubledger;" in run)
    assert "SET READ_COMMITTED_SNAPSHOT ON" in runs[made]
    assert JOBS["sqlserver"]["services"]["sqlserver"]["env"]["MSSQL_SA_PASSWORD"] in runs[made]
    assert ";DATABASE=hubledger;" in JOBS["sqlserver"]["env"]["MSSQL_CONNECTION"]
    assert made < runs.index("make test-sqlserver")


def test_a_demo_runs_on_the_server_in_a_database_of_its_own() -> None:
    (demo,) = (line for line in commands("sqlserver") if line.startswith("make demo "))
    assert 'STORE="${MSSQL_CONNECTION/DATABASE=hubledger;/DATABASE=hubledger_demo;}"' in demo
    assert "KILL=2" in demo


def test_a_benchmark_never_fails_a_change() -> None:
    steps = [step for step in JOBS["sqlserver"]["steps"] if "bench" in step.get("run", "")]
    assert [step["continue-on-error"] for step in steps] == [True]


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
