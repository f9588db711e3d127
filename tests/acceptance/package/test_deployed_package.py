"""The package as in a deployment: unpacked alone, in an environment with only its requirements.txt."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.hooks import package
from infra.hooks.smoke.app import App
from tests.fakes.rooms import migrate_examples
from tests.patience import allowed, ended
from tests.repo.product import ROOT

pytestmark = pytest.mark.slow

READY = "functions host ready on "
SETTINGS = {
    "EVENTHUB": "Endpoint=sb://localhost:9;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true",
    "EVENTHUB_NAME": "telemetry",
    "EVENTHUB_CONSUMER_GROUP": "hubledger",
    "AzureWebJobs.ingest.Disabled": "true",  # no hub listens there
}
INDEX = """
import function_app, pathlib
assert pathlib.Path(function_app.__file__).parent == pathlib.Path.cwd()
print(*sorted(one.get_function_name() for one in function_app.app.get_functions()))
"""


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the unpacked package."""
    folder = tmp_path_factory.mktemp("package")
    package.build(ROOT, folder / "package.zip")
    with zipfile.ZipFile(folder / "package.zip") as packed:
        packed.extractall(folder / "app")
    return folder / "app"


@pytest.fixture(scope="module")
def clean(deployed: Path, host_tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python with the requirements of the package, and nothing else."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder)
    python = folder / "bin" / "python"
    own = [line for line in (ROOT / "local" / "requirements.txt").read_text().splitlines() if re.match(r"\w", line)]
    install(python, "-r", str(deployed / "requirements.txt"))
    install(python, "--prefix", str(host_tools), *own)  # without what is there already
    return python


@pytest.fixture(scope="module")
def host_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for the local host and its own requirements: beside the package, not in its environment."""
    folder = tmp_path_factory.mktemp("tools")
    shutil.copytree(ROOT / "local", folder / "local", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def install(python: Path, *arguments: str) -> None:
    """Install for a Python, with the pip of this one."""
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    command += ["--disable-pip-version-check", "--no-compile", *arguments]
    subprocess.run(command, check=True, timeout=allowed(600))


def environment(**more: str) -> dict[str, str]:
    """Return an environment without settings of the tests."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "HOME") if name in os.environ}
    return {**kept, **more}


@pytest.fixture
def running(deployed: Path, clean: Path, host_tools: Path, tmp_path: Path) -> Iterator[App]:
    """Run the package on the local host, in its clean environment."""
    migrate_examples(tmp_path / "hubledger.db")
    settings = {**SETTINGS, "STORE_CONNECTION": f"sqlite:{tmp_path / 'hubledger.db'}"}
    own = sysconfig.get_path("purelib", vars={"base": str(host_tools)})
    paths = os.pathsep.join((str(host_tools), own, str(deployed)))
    process = subprocess.Popen(
        [str(clean), "-u", "-m", "local.functions_host", "--app", str(deployed), "--port", "0"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=paths, **settings),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    ready = next((line.strip() for line in process.stdout if line.startswith(READY)), None)
    assert ready is not None, "the host ended before it was ready"
    yield App(ready.removeprefix(READY))
    process.terminate()
    ended(process, 30)


def test_the_clean_environment_has_no_tool_of_the_tests(clean: Path) -> None:
    probe = "import importlib.util as u, sys; sys.exit(any(map(u.find_spec, ('pytest', 'croniter', 'mypy', 'local'))))"
    assert subprocess.run([str(clean), "-c", probe], cwd="/", env=environment(), check=False).returncode == 0


def test_every_function_is_indexed(deployed: Path, clean: Path) -> None:
    found = index(clean, deployed)
    assert found == index(Path(sys.executable), ROOT)
    assert {"ingest", "status"} <= set(found)


def index(python: Path, app: Path) -> list[str]:
    """Return the names of the functions of an app that a Python indexes."""
    command = [str(python), "-c", INDEX]
    done = subprocess.run(
        command, cwd=app, env=environment(), capture_output=True, text=True, check=True, timeout=allowed(60)
    )
    return done.stdout.splitlines()[-1].split()


def test_it_answers_on_the_local_host(running: App) -> None:
    assert running.get("/api/health/live").status == 200
