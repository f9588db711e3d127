"""The package of a deployment, and the refusals before it."""

import json
import shutil
from pathlib import Path

import pathspec
import pytest

from handlers.operations.description import GUIDES
from infra.hooks import app_start, package
from infra.hooks.__main__ import main
from infra.hooks.errors import HookRefused
from tests.fakes.orders_room import FILES, ORDERS, write_room
from tests.infra.bicep import shown
from tests.infra.test_policies import FILES as BICEP
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
    """Copy the files that are deployed, and the file that selects them."""
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
    assert others - {name_of(path) for path in GUIDES.values()} == {
        "function_app.py",
        "host.json",
        "requirements.txt",
        *FACE,
    }
    assert {name_of(path) for path in GUIDES.values()} <= others  # the pages serve them
    assert {name for name in names if "/tests/" in name or name.endswith(".jsonl")} == set()


def test_a_room_goes_with_the_app_whole_but_for_its_tests_and_its_sample_events(project: Path) -> None:
    write_room(project)
    write_room(project, "local")  # a name that a folder of ours has too
    found = set(package.files_of(project))
    wanted = {name for name in FILES if not name.startswith("tests/") and name != "events.jsonl"}
    assert {name for name in found if name.startswith("apps/orders/")} == {f"apps/orders/{name}" for name in wanted}
    assert {name for name in found if name.startswith("apps/local/")} == {f"apps/local/{name}" for name in wanted}


@pytest.mark.parametrize("name", [".gitignore", ".funcignore"])
def test_environments_of_python_and_files_of_azurite_stay_on_the_machine(name: str) -> None:
    """Azurite writes into the folder in which it starts, and its blobs would be events in the package."""
    ignored = pathspec.GitIgnoreSpec.from_lines((ROOT / name).read_text(encoding="utf-8").splitlines())
    left = [
        "venv/pyvenv.cfg",
        "my_env/bin/python",
        "__azurite_db_blob__.json",
        "__blobstorage__/1",
        "__queuestorage__/1",
    ]
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


def test_the_package_is_small_and_the_same_files_make_the_same_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "1.zip", tmp_path / "2.zip"
    files = package.build(ROOT, first)
    assert main(["package", "--to", str(second)]) == 0
    shown = capsys.readouterr().out
    assert "function_app.py" in shown and " packed" in shown
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size < 1024 * 1024
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
    outputs = {one.name: shown(one.value) for one in BICEP["main.bicep"].of_kind("output")}
    assert outputs["WIRED_SETTINGS"] == "string(wiredSettings)"
    assert app_start.cloud_settings(ROOT, SETTINGS, {"PATH": "/bin"}) == SETTINGS
    assert app_start.cloud_settings(ROOT, {"TRANSFORM": "a"}, {"TRANSFORM": "b"})["TRANSFORM"] == "b", "a new one wins"
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
