"""docs/bodies.md: each transform of the page reads its format, and makes a letter of everything else."""

import gzip
import json
import re
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Iterator
from decimal import Decimal
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from core.transforms.loading import check_transform
from hubledger.testing import assert_poison, check_any_body, event_of
from tests.fakes.written_modules import WrittenModules, written_modules
from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "bodies.md").read_text(encoding="utf-8")
BODIES = ROOT / "core" / "model" / "transforms.py"
GENERATED = ROOT / "tests" / "fixtures" / "order_pb2.py.txt"  # by the command of the page, with protobuf 5.29
FORMATS = ("gzip", "Avro", "Protobuf", "Lines of CSV", "Several events in one body")


def block(section: str, kind: str) -> str:
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M)
    (found,) = re.findall(rf"```{kind}\n(.*?)```", text, re.S)
    return str(found)


@pytest.fixture
def modules(tmp_path: Path) -> Iterator[WrittenModules]:
    with written_modules(tmp_path) as made:
        yield made


def room_of(section: str, modules: WrittenModules) -> str:
    """Write the room of a format with its schema or generated module, check it as at a start, and return its name."""
    name = f"room_of_{section.split()[-1].lower()}"
    folder = modules.folder / name
    modules.write("", f"{name}.__init__")
    if section == "Avro":
        (folder / "schemas").mkdir()
        newest = json.loads(block(section, "json"))
        for number, fields in ((7, newest["fields"][:2]), (12, newest["fields"])):
            text = json.dumps({**newest, "fields": fields})
            (folder / "schemas" / f"{number}.avsc").write_text(text, encoding="utf-8")
    if section == "Protobuf":
        modules.write(GENERATED.read_text(encoding="utf-8"), f"{name}.order_pb2")
    module = modules.write(block(section, "python"), f"{name}.transform")
    assert check_transform(module) == (1, 0)
    return module


def columns(module: str, body: bytes, **properties: Any) -> list[tuple[Any, ...]]:
    made = import_module(module).transform(event_of(body, properties=properties), None)
    return [tuple(getattr(row, name) for name in row.__slots__) for row in made]


AZ = """#!/bin/sh
printf '%s\\n' "$*" >> "$ASKED"
while [ "$1" != --output-file ]; do shift; done
printf '{"type": "record", "name": "Order", "fields": []}' > "$2"
"""


def test_the_command_of_the_page_fetches_each_version_to_where_the_transform_reads_it(tmp_path: Path) -> None:
    """A stand-in of `az` records what it is asked; the path and the version of the API are those of Azure's clients."""
    (tmp_path / "az").write_text(AZ, encoding="utf-8")
    (tmp_path / "az").chmod(0o755)
    schemas, asked = tmp_path / "apps" / "orders" / "schemas", tmp_path / "asked"
    schemas.mkdir(parents=True)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "ASKED": str(asked)}
    subprocess.run(["sh", "-euc", block("Avro", "sh")], cwd=tmp_path, env=environment, check=True)
    assert sorted(path.name for path in schemas.iterdir()) == ["12.avsc", "7.avsc"]
    registry = "https://NAMESPACE.servicebus.windows.net/$schemaGroups/GROUP/schemas/ORDER/versions"
    urls = [line.rpartition("--url ")[2] for line in asked.read_text(encoding="utf-8").splitlines()]
    assert urls == [f"{registry}/{version}?api-version=2023-07-01" for version in (7, 12)]


@pytest.mark.parametrize("section", FORMATS)
def test_any_bytes_become_rows_or_a_letter(section: str, modules: WrittenModules) -> None:
    check_any_body(import_module(room_of(section, modules)))


def test_gzip_is_read_and_a_body_that_grows_without_end_is_poison(modules: WrittenModules) -> None:
    module = room_of("gzip", modules)
    whole = gzip.compress(b'{"order_id": "A-1", "cents": 250}')
    assert columns(module, whole) == [("A-1", 250)]
    damaged = (whole[:-1], whole + b"x", whole[:10] + b"?" + whole[11:], b"{}", gzip.compress(bytes(100_000_000)))
    for body in damaged:
        assert_poison(import_module(module), body)


def test_a_gzip_body_takes_no_more_memory_than_its_limit_however_much_it_holds(modules: WrittenModules) -> None:
    module = import_module(room_of("gzip", modules))
    zeros = zlib.compressobj(9, wbits=31)
    head, piece = (zeros.compress(bytes(2**24)) + zeros.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    gigabyte = head + 63 * piece  # a piece that is flushed can be repeated
    assert len(gigabyte) < 2**21
    tracemalloc.start()
    try:
        assert_poison(module, gigabyte)
        assert tracemalloc.get_traced_memory()[1] < 4 * module.MOST
    finally:
        tracemalloc.stop()


def test_every_cut_of_a_gzip_an_avro_and_a_protobuf_body_is_poison(modules: WrittenModules) -> None:
    gzipped, framed, message = (room_of(each, modules) for each in ("gzip", "Avro", "Protobuf"))
    order = sys.modules[message.replace("transform", "order_pb2")].Order(order_id="A-1", cents=300)
    whole = {
        gzipped: gzip.compress(b'{"order_id": "A-1", "cents": 250}'),
        framed: b"\0\0\0\0\7" + avro(7, {"order_id": "A-1", "cents": 250}, framed),
    }
    for module, body in whole.items():
        for at in range(len(body)):
            assert_poison(import_module(module), body[:at])
    octets = order.SerializeToString()
    ends = {5}  # after the first field, Protobuf has a whole message again, in which the second one is 0
    for at in set(range(len(octets))) - ends:
        assert_poison(import_module(message), octets[:at])
    assert columns(message, octets[:5]) == [("A-1", 0)]


def test_protobuf_with_garbage_after_it_is_poison_unless_the_garbage_reads_as_a_field(modules: WrittenModules) -> None:
    module = room_of("Protobuf", modules)
    octets = sys.modules[module.replace("transform", "order_pb2")].Order(order_id="A-1", cents=1).SerializeToString()
    for garbage in (b"\xff", b"\0", b"{}", b"\x1a\x09short", b"\x0f"):
        assert_poison(import_module(module), octets + garbage)
    assert columns(module, octets + b"\x1a\x03new") == [("A-1", 1)]


def test_each_record_of_a_body_is_a_row_and_a_bad_one_is_named_in_a_letter_of_all(modules: WrittenModules) -> None:
    module = room_of("Several events in one body", modules)
    one, other = b'{"category": "a", "level": "Error", "new": 1}', b'{"category": "b"}'
    assert columns(module, b'{"records": [%b, %b]}' % (one, other)) == [("a", "Error"), ("b", None)]
    assert columns(module, b'{"records": []}') == []
    for body, why in {
        b'{"records": [%b, {"category": 1}]}' % one: r"element 2: Expected `str`, got `int` - at `\$\.category`",
        b'[{"records": []}]': "the body has no records: it is a list: `new --each array` reads it",
        b'{"value": [%b]}' % one: "its only field is a list: `new --each FIELD` reads it",
        gzip.compress(one): "it is compressed by gzip",
    }.items():
        assert_poison(import_module(module), body, why)


def test_the_page_has_a_remedy_for_each_fault() -> None:
    (table,) = re.findall(r"\| fault \| remedy \|\n\|---\|---\|\n((?:\|.*\n)*)", PAGE)
    listed = re.findall(r"^\| (.*?) \|", table, re.M)
    found = re.findall(r'"(it is|its|it has|it begins)( [^":(]*)', BODIES.read_text(encoding="utf-8"))
    assert sorted(listed) == sorted("".join(each).rstrip() for each in found)


def avro(schema: int, value: dict[str, Any], module: str) -> bytes:
    from fastavro import schemaless_writer

    stream = BytesIO()
    schemaless_writer(stream, import_module(module).SCHEMAS[schema], value)
    return stream.getvalue()


def test_avro_is_read_by_the_schema_that_wrote_it(modules: WrittenModules) -> None:
    module = room_of("Avro", modules)
    old = avro(7, {"order_id": "A-1", "cents": 250}, module)
    new = avro(12, {"order_id": "A-2", "cents": 1, "coupon": "MAY"}, module)
    assert columns(module, b"\0\0\0\0\7" + old) == [("A-1", 250, None)]
    assert columns(module, b"\0\0\0\0\x0c" + new) == [("A-2", 1, "MAY")]
    assert columns(module, new, schema_id=12) == [("A-2", 1, "MAY")]
    for body in (b"\0\0\0\0\x63" + old, b"\0\0\0\0\7" + old[:-1], b"\0\0\0\0\7" + old + b"x", old):
        assert_poison(import_module(module), body)


def test_protobuf_is_read_and_what_is_missing_is_poison(modules: WrittenModules) -> None:
    module = room_of("Protobuf", modules)
    generated = sys.modules[module.replace("transform", "order_pb2")]
    order, fields = generated.Order, re.findall(r"(\w+) = (\d+);", block("Protobuf", "proto"))
    assert [(one.name, str(one.number)) for one in order.DESCRIPTOR.fields] == fields
    assert columns(module, order(order_id="A-1", cents=-250).SerializeToString()) == [("A-1", -250)]
    for body in (b"", order(cents=1).SerializeToString(), order(order_id="A-1").SerializeToString()[:-1]):
        assert_poison(import_module(module), body)


def test_each_line_of_csv_is_a_row_and_one_bad_line_is_a_letter_of_all(modules: WrittenModules) -> None:
    module = room_of("Lines of CSV", modules)
    assert columns(module, b'A-1,2.50\r\n"A,2",0.1\n\n') == [("A-1", Decimal("2.50")), ("A,2", Decimal("0.1"))]
    for line in (b"A-3", b"A-3,1,2", b"A-3,0.001", b"A-3,NaN", b"A-3,1e99", b",1", b'"A-3,1', b"\xff,1"):
        assert_poison(import_module(module), b"A-1,2.50\n" + line)
