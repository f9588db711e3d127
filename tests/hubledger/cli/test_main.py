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


@pytest.mark.parametrize(
    "arguments",
    [("nope",), ("new", "--bad"), ("new",), ("new", "x"), ("try", "--limit", "-1"), ("migrate-diff", "--name", "a b")],
)
def test_a_wrong_call_is_one_line_and_code_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, *arguments)[0] == 2


@pytest.mark.parametrize(
    "arguments",
    [("try", "--limit", "-1"), ("letters", "list", "--limit", "-1"), ("letters", "retry", "--per-second", "-1")],
)
def test_a_wrong_number_is_named_with_its_limit(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, *arguments)[1]
    assert line.startswith(f"Invalid value for '{arguments[-2]}': Input should be greater than or equal to ")
    assert line.endswith(", not '-1'")


@pytest.mark.parametrize("arguments", [("letters", "show", "\udcff", "1"), ("letters", "list", "--cause", "\udcff")])
def test_an_argument_whose_octets_are_not_utf_8_is_refused_before_anything_is_sent(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = refused(capsys, *arguments, "--url", "http://127.0.0.1:1")
    assert (code, line) == (2, "an argument is no text: its octets are not UTF-8")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("new", "class", "--field", "id:text"), "word of Python"),
        (("new", "x", "--field", "id"), "write name:type"),
        (("new", "x", "--field", "id:text", "--field", "id:text"), "names one field twice"),
        (("new", "x", "--from", "/nowhere/events.jsonl"), "/nowhere/events.jsonl: No such file"),
        (("new", "x", "--field", "id:text", "--table", "batch_ledger"), "belongs to Hubledger"),
        (("new", "x", "--field", "id:text", "--table", "Sensor_Reading"), "belongs to examples/home_security"),
        (("try", "/nowhere/events.jsonl"), "no file"),
        (("try", "--transform", "nowhere"), "nowhere"),
        (("migrate-diff", "--transform", "core.errors"), "core.errors"),
    ],
)
def test_a_refusal_is_one_line_and_code_1(
    arguments: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = refused(capsys, *arguments)
    assert code == 1
    assert why in line


def test_the_flags_that_are_missing_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--from" in refused(capsys, "new")[1]
    assert "--from" in (line := refused(capsys, "new", "x")[1])
    assert "--field" in line


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
