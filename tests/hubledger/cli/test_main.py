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

ROOT = Path(__file__).parents[3]


def test_without_a_command_the_help_the_commands_of_a_group_and_the_version_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (version,) = re.findall(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)
    letters = [f"\n  {name}" for name in ("list", "causes", "show", "retry", "discard")]
    for call, code, told in ([], 2, ["migrate-diff"]), (["letters"], 0, letters), (["--version"], 0, [version]):
        assert main(call) == code
        out = capsys.readouterr().out
        assert all(text in out for text in told)
        assert out == f"hubledger {version}\n" or out.count("Usage:") == 1


AT_LEAST = ": Input should be greater than or equal to "
NO_TEXT = "an argument is no text: its octets are not UTF-8"
CALLS: list[tuple[int, str, str]] = [  # the code, a part of the line, and the arguments
    (2, "", "new --bad"),
    (2, "--from", "new"),
    (2, "--field", "new x"),
    (2, "", "migrate-diff --name a\xa0b"),
    (2, f"Invalid value for '--limit'{AT_LEAST}", "try --limit -1"),
    (2, f"Invalid value for '--limit'{AT_LEAST}", "letters list --limit -1"),
    (2, f"Invalid value for '--per-second'{AT_LEAST}", "letters retry --per-second -1"),
    (2, NO_TEXT, "letters show \udcff 1 --url http://127.0.0.1:1"),
    (1, "word of Python", "new class --field id:text"),
    (1, "/nowhere/events.jsonl: No such file", "new x --from /nowhere/events.jsonl"),
    (1, "belongs to Hubledger", "new x --field id:text --table batch_ledger"),
    (1, "belongs to examples/home_security", "new x --field id:text --table Sensor_Reading"),
    (1, "belongs to examples/flight_info", "new x --field id:text --table flight_punctuality_staged"),
    (1, "no file", "try /nowhere/events.jsonl"),
    (1, "core.errors", "migrate-diff --transform core.errors"),
]


@pytest.mark.parametrize(("code", "why", "call"), CALLS)
def test_a_wrong_call_and_a_refusal_are_one_line(
    code: int, why: str, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.replace("\xa0", " ") for word in call.split(" ")]) == code
    line = capsys.readouterr().err
    assert (line.count("\n"), line.startswith("hubledger: "), why in line) == (1, True, True), line
    assert line.endswith(", not '-1'\n") == (AT_LEAST in why)


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


INTERRUPTING = """
class Interrupting:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "code", "said"),
    [
        (INTERRUPTING, 130, "hubledger: interrupted; nothing was written\n"),
        ("sys.modules['typer'] = None", 1, "typer is missing: run `make setup`, or "),
    ],
)
def test_an_interruption_at_the_start_and_a_missing_typer_are_one_line(before: str, code: int, said: str) -> None:
    program = f"import sys\n{before}\nfrom hubledger.cli.main import main\nsys.exit(main(['new']))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n"), said in done.stderr) == (code, 1, True), done.stderr
