"""The package that is deployed, the refusals before it is made, and the image of the worker.

The Dockerfile keeps its policies. That the image's files and packages are enough to work and to drain is shown by the
workflow, which runs the image that it pushes.
"""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pathspec
import pytest

from core.settings import read_settings
from core.worker.health import ANSWER_WITHIN, PATH
from handlers.operations.description import GUIDES
from infra.hooks import app_start, package
from infra.hooks.__main__ import main
from infra.hooks.errors import HookRefused
from tests.fakes.orders_room import FILES as OF_ORDERS
from tests.fakes.orders_room import ORDERS, write_room
from tests.infra.bicep import shown
from tests.infra.test_policies import FILES
from tests.patience import allowed
from tests.repo.product import MODULES, ROOT, name_of

SETTINGS = {
    **json.loads((ROOT / "infra" / "settings.json").read_text(encoding="utf-8")),
    "EVENTHUB__fullyQualifiedNamespace": "ns.servicebus.windows.net",
    "EVENTHUB_NAME": "telemetry",
    "EVENTHUB_CONSUMER_GROUP": "hubledger",
    "HUB_READER_CONSUMER_GROUP": "hubledger-reader",
    "STORE_CONNECTION": "Driver={ODBC Driver 18 for SQL Server};Server=tcp:s,1433;Database=d",
    "TRANSFORM": "examples.home_security",
}
SYNAPSE = {
    "SPARK_ENGINE": "livy",
    "SPARK_JOBS": "abfss://spark@l.dfs.core.windows.net/jobs",
    "LAKE": "abfss://spark@l.dfs.core.windows.net/lake",
    "LIVY_URL": "https://w.dev.azuresynapse.net/livyApi/versions/2019-11-01-preview/sparkPools/spark35",
    "LIVY_DIALECT": "synapse",
}
FOLDERS = ("core", "handlers", "examples", "apps", "sql", "jobs")
FACE = ("hubledger/__init__.py", "hubledger/web.py")  # of their package alone: the command line stays


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in package.files_of(ROOT):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    shutil.copy(ROOT / ".funcignore", root)
    return root


def test_the_package_has_every_module_of_the_app_and_none_of_anything_else() -> None:
    names = set(package.files_of(ROOT))
    ours = ("core/", "handlers/", "examples/", "function_app", *FACE)
    app = {name_of(path) for path in MODULES if name_of(path).startswith(ours) and "tests" not in path.parts}
    sql = {name_of(path) for path in (ROOT / "sql").rglob("*.sql")}
    assert app | sql | {"host.json", "requirements.txt"} <= names
    others = {name for name in names if name.partition("/")[0] not in FOLDERS}
    pictures = {name_of(path) for path in (ROOT / "docs" / "images").glob("*.png")}
    assert others - {name_of(path) for path in GUIDES.values()} - pictures == {
        "function_app.py",
        "host.json",
        "requirements.txt",
        *FACE,
    }
    assert {name_of(path) for path in GUIDES.values()} | pictures <= others  # the pages serve them
    assert {name for name in names if "/tests/" in name or name.endswith(".jsonl")} == set()


def test_a_room_goes_with_the_app_whole_but_for_its_tests_and_its_sample_events(project: Path) -> None:
    write_room(project)
    write_room(project, "local")  # a name that a folder of ours has too
    found = set(package.files_of(project))
    wanted = {name for name in OF_ORDERS if not name.startswith("tests/") and name != "events.jsonl"}
    assert {name for name in found if name.startswith("apps/orders/")} == {f"apps/orders/{name}" for name in wanted}
    assert {name for name in found if name.startswith("apps/local/")} == {f"apps/local/{name}" for name in wanted}


@pytest.mark.parametrize("name", [".gitignore", ".funcignore"])
def test_environments_of_python_and_files_of_azurite_stay_on_the_machine(name: str) -> None:
    """Azurite writes into the folder in which it starts, and its blobs would be events in the package."""
    ignored = pathspec.GitIgnoreSpec.from_lines((ROOT / name).read_text(encoding="utf-8").splitlines())
    left = (
        "venv/pyvenv.cfg",
        "my_env/bin/python",
        "__azurite_db_blob__.json",
        "__blobstorage__/1",
        "__queuestorage__/1",
    )
    assert [one for one in left if not ignored.match_file(one)] == []
    assert not ignored.match_file("apps/shop_env/transform.py"), "a room may have such a name"


def test_the_app_of_a_room_starts_from_its_package_and_without_rooms_that_of_the_app(project: Path) -> None:
    room = write_room(project)
    assert "ingest" in app_start.refuse_unstartable(project, {**SETTINGS, "TRANSFORM": ORDERS})
    (room / "amounts.py").write_text(f"import no_such_package\n{(room / 'amounts.py').read_text()}")
    with pytest.raises(HookRefused, match=r"amounts\.py:1: No module named 'no_such_package'\n.*requirements\.txt"):
        app_start.refuse_unstartable(project, {**SETTINGS, "TRANSFORM": ORDERS})
    shutil.rmtree(project / "apps")
    assert "ingest" in app_start.refuse_unstartable(project, SETTINGS)


def test_the_package_is_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "1.zip", tmp_path / "2.zip"
    files = package.build(ROOT, first)
    assert main(["package", "--to", str(second)]) == 0
    shown = capsys.readouterr().out
    assert "function_app.py" in shown and " packed" in shown
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size < 1600 * 1024  # half of it is the pictures of the guides
    assert package.table_of(files, first).splitlines()[-1].startswith(f"{len(files)} files, ")


def test_a_package_without_its_first_file_or_with_one_that_grew_by_mistake_is_refused(project: Path) -> None:
    (project / "recording.bin").write_bytes(bytes(package.LARGEST))
    with pytest.raises(HookRefused, match=r"lets in recording\.bin"):
        package.files_of(project)
    (project / ".funcignore").write_text("host.json\n")
    with pytest.raises(HookRefused, match=r"leaves out host\.json"):
        package.files_of(project)


def test_the_app_starts_from_its_package_with_the_settings_of_the_cloud_and_of_its_spark_engine() -> None:
    """The trial has every setting that the template wires."""
    outputs = {one.name: shown(one.value) for one in FILES["main.bicep"].of_kind("output")}
    assert outputs["WIRED_SETTINGS"] == "string(wiredSettings)"
    assert app_start.cloud_settings(ROOT, SETTINGS, {"PATH": "/bin"}) == SETTINGS
    assert app_start.cloud_settings(ROOT, {"TRANSFORM": "a"}, {"TRANSFORM": "b"})["TRANSFORM"] == "b", "a new one wins"
    built_in = {name: value for name, value in SETTINGS.items() if not name.startswith("EVENTHUB__")}
    built_in["EVENTHUB"] = "@Microsoft.KeyVault(SecretUri=https://kv.vault.azure.net/secrets/hub)"
    assert read_settings(app_start.cloud_settings(ROOT, built_in, {})).event_hub == SETTINGS["EVENTHUB_NAME"]
    settings = app_start.cloud_settings(ROOT, {**SETTINGS, **SYNAPSE}, {})
    assert settings == {**SETTINGS, **SYNAPSE}
    assert {"ingest", "status", "aggregate"} <= set(app_start.refuse_unstartable(ROOT, settings))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("function_app.py", "import no_such_module\n", "no_such_module"),
        ("function_app.py", "import azure.functions as func\napp = func.FunctionApp()\n", "without a single function"),
        ("handlers/timers.py", "def broken(:\n", "SyntaxError"),
        ("requirements.txt", "azure-functions>=1.26\n", "must name one version"),
        ("requirements.txt", "azure-functions>=2; python_version >= '3.13'\n", "must name one version"),
    ],
)
def test_an_app_that_would_not_start_is_refused(project: Path, name: str, text: str, said: str) -> None:
    (project / name).write_text(text)
    with pytest.raises(HookRefused) as refusal:
        app_start.refuse_unstartable(project, SETTINGS)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"TRANSFORM": "no.such.transform"}, ["no.such.transform"]),
        ({"STORE_CONNECTION": "", "STORE_PATIENCE_SECONDS": "soon"}, ["STORE_CONNECTION", "STORE_PATIENCE_SECONDS"]),
        ({**SYNAPSE, "STORE_CONNECTION": "sqlite:here.db"}, ["STORE_CONNECTION"]),
        ({**SYNAPSE, "LIVY_URL": ""}, ["LIVY_URL must be an address"]),
    ],
)
def test_settings_that_the_app_would_refuse_are_refused_before(change: dict[str, str], said: list[str]) -> None:
    with pytest.raises(HookRefused) as refusal:
        app_start.refuse_unstartable(ROOT, {**SETTINGS, **change})
    assert [name for name in said if name not in str(refusal.value)] == []


DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SECRET = re.compile(r"password|secret|token|accountkey|sharedaccess", re.IGNORECASE)
FINGERPRINT = (
    "BC528686B50D79E339D3721CEB3E94ADBE1229CF"  # of Microsoft's repository: learn.microsoft.com/linux/packages
)


@dataclass(frozen=True)
class Instruction:
    """One instruction, with its continued lines joined, and the stage that it belongs to."""

    name: str
    text: str
    stage: int


def read(text: str) -> list[Instruction]:
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    found: list[Instruction] = []
    stage = -1
    for line in re.sub(r"\\\n\s*", "", code).splitlines():
        name, _, rest = line.strip().partition(" ")
        stage += name == "FROM"
        if name:
            found.append(Instruction(name, rest.strip(), stage))
    return found


IMAGE = read(DOCKERFILE)


def instructions(name: str) -> list[Instruction]:
    return [one for one in IMAGE if one.name == name]


def last(name: str) -> str:
    return [one.text for one in instructions(name) if one.stage == IMAGE[-1].stage][-1]


COPIED = {  # what the last stage copies from the project: each source with its destination
    words[0]: words[1]
    for one in instructions("COPY")
    for words in [one.text.split()]
    if one.stage == IMAGE[-1].stage and not words[0].startswith("--")
}
HEALTH_CHECK: list[str] = json.loads(last("HEALTHCHECK").partition("CMD ")[2])


def test_the_image_has_one_slim_base_and_a_user_that_is_not_root_and_owns_no_file() -> None:
    (base,) = {one.text.partition(" AS ")[0] for one in instructions("FROM")}
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", base)
    user = next(one for one in IMAGE if one.name == "USER")
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user.text), "Kubernetes sees by a number that it is not root"
    assert {one.name for one in IMAGE[IMAGE.index(user) :]} & {"RUN", "COPY"} == set()


def test_nothing_unknown_is_fetched_and_no_secret_is_in_the_image() -> None:
    runs = " ".join(one.text for one in instructions("RUN"))
    assert instructions("ADD") == []
    assert not re.search(r"\|\s*(sudo )?(ba|da)?sh\b|http://", runs)
    assert f"grep -q '^fpr:::::::::{FINGERPRINT}:$'" in runs and "[signed-by=" in runs
    assert "--only-binary=:all: --requirement requirements-worker.txt" in runs
    assert not re.search(r"trusted=yes|--allow-unauthenticated|--no-check-certificate|--insecure|-k\b", runs)
    assert instructions("ARG") == [], "a build argument stays in the history"
    assert [one.text for one in instructions("ENV") if SECRET.search(one.text)] == []


def test_the_image_is_small() -> None:
    for one in instructions("RUN"):
        assert "apt-get update" not in one.text or "rm -rf /var/lib/apt/lists/*" in one.text
        assert "apt-get install" not in one.text or "--no-install-recommends" in one.text
        assert "pip install" not in one.text or "--no-cache-dir" in one.text
        assert one.stage < IMAGE[-1].stage or not re.search(r"\b(pip install|curl|gnupg)", one.text)
    assert {".", "./"} & set(COPIED) == set()


def test_signals_arrive_and_health_is_asked_where_it_is_answered() -> None:
    """A shell keeps signals to itself."""
    port = last("EXPOSE")
    assert json.loads(last("ENTRYPOINT")) == ["python", "-m", "core.worker"]
    assert json.loads(last("CMD")) == ["--health", f"0.0.0.0:{port}"]
    assert ["python", "-m", "core.worker.health", f"127.0.0.1:{port}"] == HEALTH_CHECK
    assert last("STOPSIGNAL") == "SIGTERM"
    file = FILES["app/worker.bicep"]
    assert file.var("health") == {"path": PATH, "port": int(port)}
    app = next(one for one in file.of_kind("module") if one.name == "worker").value["params"]
    probes = app["containers"][0]["probes"]
    assert [shown(one["httpGet"]) for one in probes] == ["health", "health"]
    assert all(one["timeoutSeconds"] >= ANSWER_WITHIN for one in probes)
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    (grace,) = re.findall(r"^\| `--grace` \| `(\d+)` \|", page, re.MULTILINE)
    assert app["terminationGracePeriodSeconds"] >= int(grace) + 5, "Container Apps waits longer than the worker takes"


def test_hadolint_finds_no_fault() -> None:
    program = shutil.which("hadolint", path=Path(sys.executable).parent.as_posix())
    if program is None:
        pytest.skip("hadolint is not installed: pip install -r requirements-dev.txt")
    command = [program, str(ROOT / "Dockerfile")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=allowed(60), check=False)
    assert (done.returncode, done.stdout) == (0, "")


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(
        line.partition(" ")[0].rstrip(";").split("==") for line in lines if line and not line.startswith(("#", "-r"))
    )


def test_the_image_has_packages_of_tested_versions_and_only_files_that_are_copied_reach_the_build() -> None:
    tested = pins("local/requirements.txt") | pins("requirements.txt")
    assert pins("requirements-worker.txt").items() <= tested.items()
    assert not {name for name in pins("requirements-worker.txt") if "functions" in name}
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    admitted = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    assert rules[0] == "*" and admitted == {*COPIED, "requirements-worker.txt"}


WORKFLOW = (ROOT / ".github" / "workflows" / "image.yml").read_text(encoding="utf-8")


def test_only_a_release_pushes_the_image_that_was_tested_and_no_secret_is_needed() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install -r requirements-dev.txt")
    jobs = dict(yaml.safe_load(WORKFLOW)["jobs"])
    build, push = jobs["build"], jobs["push"]
    assert (push["if"], push["needs"], push.get("env")) == ("github.event_name == 'release'", "build", None)
    kept = [step for step in build["steps"] if "save" in step.get("run", "") or "upload" in step.get("uses", "")]
    assert [step["if"] for step in kept] == ["github.event_name == 'release'"] * 2
    commands = "".join(step.get("run", "") for step in push["steps"])
    assert "docker load" in commands and "docker build" not in commands
    steps = "".join(step.get("run", "") for step in build["steps"])
    assert "docker push" not in steps
    assert set(re.findall(r"secrets\.(\w+)", WORKFLOW)) == {"GITHUB_TOKEN"}
    assert "permissions" not in build and push["permissions"] == {"packages": "write", "id-token": "write"}
    assert all(job["timeout-minutes"] <= 20 for job in jobs.values())
    assert "docker run --detach --name at-work" in steps and "docker stop --time 30 at-work" in steps, (
        "it works, and ends"
    )
    assert re.search(r"^permissions:\n  contents: read\n", WORKFLOW, re.MULTILINE)


def test_the_workflow_builds_when_anything_of_the_image_changes() -> None:
    (paths,) = {line.strip() for line in WORKFLOW.splitlines() if line.strip().startswith("paths: ")}
    wanted = {"Dockerfile", ".dockerignore", "requirements-worker.txt", ".github/workflows/image.yml"}
    wanted |= {f"{one}/**" if (ROOT / one).is_dir() else one for one in COPIED}
    assert set(paths.removeprefix("paths: [").removesuffix("]").split(", ")) == wanted
