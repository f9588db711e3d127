"""`wire.py` of a room: a body of the format becomes JSON, and anything else is poison."""

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from google.protobuf import descriptor_pb2

from core.errors import PoisonEvent
from hubledger.cli.formats.format import format_of
from local.trials.outcomes import event_of

FIELDS: list[dict[str, Any]] = [
    {"name": "order_id", "type": "string"},
    {"name": "cents", "type": "long"},
    {"name": "coupon", "type": ["null", "string"], "default": None},
]
SCHEMAS = {
    number: {"type": "record", "name": "Order", "fields": fields} for number, fields in ((7, FIELDS[:2]), (12, FIELDS))
}
T = descriptor_pb2.FieldDescriptorProto
Read = Callable[..., Any]


def assert_poison(read: Read, body: bytes, why: str = ".") -> None:
    with pytest.raises(PoisonEvent, match=why):
        read(body)


def reader(name: str, schema: Path | None = None) -> Read:
    """Return a function from a body and its properties to the value of its JSON."""
    form = format_of(name, schema, None)
    return lambda body, **properties: json.loads(form.json_of(event_of(body, properties=properties)))


@pytest.fixture
def avro(tmp_path: Path) -> Read:
    for number, schema in SCHEMAS.items():
        (tmp_path / f"{number}.avsc").write_text(json.dumps(schema), encoding="utf-8")
    return reader("avro", tmp_path)


@pytest.fixture
def protobuf(tmp_path: Path) -> Read:
    made = descriptor_pb2.FileDescriptorSet()
    message = made.file.add(name="order.proto", syntax="proto3").message_type.add(name="Order")
    for number, (name, kind) in enumerate({"order_id": T.TYPE_STRING, "cents": T.TYPE_INT64}.items(), 1):
        message.field.add(name=name, number=number, type=kind, label=T.LABEL_OPTIONAL, json_name=name)
    (tmp_path / "order.desc").write_bytes(made.SerializeToString())
    return reader("protobuf", tmp_path / "order.desc")


def value_of(schema: int, **value: Any) -> bytes:
    stream = BytesIO()
    schemaless_writer(stream, parse_schema(SCHEMAS[schema]), value)
    return stream.getvalue()


def test_gzip_is_read_and_a_body_that_grows_without_end_is_poison() -> None:
    read, whole = reader("gzip"), gzip.compress(b'{"order_id": "A-1"}')
    assert read(whole) == {"order_id": "A-1"}
    for body in (whole[:-1], whole + b"x", whole[:10] + b"?" + whole[11:]):
        assert_poison(read, body)
    assert_poison(read, b"{}", "the body is no gzip file")
    assert_poison(read, gzip.compress(bytes(100_000_000)), "not one gzip file of at most 4000000 bytes")


def test_a_gzip_body_takes_no_more_memory_than_its_limit_however_much_it_holds() -> None:
    read = reader("gzip")
    zeros = zlib.compressobj(9, wbits=31)
    head, piece = (zeros.compress(bytes(2**24)) + zeros.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    gigabyte = head + 63 * piece  # a piece that is flushed can be repeated
    assert len(gigabyte) < 2**21
    tracemalloc.start()
    try:
        assert_poison(read, gigabyte)
        assert tracemalloc.get_traced_memory()[1] < 4 * 4_000_000
    finally:
        tracemalloc.stop()


def test_avro_is_read_by_the_schema_that_wrote_it(avro: Read) -> None:
    old, new = value_of(7, order_id="A-1", cents=250), value_of(12, order_id="A-2", cents=1, coupon="MAY")
    assert avro(b"\0\0\0\0\7" + old) == {"order_id": "A-1", "cents": 250, "coupon": None}
    assert avro(b"\0\0\0\0\x0c" + new)["coupon"] == avro(new, schema_id=12)["coupon"] == "MAY"
    assert_poison(avro, b"\0\0\0\0\x63" + old, "no schema 99")
    for body in (b"\0\0\0\0\7" + old[:-1], b"\0\0\0\0\7" + old + b"x", old):
        assert_poison(avro, body)


def test_protobuf_is_read_and_what_is_missing_is_empty(protobuf: Read) -> None:
    assert protobuf(b"\x0a\x03A-1\x10\xac\x02") == {"order_id": "A-1", "cents": 300}
    assert protobuf(b"\x10\x01") == {"order_id": "", "cents": 1}
    for garbage in (b"\xff", b"\0", b"{}", b"\x1a\x09short", b"\x0f"):
        assert_poison(protobuf, b"\x0a\x03A-1\x10\x01" + garbage, "the body is no Order")
    assert protobuf(b"\x0a\x03A-1\x10\x01\x1a\x03new") == {"order_id": "A-1", "cents": 1}


def test_every_cut_of_a_body_is_poison(avro: Read, protobuf: Read) -> None:
    whole = {
        reader("gzip"): gzip.compress(b'{"order_id": "A-1"}'),
        avro: b"\0\0\0\0\7" + value_of(7, order_id="A-1", cents=250),
        protobuf: b"\x0a\x03A-1\x10\xac\x02",
    }
    for read, body in whole.items():
        ends = {5} if read is protobuf else set()  # after its first field Protobuf has a whole message again
        for at in set(range(len(body))) - ends:
            assert_poison(read, body[:at])
