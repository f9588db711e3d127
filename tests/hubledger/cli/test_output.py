"""Tables at every width, and what a script sees of lines."""

from typing import Any

import pytest

from hubledger.cli.output import Column, Output

COLUMNS = (
    Column("partition"),
    Column("moved", number=True),
    Column("reason", wide=True),
    Column("note", optional=True),
)
ROWS = [["3", 1_234_567, "a reason of thirty characters.", None], ["10", 5, "why", None]]


def shown(capsys: pytest.CaptureFixture[str], rows: list[list[object]]) -> list[str]:
    """The lines of a table."""
    out = Output()
    out.show(out.table(COLUMNS, rows))
    return [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]


@pytest.mark.parametrize(("width", "is_wide"), [("30", False), ("60", True)])
def test_a_narrow_table_leaves_out_a_column_and_breaks_no_row(
    width: str, is_wide: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    lines = shown(capsys, [*ROWS])
    assert len(lines) == 4
    assert max(map(len, lines)) <= int(width)
    assert ("reason" in lines[0]) == is_wide


def test_numbers_are_aligned_and_an_empty_optional_column_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    head, _, first, second = shown(capsys, [*ROWS])
    assert "note" not in head
    assert first.index("1,234,567") + len("1,234,567") == second.index("5") + 1


def test_an_empty_table_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, []) == ["none"]


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
