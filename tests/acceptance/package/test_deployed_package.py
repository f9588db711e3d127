import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from infra.hooks import package
from infra.hooks.smoke.app import App
from tests.acceptance.started import NO_HUB, READY, settings_of
from tests.fakes.rooms import migrate_examples
from tests.patience import allowed, ended
from tests.repo.product import ROOT

INDEX = """
import function_app, pathlib
assert pathlib.Path(function_app.__file__).parent == pathlib.Path.cwd()
print(*sorted(one.get_function_name() for one in function_app.app.get_functions()))
"""


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    package.build(ROOT, folder / "package.zip")
    with zipfile.ZipFile(folder / "package.zip") as packed:
        packed.extractall(folder / "app")
    return folder / "app"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tools")
    shutil.copytree(ROOT / "local", folder / "local", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def clean(deployed: Path, tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python with the requirements of the package, and nothing else."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder)
    python = folder / "bin" / "python"
    own = [line for line in (ROOT / "local" / "requirements.txt").read_text().splitlines() if re.match(r"\w", line)]
    # the second one without what is there already
    for arguments in (("-r", str(deployed / "requirements.txt")), ("--prefix", str(tools), *own)):
        command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
        command += ["--disable-pip-version-check", "--no-compile", *arguments]
        subprocess.run(command, check=True, timeout=allowed(600))
    return python


def environment(**more: str) -> dict[str, str]:
    """Return an environment without settings of the tests."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "HOME") if name in os.environ}
    return {**kept, **more}


def index(python: Path, app: Path) -> list[str]:
    words, given = [str(python), "-c", INDEX], environment()
    done = subprocess.run(words, cwd=app, env=given, capture_output=True, text=True, check=True, timeout=allowed(60))
    return done.stdout.splitlines()[-1].split()


def test_every_function_is_indexed_without_any_tool_of_the_tests(deployed: Path, clean: Path) -> None:
    probe = "import importlib.util as u, sys; sys.exit(any(map(u.find_spec, ('pytest', 'croniter', 'mypy', 'local'))))"
    assert subprocess.run([str(clean), "-c", probe], cwd="/", env=environment(), check=False).returncode == 0
    found = index(clean, deployed)
    assert found == index(Path(sys.executable), ROOT)
    assert {"ingest", "status"} <= set(found)


def test_it_answers_on_the_local_host(deployed: Path, clean: Path, tools: Path, tmp_path: Path) -> None:
    migrate_examples(tmp_path / "hubledger.db")
    settings = {**settings_of(NO_HUB, tmp_path / "hubledger.db"), "TRANSFORM": "examples.home_security"}
    settings["AzureWebJobs.ingest.Disabled"] = "true"  # no hub listens there
    own = sysconfig.get_path("purelib", vars={"base": str(tools)})
    settings["PYTHONPATH"] = os.pathsep.join((str(tools), own, str(deployed)))
    words = [str(clean), "-u", "-m", "local.functions_host", "--app", str(deployed), "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=tmp_path, env=environment(**settings), stdout=pipe, text=True) as process:
        assert process.stdout is not None
        ready = next((line.strip() for line in process.stdout if line.startswith(READY)), None)
        assert ready is not None, "the host ended before it was ready"
        assert App(ready.removeprefix(READY)).get("/api/health/live").status == 200
        process.terminate()
        ended(process, 30)
