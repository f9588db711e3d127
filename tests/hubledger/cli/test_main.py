"""The command line: its exit codes, and its errors of one line."""

import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from hubledger.cli.main import main
from hubledger.cli.output import program
from hubledger.cli.scaffold.room import taken_tables

ROOT = Path(__file__).parents[3]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Run a command that fails; return its code and its one line."""
    code = main(arguments)
    found = capsys.readouterr()
    assert found.err.count("\n") == 1, found.err
    return code, found.err.removeprefix("hubledger: ").rstrip()


def test_the_version_is_printed_and_is_that_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    (version,) = re.findall(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)
    assert capsys.readouterr().out == f"hubledger {version}\n"


def test_a_group_alone_prints_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["letters"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {name}" in out for name in ("list", "causes", "show", "retry", "discard"))
    assert out.count("Usage:") == 1


AT_LEAST = ": Input should be greater than or equal to "
NO_TEXT = "an argument is no text: its octets are not UTF-8"
CALLS: list[tuple[int, str, str]] = [  # the code, a part of the line, and the arguments
    (2, "", "nope"),
    (2, "", "new --bad"),
    (2, "--from", "new"),
    (2, "--field", "new x"),
    (2, "", "migrate-diff --name a\xa0b"),
    (2, f"Invalid value for '--limit'{AT_LEAST}", "try --limit -1"),
    (2, f"Invalid value for '--limit'{AT_LEAST}", "letters list --limit -1"),
    (2, f"Invalid value for '--per-second'{AT_LEAST}", "letters retry --per-second -1"),
    (2, NO_TEXT, "letters show \udcff 1 --url http://127.0.0.1:1"),
    (2, NO_TEXT, "letters list --cause \udcff --url http://127.0.0.1:1"),
    (1, "word of Python", "new class --field id:text"),
    (1, "write name:type", "new x --field id"),
    (1, "names one field twice", "new x --field id:text --field id:text"),
    (1, "/nowhere/events.jsonl: No such file", "new x --from /nowhere/events.jsonl"),
    (1, "belongs to Hubledger", "new x --field id:text --table batch_ledger"),
    (1, "belongs to examples/home_security", "new x --field id:text --table Sensor_Reading"),
    (1, "no file", "try /nowhere/events.jsonl"),
    (1, "nowhere", "try --transform nowhere"),
    (1, "core.errors", "migrate-diff --transform core.errors"),
]


@pytest.mark.parametrize(("code", "why", "call"), CALLS)
def test_a_wrong_call_and_a_refusal_are_one_line(
    code: int, why: str, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, line = refused(capsys, *(word.replace("\xa0", " ") for word in call.split(" ")))
    assert found == code
    assert why in line
    assert line.endswith(", not '-1'") == (AT_LEAST in why)


def test_the_next_command_can_be_pasted_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(ROOT)
    assert program() == "bin/hubledger"
    monkeypatch.chdir(tmp_path)
    assert program() == str(ROOT / "bin" / "hubledger")
    (tmp_path / "hubledger").symlink_to(ROOT / "bin" / "hubledger")
    assert program() == "hubledger"


def test_a_letter_that_the_output_cannot_hold_is_printed_as_its_escape() -> None:
    octets = BytesIO()
    with redirect_stdout(TextIOWrapper(octets, encoding="ascii")) as out:
        assert main(["try", "--transform", "examples.home_security"]) == 0
        out.flush()
    assert b"\\u2026" in octets.getvalue()  # the ellipsis of a long value


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "migrate-diff" in capsys.readouterr().out


def test_the_tables_of_hubledger_and_of_the_rooms_are_taken() -> None:
    taken = taken_tables()
    assert taken["event_hub_checkpoint"] == "Hubledger"
    assert taken["flight_punctuality_staged"] == "examples/flight_info"


@pytest.mark.slow
def test_an_interruption_at_the_start_is_one_line() -> None:
    program = """
import sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from hubledger.cli.output import program
from hubledger.cli.main import main
sys.exit(main(["new"]))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "hubledger: interrupted; nothing was written\n")


@pytest.mark.slow
def test_without_typer_one_line_says_what_to_install() -> None:
    program = "import sys; sys.modules['typer'] = None; from hubledger.cli.main import main; sys.exit(main(['new']))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "typer is missing: run `make setup`, or " in done.stderr
