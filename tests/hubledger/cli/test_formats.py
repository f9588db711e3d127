import gzip
import json
import re
import tracemalloc
import zlib
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer, writer
from google.protobuf import descriptor_pb2

from core.errors import PoisonEvent
from core.transforms.loading import load_transform
from hubledger.cli.ddl.room import room_text
from hubledger.cli.ddl.tables import ENGINES
from hubledger.cli.formats.format import PINS, format_of
from hubledger.cli.main import main
from local.trials.outcomes import event_of
from tests.fakes.written_modules import written_modules
from tests.hubledger.cli.project import PARCELS, ROOT, Project, refusal

SCHEMA = {
    "type": "record", "name": "Parcel", "fields": [
        {"name": "parcelId", "type": "string"},
        {"name": "grams", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "scannedAt", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    ],
}  # fmt: skip
LINES = tuple(
    json.dumps(
        {"parcelId": f"P-{number}", "grams": 2**40 + number, "price": f"{number}.50", "note": "x" if number else None,
         "scannedAt": f"2026-03-01T1{number}:00:00Z", "tags": ["a", "b"]}
    )
    for number in range(3)
)  # fmt: skip
T = descriptor_pb2.FieldDescriptorProto


def descriptor_set(fields: str, *messages: str) -> bytes:
    made, of = descriptor_pb2.FileDescriptorSet(), descriptor_pb2.FieldDescriptorProto
    file = made.file.add(name="parcel.proto", package="shop", syntax="proto3")
    for message in messages:
        one = file.message_type.add(name=message)
        for number, name in enumerate(fields.split(), 1):
            kind = of.TYPE_INT64 if name in ("grams", "cents") else of.TYPE_STRING
            label = of.LABEL_REPEATED if name == "tags" else of.LABEL_OPTIONAL
            one.field.add(name=name, number=number, type=kind, label=label, json_name=name)
    return made.SerializeToString()


def envelope(line: str, number: int) -> str:
    """Return a line of a file with a CloudEvent in binary mode."""
    attributes = {**ATTRIBUTES, "id": str(number), "time": AT}
    properties = {f"cloudEvents:{name}": value for name, value in attributes.items()}
    sent = {"partition_key": "p", "properties": properties, "system_properties": {"content-type": "application/json"}}
    return json.dumps({"$event": {"body": json.loads(line), **sent}})


CHANGES = ROOT / "tests" / "fixtures" / "change_events.jsonl"
OF_LINES = "parcelId grams price note scannedAt tags"


ROOMS = {  # the options of `new`, the events of the sample, and lines of the transform
    "zipped": ("samples.jsonl --format gzip --key parcelId", 3, ""),
    "written": ("lines.jsonl --format avro --schema 7.avsc --key parcelId", 3, "price: Decimal"),
    "contained": ("parcels.avro --format avro", 4, "grams: Integer"),
    "messages": ("texts.jsonl --format protobuf --schema parcel.desc --key parcelId", 3, "grams: Integer"),
    "registered": ("lines.jsonl --format avro --schema schemas --key parcelId", 3, "price: Decimal"),
    "clouds": ("sent.jsonl --format cloudevents --key parcelId", 3, "ce_time: Instant"),
    "changed": (f"{CHANGES} --format ces --key parcel_id --field weight:decimal", 4, "weight: Decimal"),
}


@pytest.mark.slow
def test_a_room_of_each_format_is_sound_and_reads_its_samples(project: Project) -> None:
    project.write("samples.jsonl", *PARCELS)
    project.write("lines.jsonl", *LINES)
    project.write("texts.jsonl", *(line.replace(": null", ': ""') for line in LINES))
    project.write("7.avsc", json.dumps(SCHEMA))
    (project.folder / "schemas").mkdir()
    project.write(f"schemas/7-{AZURE[7]}.avsc", json.dumps(SCHEMA))
    project.write("sent.jsonl", *(envelope(line, number) for number, line in enumerate(LINES)))
    (project.folder / "parcel.desc").write_bytes(descriptor_set(OF_LINES, "Parcel"))
    values = [
        {"parcelId": f"P-{number}", "grams": number, "scannedAt": 1_772_000_000_000 + number} for number in range(4)
    ]
    with (project.folder / "parcels.avro").open("wb") as file:
        writer(file, {**SCHEMA, "fields": [*SCHEMA["fields"][:2], SCHEMA["fields"][3]]}, values)
    for room, (options, _, _) in ROOMS.items():
        out = project.done("hubledger", "new", room, "--from", *options.split())
        assert (f"echo {PINS['avro']} >> requirements.txt" in out) == ("avro" in options), room
    project.assert_sound(*ROOMS)
    for room, (_, events, line) in ROOMS.items():
        tried = project.tried("--transform", f"apps.{room}")
        assert (tried["events"], tried["written"]) == (events, events), room
        text = (project.folder / "apps" / room / "transform.py").read_text(encoding="utf-8")
        assert line in text and (not line or ": Instant" in text), room
    assert (project.folder / "apps/written/schemas/7.avsc").is_file()
    for room, kind in {"registered": f'"avro/binary+{AZURE[7]}"', "zipped": '"content-encoding":"gzip"'}.items():
        lines = (project.folder / "apps" / room / "events.jsonl").read_text(encoding="utf-8").splitlines()
        assert lines and all(kind in line for line in lines), room
    said = refusal(
        project.hubledger("new", "x", "--from", "parcels.avro", "--format", "avro", "--schema", "parcels.avro")
    )
    assert said == "parcels.avro brings its schema: leave --schema out"


@pytest.mark.slow
def test_bad_input_is_refused_in_one_sentence_and_writes_nothing(project: Project) -> None:
    project.write("samples.jsonl", *LINES, LINES[0].replace('"P-0"', "5"))
    project.write("no.base64", "H4sBAg==")
    project.write("good.avsc", json.dumps(SCHEMA))
    project.write("bad.avsc", '{"type": "nothing"}')
    (project.folder / "two.desc").write_bytes(descriptor_set(OF_LINES, "Parcel", "Letter"))
    (project.folder / "one.desc").write_bytes(descriptor_set(OF_LINES, "Parcel"))
    (project.folder / "bad.desc").write_bytes(b"\xff")
    project.write("top.avsc", '["null", "string"]')
    with (project.folder / "top.avro").open("wb") as file:
        writer(file, {"type": "array", "items": "long"}, [[1]])
    no_record = "and the fields of a row need a record"
    lines = ("--from", "samples.jsonl")
    for said, options in {
        "--format xml: write one of json, gzip, avro, protobuf, ces, cloudevents": (*lines, "--format", "xml"),
        "--format gzip has no schema": (*lines, "--format", "gzip", "--schema", "good.avsc"),
        "--format json has no schema": (*lines, "--schema", "good.avsc"),
        "--format avro needs its schema: --schema FILE, a file .avsc": (*lines, "--format", "avro"),
        "--format protobuf needs its schema: --schema FILE, a descriptor set": (*lines, "--format", "protobuf"),
        "--schema bad.avsc is no schema of Avro": (*lines, "--format", "avro", "--schema", "bad.avsc"),
        "--schema none.avsc cannot be read: No such file": (*lines, "--format", "avro", "--schema", "none.avsc"),
        "--schema bad.desc is no descriptor set": (*lines, "--format", "protobuf", "--schema", "bad.desc"),
        "it has the messages shop.Parcel, shop.Letter: write": (*lines, "--format", "protobuf", "--schema", "two.desc"),
        "its messages are shop.Parcel": (*lines, "--format", "protobuf", "--schema", "two.desc:Box"),
        "samples.jsonl, line 4 does not match the schema": (*lines, "--format", "avro", "--schema", "good.avsc"),
        "line 4 does not match the schema: Failed": (*lines, "--format", "protobuf", "--schema", "one.desc"),
        f"--schema top.avsc: its top is a union, {no_record}": (*lines, "--format", "avro", "--schema", "top.avsc"),
        f"--schema top.avro: its top is a array, {no_record}": ("--from", "top.avro", "--format", "avro"),
        "no.base64, line 1: the body is no gzip file": ("--from", "no.base64", "--format", "gzip"),
        "--format avro needs a file of events": ("--field", "a:text", "--format", "avro", "--schema", "good.avsc"),
    }.items():  # fmt: skip
        assert said in refusal(project.hubledger("new", "parcels", *options)), options
        assert [each.name for each in (project.folder / "apps").iterdir() if each.is_dir()] in ([], ["__pycache__"])


@pytest.mark.slow
def test_a_package_that_is_missing_is_named_with_the_command(project: Project) -> None:
    project.write("samples.jsonl", *LINES)
    hidden = "import sys\nsys.modules['fastavro'] = None\nfrom hubledger.cli.main import main\n"
    call = 'sys.exit(main(["new", "x", "--from", "samples.jsonl", "--format", "avro", "--schema", "s.avsc"]))'
    said = refusal(project.python("-c", hidden + call))
    assert said == f"--format avro needs a package: .venv/bin/python -m pip install {PINS['avro']}"


def test_the_versions_are_those_that_this_repository_tests() -> None:
    pinned = "".join((ROOT / name).read_text() for name in ("requirements-dev.txt", "requirements-worker.txt")).split()
    assert set(PINS.values()) <= set(pinned)


def test_each_change_of_a_table_is_a_row_and_one_that_cannot_be_read_a_letter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The events have the form of Microsoft's page on the messages, and of events that others have published."""
    json_of = format_of("ces", None, None).json_of
    first, *_, last = [json.loads(line) for line in CHANGES.read_text(encoding="utf-8").splitlines()]

    def row_of(change: dict[str, Any], was: str = "", becomes: str = "", **envelope: Any) -> Any:
        body = change | {"data": change["data"].replace(was, becomes)} | envelope
        return json.loads(json_of(event_of(json.dumps(body).encode())), parse_float=str)

    whole = {
        "ces_committed_at": "2026-03-01T10:00:00.650000Z", "ces_operation": "INS", "ces_table": "dbo.Parcels",
        "parcel_id": 105, "depot": "Köln", "weight": "1.250", "insured": True, "due_on": "2026-03-04", "ratio": "0.5",
        "packed_at": "2026-03-01T09:59:59.1234567Z", "sent_at": "2026-03-01T11:00:00.0000000+01:00",
    }  # fmt: skip
    assert row_of(first) == row_of(first, '"{}"', "null") == whole
    assert row_of(first, segmentindex=1) == whole  # as the preview of 2025 numbered it
    deleted = row_of(last)
    assert (deleted["ces_operation"], deleted["depot"], deleted["sent_at"]) == ("DEL", "Bonn", None)
    of_key = row_of(last, json.dumps(json.loads(last["data"])["eventrow"]["old"]), '"{}"')
    assert of_key == {name: deleted[name] for name in (*list(deleted)[:3], "parcel_id")}
    faults: dict[str, dict[str, Any]] = {
        "the event is a part of a change: raise @max": {"finalsegment": False, "data": first["data"][:100]},
        "the event is a part of a change: raise": {"segmentindex": 1, "data": first["data"][100:]},
        "the body is no change event: Invalid enum value 'x'": {"type": "x"},
        "the body is no change event: Expected `str`, got `null` - at `$.data`": {"data": None},
        "the data of the change event cannot be read: DecodeError": {"data": first["data"][:100]},
        "the data of the change event cannot be read: ValueError": {"data": first["data"].replace("nvarchar", "int")},
        "the data of the change event cannot be read: KeyError": {"data": first["data"].replace("nvarchar", "bit")},
    }
    for why, change in faults.items():
        with pytest.raises(PoisonEvent, match=re.escape(why)):
            row_of(first, **change)
    with written_modules(tmp_path) as modules:
        page = (ROOT / "docs" / "change-events.md").read_text(encoding="utf-8")
        (text,) = re.findall(r"```python\n(.*?)```", page, re.S)
        modules.write("", "room_of_changes.__init__")
        modules.write((ROOT / "hubledger/cli/formats/wires/ces.py").read_text("utf-8"), "room_of_changes.wire")
        modules.write(text.replace("apps.parcels", "room_of_changes"), "room_of_changes.transform")
        for engine in ENGINES:
            migrations = tmp_path / "room_of_changes" / "migrations" / engine
            migrations.mkdir(parents=True)
            made = room_text(load_transform("room_of_changes").row_classes, (), engine)
            (migrations / "0001_parcel.sql").write_text(made, encoding="utf-8")
        other = tmp_path / "more.jsonl"
        others = json.dumps(first | {"data": first["data"].replace("Parcels", "Depots")})
        other.write_text(f"{CHANGES.read_text(encoding='utf-8')}{others}\n", encoding="utf-8")
        assert main(["try", str(other), "--transform", "room_of_changes", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
    assert [found[each] for each in ("events", "written", "filtered", "dead_lettered")] == [5, 4, 1, 0]


Read = Callable[..., Any]
FIELDS: list[dict[str, Any]] = [
    *({"name": "order_id", "type": "string"}, {"name": "cents", "type": "long"}),
    {"name": "coupon", "type": ["null", "string"], "default": None},
]
ORDERS = {
    number: {"type": "record", "name": "Order", "fields": fields} for number, fields in ((7, FIELDS[:2]), (12, FIELDS))
}


def assert_poison(read: Read, body: bytes, why: str = ".", **sent: Any) -> None:
    with pytest.raises(PoisonEvent, match=why):
        read(body, **sent)


def reader(name: str, schema: Path | None = None) -> Read:
    """Return a reader of bodies with properties. In `system`, a name has `_` in place of `-`."""
    form = format_of(name, schema, None)

    def read(body: bytes, system: dict[str, Any] | None = None, **properties: Any) -> Any:
        return json.loads(form.json_of(event_of(body, properties=properties, system_properties=system)))

    return read


@pytest.fixture
def avro(tmp_path: Path) -> Read:
    for number, schema in ORDERS.items():
        (tmp_path / f"{number}.avsc").write_text(json.dumps(schema), encoding="utf-8")
    return reader("avro", tmp_path)


@pytest.fixture
def protobuf(tmp_path: Path) -> Read:
    (tmp_path / "order.desc").write_bytes(descriptor_set("order_id cents", "Order"))
    return reader("protobuf", tmp_path / "order.desc")


def value_of(schema: int, **value: Any) -> bytes:
    stream = BytesIO()
    schemaless_writer(stream, parse_schema(ORDERS[schema]), value)
    return stream.getvalue()


def test_a_gzip_body_takes_no_more_memory_than_its_limit_however_much_it_holds() -> None:
    read = reader("gzip")
    zeros = zlib.compressobj(9, wbits=31)
    head, piece = (zeros.compress(bytes(2**24)) + zeros.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    gigabyte = head + 63 * piece  # a piece that is flushed can be repeated
    assert len(gigabyte) < 2**21
    tracemalloc.start()
    try:
        assert_poison(read, gigabyte, "not one gzip file of at most 4000000 bytes")
        assert tracemalloc.get_traced_memory()[1] < 4 * 4_000_000
    finally:
        tracemalloc.stop()


def test_avro_is_read_by_the_schema_that_wrote_it(avro: Read) -> None:
    old, new = value_of(7, order_id="A-1", cents=250), value_of(12, order_id="A-2", cents=1, coupon="MAY")
    assert avro(b"\0\0\0\0\7" + old) == {"order_id": "A-1", "cents": 250, "coupon": None}
    assert avro(b"\0\0\0\0\x0c" + new)["coupon"] == avro(new, schema_id=12)["coupon"] == "MAY"
    assert_poison(avro, b"\0\0\0\0\x63" + old, "no schema 99")
    assert_poison(avro, new, r"no schema \[12\]", schema_id=[12])
    for body in (b"\0\0\0\0\7" + old[:-1], b"\0\0\0\0\7" + old + b"x", old):
        assert_poison(avro, body)


AZURE = {7: "052e7046f99f4a6a82f38b5902ebf5e3", 12: "e086b25cd8344fad9fc9e1dc3d8363f9"}  # ids of Azure's registry


def test_avro_of_azure_s_registry_is_read_by_the_id_in_the_content_type(tmp_path: Path) -> None:
    """The encoders of Azure write one value without a head. The value of schema 7 begins like a head of Kafka."""
    for number, schema in ORDERS.items():
        (tmp_path / f"{number}-{AZURE[number]}.avsc").write_text(json.dumps(schema), encoding="utf-8")
    read, types = reader("avro", tmp_path), {number: f"avro/binary+{id_}" for number, id_ in AZURE.items()}
    old, new = (
        b"\0\xf4\x03",
        b"\x06A-2\x02\x02\x06MAY",
    )  # by hand, from Avro's specification
    assert (old, new) == (value_of(7, order_id="", cents=250), value_of(12, order_id="A-2", cents=1, coupon="MAY"))
    assert read(old, {"content-type": types[7]}) == {"order_id": "", "cents": 250, "coupon": None}
    assert read(new, {"content-type": types[12].upper()})["coupon"] == "MAY"
    for header in (types[12].encode(), b64encode(types[12].encode()).decode()):  # as the worker and the trigger have it
        assert read(new, **{"content-type": header})["coupon"] == "MAY"
    assert read(b"\0\0\0\0\x0c" + new)["coupon"] == read(new, schema_id=12)["coupon"] == "MAY"
    assert_poison(read, new, f"no schema {32 * '0'} in", system={"content-type": f"avro/binary+{32 * '0'}"})
    assert_poison(read, new, "no schema None in", system={"content-type": "application/avro"})
    assert_poison(read, new[:-1], f"no value of schema {AZURE[12]}", system={"content-type": types[12]})


ATTRIBUTES = {"specversion": "1.0", "id": "A-1", "source": "/tn/1", "type": "com.example.parcel", "partitionkey": "p"}
AT = "2026-03-01T10:00:00Z"
READING = {"ce_specversion": "1.0", "ce_id": "A-1", "ce_source": "/tn/1", "ce_type": "com.example.parcel",
           "ce_partitionkey": "p", "ce_time": AT, "grams": "1.10"}  # fmt: skip


def test_a_cloud_event_is_one_object_in_each_mode_and_binding() -> None:
    """The names are those of the bindings of AMQP and Kafka, version 1.0.2, and the values as trigger and worker have
    them."""
    read, data, json_type = (
        reader("cloudevents"),
        b'{"grams": 1.10, "ce_id": "no"}',
        {"content-type": "application/json"},
    )

    form = format_of("cloudevents", None, None)

    def found(body: bytes, system: dict[str, Any], **properties: Any) -> Any:
        text = form.json_of(event_of(body, properties=properties, system_properties=system))
        return json.loads(text, parse_float=str)

    for prefix in ("cloudEvents:", "cloudEvents_"):
        sent = {f"{prefix}{name}": value for name, value in ATTRIBUTES.items()}
        for at in (AT, datetime(2026, 3, 1, 10, tzinfo=UTC)):
            assert found(data, json_type, **sent, **{f"{prefix}time": at}, other=1) == READING
    headers = {f"ce_{name}": value.encode() for name, value in {**ATTRIBUTES, "time": AT}.items()}
    in_base64 = {name: b64encode(value).decode() for name, value in headers.items()}
    for one, kind in ((headers, b"application/x+json; charset=utf-8"), (in_base64, "YXBwbGljYXRpb24vanNvbg==")):
        assert found(data, {}, **one, **{"content-type": kind}) == READING
    whole = {**ATTRIBUTES, "time": AT, "datacontenttype": "application/json"}
    of_type = {**READING, "ce_datacontenttype": "application/json"}
    for more in ({"data": {"grams": "1.10"}}, {"data_base64": b64encode(b'{"grams": "1.10"}').decode()}):
        for system in ({"content-type": "application/cloudevents+json; charset=utf-8"}, {}):
            assert found(json.dumps({**whole, **more}).encode(), system) == of_type
            if system:  # the content type decides, whatever properties there are
                assert found(json.dumps({**whole, **more}).encode(), system, ce_id="other") == of_type
    assert found(b"", {}, **sent) == {name: READING[name] for name in list(READING)[:5]}
    assert found(b"[1]", {}, **sent)["data"] == [1]
    lacking = {name: value for name, value in sent.items() if name[-2:] not in ("id", "ce")}
    for why, (body, properties, kind) in {
        "the body is no CloudEvent": (b"[]", {}, ""),
        "the CloudEvent has no id, source": (data, lacking, ""),
        "the data is text/plain, and no JSON": (b"x", sent, "text/plain"),
        "the data is no JSON: Input data was truncated": (b"{", sent, ""),
        "the data is no JSON: Invalid base64": (json.dumps({**whole, "data_base64": "x"}).encode(), {}, ""),
    }.items():
        assert_poison(read, body, why, system={"content-type": kind}, **properties)


def test_a_content_encoding_of_gzip_is_read_and_a_body_without_it_is_as_it_is() -> None:
    read, plain = reader("gzip"), b'{"order_id": "A-1"}'
    whole = gzip.compress(plain)
    for body, encoding in ((whole, "gzip"), (whole, "GZIP"), (whole, None), (plain, None), (plain, "utf-8")):
        assert read(body, {"content-encoding": encoding}) == {"order_id": "A-1"}, encoding
    assert_poison(read, plain, "the body is no gzip file", system={"content-encoding": "gzip"})


def test_protobuf_is_read_and_what_is_missing_is_empty(protobuf: Read) -> None:
    assert protobuf(b"\x0a\x03A-1\x10\xac\x02") == {"order_id": "A-1", "cents": 300}
    assert protobuf(b"\x10\x01") == {"order_id": "", "cents": 1}
    for garbage in (b"\xff", b"\0", b"{}", b"\x1a\x09short", b"\x0f"):
        assert_poison(protobuf, b"\x0a\x03A-1\x10\x01" + garbage, "the body is no shop.Order")
    assert protobuf(b"\x0a\x03A-1\x10\x01\x1a\x03new") == {"order_id": "A-1", "cents": 1}


def test_every_cut_of_a_body_is_poison(avro: Read, protobuf: Read) -> None:
    read, whole = reader("gzip"), gzip.compress(b'{"order_id": "A-1"}')
    assert read(whole) == {"order_id": "A-1"}
    for body in (whole + b"x", whole[:10] + b"?" + whole[11:]):
        assert_poison(read, body, "the body is no gzip file|not one gzip file")
    bodies = {avro: b"\0\0\0\0\7" + value_of(7, order_id="A-1", cents=250), protobuf: b"\x0a\x03A-1\x10\xac\x02"}
    for reads, body in {read: whole, **bodies}.items():
        # After its first field Protobuf has a whole message again, and one byte of gzip does not name it.
        ends = {5} if reads is protobuf else {1} if reads is read else set()
        for at in set(range(len(body))) - ends:
            assert_poison(reads, body[:at])
