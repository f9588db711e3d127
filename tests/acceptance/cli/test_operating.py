"""The commands against the real app, without a terminal: what they print and how they end."""

import shlex
import subprocess
from pathlib import Path

import pytest

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
