import gzip
import json
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest

from local.capture import SCHEMA
from local.feed.event_file import LARGEST_LINE, FileEvent, UnusableFile, events_in, is_container, samples_in

FIRST, SECOND = b'{"id":"a","price":1.10}', '{"id":"\u00e4"}'.encode()
LINES = FIRST + b"\n" + SECOND + b"\n"
PRETTY = b'[\n  {"id": "a",\r\n   "price": 1.10},\n  {"id": "\xc3\xa4"}\n]\n'


def bodies(path: Path, content: bytes) -> list[bytes]:
    path.write_bytes(content)
    return [each.body for each in events_in(path)]


def captured(*values: dict[str, Any] | bytes | None) -> bytes:
    """Return a file of Event Hubs Capture with these bodies."""
    records = [
        {
            "SequenceNumber": number, "Offset": str(number), "EnqueuedTimeUtc": "1/2/2026 3:04:05 PM",
            "SystemProperties": {}, "Properties": {}, **(value if isinstance(value, dict) else {"Body": value}),
        }
        for number, value in enumerate(values)
    ]  # fmt: skip
    return container(SCHEMA, records)


def container(schema: dict[str, Any], records: list[dict[str, Any]]) -> bytes:
    file = BytesIO()
    fastavro.writer(file, schema, records, codec="deflate", sync_marker=bytes(16))
    return file.getvalue()


ENVELOPE = (
    b'{"$event": {"body": {"celsius": 21.5}, "properties": {"unit": "C"},'
    b' "system_properties": {"iothub-connection-device-id": "dev-1"}}}'
)
OF_TWO = b"[" + FIRST + b", " + SECOND + b"]"
UTF_16 = PRETTY.decode().encode("utf-16")
IN_BASE64 = b"eyJpZCI6ImEiLCJwcmljZSI6MS4xMH0=\neyJpZCI6IsOkIn0=\n"


def test_each_kind_of_file_has_the_same_events(tmp_path: Path) -> None:
    for name, content in (
        ("events.jsonl", LINES),
        ("events.jsonl", b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n\r\n\n")),
        ("events.jsonl", LINES.decode().encode("utf-16")),
        ("events.jsonl", b"\xfe\xff" + LINES.decode().encode("utf-16-be")),
        ("events.jsonl.gz", gzip.compress(LINES)),
        ("events.json", LINES),
        ("events.json", OF_TWO),
        ("events.txt", PRETTY),
        ("events.txt", UTF_16),
        ("events.avro", captured(FIRST, SECOND)),
        ("events.base64", IN_BASE64),
    ):
        path = tmp_path / name
        assert bodies(path, content) == [FIRST, SECOND], (name, content)
        assert {each.is_sent for each in events_in(path)} == {".base64" in name or ".avro" in name}


def test_a_line_is_a_body_with_its_number_whatever_bytes_it_has_or_stands_for(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"no JSON\n\n\xff\xfe \n \none \x0b\xe2\x80\xa8 line")
    found = [FileEvent(1, b"no JSON"), FileEvent(3, b"\xff\xfe "), FileEvent(4, b" ")]
    assert list(events_in(path)) == [*found, FileEvent(5, b"one \x0b\xe2\x80\xa8 line")]
    whole = b"\n" * LARGEST_LINE
    assert samples_in(tmp_path) == path
    assert bodies(tmp_path / "events.base64", b"AAr/\r\n\n" + b64encode(whole)) == [b"\x00\n\xff", whole]
    assert samples_in(tmp_path) == tmp_path / "events.base64", "it comes first"


def test_a_list_has_its_elements_in_a_file_named_json_and_is_one_event_of_a_line_otherwise(tmp_path: Path) -> None:
    assert bodies(tmp_path / "events.jsonl", OF_TWO) == [OF_TWO]
    assert bodies(tmp_path / "events.json", OF_TWO + b"\n" + OF_TWO) == [OF_TWO, OF_TWO]
    many = [json.dumps({"id": number, "text": "x" * 1000}, separators=(",", ":")).encode() for number in range(3000)]
    assert bodies(tmp_path / "events.json", b"[" + b",".join(many) + b"]") == many


def test_one_object_over_several_lines_is_one_event_and_malformed_lines_stay_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    assert bodies(path, b'{\n "id": "a",\n "price": 1.10\n}') == [FIRST]
    for content in (b'{"id":\n' + LINES, b"[\n" + LINES, b"[" * 100_000 + b"\n" + FIRST, b'{\n"a": 1}\n{\n"a": 1}'):
        assert bodies(path, content) == [line for line in content.split(b"\n") if line]


def test_a_file_of_capture_has_keys_and_properties_and_events_without_a_body(tmp_path: Path) -> None:
    path = tmp_path / "50.avro"
    with_key = {
        "SystemProperties": {"x-opt-partition-key": "k", "iothub-enqueuedtime": 1_767_323_045_123, "message-id": b"\n"},
        "Properties": {"schema_id": 7, "raw": b"\0"}, "Body": FIRST,
    }  # fmt: skip
    path.write_bytes(captured(with_key, None, ENVELOPE))
    system = {"iothub-enqueuedtime": "2026-01-02 03:04:05.123000+00:00", "message-id": "0A"}
    of_first = FileEvent(1, FIRST, "k", {"schema_id": 7, "raw": b"\0"}, system)
    assert list(events_in(path)) == [of_first, FileEvent(2, b""), FileEvent(3, ENVELOPE)]
    assert not is_container(path)


def test_an_envelope_has_more_than_a_body_where_a_file_has_lines_or_is_json(tmp_path: Path) -> None:
    of_device = FileEvent(1, b'{"celsius": 21.5}', None, {"unit": "C"}, {"iothub-connection-device-id": "dev-1"})
    short = b'{"$event":{"base64":"AAE=","partition_key":"k"}}'
    path = tmp_path / "events.jsonl"
    for content in (ENVELOPE + b"\n" + short + b'\n{"$event":{}}\n{"a":{"$event":1}}', ENVELOPE):
        path.write_bytes(content)
        more = [FileEvent(2, b"\0\1", "k"), FileEvent(3, b""), FileEvent(4, b'{"a":{"$event":1}}')]
        assert list(events_in(path)) == [of_device, *(more if short in content else [])]
    assert bodies(tmp_path / "events.json", b"[" + ENVELOPE + b"]") == [b'{"celsius":21.5}']
    assert bodies(tmp_path / "events.base64", b64encode(ENVELOPE)) == [ENVELOPE], "it is a body as the hub has it"


def test_a_file_that_cannot_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    for name, content, why in (
        ("own.avro", container({"type": "record", "name": "R", "fields": []}, [{}]), "`new --format avro --from "),
        ("cut.avro", captured(*[FIRST] * 9)[:-20], "is no whole file of Event Hubs Capture"),
        ("bad.base64", b"AAr/\n{}", "line 2 is not base64: write one body a line"),
        ("big.base64", b64encode(bytes(LARGEST_LINE + 1)), "line 1 has more than 1,047,552 bytes"),
        ("cut.gz", gzip.compress(LINES)[:-9], "is no whole gzip file: Compressed file ended"),
        ("bad.gz", gzip.compress(LINES)[:10] + b"\xff" * 30, "is no whole gzip file"),
        ("cut.jsonl", LINES.decode().encode("utf-16")[:-1], "is no whole UTF-16"),
        ("big.avro", captured(bytes(LARGEST_LINE + 1)), "line 1 has more than 1,047,552 bytes"),
        ("big.json", b'[1, "' + b"x" * LARGEST_LINE + b'"]', "line 2 has more than 1,047,552 bytes"),
        (
            "other.jsonl",
            FIRST + b'\n{"$event":{"offset":1}}',
            "line 2 is no envelope of an event: Object contains unknown",
        ),
        ("two.jsonl", b'{"$event":{"body":1,"base64":"AA=="}}', "line 1 is no envelope of an event: it has body and"),
        ("no.jsonl", b'{"$event":{"base64":"?"}}', "line 1 is no envelope of an event: Invalid base64"),
        ("cut.jsonl", b'{"$event":{"body":', "line 1 is no envelope of an event"),
        ("zeros.gz", gzip.compress(bytes(50_000_000)), "line 1 has more than 1,047,552 bytes"),
    ):
        with pytest.raises(UnusableFile) as refused:
            bodies(tmp_path / name, content)
        assert str(refused.value).startswith(f"{tmp_path / name}")
        assert why in str(refused.value), name


WHOLE = (LINES, PRETTY, UTF_16, gzip.compress(LINES, mtime=0), captured(FIRST, None, SECOND))
