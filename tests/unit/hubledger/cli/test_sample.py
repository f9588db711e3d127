"""The fields that a file of sample events has, and the faults of such files."""

import json
import re
import shlex
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import msgspec
import pytest

from hubledger.cli.console import Refused
from hubledger.cli.scaffold.each import Each
from hubledger.cli.scaffold.fields import field_of
from hubledger.cli.scaffold.sample import Sample, read_sample
from local.lines import LARGEST_LINE, UnusableFile


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def sample(file: Path, *lines: str | bytes, most: int = 100) -> Sample:
    file.write_bytes(b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines))
    return read_sample(file, {}, most)


def types(file: Path, *lines: str) -> dict[str, str]:
    return {one.name: one.written for one in sample(file, *lines).fields}


def test_types_follow_from_all_lines(file: Path) -> None:
    first = '{"t": "a", "n": 1, "f": 1, "b": true, "at": "2026-01-01T10:00:00Z", "day": "2026-01-01", "o": {"x": 1}}'
    second = (
        '{"t": "b", "n": -5, "f": 2.5, "b": false, "at": "2026-01-01T10:00:00.5+02:00", "day": "2026-02-28", "o": []}'
    )
    assert types(file, first, second) == {
        "t": "text(40)", "n": "integer", "f": "float", "b": "boolean", "at": "instant", "day": "date", "o": "json",
    }  # fmt: skip


def test_a_value_that_is_null_or_missing_in_a_line_is_optional(file: Path) -> None:
    assert types(file, '{"a": 1, "b": null, "c": null}', '{"a": 2, "b": 1}') == {
        "a": "integer", "b": "integer?", "c": "text(40)?",
    }  # fmt: skip


def test_a_text_has_a_limit_of_twice_its_length_at_least(file: Path) -> None:
    lengths = (20, 21, 2000, 2001, 9000)
    line = "{" + ", ".join(f'"l{length}": "{"x" * length}"' for length in lengths) + "}"
    assert list(types(file, line).values()) == ["text(40)", "text(100)", "text(4000)", "text", "text"]


def test_a_text_is_as_long_as_sql_server_counts_it(file: Path) -> None:
    assert types(file, f'{{"a": "{"😀" * 11}"}}') == {"a": "text(100)"}


def test_a_time_without_a_zone_and_a_day_that_does_not_exist_are_texts(file: Path) -> None:
    line = '{"a": "2026-01-01T10:00:00", "b": "2026-02-30", "c": "2026-13-01T10:00:00Z"}'
    assert types(file, line) == {"a": "text(40)", "b": "text(40)", "c": "text(40)"}


def test_texts_and_instants_in_one_field_are_texts(file: Path) -> None:
    assert types(file, '{"a": "2026-01-01"}', '{"a": "soon"}') == {"a": "text(40)"}


def test_an_integer_beyond_a_column_of_integers_is_a_decimal(file: Path) -> None:
    assert types(file, f'{{"a": {2**63 - 1}, "b": {2**63}, "c": {-(2**63)}, "d": {-(2**63) - 1}}}') == {
        "a": "integer", "b": "decimal", "c": "integer", "d": "decimal",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59.9999999Z", "0001-01-01T00:00:00Z", "2026-02-28t23:59:59.9Z"])
def test_the_first_and_the_last_instant_are_instants(file: Path, text: str) -> None:
    (found,) = sample(file, f'{{"a": "{text}"}}').fields
    assert found.kind == "instant"


def test_only_the_first_lines_are_kept(file: Path) -> None:
    found = sample(file, '{"a": 1}', '{"a": 2}', '{"a": 3.5}', most=2)
    assert (found.first, found.lines, found.fields[0].kind) == ((b'{"a": 1}', b'{"a": 2}'), 3, "float")


def test_a_given_type_wins_over_the_values(file: Path) -> None:
    file.write_text('{"a": 1}\n{"a": "x"}\n')
    assert read_sample(file, {"a": field_of("a:json"), "b": field_of("b:text?")}, 9).fields[0].kind == "json"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f'{{"a": 1{"0" * 28}}}', "more than 28 digits"),
        (f'{{"b": "{"x" * LARGEST_LINE}"}}', "line 2 has more than"),
        ('{"a": "text"}', "integer in line 1 and text in line 2"),
    ],
)
def test_a_line_that_no_column_can_hold_is_refused_with_its_number(file: Path, line: str | bytes, why: str) -> None:
    with pytest.raises((Refused, UnusableFile), match=why):
        sample(file, '{"a": 1}', line)


MALFORMED: list[tuple[str | bytes, str]] = [
    (" ", "line 2 is not JSON"),
    ("{", "line 2 is not JSON"),
    ("[1]", "line 2 is no JSON object, but a list: --each array"),
    ("1", "line 2 is no JSON object: write one event a line"),
    (b'{"a": 1}\0', "line 2 is not JSON: it has a NUL byte"),
    ('{"a": NaN}', "line 2"),
    ('{"a": 1e400}', "line 2"),
    ('{"a": "\\ud800"}', "line 2"),
    (b'{"a": "\xff"}', "line 2"),
    ("[" * 100_000, "line 2"),
]


@pytest.mark.parametrize(("line", "why"), MALFORMED)
def test_a_line_that_is_no_event_is_left_out_and_named(file: Path, line: str | bytes, why: str) -> None:
    found = sample(file, '{"a": 1}', line, '{"a": 2}')
    assert (found.lines, found.first) == (2, (b'{"a": 1}', b'{"a": 2}'))
    (fault,) = found.faults
    assert why in fault
    with pytest.raises(Refused, match="line 1"):
        sample(file, line)


def test_a_name_that_is_twice_in_an_object_has_its_last_value_as_in_the_app(file: Path) -> None:
    line = '{"a": "text", "a": 1, "b": {"c": 1, "c": 2}}'
    found = sample(file, line, '{"a": 2, "b": null}')
    assert [one.written for one in found.fields] == ["integer", "json?"]
    assert found.advice == ("line 1 has the name a twice: the last value counts, in the app too",)
    assert msgspec.json.decode(line)["a"] == 1


def test_a_file_of_csv_is_refused_with_a_command_that_makes_lines_of_json(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    for head, mark in (("id", ","), ("id", ";"), ("id", "\t"), ("\ufeffid", ",")):
        table = Path("it's a table.csv")
        table.write_text(f'{head}{mark}note\n1{mark}"a\nb"\n2{mark}\n', encoding="utf-8")
        with pytest.raises(Refused, match="is no JSON, and may be CSV: python3 -c ") as refused:
            read_sample(table, {})
        command = re.sub(r".*may be CSV: python3 (.*) writes its lines.*", r"\1", str(refused.value))
        subprocess.run(["sh", "-c", f"{shlex.quote(sys.executable)} {command}"], check=True)
        assert read_sample(file, {}).first == (b'{"id": "1", "note": "a\\nb"}', b'{"id": "2", "note": ""}')
    file.write_text("no table\n")
    with pytest.raises(Refused, match="line 1 is not JSON"):
        read_sample(file, {})


ELEMENTS = ('{"id": "a", "n": 1}', '{"id": "b", "n": 2.5}', '{"id": "c"}')


@pytest.mark.parametrize(
    ("place", "first", "second"),
    [
        ("lines", "{}\r\n\r\n{}\r\n", "\n{}"),
        ("array", "[{}, {}]", " [\n{}]"),
        ("records", '{{"a": 1, "records": [{}, {}]}}', '{{"records": [{}]}}'),
        ("gr\u00f6\u00dfe", '{{"gr\\u00f6\u00dfe": [{}, {}]}}', '{{"gr\u00f6\u00dfe": [{}]}}'),
    ],
)
def test_the_fields_are_those_of_all_elements(file: Path, place: str, first: str, second: str) -> None:
    bodies = [first.format(*ELEMENTS[:2]).encode(), second.format(ELEMENTS[2]).encode()]
    binary = file.with_suffix(".base64")
    binary.write_bytes(b"\n".join(map(b64encode, bodies)))
    found = read_sample(binary, {}, each=Each(place))
    assert [(one.name, one.kind, one.is_optional) for one in found.fields] == [
        ("id", "text", False),
        ("n", "float", True),
    ]
    assert (found.lines, found.first) == (2, tuple(bodies))


@pytest.mark.parametrize(
    ("place", "line", "why"),
    [
        ("array", '{"id": "a"}', "Expected `array`, got `object`"),
        ("array", "[]", "it has no element"),
        ("array", '[{"id": "a"}, 1]', "line 1, element 2 is no JSON object"),
        ("array", "[" * 100_000, "recursion"),
        ("records", '{"id": "a"}', "it has no field records"),
        ("records", '{"records": 1}', "Expected `array`, got `int`"),
        ("records", "[{}]", "it is a list: `new --each array`"),
        ("lines", '{"id": "a"} {', "line 1, element 1 is not JSON"),
    ],
)
def test_an_event_without_such_elements_is_left_out_and_named(file: Path, place: str, line: str, why: str) -> None:
    file.write_text(line + "\n")
    with pytest.raises(Refused) as refused:
        read_sample(file, {}, each=Each(place))
    assert why in str(refused.value)


def test_a_list_of_objects_in_the_only_field_is_worth_a_word(file: Path) -> None:
    said = "the only field, records, is a list of objects: --each records makes rows of each of them"
    assert sample(file, '{"records": [{"id": 1}]}').advice == (said,)
    for line in ('{"records": [1]}', '{"records": []}', '{"records": {"a": 1}}', '{"id": 1, "records": [{}]}'):
        assert sample(file, line).advice == ()


def test_money_as_a_float_and_a_field_that_tells_kinds_apart_are_worth_a_word(file: Path) -> None:
    events = [{"type": kind, "unitPrice": 2.5, "ratio": 0.5, "note": kind} for kind in ("sold", "returned")]
    found = sample(file, *map(json.dumps, events))
    assert found.advice == (
        "the field type has 2 values (returned, sold): if they are different kinds of event, give each a row class of"
        " its own, as in examples/home_security/transform.py",
        'unitPrice looks like money, and a float rounds it: --field "unitPrice:decimal" keeps it exactly',
    )
    assert "price:decimal?" in sample(file, '{"price": 2.5}', '{"id": "a"}').advice[0]
    assert sample(file, '{"type": "sold", "price": 2}', '{"type": "sold", "price": 3}').advice == ()
    many = [json.dumps({"type": f"t{number}"}) for number in range(40)]
    assert sample(file, *many).advice == ()


def test_an_empty_file_is_refused(file: Path) -> None:
    with pytest.raises(Refused, match="empty"):
        sample(file)


def test_a_file_of_windows_is_read_as_the_demo_reads_it(file: Path) -> None:
    found = sample(file, b'\xef\xbb\xbf{"a": 1}\r', b"\r", "", b'{"a": 2}\r')
    assert (found.first, found.lines) == ((b'{"a": 1}', b'{"a": 2}'), 2)
    with pytest.raises(Refused, match="integer in line 1 and text in line 3"):
        sample(file, '{"a": 1}', "", '{"a": "x"}')
