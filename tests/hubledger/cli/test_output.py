import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubledger.cli import output
from hubledger.cli.main import main
from hubledger.cli.output import Column, Output, counted, instant, joined, moment, program, short_instant, span, text_of
from tests.hubledger.cli.small_app import unsafe

NOW = datetime(2026, 11, 23, 3, 0, tzinfo=UTC)


def test_values_counts_and_times_are_shown_in_one_line() -> None:
    values = {1234567: "1,234,567", 1234.56: "1,234.6", None: "-", "": "-", True: "yes", False: "no", "41": "41"}
    assert {value: text_of(value) for value in values} == values
    assert text_of(0) == "0"
    assert [counted(1, "letter"), counted(1_200, "letter")] == ["1 letter", "1,200 letters"]
    times = {
        0: "0 s", 59: "59 s", 60: "1 min", 3_605: "1 h", 3_660: "1 h 1 min", 90_000: "1 d 1 h", 10**8: "1,157 d 9 h",
    }  # fmt: skip
    assert {seconds: span(timedelta(seconds=seconds)) for seconds in times} == times


def test_an_instant_is_in_utc_and_relative_and_without_its_date_in_a_table_of_the_day() -> None:
    assert instant("2026-11-23T03:10:00+01:00", NOW) == "2026-11-23 02:10:00Z, 50 min ago"
    assert instant("2026-11-23T05:00:30Z", NOW) == "2026-11-23 05:00:30Z, in 2 h"
    assert instant("2026-11-23T03:00:00.4Z", NOW) == "2026-11-23 03:00:00Z, now"
    assert (instant(None, NOW), instant("when\x1b", NOW)) == ("-", "when\\x1b")
    assert short_instant("2026-11-23T01:58:30Z", NOW) == "01:58:30Z, 1 h ago"
    assert short_instant("2026-11-22T23:58:30Z", NOW) == "2026-11-22 23:58:30Z, 3 h 1 min ago"


@given(st.text(max_size=30))
def test_no_text_keeps_a_character_that_steers(text: str) -> None:
    assert unsafe(text_of(text) + output.lines_of(text) + output.brief({text: [text]}) + instant(text, NOW)) == set()


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_stays_the_same_value_and_steers_nothing(value: object) -> None:
    printed = output.safe_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(printed) == value
    assert {letter for letter in unsafe(printed) if letter < "\u00a0" or letter in "\u202e\u2066\u200f"} == set()


MORNING = datetime(2026, 3, 1, 1, 30, 5, tzinfo=UTC)


@pytest.fixture(params=["UTC", "Asia/Kolkata"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_words_and_distances_become_instants_in_utc(zone: str, capsys: pytest.CaptureFixture[str]) -> None:
    midnights = ("2026-03-01T00:00:00Z", "2026-02-28T00:00:00Z")
    if zone == "Asia/Kolkata":
        midnights = ("2026-02-28T18:30:00Z", "2026-02-27T18:30:00Z")
    told = {
        "now": "2026-03-01T01:30:05Z", "-2h": "2026-02-28T23:30:05Z", "-30m": "2026-03-01T01:00:05Z",
        "-3d": "2026-02-26T01:30:05Z", **dict(zip(("today", "yesterday"), midnights, strict=True)),
    }  # fmt: skip
    assert {text: moment(text, MORNING) for text in told} == told
    said = capsys.readouterr()
    relative = [f"{text} is {instant}" for text, instant in told.items()]
    assert (said.out, said.err.splitlines()) == ("", relative), "stdout is for the answer"
    assert (moment("2026-03-01T05:30:00+05:30", MORNING), moment(None)) == ("2026-03-01T00:00:00Z", None)
    assert joined(["replay", "--from", "-2h", "--to=-1h", "-y"]) == ["replay", "--from=-2h", "--to=-1h", "-y"]
    assert joined(["-2h", "x", "-3d", "--a=b", "-1d"]) == ["-2h", "x", "-3d", "--a=b", "-1d"]


@pytest.mark.parametrize("text", ["", "tomorrow", "2h", "-2", "-2y", "-h", "2026-03-01", "-999999w", "-2h "])
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(output.UsageFault, match="write 2026-11-23T03:00:00Z, now, today, yesterday, -30m, -2h or -3d"):
        moment(text, MORNING)


COLUMNS = (
    *(Column("partition"), Column("moved", number=True), Column("reason", wide=True), Column("note", optional=True)),
)
ROWS = [["3", 1_234_567, "a reason of thirty characters.", None], ["10", 5, "why", None]]


def shown(capsys: pytest.CaptureFixture[str], rows: list[list[object]]) -> list[str]:
    out = Output()
    out.show(out.table(COLUMNS, rows))
    return [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]


@pytest.mark.parametrize(("width", "is_wide"), [("30", False), ("60", True)])
def test_a_narrow_table_leaves_out_a_column_and_breaks_no_row_and_an_empty_optional_column_is_left_out(
    width: str, is_wide: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    head, _, first, second = shown(capsys, [*ROWS])
    assert max(map(len, (head, first, second))) <= int(width)
    assert (("reason" in head), "note" in head) == (is_wide, False)
    assert first.index("1,234,567") + len("1,234,567") == second.index(" 5") + 2
    assert shown(capsys, []) == ["none"]


def test_a_roomy_column_takes_what_the_others_leave_which_stay_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"error": "word " * 30, "id": "0123456789", "when": "an hour ago"}]
    for width, is_whole in (60, True), (30, False):
        monkeypatch.setenv("COLUMNS", str(width))
        out = Output(colour=False)
        out.show(out.listing("error+, id, when~", rows))
        lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
        assert ("an hour ago" in lines[2], "when" in lines[0]) == (is_whole, is_whole), width
        assert max(map(len, lines)) <= width and "0123456789" in lines[2], width
        assert " ".join(lines).count("word") == 30, width


def test_a_script_sees_no_lines_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=True).say("There are more.")
    Output(as_json=True).json('{"a":1}')
    assert capsys.readouterr().out == '{"a":1}\n'


def test_a_list_is_shown_by_words_with_marks(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(colour=False)
    values: list[dict[str, Any]] = [
        {"id": 4, "at": {"from": None}, "ok": False, "status": "done", "why": "", "names": ["a", "b"]},
        {"id": 1234, "at": None, "ok": True, "status": "failed", "why": "x\ny", "names": []},
    ]
    out.show(out.listing("number=id#, at.from@, state=ok^, status*, why%?, names", values, "some"))
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[0] == ["some"]
    assert lines[1] == ["number", "from", "state", "status", "why", "names"]
    assert lines[3] == ["4", "-", "NOT", "BALANCED", "done", "-", "a;", "b"]
    assert lines[4][:4] == ["1,234", "-", "ok", "failed"]
    assert out.stated("id, kept as=names", values[0]) == {"id": 4, "kept as": "a; b"}


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
