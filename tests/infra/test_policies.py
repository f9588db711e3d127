"""Rules of the templates that the plan of resources cannot show: syntax, secrets, types, limits, versions and waits."""

import re
from collections.abc import Iterator
from typing import Any

from infra.hooks.database import PASSING
from infra.hooks.deployer.address import ADDRESS
from infra.hooks.deployer.provider import PROVIDER
from infra.hooks.patience import RIGHTS
from infra.hooks.smoke.sender import SENDERS
from tests.infra.bicep import Declaration, Expression, File, all_of, nodes_in, read_folder, resources, shown, type_of
from tests.repo.product import ROOT
from tools.capacity.limits import DATABASES, INSTANCE_CORES, PREMIUM_UNITS

FOLDER = ROOT / "infra"
FILES = read_folder(FOLDER)
ALERTS = {path.stem for path in (FOLDER / "alerts").glob("*.kql")}
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
YOUR_HUB = (ROOT / "docs" / "your-hub.md").read_text(encoding="utf-8")
# The released version, 2016-09-01, knows no category groups; every template of Azure uses this one.
PREVIEW_ONLY = {"Microsoft.Insights/diagnosticSettings@2021-05-01-preview"}
SECRET_CALL = re.compile(r"\blist(Keys|Secrets|Sas|AccountSas|ServiceSas|ConnectionStrings|Credentials|\w*Key\w*)\s*\(")
SECRET_TEXT = re.compile(r"AccountKey=|SharedAccessKey|\bPwd=|Password=|\bsig=|primaryKey|secondaryKey", re.IGNORECASE)
SECRET_NAME = re.compile(r"password|secret|sharedKey|accountKey|sasToken", re.IGNORECASE)
NO_SECRET = re.compile(r"allow.*|secrets(\[\d+\])?|secretRef")  # the last two may only refer to Key Vault
# By file and module: Azure refuses, or the host fails, without these.
WAITS = {
    ("main.bicep", "hub"): "[captureRoles]",
    ("main.bicep", "consumerGroups"): "[group, hub]",
    ("main.bicep", "function"): "[roles, hubRoles]",
    ("main.bicep", "worker"): "[function]",
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


def test_no_right_holds_for_a_whole_group() -> None:
    roles = [each for each in resources(FILES) if type_of(each[1]) == "Microsoft.Authorization/roleAssignments"]
    assert roles and [where(*each) for each in roles if "scope" not in each[1].value] == []
    assert {"Owner", "Contributor"} & set(FILES["app/roles.bicep"].var("roleIds")) == set()
    for file, one in all_of(FILES, "module"):
        given = [value for path, value in nodes_in(one.value) if path.endswith(("roleDefinitionIdOrName", "roleName"))]
        assert {"Owner", "Contributor"} & set(map(str, given)) == set(), where(file, one)


def test_a_module_waits_for_the_rights_that_it_needs() -> None:
    found = {
        (file.name, one.name): shown(one.value.get("dependsOn"))
        for kind in ("module", "resource")
        for file, one in all_of(FILES, kind)
        if (file.name, one.name) in WAITS
    }
    assert found == WAITS


def limits_missing(file: File, one: Declaration) -> bool:
    """Return True for a value of outside without limits: a text has a length or a list, a number a range or a list."""
    limits = set(one.decorators)
    if file.name != "main.bicep" or "allowed" in limits:
        return False
    is_text = one.of == "string" or one.of.endswith("[]")
    return (is_text and "maxLength" not in limits) or (one.of == "int" and not {"minValue", "maxValue"} <= limits)


def test_parameters_and_outputs_are_described_and_what_comes_from_outside_has_limits() -> None:
    both = [each for kind in ("parameter", "output") for each in all_of(FILES, kind)]
    assert [where(*each) for each in both if len(str(each[1].decorators.get("description", [""])[0])) < 10] == []
    assert [where(*each) for each in all_of(FILES, "parameter") if limits_missing(*each)] == []


def test_the_compiler_sees_the_type_of_each_value() -> None:
    """`union` would switch the types of a resource off; settings and tags have names of the operator."""
    both = [each for kind in ("parameter", "output") for each in all_of(FILES, kind)]
    assert [where(*each) for each in both if each[1].of in ("array", "object")] == []
    for file, one in resources(FILES):
        assert not re.search(r"for \w+ in \['", one.head), f"{where(file, one)}: the name decides on the type"
        if type_of(one) != "Microsoft.Web/sites/config":
            open_values = [
                path
                for path, value in nodes_in(one.value)
                if isinstance(value, Expression) and value.text.startswith("union(") and path != ".tags"
            ]
            assert open_values == [], where(file, one)


def test_main_only_wires_files_that_are_all_used_and_reads_all_their_outputs() -> None:
    main = FILES["main.bicep"]
    assert [type_of(one) for one in main.of_kind("resource")] == ["Microsoft.Resources/resourceGroups"]
    assert {one.of for one in main.of_kind("module")} == set(FILES) - {"main.bicep"}
    read = set(re.findall(r"\.outputs\.(\w+)", main.text))
    outputs = [each for each in all_of(FILES, "output") if each[0] is not main]
    assert [where(*each) for each in outputs if each[1].name not in read] == []


def test_versions_are_released_ones() -> None:
    for file, one in all_of(FILES, "resource"):
        assert one.of in PREVIEW_ONLY or re.search(r"@\d{4}-\d\d-\d\d$", one.of), where(file, one)
    for file, one in all_of(FILES, "module"):
        assert not one.of.startswith("br") or re.search(r":\d+\.\d+\.\d+$", one.of), where(file, one)


def test_azd_asks_for_a_region_of_flex_consumption() -> None:
    assert parameter("location").decorators["metadata"] == ({"azd": {"type": "location"}},)
    regions = allowed("location")
    assert len(regions) > 1 and regions == sorted({*regions})
    assert [region for region in regions if not re.fullmatch("[a-z]+[23]?", region)] == []


def test_sizes_are_those_that_azure_sells_and_the_calculator_computes() -> None:
    assert set(allowed("processingUnits")) == {*PREMIUM_UNITS}
    assert {database.v_cores for database in DATABASES} <= set(allowed("sqlVCores"))
    assert {*INSTANCE_CORES} <= set(allowed("instanceMemoryMB"))
    assert allowed("updateStrategy") == ["Recreate", "RollingUpdate"]


def test_a_namespace_that_never_shrinks_grows_by_little_and_says_so() -> None:
    one = parameter("maximumThroughputUnits")
    assert one.value == 2 and "never shrinks" in str(one.decorators["description"])


def test_the_role_that_the_smoke_tests_look_for_is_the_one_that_the_template_assigns() -> None:
    assert SENDERS[0] == FILES["app/roles.bicep"].var("roleIds")["Event Hubs Data Sender"]


def test_the_hook_registers_the_provider_of_the_subnets() -> None:
    (provider,) = set(re.findall(r"delegation: '([\w.]+)/", FILES["app/network.bicep"].text))
    assert provider == PROVIDER


def test_the_page_says_for_how_long_a_refusal_that_passes_is_tried_again() -> None:
    longest = max(RIGHTS, *(patience for patience, _ in PASSING.values()))
    assert f"is tried again for up to {longest.total_seconds() / 60:.0f} minutes" in PAGE


def test_the_page_names_each_setting_of_the_parameters_with_its_default() -> None:
    """Compare the tables of deploy.md and your-hub.md with main.parameters.json; azd itself sets AZURE_*."""
    given = (FOLDER / "main.parameters.json").read_text(encoding="utf-8")
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


def test_the_kinds_of_names_are_where_the_page_says() -> None:
    assert "`conventionalNames` in `infra/main.bicep`" in PAGE
