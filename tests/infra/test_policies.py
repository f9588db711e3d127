"""Rules of the templates that the plan of resources cannot show: syntax, secrets, types, limits, versions and waits.

Modules and their calls agree, and the repository is a template of azd whose copy by `azd init` is exactly its files:
`azd init --template` clones one commit, deletes .git and copies the files (initializer.go of azure-dev).
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml

from infra.hooks.database import PASSING
from infra.hooks.deployer.address import ADDRESS
from infra.hooks.deployer.provider import PROVIDER
from infra.hooks.patience import RIGHTS
from infra.hooks.smoke.sender import SENDERS
from tests.checkout import copy_checkout, files_of_checkout
from tests.infra.bicep import Declaration, File, all_of, nodes_in, read_folder, shown
from tests.offenders import holds_for
from tests.repo.product import ROOT
from tools.capacity.limits import DATABASES, INSTANCE_CORES, PREMIUM_UNITS

FOLDER = ROOT / "infra"
FILES = read_folder(FOLDER)
PARAMETERS = FOLDER / "main.parameters.json"
ALERTS = {path.stem for path in (FOLDER / "alerts").glob("*.kql")}
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
YOUR_HUB = (ROOT / "docs" / "your-hub.md").read_text(encoding="utf-8")
# The released version, 2016-09-01, knows no category groups; every template of Azure uses this one.
PREVIEW_ONLY = {"Microsoft.Insights/diagnosticSettings@2021-05-01-preview"}
SECRET_CALL = re.compile(r"\blist(Keys|Secrets|Sas|AccountSas|ServiceSas|ConnectionStrings|Credentials|\w*Key\w*)\s*\(")
SECRET_TEXT = re.compile(r"AccountKey=|SharedAccessKey|\bPwd=|Password=|\bsig=|primaryKey|secondaryKey", re.IGNORECASE)
SECRET_NAME = re.compile(r"password|secret|sharedKey|accountKey|sasToken", re.IGNORECASE)
NO_SECRET = re.compile(
    r"allow.*|Key Vault Secrets User|secrets(\[\d+\])?|secretRef"
)  # the last two may only refer to Key Vault
# By file and module: Azure refuses, or the host fails, without these.
WAITS = {
    ("main.bicep", "hub"): "[captureRoles]",
    ("main.bicep", "consumerGroups"): "[group, hub]",
    ("main.bicep", "function"): "[roles, hubRoles, iotHubGroups, vaultRoles]",
    ("main.bicep", "worker"): "[function]",
    ("app/iot-hub.bicep", "reader"): "[trigger]",
    ("app/worker.bicep", "worker"): "[pull]",
    ("app/function.bicep", "ftp"): "[appSettings]",
    ("app/function.bicep", "scm"): "[ftp]",
}


def parameter(name: str) -> Declaration:
    return next(one for one in FILES["main.bicep"].of_kind("parameter") if one.name == name)


def allowed(name: str) -> list[Any]:
    return list(parameter(name).decorators.get("allowed", ([],))[0])


def where(file: File, one: Declaration) -> str:
    return f"{file.name}:{one.line}: {one.of or one.kind} {one.name}"


def test_every_file_is_found_and_parses() -> None:
    assert {"main.bicep", "app/function.bicep", "app/hub.bicep", "app/sql.bicep", "app/storage.bicep"} <= set(FILES)
    assert [f"{file.name}:{line}" for file in FILES.values() for line in file.errors] == []


def secrets_in(file: File) -> Iterator[str]:
    for number, line in enumerate(file.text.splitlines(), 1):
        code = line.split("//")[0] if not line.lstrip().startswith("@description") else ""
        if SECRET_CALL.search(code) or SECRET_TEXT.search(code):
            yield f"{file.name}:{number}: {line.strip()}"
    for one in file.declarations:
        names = [one.name, *(path.rpartition(".")[2] for path, _ in nodes_in(one.value))]
        yield from (
            f"{where(file, one)}: {name}"
            for name in names
            if SECRET_NAME.search(name) and not NO_SECRET.fullmatch(name)
        )


def test_no_template_holds_or_asks_for_a_key() -> None:
    assert [fault for file in FILES.values() for fault in secrets_in(file)] == []


def test_the_history_of_deployments_shows_no_setting_of_an_operator() -> None:
    given = [(file, one) for file, one in all_of(FILES, "parameter") if one.name in ("settings", "appSettings")]
    assert [where(*each) for each in given if "secure" not in each[1].decorators] == []
    assert len(given) == 3
    outputs = all_of(FILES, "output")
    shows = re.compile(r"\b(s|appS)ettings\b")
    assert [where(*each) for each in outputs if each[1].of == "object" or shows.search(shown(each[1].value))] == []


def test_a_secret_that_is_written_out_is_read_from_key_vault_by_identity() -> None:
    written = [
        (where(file, one), set(value))
        for file, one in all_of(FILES, "module")
        for path, value in nodes_in(one.value)
        if re.search(r"\.secrets\[\d+\]$", path) and isinstance(value, dict)
    ]
    assert [one for one, keys in written if keys != {"name", "keyVaultUrl", "identity"}] == []


def test_a_module_waits_for_the_rights_that_it_needs() -> None:
    found = {
        (file.name, one.name): shown(one.value.get("dependsOn"))
        for kind in ("module", "resource")
        for file, one in all_of(FILES, kind)
        if (file.name, one.name) in WAITS
    }
    assert found == WAITS


def test_parameters_and_outputs_are_described_and_what_comes_from_outside_has_limits() -> None:
    """A text has a length or a list, a number a range or a list."""
    both = [each for kind in ("parameter", "output") for each in all_of(FILES, kind)]
    assert [where(*each) for each in both if len(str(each[1].decorators.get("description", [""])[0])) < 10] == []
    for one in FILES["main.bicep"].of_kind("parameter"):
        limits = {"minValue", "maxValue"} if one.of == "int" else {"maxLength"}
        is_bounded = one.of == "int" or one.of == "string" or one.of.endswith("[]")
        assert not is_bounded or "allowed" in one.decorators or limits <= set(one.decorators), one.name


def test_versions_are_released_ones() -> None:
    for file, one in all_of(FILES, "resource"):
        assert one.of in PREVIEW_ONLY or re.search(r"@\d{4}-\d\d-\d\d$", one.of), where(file, one)
    for file, one in all_of(FILES, "module"):
        assert not one.of.startswith("br") or re.search(r":\d+\.\d+\.\d+$", one.of), where(file, one)


def test_regions_and_sizes_are_those_that_azure_sells_and_the_calculator_computes() -> None:
    assert parameter("location").decorators["metadata"] == ({"azd": {"type": "location"}},)
    regions = allowed("location")
    assert len(regions) > 1 and regions == sorted({*regions})
    assert [region for region in regions if not re.fullmatch("[a-z]+[23]?", region)] == []
    assert set(allowed("processingUnits")) == {*PREMIUM_UNITS}
    assert {database.v_cores for database in DATABASES} <= set(allowed("sqlVCores"))
    assert {*INSTANCE_CORES} <= set(allowed("instanceMemoryMB"))
    assert allowed("updateStrategy") == ["Recreate", "RollingUpdate"]
    grows = parameter("maximumThroughputUnits")
    assert grows.value == 2 and "never shrinks" in str(grows.decorators["description"])


def test_the_hooks_know_the_role_the_provider_and_the_patience_of_the_templates_and_the_page() -> None:
    assert SENDERS[0] == FILES["app/roles.bicep"].var("roleIds")["Event Hubs Data Sender"]
    assert set(re.findall(r"delegation: '([\w.]+)/", FILES["app/network.bicep"].text)) == {PROVIDER}
    longest = max(RIGHTS, *(patience for patience, _ in PASSING.values()))
    assert f"is tried again for up to {longest.total_seconds() / 60:.0f} minutes" in PAGE


def test_the_page_names_each_setting_of_the_parameters_with_its_default() -> None:
    """Compare the tables of deploy.md and your-hub.md with main.parameters.json. azd itself sets AZURE_*."""
    given = PARAMETERS.read_text(encoding="utf-8")
    settings = dict(re.findall(r"\$\{([A-Z_]+)=?(.*?)\}", given))
    sections = (PAGE.partition("\n## Choices\n")[2], YOUR_HUB.partition("\n## By azd\n")[2])
    choices = "".join(section.partition("\n## ")[0] for section in sections)
    rows = re.findall(r"^\| (`[A-Z_`, ]+`) \|([^|\n]*)\|", choices, flags=re.MULTILINE)
    said = {
        name: default.strip(" `")
        for names, defaults in rows
        for name, default in zip(re.findall(r"\w+", names), defaults.split(","), strict=True)
    }
    known = {name: default for name, default in settings.items() if not name.startswith("AZURE_")}
    assert said == {**known, ADDRESS: ""}


NOTED = json.loads((ROOT / "tests" / "fixtures" / "avm_modules.json").read_text(encoding="utf-8"))
REGISTRY = "br/public:"
CALLS = {f"{file.name} {one.name}": (file, one) for file, one in all_of(FILES, "module")}


def interface(file: File, call: Declaration) -> tuple[set[str], set[str], set[str]]:
    if call.of.startswith(REGISTRY):
        noted = NOTED[call.of.removeprefix(REGISTRY)]
        return set(noted["required"]), {*noted["required"], *noted["optional"]}, set(noted["outputs"])
    module = FILES[f"{file.name.rpartition('/')[0]}/{call.of}".lstrip("/")]
    parameters = {one.name: one.value for one in module.of_kind("parameter")}
    required = {name for name, value in parameters.items() if value is None}
    return required, {*parameters}, {one.name for one in module.of_kind("output")}


@holds_for(CALLS)
def test_a_module_gets_what_it_needs_and_has_what_is_asked_of_it(name: str) -> None:
    file, call = CALLS[name]
    required, known, outputs = interface(file, call)
    assert required <= set(call.value["params"]) <= known
    assert set(re.findall(rf"\b{call.name}!?\.outputs\.(\w+)", file.text)) <= outputs


def test_parameters_of_main_come_from_the_environment_of_azd_with_the_default_of_the_template() -> None:
    given = json.loads(PARAMETERS.read_text(encoding="utf-8"))["parameters"]
    declared = {one.name: one for one in FILES["main.bicep"].of_kind("parameter")}
    for name, entry in given.items():
        value, one = entry["value"], declared[name]
        chosen = re.fullmatch(r"\$\{[A-Z_]+(?:=(.*))?\}", str(value))
        default = str(one.value).replace("True", "true").replace("False", "false")
        kind = {"bool": bool, "int": int, "string": str}.get(one.of, dict)
        assert chosen[1] in (None, "", default) if chosen else type(value) is kind, name
    assert {name for name, one in declared.items() if one.value is None} <= set(given)
    assert (given["signInClientId"]["value"], declared["signInClientId"].value) == ("${SIGN_IN_CLIENT_ID=}", "")


def test_azd_copies_every_file_as_it_is() -> None:
    """azd appends `.azure` to a .gitignore without this line, and a file that a copy lacks is a conflict in each
    release that changes it."""
    template = yaml.safe_load((ROOT / "azure.yaml").read_text(encoding="utf-8"))
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert template["metadata"]["template"] == f"{template['name']}@{version}"
    assert ".azure" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert [name for name in files_of_checkout() if name.endswith(".azdignore")] == []
    assert "* text=auto eol=lf" in (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()
    texts = [name for name in files_of_checkout() if not name.endswith(".png")]
    assert [name for name in texts if b"\r\n" in (ROOT / name).read_bytes()] == []


@pytest.mark.slow
def test_a_copy_without_git_packs_itself_and_knows_its_files(tmp_path: Path) -> None:
    copy = copy_checkout(tmp_path / "copy")
    assert files_of_checkout(copy) == files_of_checkout()
    command = [sys.executable, "-m", "infra.hooks", "package", "--to", str(tmp_path / "package.zip")]
    done = subprocess.run(command, cwd=copy, check=True, capture_output=True, text=True)
    assert "function_app.py" in done.stdout


WARNING = "main.bicep(3,7) : Warning BCP081: Resource type x does not have types available."


ROLES = json.loads((FOLDER / "app-roles.json").read_text(encoding="utf-8"))
ROLE_NAMES = ["Hubledger.Read", "Hubledger.Operate", "Hubledger.Reveal"]
AZURE_CLI = "04b07795-8ddb-461a-bbee-02f9e1bf7b46"


def test_the_registration_has_the_three_roles_for_people_and_programs_that_the_pages_name() -> None:
    assert [one["value"] for one in ROLES] == ROLE_NAMES
    assert len({UUID(one["id"]) for one in ROLES}) == len(ROLE_NAMES)
    for one in ROLES:
        assert set(one) == {"id", "value", "displayName", "description", "allowedMemberTypes", "isEnabled"}
        assert one["isEnabled"] is True and one["allowedMemberTypes"] == ["User", "Application"]
        assert len(one["description"]) > 20
    access = (ROOT / "docs" / "access.md").read_text(encoding="utf-8")
    assert [name for name in ROLE_NAMES if f"`{name}`" not in PAGE or f"`{name}`" not in access] == []
    for said in ("--app-roles @infra/app-roles.json", "azd env set SIGN_IN_CLIENT_ID", "/.auth/login/aad/callback"):
        assert said in PAGE, said
    assert set(re.findall(r"appRoleId\D{1,6}([0-9a-f-]{36})", PAGE)) <= {one["id"] for one in ROLES}


def test_the_registration_exposes_a_scope_for_the_azure_cli_and_asks_for_tokens_that_the_app_takes() -> None:
    """A token of version 1 has the issuer sts.windows.net, and the app admits that of version 2 only."""
    both = [json.loads((FOLDER / f"app-{part}.json").read_text("utf-8")) for part in ("scope", "command-line")]
    assert [list(one) for one in both] == [["api"], ["api"]], "each is sent by one request"
    api, command_line = (one["api"] for one in both)
    assert set(api) == {"requestedAccessTokenVersion", "oauth2PermissionScopes"}
    assert api["requestedAccessTokenVersion"] == 2
    assert "${tenant().tenantId}/v2.0'" in FILES["app/function.bicep"].text
    (scope,) = api["oauth2PermissionScopes"]
    assert (scope["type"], scope["isEnabled"], scope["value"]) == ("User", True, "access")
    assert UUID(scope["id"]) not in {UUID(one["id"]) for one in ROLES}
    for who in ("admin", "user"):
        assert scope[f"{who}ConsentDisplayName"] and len(scope[f"{who}ConsentDescription"]) > 20
    allowed_alone = [{"appId": AZURE_CLI, "delegatedPermissionIds": [scope["id"]]}]
    assert command_line == {"preAuthorizedApplications": allowed_alone}
    (parts,) = re.findall(r"for part in ([\w -]+); do az rest --method PATCH --body @infra/app-\$part\.json", PAGE)
    assert parts.split() == ["scope", "command-line"], "the scope goes before the application that names it"
    assert "graph.microsoft.com/v1.0/applications(appId='$CLIENT_ID')" in PAGE
