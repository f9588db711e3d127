from pathlib import Path

import pytest

from local.feed.event_file import LARGEST_LINE, UnusableFile
from local.feed.options import parse_options
from local.feed.sample import keyed_by, likeliest_key, read_sample


def test_an_unreadable_option_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for given, why in {
        "--rate=fast": "must be a number above 0, or full",
        "--rate=0": "must be a number above 0, or full",
        "--rate=nan": "must be a number above 0, or full",
        "--events=0": "must be a whole number from 1",
        "--transform=trains": "must be home_security or flight_info, or a room like apps.orders with its --events-from",
        "--key=order_id": "argument --key: it needs --events-from",
        "--iot --transform=flight_info": "argument --iot: it is for events of home_security, without",
        "--iot --dangers=1 --events=9": "argument --iot: it is for events of home_security, without",
        "--append": "--append: it needs the --record",
        "--events-from=/missing.jsonl": "argument --events-from: /missing.jsonl cannot be read: No such file",
        "--homes=-3": "must be a whole number from 1",
        "--duplicates=1.5": "must be a number from 0 to 1",
        "--duplicates=some": "must be a number from 0 to 1",
        "--gather=-1": "must be a number of seconds from 0 to 10",
        "--start=today": "must be a time like",
        "--transform=flight_info --senders=10000": "there are no more than 9999 flight numbers",
        "--start=2026-01-01T00:00:00": "must name its time zone",
    }.items():
        with pytest.raises(SystemExit):
            parse_options(given.split())
        assert why in capsys.readouterr().err, given


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def keys(file: Path, *values: str) -> list[str | None]:
    file.write_text("".join(f'{{"id": {value}}}\n' for value in (*values, '"last"')))
    return [line.key for line in keyed_by(file, read_sample(file), "id").lines[:-1]]


def test_a_file_that_cannot_be_published_is_refused_with_one_clear_sentence(file: Path) -> None:
    for content, why in {
        b"": "has no event: it needs one a line",
        b"\n\r\n": "has no event: it needs one a line",
        b"\xef\xbb\xbf\n": "has no event: it needs one a line",
        b"a\n" + b"b" * (LARGEST_LINE + 1): ", line 2 has more than 1,047,552 bytes, and no event hub takes",
    }.items():
        file.write_bytes(content)
        with pytest.raises(UnusableFile, match=why):
            read_sample(file)
    with pytest.raises(UnusableFile, match=r"missing\.jsonl cannot be read: No such file"):
        read_sample(file.with_name("missing.jsonl"))
    with pytest.raises(UnusableFile, match="cannot be read: Is a directory"):
        read_sample(file.parent)


def test_a_key_is_a_text_a_number_as_it_is_written_or_a_boolean_and_any_other_line_has_none(file: Path) -> None:
    numbers = ["7", "1e3", "7.50", "true", "12345678901234567890123"]
    assert keys(file, '"c-1"', *numbers) == ["c-1", *numbers]
    assert keys(file, "null", '""', "[1]", "{}", "NaN", '"\\ud800"') == [None] * 6
    file.write_bytes(b'{"id": "a"}\n[1]\n"id"\nno JSON\n{"other": 1}\n' + b"[" * 100_000)
    assert [line.key for line in keyed_by(file, read_sample(file), "id").lines] == ["a", *[None] * 5]


def test_a_field_of_no_line_and_a_key_that_no_hub_takes_are_refused(file: Path) -> None:
    file.write_text(f'{{"id": "{"k" * 128}"}}\n{{"id": "{"k" * 129}"}}\n')
    with pytest.raises(UnusableFile, match="line 2: id has 129 characters, and a partition key has 128 at most"):
        keyed_by(file, read_sample(file), "id")
    with pytest.raises(UnusableFile, match=r"no line of .* has a text or a number as its field customer: name one of "):
        keyed_by(file, read_sample(file), "customer")


def test_the_likeliest_key_is_the_column_that_most_lines_have_however_its_field_is_spelled(file: Path) -> None:
    file.write_text('{"orderId": 1, "customer_id": "c"}\n{"customer_id": "c"}\nno JSON\n{"Kind": "x"}\n')
    lines = read_sample(file)
    assert likeliest_key(lines, ["order_id", "customer_id"]) == "customer_id"
    assert likeliest_key(lines, ["order_id"]) == "orderId"
    assert likeliest_key(lines, ["kind", "order_id"]) == "Kind", "the first of several with as many lines"
    assert likeliest_key(lines, ["depot"]) is None
