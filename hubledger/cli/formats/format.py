"""The formats of bodies that are not JSON: a room gets a decoder, `wire.py`, and its sample in that format."""

import gzip
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Literal, get_args

from core.errors import PoisonEvent
from core.model.events import Event
from hubledger.cli.output import Refused
from hubledger.cli.trial import read_events
from local.feed.event_file import IN_BASE64, FileEvent, is_container, opened
from local.trials.outcomes import event_of

Name = Literal["json", "gzip", "avro", "protobuf", "ces", "cloudevents"]
NAMES: tuple[Name, ...] = get_args(Name)
PINS = {"avro": "fastavro==1.13.1", "protobuf": "protobuf==7.36.2"}
MODULES = {"avro": "fastavro", "protobuf": "google.protobuf"}
SCHEMAS = {
    "avro": "a file .avsc, or a folder of files NUMBER.avsc or NUMBER-ID.avsc",
    "protobuf": "a descriptor set of protoc",
}
_ID = "[0-9a-f]{32}"  # of a schema in Azure's registry
_NUMBERED = re.compile(f"[0-9]{{1,10}}(-{_ID})?")
_PROTOC = "protoc --include_imports --descriptor_set_out=order.desc order.proto"


@dataclass(frozen=True, slots=True)
class Format:
    """A format: the files that a room has for it, and both ways between an event and its JSON. `system` are the system
    properties of an event that is made of JSON. `exact` names the fields that are decimals, although JSON writes them
    as numbers."""

    name: Name
    json_of: Callable[[Event], bytes] = lambda event: event.body
    body_of: Callable[[bytes], bytes] = lambda octets: octets
    files: Mapping[str, bytes] = field(default_factory=dict)
    system: Mapping[str, str] = field(default_factory=dict)
    exact: frozenset[str] = frozenset()

    @property
    def pin(self) -> str | None:
        """The line that names the package of the format in a file of requirements."""
        return PINS.get(self.name)

    def sent(self, line: FileEvent) -> FileEvent:
        """Return the event that a sender makes of the JSON of a line."""
        return replace(line, body=self.body_of(line.body), system_properties={**line.system_properties, **self.system})

    def read(self, path: Path) -> Iterator[tuple[FileEvent, bytes]]:
        """Yield each event of a file with its JSON. Raises Refused for a body that is none."""
        for each in _records(path) if self.name == "avro" and is_container(path) else read_events(path):
            try:
                event = each if each.is_sent else self.sent(each)
            except Exception as error:
                raise Refused(f"{path}, line {each.line} does not match the schema: {error}") from error
            try:
                yield event, self.json_of(event_of(event))
            except PoisonEvent as fault:
                raise Refused(f"{path}, line {each.line}: {fault}") from fault


JSON = Format("json")


def format_of(name: str, schema: Path | None, sample: Path | None) -> Format:
    """Return a format with its schema, which a container file may bring as the sample. Raises Refused."""
    if name not in NAMES:
        raise Refused(f"--format {name}: write one of {', '.join(NAMES)}")
    try:
        is_there = name not in MODULES or find_spec(MODULES[name]) is not None
    except (ImportError, ValueError):
        is_there = False
    if not is_there:
        raise Refused(f"--format {name} needs a package: .venv/bin/python -m pip install {PINS[name]}")
    if schema is not None and name not in SCHEMAS:
        raise Refused(f"--format {name} has no schema: leave --schema out, or write --format avro or protobuf")
    if name == "avro":
        return _avro(schema, sample)
    if name == "protobuf":
        return _protobuf(schema)
    if name == "json":
        return JSON
    files = {"wire.py": _source(name)}
    json_of = _imported(files).json_of
    if name == "gzip":
        return Format("gzip", json_of, lambda it: gzip.compress(it, mtime=0), files, {"content-encoding": "gzip"})
    if name == "ces":  # a line of a sample is the body itself
        return Format("ces", json_of, files=files)
    return Format("cloudevents", json_of, files=files, system={"content-type": "application/cloudevents+json"})


def file_of(events: Sequence[FileEvent]) -> tuple[str, bytes]:
    """Return the name and the content of a file of events: bodies in base64, or envelopes."""
    if all(each.is_bare for each in events):
        return f"events{IN_BASE64}", b"".join(b64encode(each.body) + b"\n" for each in events)
    return "events.jsonl", b"".join(each.envelope + b"\n" for each in events)


def _avro(schema: Path | None, sample: Path | None) -> Format:
    if is_container(sample):
        if schema is not None:
            raise Refused(f"{sample} brings its schema: leave --schema out")
        schemas = {"schemas/1.avsc": _read(sample, _header)}
    elif schema is None:
        raise _without_schema("avro")
    else:
        files = sorted(schema.glob("*.avsc")) if schema.is_dir() else [schema]
        names = {each: each.stem.lower() for each in files}
        if not files or (schema.is_dir() and not all(map(_NUMBERED.fullmatch, names.values()))):
            why = "the files of a folder are named by the numbers and ids of their schemas: 7.avsc, or 7-ID.avsc"
            raise Refused(f"--schema {schema}: {why}")
        if not schema.is_dir() and not _NUMBERED.fullmatch(stem := names[schema]):
            names = {schema: f"1-{stem}" if re.fullmatch(_ID, stem) else "1"}
        schemas = {f"schemas/{name}.avsc": _read(each, Path.read_bytes) for each, name in names.items()}
    files_of_room = {"wire.py": _source("avro"), **schemas}
    try:
        wire = _imported(files_of_room)
    except Exception as error:
        raise Refused(f"--schema {schema or sample} is no schema of Avro: {error}") from error
    number, id_, newest = wire.READ[-1]
    for top in wire.SCHEMAS.values():
        kind = top["type"] if isinstance(top, dict) else "union" if isinstance(top, list) else top
        if kind != "record":
            raise Refused(f"--schema {schema or sample}: its top is a {kind}, and the fields of a row need a record")
    exact = frozenset(each["name"] for each in newest["fields"] if "'decimal'" in repr(each["type"]))
    head, system = (b"", {"content-type": f"avro/binary+{id_}"}) if id_ else (_head(number), {})
    return Format("avro", wire.json_of, lambda it: head + _value_of(it, newest), files_of_room, system, exact)


def _protobuf(schema: Path | None) -> Format:
    from google.protobuf import descriptor_pb2, json_format

    if schema is None:
        raise _without_schema("protobuf")
    file, _, message = (str(schema), "", "") if schema.is_file() else str(schema).rpartition(":")
    octets = _read(Path(file or schema), Path.read_bytes)
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(octets).file
    except Exception as error:
        raise Refused(f"--schema {schema} is no descriptor set: make one with {_PROTOC}") from error
    names = [".".join(filter(None, (files[-1].package, each.name))) for each in files[-1].message_type] if files else []
    if message and message not in names:
        raise Refused(f"--schema {schema}: its messages are {', '.join(names)}")
    if not message and len(names) != 1:
        found = f"it has the messages {', '.join(names)}" if names else f"it has no message; make it with {_PROTOC}"
        raise Refused(f"--schema {schema}: {found}: write --schema FILE:MESSAGE")
    source = _source("protobuf").replace(b'NAME = "Message"', f'NAME = "{message or names[0]}"'.encode())
    room = {"wire.py": source, "message.desc": octets}
    try:
        wire = _imported(room)
    except Exception as error:
        raise Refused(f"--schema {schema} cannot be used: {error}; make it with {_PROTOC}") from error
    return Format(
        "protobuf",
        wire.json_of,
        lambda given: json_format.Parse(given, wire.Message()).SerializeToString(),
        room,
    )


def _without_schema(name: str) -> Refused:
    return Refused(f"--format {name} needs its schema: --schema FILE, {SCHEMAS[name]}")


def _read(path: Path | None, read: Callable[[Path], bytes]) -> bytes:
    assert path is not None
    try:
        return read(path)
    except OSError as error:
        raise Refused(f"--schema {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Refused(f"{path} is no container file that can be read: {error}") from error


def _header(path: Path) -> bytes:
    from fastavro import reader

    with opened(path) as file:
        return str(reader(file).metadata["avro.schema"]).encode()


def _records(path: Path) -> Iterator[FileEvent]:
    from fastavro import reader

    with opened(path) as file:
        found = reader(file)
        try:
            for number, value in enumerate(found, 1):
                yield FileEvent(number, _head(1) + _written(value, found.writer_schema), is_sent=True)
        except (ValueError, EOFError) as error:
            raise Refused(f"{path} breaks off: {error!r}") from error


def _head(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big")


def _value_of(octets: bytes, schema: Any) -> bytes:
    from fastavro import parse_schema

    from hubledger.cli.formats.avro_values import value_of

    named: dict[str, Any] = {}
    return _written(value_of(octets, parse_schema(schema, named, _force=True), named), schema)


def _written(value: Any, schema: Any) -> bytes:
    from io import BytesIO

    from fastavro import schemaless_writer

    stream = BytesIO()
    schemaless_writer(stream, schema, value)
    return stream.getvalue()


def _source(name: str) -> bytes:
    return (Path(__file__).parent / "wires" / f"{name}.py").read_bytes()


def _imported(files: Mapping[str, bytes]) -> ModuleType:
    """Return the decoder of a room that is not written yet."""
    with TemporaryDirectory() as folder:
        for name, octets in files.items():
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(octets)
        spec = spec_from_file_location("wire", Path(folder) / "wire.py")
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
