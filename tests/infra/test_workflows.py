"""azd, the workflows and compose: they agree with the templates, keep the choices of a person and open no access.

infra/hooks/federate.sh is run with stand-ins for `az`, `azd` and `gh`. The settings of docs/your-hub.md exist and are
enough, its commands parse, and two apps share one database.
"""

import json
import re
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft201909Validator

from core.model.events import Stream
from core.model.rows import Row
from core.settings import read_settings
from core.store.connect import open_database
from core.worker import health
from examples.flight_info.transform import FlightChange
from infra.hooks.deployer.existing import OWN_HUB
from tests.checkout import files_of_checkout
from tests.fakes.builders import commit, home, partition, settled
from tests.fakes.store import Store
from tests.infra.bicep import read_text
from tests.infra.doubles import plant
from tests.infra.pipeline import NOT_KEPT, azure_with, choices, workflow_with
from tests.infra.plan import Evaluator
from tests.infra.test_policies import FILES, parameter
from tests.offenders import holds_for
from tests.repo.product import ROOT
from tests.shell import complaints

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
WORKFLOWS = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")}
PARAMETERS = (ROOT / "infra" / "main.parameters.json").read_text(encoding="utf-8")
TEXT = (ROOT / "azure.yaml").read_text(encoding="utf-8")
AZURE = yaml.safe_load(TEXT)
SCHEMA = json.loads((ROOT / "tests" / "fixtures" / "azure.yaml.schema.json").read_text(encoding="utf-8"))
DEPLOYING = {"azure-dev.yml": "deploy", "infra.yml": "what-if"}
NAMES = choices(PARAMETERS)


def test_the_services_of_compose_are_microsofts_on_loopback_without_a_password() -> None:
    ports = [port for service in COMPOSE["services"].values() for port in service["ports"]]
    assert ports and [port for port in ports if not port.startswith("127.0.0.1:")] == []
    for service in COMPOSE["services"].values():
        assert service["image"].startswith("mcr.microsoft.com/")
        words = service.get("environment", {})
        assert all(value.startswith("${") for name, value in words.items() if "PASSWORD" in name or "EULA" in name)


def test_the_emulators_hub_is_the_one_of_the_templates() -> None:
    hubs = json.loads((ROOT / "local" / "docker" / "event-hubs.json").read_text(encoding="utf-8"))
    ((hub,),) = (namespace["Entities"] for namespace in hubs["UserConfig"]["NamespaceConfig"])
    names = Evaluator(FILES["main.bicep"], {}).name("hubNames")
    assert hub["Name"] == names["hub"] == OWN_HUB
    assert [group["Name"] for group in hub["ConsumerGroups"]] == [names["triggerGroup"], names["readerGroup"]]
    assert hub["PartitionCount"] == str(parameter("partitionCount").value)


@holds_for(WORKFLOWS)
def test_a_workflow_says_its_permissions_versions_and_end_and_stores_no_secret(name: str) -> None:
    text, workflow = WORKFLOWS[name], yaml.safe_load(WORKFLOWS[name])
    assert workflow["permissions"]["contents"] == "read"
    assert not re.search(r"secrets\.(?!GITHUB_TOKEN|ALERT_WEBHOOKS)", text)
    assert "write-all" not in text
    used = re.findall(r"uses: (?!\./)(.+)", text)  # by commit, with its version: a tag can be moved to other code
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


@holds_for(WORKFLOWS)
def test_a_command_ends_with_its_first_fault_and_is_not_put_together_from_a_text_of_github(name: str) -> None:
    """Without the word `bash` GitHub's shell returns the code of the last command of a pipe. An input, a variable or a
    title may hold a command. From the environment, the shell reads it as a value."""
    workflow = yaml.safe_load(WORKFLOWS[name])
    default = workflow.get("defaults", {}).get("run", {}).get("shell")
    steps = [step for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    piped = [step for step in steps if re.search(r"[^|]\|[^|]", step["run"]) and step.get("shell") != "pwsh"]
    assert [step["run"] for step in piped if step.get("shell", default) != "bash"] == []
    texts = r"\$\{\{(?! (job\.services\.\w+\.id|github\.run_id|github\.sha) \}\})"
    assert [step["run"] for step in steps if re.search(texts, step["run"])] == []


@holds_for(DEPLOYING)
def test_who_signs_in_to_azure_does_so_by_federated_identity_and_the_newest_azd(name: str) -> None:
    assert "--federated-credential-provider github" in WORKFLOWS[name]
    assert "id-token: write" in WORKFLOWS[name]
    assert not re.search(r"client-secret|password:", WORKFLOWS[name])
    steps = [step for job in yaml.safe_load(WORKFLOWS[name])["jobs"].values() for step in job["steps"]]
    installing = [step for step in steps if step.get("uses", "").startswith("Azure/setup-azd@")]
    assert {step.get("with", {}).get("version", "latest") for step in installing} == {"latest"}


def test_schema_goes_before_code_by_the_sign_in_of_azd_which_does_not_expire() -> None:
    """`az` keeps the assertion that GitHub made for it, which ends after minutes (Azure/login, 372). azd fetches a
    new one each time."""
    steps = yaml.safe_load(WORKFLOWS["azure-dev.yml"])["jobs"]["deploy"]["steps"]
    does = [step.get("run", step.get("uses", "")) for step in steps]
    deploys = does.index("azd deploy --no-prompt")
    assert does.index("azd provision --no-prompt") < deploys
    assert [one for one in does[:deploys] if one.startswith(("azure/login", "az "))] == []


def test_each_choice_is_in_azure_yaml_and_in_the_environment_of_each_workflow_that_provisions() -> None:
    assert azure_with(TEXT, NAMES) == TEXT, "run python -m tests.infra.pipeline"
    pipeline = AZURE["pipeline"]
    assert sorted([*pipeline["variables"], *pipeline["secrets"]]) == NAMES
    assert pipeline["secrets"] == ["ALERT_WEBHOOKS"], "who knows such an address may post there"
    for name, job in DEPLOYING.items():
        assert workflow_with(WORKFLOWS[name], NAMES) == WORKFLOWS[name], "run python -m tests.infra.pipeline"
        env = yaml.safe_load(WORKFLOWS[name])["jobs"][job]["env"]
        assert set(NAMES) <= set(env) and env["AZURE_PRINCIPAL_TYPE"] == "ServicePrincipal"


def test_a_variable_that_github_does_not_have_is_the_default_and_none_shows_a_secret() -> None:
    """azd replaces an empty variable by the default after `=` too (drone/envsubst), so each choice needs one.

    The default of a list or an object is JSON, because azd refuses an empty text there.
    """
    for name, entry in json.loads(PARAMETERS)["parameters"].items():
        one = parameter(name)
        for variable, default in re.findall(r"\$\{(\w+)(=[^}]*)?", str(entry["value"])):
            assert default or variable in NOT_KEPT, f"{name} has no default for an empty {variable}"
            assert "secure" not in str(one.decorators), name
            if one.of not in ("string", "int", "bool"):
                json.loads(default.removeprefix("="))


AZD = """#!/bin/sh
echo "$* by $SQL_ADMINISTRATOR_TYPE $SQL_ADMINISTRATOR_ID"
exit "$CODE"
"""


def what_if(folder: Path, **variables: str) -> tuple[int, str]:
    """Run the step of the what-if with an `azd` that shows the administrator. Return its code and its summary."""
    steps = yaml.safe_load(WORKFLOWS["infra.yml"])["jobs"]["what-if"]["steps"]
    summary = folder / "summary"
    plant(folder / "azd", AZD)
    summary.write_text("")
    given = {"AZURE_CLIENT_ID": "app", "SQL_ADMINISTRATOR_ID": "", "SQL_ADMINISTRATOR_TYPE": "", "CODE": "0"}
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "GITHUB_STEP_SUMMARY": str(summary), **given, **variables}
    command = ["bash", "-eo", "pipefail", "-c", steps[-1]["run"]]
    return subprocess.run(command, cwd=folder, env=environment, check=False).returncode, summary.read_text()


def test_a_preview_of_a_branch_of_ours_has_an_administrator_though_it_runs_no_hook(tmp_path: Path) -> None:
    job = yaml.safe_load(WORKFLOWS["infra.yml"])["jobs"]["what-if"]
    assert "head.repo.full_name == github.repository" in job["if"], "a fork gets no identity"
    code, summary = what_if(tmp_path)
    assert (code, summary.splitlines()[1]) == (0, "provision --preview --no-prompt by ServicePrincipal app")
    _, chosen = what_if(tmp_path, SQL_ADMINISTRATOR_ID="group", SQL_ADMINISTRATOR_TYPE="Group")
    assert chosen.count("by Group group") == 1
    assert what_if(tmp_path, CODE="3")[0] == 3, "a preview that fails fails the pull request"


def test_azure_yaml_keeps_azds_schema_and_what_it_leaves_open_is_what_azd_knows() -> None:
    assert [error.message for error in Draft201909Validator(SCHEMA).iter_errors(AZURE)] == []
    (service,) = AZURE["services"].items()
    properties = SCHEMA["properties"]
    assert set(AZURE) <= set(properties), "azd would pass over any other key"
    assert set(service[1]) <= set(properties["services"]["additionalProperties"]["properties"])
    assert (service[0], service[1]["host"], service[1]["language"]) == ("hubledger", "function", "py")
    assert AZURE["infra"]["provider"] == "bicep"
    assert (ROOT / AZURE["infra"]["path"] / f"{AZURE['infra']['module']}.bicep").exists()
    assert "'azd-service-name': 'hubledger'" in FILES["app/function.bicep"].text
    assert AZURE["requiredVersions"]["azd"] == ">= 1.30.0", "older ones admit wrong subjects and misread .funcignore"
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    assert "[azd](https://aka.ms/azd) 1.30 or newer" in page


STEPS = {
    "preprovision": "preprovision",
    "postprovision": "provisioned",
    "predeploy": "deployable",
    "postdeploy": "deployed",
    "predown": "deletable",
}


def test_each_hook_is_a_program_that_azd_runs_itself() -> None:
    """azd finds Python by the ending, and the packages by the requirements.txt beside the program."""
    assert set(AZURE["hooks"]) == set(STEPS)
    for hook, entry in AZURE["hooks"].items():
        assert entry == {"run": f"infra/hooks/{hook}.py", "interactive": True}
    assert (ROOT / "infra" / "hooks" / "requirements.txt").exists()
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "/infra/hooks/hooks_env" in ignored, "azd makes it"
    packed = (ROOT / ".funcignore").read_text(encoding="utf-8").splitlines()
    assert "/*_env" in ignored and {"/*_env", "/infra"} <= set(packed), "azd restore makes PROJECT_env at the root"
    assert [name for name in files_of_checkout() if "hooks-venv" in name or name.startswith(".azure/")] == []


@holds_for(STEPS)
def test_a_hook_runs_its_step_from_its_own_folder_with_nothing_in_its_environment(hook: str) -> None:
    """azd runs a program in the folder in which it lies."""
    folder = ROOT / "infra" / "hooks"
    environment = {"PATH": "/usr/bin", "VNET_ENABLED": "yes", "GROUPS_OF_OTHERS": "theirs"}
    command = [sys.executable, str(folder / f"{hook}.py")]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines and all(line.startswith(f"{STEPS[hook]}: ") for line in lines), done.stderr


@holds_for(sorted((ROOT / "infra" / "hooks").glob("*.sh")))
def test_a_script_is_shell_in_which_shellcheck_finds_nothing(path: Path) -> None:
    for shell in ("sh", "bash"):
        assert subprocess.run([shell, "-n", str(path)], check=False).returncode == 0
    assert "set -eu" in path.read_text(encoding="utf-8")
    assert complaints(path) == ""


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
FOR_C = {"AZURE_PIPELINE_CLIENT_ID": "c"}
NO_PREFIX = "federate: GitHub names no prefix of the subjects, so they have the names alone"


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
    command = [str(ROOT / "infra" / "hooks" / "federate.sh"), *arguments]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    before, *made = calls.read_text().split("ad app federated-credential create --id c ")
    assert before == ""
    bodies = [json.loads(one[one.index("{") :]) for one in made]
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), bodies


@pytest.mark.parametrize(
    ("answer", "subjects", "said"),
    [
        pytest.param(OLD, ["repo:o/r:environment:what-if"], [], id="dev may already sign in"),
        pytest.param(SILENT, ["repo:o/r:environment:what-if"], [NO_PREFIX], id="without a prefix"),
        pytest.param(
            NEW, ["repo:o@1/r@2:environment:dev", "repo:o@1/r@2:environment:what-if"], [], id="ids of a new repository"
        ),
    ],
)
def test_an_environment_that_is_not_admitted_yet_gets_a_credential_for_the_subject_that_github_will_send(
    tmp_path: Path, answer: dict[str, Any], subjects: list[str], said: list[str]
) -> None:
    code, lines, faults, made = federate(tmp_path, "o/r", "dev", "what-if", answer=answer, **FOR_C)
    already = [] if answer is NEW else ["repo:o/r:environment:dev may already sign in"]
    assert (code, faults, lines) == (0, said, [*already, *(f"{one} may sign in" for one in subjects)])
    assert [one["subject"] for one in made] == subjects
    own_name = "o-r-environment-what-if"
    assert (made[-1]["name"] == own_name) is (answer is not NEW), "the one without ids has that name"
    if answer is OLD:
        assert made == [{"name": own_name, "subject": subjects[0], **CREDENTIAL}]


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
    code, said, faults, made = federate(tmp_path, *arguments, answer=answer, **FOR_C)
    assert (code, said, made) == (1, [], [])
    assert re.search(says, faults[-1])
    assert len(faults) == 1 or "gh" in faults[0], "gh says its own fault first"


def test_gh_and_the_identity_are_those_of_azd_where_nothing_else_is_there(tmp_path: Path) -> None:
    for name in ("own-gh", "without"):
        (tmp_path / name).mkdir()
    home = {"AZD_CONFIG_DIR": str(tmp_path / "own-gh" / "home"), **FOR_C}
    code, said, _, _ = federate(tmp_path / "own-gh", "o/r", "dev", answer=NEW, gh="home/bin/gh", **home)
    assert (code, said) == (0, ["repo:o@1/r@2:environment:dev may sign in"])
    code, _, faults, _ = federate(tmp_path / "without", "o/r", "dev", answer=NEW)
    assert (code, faults) == (1, ["federate: run `azd pipeline config` first: it makes the identity"])
    plant(tmp_path / "azd", '#!/bin/sh\n[ "$*" = "env get-value AZURE_PIPELINE_CLIENT_ID" ] && echo c\n')
    assert len(federate(tmp_path, "o/r", "dev", answer=NEW)[3]) == 1


def sample(page: str, opening: str) -> str:
    """Return the block of a page that is ready to copy."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```{re.escape(opening)}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return str(block)


def test_what_the_pages_have_ready_to_copy_is_sound_and_as_our_own_is() -> None:
    room = sample("your-own-events.md", "yaml .github/workflows/room.yml")
    assert yaml.safe_load(room)["permissions"] == {"contents": "read"}
    assert (pins := re.findall(r"uses: (.*)", room)) and [one for one in pins if one not in WORKFLOWS["ci.yml"]] == []
    worker = yaml.safe_load(sample("scale-out.md", "yaml"))["spec"]["template"]["spec"]
    container, probe = worker["containers"][0], {"path": health.PATH, "port": 8080}
    ours = FILES["app/worker.bicep"].text
    assert f"terminationGracePeriodSeconds: {worker['terminationGracePeriodSeconds']} " in ours
    assert container["startupProbe"]["httpGet"] == container["livenessProbe"]["httpGet"] == probe
    flow = sample("alerts.md", "bicep slack.bicep")
    assert read_text("slack.bicep", flow).errors == ()
    texts = re.findall(r"'@((?:[^'\\]|\\')*)'", flow)
    assert len(texts) == 2
    said = {name for text in texts for name in re.findall(r"\['essentials'\]\?\['(\w+)'\]", text.replace("\\'", "'"))}
    assert said == {"monitorCondition", "alertRule", "severity", "description"}  # of the common alert schema


PAGE = (ROOT / "docs" / "your-hub.md").read_text(encoding="utf-8")
MIGRATE = re.findall(r"^\$ (python -m core\.store\.migrate .*)$", PAGE, re.MULTILINE)
TRANSFORMS = {"apps.orders": "examples.home_security", "apps.returns": "examples.flight_info"}


def settings() -> dict[str, str]:
    """Return the settings of the page's table, with their values as a person would write them."""
    table = PAGE.partition("| setting | value |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*`) \| (.*) \|$", table, re.MULTILINE)
    found: dict[str, str] = {}
    for names, values in rows:
        each = re.findall(r"`([^`]+)`", names)
        given = [values.strip("`")] * len(each) if len(each) == 1 else [one.strip(" `") for one in values.split(",")]
        found |= dict(zip(each, given, strict=False))
        found |= {name: "?" for name in each if name not in found}
    return found


def test_the_settings_of_the_page_are_those_of_the_template_and_enough_for_the_app() -> None:
    main, function = FILES["main.bicep"], FILES["app/function.bicep"]
    parts = [main.var("hubSettings"), main.var("wiredSettings"), function.var("hubIdentity")]
    known = set(function.var("hostSettings")).union(*(each for one in parts for each in one.parts))
    assert sorted(set(settings()) - known) == []
    given = {**settings(), "EVENTHUB_NAME": "orders", "HUB_RETENTION_HOURS": "168"}
    given |= {"EVENTHUB_CONSUMER_GROUP": "hubledger", "HUB_READER_CONSUMER_GROUP": "hubledger-reader"}
    read = read_settings(given)
    assert (read.namespace, read.transform) == ("NAMESPACE.servicebus.windows.net", "apps.orders")
    assert read.store_connection.startswith("Driver={ODBC Driver 18 for SQL Server};Server=tcp:")


def test_the_roles_of_the_page_are_those_of_the_template() -> None:
    shell = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    assert subprocess.run(["bash", "-n", "-c", shell], check=False).returncode == 0
    roles = {role.removeprefix("Azure ") for role in re.findall(r'--role "([^"]+)"', shell)}
    roles = roles - {"Storage $kind Data Contributor"} | {
        f"Storage {kind} Data Contributor" for kind in ("Queue", "Table")
    }
    known = FILES["app/roles.bicep"].var("roleIds")
    assert roles == {
        "Event Hubs Data Receiver",
        "Key Vault Secrets User",
        *(role for role in known if "Owner" in role or re.search("Queue|Table", role)),
    }


def flight(number: int) -> FlightChange:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return FlightChange("ZZ", number, date(2026, 1, 1), "scheduled", None, None, None, moment)


def test_two_apps_keep_their_books_apart_in_one_database(tmp_path: Path) -> None:
    """The page's own command makes the tables of both. Each app commits the same numbers of its own partition 0."""
    command = MIGRATE[-1].replace("python", sys.executable, 1)
    for name, example in TRANSFORMS.items():
        command = command.replace(name, example)
    connection = f"sqlite:{tmp_path / 'shared.db'}"
    done = subprocess.run(
        command.split(), cwd=ROOT, env={"STORE_CONNECTION": connection}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows: dict[str, Row] = {"namespace/orders": home("home-1"), "namespace/returns": flight(1)}
    for hub, row in rows.items():
        store = Store(open_database(connection, (type(row),)))
        state = store.read_partition(partition("0", hub=hub))
        assert state.checkpoint is None, "the checkpoint of the other app is not ours"
        store.commit_batch(commit(state, 0, 9, settled({0: [row]}, filtered=9)))
        store.close()
    for hub in rows:
        store = Store(open_database(connection))
        (books,) = store.read_books(Stream(hub, "hubledger"))
        assert (books.checkpoint, books.written, books.filtered) == (9, 1, 9)
        store.close()
