"""docker-compose.yml, its hub and the workflows: they agree with the templates and open no access."""

import json
import re

import yaml

from core.api.route import COUNTING, OPEN
from handlers.api import ROUTES
from infra.hooks.deployer.existing import OWN_HUB
from infra.hooks.smoke.app import CHECKS
from infra.hooks.smoke.key import FUNCTIONS
from tests.infra.plan import Evaluator
from tests.infra.test_policies import FILES
from tests.offenders import holds_for
from tests.repo.product import ROOT

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
HUB = json.loads((ROOT / "local" / "docker" / "event-hubs.json").read_text(encoding="utf-8"))
WORKFLOWS = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")}


def test_the_services_listen_on_loopback_only() -> None:
    ports = [port for service in COMPOSE["services"].values() for port in service["ports"]]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_a_service_waits_for_the_health_of_those_it_needs() -> None:
    services = COMPOSE["services"]
    needs = [needed for service in services.values() for needed in service.get("depends_on", {}).items()]
    assert needs == [("azurite", {"condition": "service_healthy"})]
    checked = {name for name, service in services.items() if "healthcheck" in service}
    assert checked == {"azurite", "sql"}, "the image of the emulator has no program for a check"
    for name in checked:
        check = services[name]["healthcheck"]
        assert check["test"][0] == "CMD-SHELL" and check["retries"] * int(check["interval"].rstrip("s")) >= 60
    assert all(f"127.0.0.1 {port}" in services["azurite"]["healthcheck"]["test"][1] for port in (10000, 10001, 10002))
    assert {volume.split(":")[0] for one in services.values() for volume in one["volumes"]} >= set(COMPOSE["volumes"])


def test_images_are_microsofts_and_passwords_come_from_outside() -> None:
    for service in COMPOSE["services"].values():
        assert service["image"].startswith("mcr.microsoft.com/")
        words = service.get("environment", {})
        assert all(value.startswith("${") for name, value in words.items() if "PASSWORD" in name or "EULA" in name)


def test_the_emulators_hub_is_the_one_of_the_templates() -> None:
    (namespace,) = HUB["UserConfig"]["NamespaceConfig"]
    (hub,) = namespace["Entities"]
    names = Evaluator(FILES["main.bicep"], {}).name("hubNames")
    assert hub["Name"] == names["hub"] == OWN_HUB
    assert [group["Name"] for group in hub["ConsumerGroups"]] == [names["triggerGroup"], names["readerGroup"]]
    partitions = next(one for one in FILES["main.bicep"].of_kind("parameter") if one.name == "partitionCount")
    assert hub["PartitionCount"] == str(partitions.value)


def test_the_demo_on_a_server_needs_the_service_that_its_page_starts() -> None:
    page = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
    (service,) = re.findall(r"docker compose up -d (\w+)", page)
    started = COMPOSE["services"][service]
    assert started["image"] == "mcr.microsoft.com/mssql/server:2022-latest"
    assert "depends_on" not in started
    assert f"SERVER=localhost,{started['ports'][0].split(':')[1]};" in page
    assert "$$MSSQL_SA_PASSWORD" in started["healthcheck"]["test"][1], "compose would put the password into the check"


@holds_for(WORKFLOWS)
def test_a_workflow_says_its_permissions_and_stores_no_secret(name: str) -> None:
    text = WORKFLOWS[name]
    workflow = yaml.safe_load(text)
    assert workflow["permissions"]["contents"] == "read"
    assert not re.search(r"secrets\.(?!GITHUB_TOKEN|ALERT_WEBHOOKS)", text)
    assert "write-all" not in text


@holds_for(WORKFLOWS)
def test_every_action_names_a_version_and_every_job_an_end(name: str) -> None:
    assert re.findall(r"uses: (\S+)", WORKFLOWS[name]) == re.findall(r"uses: (\S+@v\d+\S*)", WORKFLOWS[name])
    jobs = yaml.safe_load(WORKFLOWS[name])["jobs"].values()
    assert all("timeout-minutes" in job for job in jobs)


@holds_for(WORKFLOWS)
def test_a_step_ends_with_the_first_command_that_fails_in_a_pipe_too(name: str) -> None:
    """Without the word `bash` GitHub's shell returns the code of the last command of a pipe."""
    workflow = yaml.safe_load(WORKFLOWS[name])
    default = workflow.get("defaults", {}).get("run", {}).get("shell")
    steps = [step for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    piped = [step for step in steps if re.search(r"[^|]\|[^|]", step["run"]) and step.get("shell") != "pwsh"]
    assert [step["run"] for step in piped if step.get("shell", default) != "bash"] == []


@holds_for(WORKFLOWS)
def test_no_command_is_put_together_from_a_text_of_github(name: str) -> None:
    """An input, a variable or a title may hold a command; from the environment, the shell reads it as a value."""
    jobs = yaml.safe_load(WORKFLOWS[name])["jobs"].values()
    runs = [step.get("run", "") for job in jobs for step in job["steps"]]
    numbers = r"\$\{\{(?! (job\.services\.\w+\.id|github\.run_id|github\.sha) \}\})"
    assert [run for run in runs if re.search(numbers, run)] == []


def test_schema_goes_before_code() -> None:
    steps = [step.get("run", "") for step in yaml.safe_load(WORKFLOWS["azure-dev.yml"])["jobs"]["deploy"]["steps"]]
    assert steps.index("azd provision --no-prompt") < steps.index("azd deploy --no-prompt")


@holds_for(["infra.yml", "azure-dev.yml"])
def test_who_signs_in_to_azure_does_so_by_federated_identity(name: str) -> None:
    assert "--federated-credential-provider github" in WORKFLOWS[name]
    assert "id-token: write" in WORKFLOWS[name]
    assert not re.search(r"client-secret|password:", WORKFLOWS[name])


def test_a_pull_request_from_a_fork_gets_no_identity() -> None:
    job = yaml.safe_load(WORKFLOWS["infra.yml"])["jobs"]["what-if"]
    assert "head.repo.full_name == github.repository" in job["if"]


def test_the_smoke_tests_use_a_key_of_monitors_that_shows_where_one_number_went() -> None:
    counting = [one.name for one in ROUTES if one.level is COUNTING]
    assert list(FUNCTIONS) == sorted([*counting, "explain_number"])


def test_the_smoke_tests_need_no_role() -> None:
    needs = {one.template: one.level for one in ROUTES if one.method == "GET"}
    assert {needs[check.route] for check in CHECKS} == {OPEN, COUNTING}
    assert {route for route, level in needs.items() if level is COUNTING} <= {check.route for check in CHECKS}
