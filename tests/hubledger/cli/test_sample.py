import json
import re
import shlex
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import msgspec
import pytest

from hubledger.cli.output import Refused
from hubledger.cli.scaffold.design import Each, field_of
from hubledger.cli.scaffold.sample import MOST_BYTES, MOST_SAMPLES, Sample, read_sample
from local.feed.event_file import LARGEST_LINE, UnusableFile


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def sample(file: Path, *lines: str | bytes) -> Sample:
    file.write_bytes(b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines))
    return read_sample(file, {})


def types(file: Path, *lines: str) -> dict[str, str]:
    return {one.name: one.written for one in sample(file, *lines).fields}


TYPES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "every line counts": (
        (
            '{"t": "a", "n": 1, "f": 1, "b": true, "at": "2026-01-01T10:00:00Z", "day": "2026-01-01", "o": {"x": 1}}',
            '{"t": "b", "n": -5, "f": 2.5, "b": false, "o": [], "day": "2026-02-28",'
            ' "at": "2026-01-01T10:00:00.5+02:00"}',
        ),
        {"t": "text(4000)", "n": "integer", "f": "float", "b": "boolean", "at": "instant", "day": "date", "o": "json"},
    ),
    "null or missing is optional": (
        ('{"a": 1, "b": null, "c": null}', '{"a": 2, "b": 1}'),
        {"a": "integer", "b": "integer?", "c": "text(4000)?"},
    ),
    "a text has no limit of its own and may be empty or end with a blank": (
        (json.dumps({f"l{length}": " " * length for length in (0, 1, 2000, 2001)}),),
        {"l0": "text(4000)", "l1": "text(4000)", "l2000": "text(4000)", "l2001": "text"},
    ),
    "texts and instants in one field are texts": (('{"a": "2026-01-01"}', '{"a": "soon"}'), {"a": "text(4000)"}),
    "an integer beyond a column of integers is a decimal": (
        (f'{{"a": {2**63 - 1}, "b": {2**63}, "c": {-(2**63)}, "d": {-(2**63) - 1}}}',),
        {"a": "integer", "b": "decimal", "c": "integer", "d": "decimal"},
    ),
    "the first and the last instant are instants": (
        ('{"a": "9999-12-31T23:59:59.9999999Z", "b": "0001-01-01T00:00:00Z", "c": "2026-02-28t23:59:59.9Z"}',),
        dict.fromkeys("abc", "instant"),
    ),
    "a number with a point, an exponent or quotes is no integer": (
        ('{"a": 10, "b": 10.0, "c": 1e1, "d": "10"}',),
        {"a": "integer", "b": "float", "c": "float", "d": "text(4000)"},
    ),
    "whole numbers that a float would round are decimals beside a fraction": (
        ('{"a": 21.5, "b": 21.5, "c": 1e300}', f'{{"a": {2**53 + 1}, "b": {2**53}, "c": {2**53 + 1}}}'),
        {"a": "decimal", "b": "float", "c": "float"},
    ),
    "a number whose name says no time is a number": (
        (json.dumps(dict.fromkeys(("serial", "tsunami", "rate", "data", "uptime_s"), 1585673980)),),
        dict.fromkeys(("serial", "tsunami", "rate", "data", "uptime_s"), "integer"),
    ),
}


@pytest.mark.parametrize(("lines", "found"), TYPES.values(), ids=TYPES)
def test_types_follow_from_all_lines(file: Path, lines: tuple[str, ...], found: dict[str, str]) -> None:
    assert types(file, *lines) == found
    blank = f'{{"a": "{"😀" * 11}", "b": "b", "c": "c ", "n": 1}}'
    assert sample(file, blank).lengths == {"a": 22, "b": 1}, "as SQL Server counts; a key has no blank at its end"


NUMBERS = {
    "epoch_s": ("1585673980", "1585673980.25", "946684800"),
    "epoch_ms": ("1585673980123", "1585673980123.5", "4102444799999"),
    "epoch_us": ("1585673980123456",),
    "epoch_ns": ("1585673980123456789",),
    "integer": ("1585673980, 1585673980123", "946684799", "4102444800", "0"),
    "float": ("1585673980.5, 1585673980123", "0.5"),
}


def test_a_number_is_a_time_if_the_name_says_so_and_every_line_has_a_time_of_this_century(file: Path) -> None:
    for name in ("ts", "eventTime", "created_at", "timestamp_utc", "lastUpdated"):
        for kind, found in NUMBERS.items():
            for numbers in found:
                lines = [f'{{"{name}": {each}}}' for each in numbers.split(", ")]
                assert types(file, *lines) == {name: kind}, numbers


TIMES = (
    *("01/09/2007 09:41:00", "1/9/2007 9:41:00 AM", "1/9/2007 10:41:00 AM +01:00", "2007-01-09T09:41:00"),
    *("2007-01-09T09:41:00.22Z", "2007-01-09T09:41:00.535404056Z", "2007-01-09T11:41:00+02:00", "2016-12-31T23:59:60Z"),
)


def test_a_text_that_looks_like_a_time_has_the_reason_why_it_is_none_and_the_lines(file: Path) -> None:
    found = sample(file, *(json.dumps({"time": each, "category": "a"}) for each in TIMES))
    assert [one.written for one in found.fields] == ["text(4000)", "text(4000)"]
    assert found.notes == (
        "time is text, because 5 of 8 lines are no instant as 2026-03-01T10:00:00Z: 3 lines in a different form, such"
        " as line 1, 2, 3 (01/09/2007 09:41:00); 1 line without a zone, such as line 4 (2007-01-09T09:41:00); 1 line"
        " with an hour 24 or a second 60, such as line 8 (2016-12-31T23:59:60Z)",
    )
    assert sample(file, '{"note": "2026-03-01T10:00:00Z"}', '{"note": "soon"}').notes != ()
    assert sample(file, '{"note": "soon"}').notes == ()


def test_how_a_field_is_read_is_noted(file: Path) -> None:
    found = sample(file, '{"ts": 1585673980.5, "geo": {"lat": 1}, "tags": [], "id": 1}')
    assert found.notes == (
        'ts is a time, as a number since 1970 (epoch_s): --field "ts:float" keeps the number',
        "geo, tags: kept whole as JSON text, so no field inside becomes a column",
    )
    assert '--field "at:integer?" keeps' in sample(file, '{"at": 1585673980}', '{"at": null}').notes[0]
    file.write_text('{"ts": 1585673980}')
    given = read_sample(file, {"ts": field_of("ts:epoch_ms")})
    assert given.notes[0] == "the numbers of ts are times of this century as epoch_s, and epoch_ms was given"


def test_a_given_type_wins_over_the_values_and_those_that_the_lines_show_are_known(file: Path) -> None:
    file.write_text(f'{{"a": 1, "c": 1}}\n{{"a": "x", "c": 1{"0" * 30}}}\n{{"a": 2, "c": 1, "d": 5}}')
    given = {one[0]: field_of(one) for one in ("a:json", "b:json?", "c:json", "d:json?")}
    found = read_sample(file, given)
    assert ([one.kind for one in found.fields], found.instead) == (["json"] * 4, {"d": "integer?"})


def test_a_given_field_that_lines_lack_is_refused_in_a_sentence(file: Path) -> None:
    file.write_text('{"a": 1}\n{"a": null}\n{"c": 1}')
    for given, lacking in {"b:instant": "3 of 3", "a:integer": "2 of 3"}.items():
        with pytest.raises(Refused) as refused:
            read_sample(file, {given[0]: field_of(given)})
        told = f'--field {given}: {lacking} lines of {file} have no value of {given[0]}: write --field "{given}?"'
        assert str(refused.value) == told


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
    assert why in found.faults[0]
    with pytest.raises(Refused, match="line 1"):
        sample(file, line)


def test_a_name_that_is_twice_in_an_object_has_its_last_value_as_in_the_app(file: Path) -> None:
    line = '{"a": "text", "a": 1, "b": {"c": 1, "c": 2}}'
    found = sample(file, line, '{"a": 2, "b": null}')
    assert [one.written for one in found.fields] == ["integer", "json?"]
    assert found.advice == ("line 1 has the name a twice: the last value counts, in the app too",)
    assert msgspec.json.decode(line)["a"] == 1


@pytest.mark.parametrize(("head", "mark"), [("id", ","), ("id", ";"), ("id", "\t"), ("\ufeffid", ",")])
def test_a_file_of_csv_is_refused_with_a_command_that_makes_lines_of_json(
    head: str, mark: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    table = Path("it's a table.csv")
    table.write_text(f'{head}{mark}note\n1{mark}"a\nb"\n2{mark}\n', encoding="utf-8")
    with pytest.raises(Refused, match="is no JSON, and may be CSV: python3 -c ") as refused:
        read_sample(table, {})
    command = re.sub(r".*may be CSV: python3 (.*) writes its lines.*", r"\1", str(refused.value))
    subprocess.run(["sh", "-c", f"{shlex.quote(sys.executable)} {command}"], check=True)
    assert read_sample(file, {}).first == (b'{"id": "1", "note": "a\\nb"}', b'{"id": "2", "note": ""}')


ELEMENTS = ('{"id": "a", "n": 1}', '{"id": "b", "n": 2.5}', '{"id": "c"}')


@pytest.mark.parametrize(
    ("place", "first", "second"),
    [
        ("lines", "{}\r\n\r\n{}\r\n", "\n{}"),
        ("array", "[{}, {}]", " [\n{}]"),
        ("gr\u00f6\u00dfe", '{{"a": 1, "gr\\u00f6\u00dfe": [{}, {}]}}', '{{"gr\u00f6\u00dfe": [{}]}}'),
    ],
)
def test_the_fields_are_those_of_all_elements(file: Path, place: str, first: str, second: str) -> None:
    bodies = [first.format(*ELEMENTS[:2]).encode(), second.format(ELEMENTS[2]).encode()]
    binary = file.with_suffix(".base64")
    binary.write_bytes(b"\n".join(map(b64encode, bodies)))
    found = read_sample(binary, {}, each=Each(place))
    assert [one.written for one in found.fields] == ["text(4000)", "float?"]
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


def test_a_file_of_windows_is_read_as_the_demo_reads_it_and_only_its_first_lines_are_kept(file: Path) -> None:
    found = sample(file, b'\xef\xbb\xbf{"a": 1}\r', b"\r", "", b'{"a": 2}\r')
    assert (found.first, found.lines) == ((b'{"a": 1}', b'{"a": 2}'), 2)
    found = sample(file, *['{"a": 1}'] * MOST_SAMPLES, '{"a": 3.5}')
    assert (found.first, found.lines) == ((b'{"a": 1}',) * MOST_SAMPLES, MOST_SAMPLES + 1)
    assert found.fields[0].kind == "float"
    large = '{"a": "' + "x" * (MOST_BYTES // 2) + '"}'
    assert len(sample(file, *[large] * 3).first) == 1


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ((), "empty"),
        (('{"a": 1}', f'{{"a": 1{"0" * 28}}}'), "more than 28 digits"),
        (('{"a": 1}', f'{{"b": "{"x" * LARGEST_LINE}"}}'), "line 2 has more than"),
        (('{"a": 1}', "", '{"a": "text"}'), "integer in line 1 and text in line 3"),
    ],
)
def test_a_file_without_a_line_or_with_a_line_that_no_column_can_hold_is_refused(
    file: Path, lines: tuple[str, ...], why: str
) -> None:
    with pytest.raises((Refused, UnusableFile), match=why):
        sample(file, *lines)
