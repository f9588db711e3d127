"""The commands against the real app, without a terminal: what they print and how they end."""

import json
import shlex
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.acceptance.api.served import Served
from tests.acceptance.cli.terminal import environment, hubledger
from tests.repo.product import ROOT

pytestmark = pytest.mark.slow
NO_JOB = "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("health", 0),
        ("status", 0),
        ("status --json", 0),
        ("ledger audit", 0),
        ("ledger explain 0 1", 0),
        ("letters show 10 31", 0),
        ("letters list --cause bbbb --all", 0),
        ("tasks list", 0),
        ("runs list", 0),
        ("streams show", 0),
        (f"tasks show {NO_JOB}", 1),
        (f"tasks pause {NO_JOB} --reason gone --yes", 1),
        ("letters show 0 99", 1),
        ("letters list --status nope", 1),
        ("letters discard 0/11 0/99 --reason two --yes", 1),
        ("letters discard 0/11 --reason one", 2),
        ("letters show 0", 2),
        ("letters nope", 2),
        ("status --url http://127.0.0.1:1", 2),
    ],
)
def test_a_command_ends_with_its_code(command: str, code: int, fresh: Served) -> None:
    done = hubledger(fresh.base_url, *command.split())
    assert done.returncode == code, done.stdout + done.stderr
    assert bool(done.stderr) == bool(code)
    assert "Traceback" not in done.stderr


def test_a_job_is_accepted_without_a_wait(fresh: Served) -> None:
    order = ("letters", "retry", "--cause", "aaaa", "--reason", "known now", "--yes", "--no-wait", "--json")
    done = hubledger(fresh.base_url, *order)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["total"] == 6


def test_the_local_run_is_the_default_and_without_it_the_error_says_what_to_set(tmp_path: Path) -> None:
    given = {name: value for name, value in environment("").items() if name != "HUBLEDGER_URL"}
    for name in ("hubledger", "core", "local"):
        (tmp_path / name).symlink_to(ROOT / name)
    program = "import local.stack.folders, pathlib, sys; local.stack.folders.LOCAL_RUN = pathlib.Path('nowhere')\n"
    program += "local.stack.folders.running_address.__defaults__ = (pathlib.Path('nowhere'),)\n"
    program += "from hubledger.cli.main import main; sys.exit(main(['status']))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "HUBLEDGER_URL" in done.stderr


def test_completion_knows_the_commands_and_their_options(tmp_path: Path) -> None:
    script = ROOT / "bin" / "hubledger"
    asked = {"COMP_WORDS": "hubledger letters re", "COMP_CWORD": "2", "_HUBLEDGER_COMPLETE": "complete_bash"}
    found = subprocess.run([script], env={**environment("")} | asked, capture_output=True, text=True, check=False)
    assert found.stdout.split() == ["retry"]
    home = {"HOME": str(tmp_path), "PATH": environment("")["PATH"]}
    in_bash = [
        "bash",
        "-c",
        f"{shlex.quote(str(script))} --install-completion; exit $?",
    ]  # it asks which shell it is in
    done = subprocess.run(in_bash, env=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert any("_HUBLEDGER_COMPLETE" in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_the_requirements_of_the_command_line_are_enough_for_it(fresh: Served) -> None:
    installed = installed_by(ROOT / "requirements-cli.txt")
    others = [name for name, of in packages_distributions().items() if not {plain(one) for one in of} & installed]
    program = f"import sys; sys.modules.update(dict.fromkeys({sorted(others)!r})); "
    program += "from hubledger.cli.main import main; sys.exit(main(sys.argv[1:]))"
    for arguments, code in ((["status", "--help"], 0), (["letters", "list"], 0), (["new", "x"], 1)):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=ROOT,
            env=environment(fresh.base_url),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
    assert "msgspec" in others
    assert done.stderr == (
        "hubledger: msgspec is missing: run `make setup`, or `python3 -m venv .venv && .venv/bin/python -m pip install"
        f" -r local/requirements.txt`, in {ROOT}; then use bin/hubledger\n"
    )


def plain(name: str) -> str:
    """A package's name in the form in which names are compared."""
    return name.lower().replace("_", "-")


def installed_by(file: Path) -> set[str]:
    """The names of all packages that pip installs for a file."""
    lines = [line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines()]
    waiting = [Requirement(line) for line in lines if line]
    found: set[str] = set()
    while waiting:
        one = waiting.pop()
        if plain(one.name) not in found and (one.marker is None or one.marker.evaluate({"extra": ""})):
            found.add(plain(one.name))
            waiting += map(Requirement, requires(one.name) or [])
    return found
