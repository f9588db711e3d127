"""local/feed/sample.py: the lines of a user's file, their keys, and the files that are refused."""

import json
from pathlib import Path

import pytest

from local.feed.event_file import LARGEST_LINE, UnusableFile
from local.feed.feeding import LARGEST_SEND, Gateways
from local.feed.sample import Sample, keyed_by, likeliest_key, read_sample, sample_minutes


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


def test_the_lines_come_in_the_order_of_the_file_again_and_again(file: Path) -> None:
    file.write_text("a\nb\nc\n")
    sample = Sample(file, read_sample(file))

    def published(events: int, duplicates: float = 0.0) -> list[bytes]:
        return [event.body for minute in sample_minutes(sample, events, 1, duplicates) for event in minute.events]

    assert published(7) == [b"a", b"b", b"c", b"a", b"b", b"c", b"a"]
    assert published(2) == [b"a", b"b"]
    twice = published(999, duplicates=0.1)
    assert len(twice) == 999
    assert twice != published(999)


def test_a_file_is_described_with_its_lines_and_its_key(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    file.write_text('{"id": 1}\n' * 1_234)
    assert str(keyed_by(file, read_sample(file), "id")) == "events.jsonl (1,234 lines), keyed by id"
    assert str(Sample(file, read_sample(file)[:1])) == "events.jsonl (1 line), without a key"


def test_events_without_a_key_go_to_all_partitions_and_large_ones_to_small_sends(file: Path) -> None:
    file.write_text("\n".join(json.dumps({"text": "x" * 300_000}) for _ in range(12)))
    gateways = Gateways(["0", "1"], 60.0, alike=100)
    minutes = list(sample_minutes(Sample(file, read_sample(file)), 12, 1, 0.0))
    sends = [send for minute in minutes for send in gateways.add(minute)] + gateways.rest()
    assert {send.partition_id for send in sends} == {"0", "1"}
    assert sorted(send.events for send in sends) == [2] * 6
    assert all(len(event.body) < LARGEST_SEND for send in sends for one in send.minutes for event in one.events)
