"""infra/hooks/run.sh runs a step in an environment of its own; run.ps1 does the same, as far as its text shows."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infra.hooks.__main__ import SUPPORTED
from tests.repo.product import ROOT

HOOKS = ROOT / "infra" / "hooks"
VERSIONS = [f"{major}.{minor}" for major, minor in reversed(SUPPORTED)]  # the newest first
TOOLS = ("cat", "chmod", "dirname", "grep", "ls", "mkdir")
VENV = Path(".local-run") / "hooks-venv"

# A Python of a given version that lacks modules. It evaluates code as a real one would; the Python of an environment
# that it makes writes down how it was called.
PYTHON = """#!/bin/sh
case "$1 $2" in
    "-c "*) exec {real} -c "import sys
sys.version_info = ({version}, 1, 'final', 0)
sys.modules.update(dict.fromkeys('{missing}'.split()))
$2" ;;
    "-m venv")
        echo "{name} $*" >> "$CALLS"
        for last in "$@"; do :; done
        mkdir -p "$last/bin"
        printf '#!/bin/sh\\necho "venv $*" >> "$CALLS"\\n' > "$last/bin/python"
        chmod +x "$last/bin/python" ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project with the script and a step that says which Python runs it; its PATH has no Python."""
    hooks = tmp_path / "project" / "infra" / "hooks"
    hooks.mkdir(parents=True)
    shutil.copy(HOOKS / "run.sh", hooks)
    (hooks / "requirements.txt").write_text("")
    (hooks / "__main__.py").write_text("import sys\nprint(sys.prefix, *sys.argv[1:])\n")
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    return tmp_path / "project"


def plant(project: Path, name: str, version: str, missing: str = "") -> None:
    """Put a Python of a version on the PATH."""
    text = PYTHON.format(real=sys.executable, name=name, version=version.replace(".", ", "), missing=missing)
    (project.parent / "bin" / name).write_text(text)
    (project.parent / "bin" / name).chmod(0o755)


def run(project: Path, **more: str) -> tuple["subprocess.CompletedProcess[str]", list[str]]:
    """Run a step; return the calls of the stand-ins too."""
    calls = project.parent / "calls"
    calls.write_text("")
    environment = {"PATH": str(project.parent / "bin"), "CALLS": str(calls), **more}
    command = ["infra/hooks/run.sh", "deployable"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    return done, calls.read_text().splitlines()


def real_python(project: Path) -> Path:
    """Put the Python of the tests on the PATH, and return it."""
    name = f"python3.{sys.version_info.minor}"
    (project.parent / "bin" / name).symlink_to(Path(sys.executable).resolve())
    return project.parent / "bin" / name


@pytest.mark.parametrize("version", VERSIONS)
def test_the_environment_is_made_by_a_supported_python_and_runs_the_step(project: Path, version: str) -> None:
    plant(project, f"python{version}", version)
    plant(project, "python3", "3.10")
    done, calls = run(project)
    assert done.returncode == 0
    assert calls[0] == f"python{version} -m venv --clear {VENV}"
    assert calls[-2:] == [
        "venv -m pip install --quiet --disable-pip-version-check -r infra/hooks/requirements.txt",
        "venv -m infra.hooks deployable",
    ]


def test_the_newest_python_is_taken_and_a_named_one_before_it(project: Path) -> None:
    for version in VERSIONS:
        plant(project, f"python{version}", version)
    plant(project, "mine", "3.12")
    assert run(project)[1][0].startswith("python3.14 -m venv")
    shutil.rmtree(project / VENV)
    assert run(project, PYTHON="mine")[1][0].startswith("mine -m venv")


@pytest.mark.parametrize(
    ("version", "missing"),
    [("3.10", ""), ("3.15", ""), ("3.12", "ensurepip"), ("3.12", "venv"), ("3.12", "venv ensurepip")],
)
def test_a_python_that_cannot_make_the_environment_is_passed_over(project: Path, version: str, missing: str) -> None:
    """Debian's python3 without python3-venv has venv, and no ensurepip: it would make half an environment."""
    plant(project, "python3.13", version, missing)
    refused, calls = run(project)
    assert (refused.returncode, calls) == (1, [])
    assert refused.stderr.splitlines()[-1].startswith("hooks: Python 3.11 to 3.14 with venv and ensurepip is needed")
    plant(project, "python3", "3.11")
    assert run(project)[1][0].startswith("python3 -m venv")


def test_an_environment_that_is_whole_is_used_again(project: Path) -> None:
    plant(project, "python3.13", "3.13")
    run(project)
    _, calls = run(project)
    assert [one for one in calls if "-m venv" in one] == []
    assert calls[-1] == "venv -m infra.hooks deployable"


def test_an_environment_without_pip_is_made_anew(project: Path) -> None:
    python = real_python(project)
    subprocess.run([str(python), "-m", "venv", "--without-pip", str(project / VENV)], check=True)
    done, _ = run(project)
    assert (done.returncode, done.stdout) == (0, f"{project / VENV} deployable\n")


def test_an_environment_whose_python_is_gone_is_made_anew(project: Path) -> None:
    plant(project, "python3.13", "3.13")
    run(project)
    (project / VENV / "bin" / "python").unlink()
    (project / VENV / "bin" / "python").symlink_to("/nowhere/python3.9")
    assert run(project)[1][0] == f"python3.13 -m venv --clear {VENV}"


def test_powershell_tries_the_same_versions_in_the_same_order() -> None:
    posix, windows = ((HOOKS / name).read_text(encoding="utf-8") for name in ("run.sh", "run.ps1"))
    assert re.findall(r"python(3\.\d+)", posix) == VERSIONS
    assert re.findall(r"'(3\.\d+)'", windows) == VERSIONS
    assert "Find-Python -Command 'py' -Options \"-$version\"" in windows
    for text in (posix, windows):
        assert "import ensurepip, sys, venv;" in text
        assert "sys.exit(not (3, 11) <= sys.version_info < (3, 15))" in text


def test_powershell_makes_half_an_environment_anew_in_the_same_place() -> None:
    text = (HOOKS / "run.ps1").read_text(encoding="utf-8")
    assert "$venv = Join-Path '.local-run' 'hooks-venv'" in text
    assert "& $inVenv -m pip --version" in text
    assert "& $python -m venv --clear $venv" in text
