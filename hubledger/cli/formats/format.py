"""The formats of bodies that are not JSON: a room gets a decoder, `wire.py`, and its sample in that format."""

import gzip
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Literal, get_args

from core.errors import PoisonEvent
from core.model.events import Event
from hubledger.cli.output import Refused
from hubledger.cli.trial import read_events
from local.feed.event_file import has_bodies, is_container, opened
from local.trials.outcomes import event_of

Name = Literal["json", "gzip", "avro", "protobuf", "ces"]
NAMES: tuple[Name, ...] = get_args(Name)
PINS = {"avro": "fastavro==1.13.1", "protobuf": "protobuf==7.36.2"}
MODULES = {"avro": "fastavro", "protobuf": "google.protobuf"}
SCHEMAS = {"avro": "a file .avsc, or a folder of files ID.avsc", "protobuf": "a descriptor set of protoc"}
_PROTOC = "protoc --include_imports --descriptor_set_out=order.desc order.proto"


@dataclass(frozen=True, slots=True)
class Format:
    """A format: the files that a room has for it, and both ways between a body and its JSON. `exact` names the fields
    that are decimals, although JSON writes them as numbers."""

    name: Name
    json_of: Callable[[Event], bytes] = lambda event: event.body
    body_of: Callable[[bytes], bytes] = lambda octets: octets
    files: Mapping[str, bytes] = field(default_factory=dict)
    exact: frozenset[str] = frozenset()

    @property
    def pin(self) -> str | None:
        """The line that names the package of the format in a file of requirements."""
        return PINS.get(self.name)

    def read(self, path: Path) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield the number, the JSON and the body of each event of a file. Raises Refused for a body that is none."""
        holds_records = self.name == "avro" and is_container(path)
        bodies = _records(path) if holds_records else ((each.line, each.body) for each in read_events(path))
        is_made = not holds_records and not has_bodies(path)
        for number, body in bodies:
            if is_made:
                try:
                    body = self.body_of(body)
                except Exception as error:
                    raise Refused(f"{path}, line {number} does not match the schema: {error}") from error
            try:
                yield number, self.json_of(event_of(body)), body
            except PoisonEvent as fault:
                raise Refused(f"{path}, line {number}: {fault}") from fault


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
    if name == "ces":  # a line of a sample is the body itself
        return Format("ces", json_of, files=files)
    return Format("gzip", json_of, lambda it: gzip.compress(it, mtime=0), files)


def in_base64(bodies: tuple[bytes, ...]) -> bytes:
    """Return a file of bodies in base64."""
    return b"".join(b64encode(each) + b"\n" for each in bodies)


def _avro(schema: Path | None, sample: Path | None) -> Format:
    if is_container(sample):
        if schema is not None:
            raise Refused(f"{sample} brings its schema: leave --schema out")
        schemas = {"schemas/1.avsc": _read(sample, _header)}
    elif schema is None:
        raise _without_schema("avro")
    else:
        files = sorted(schema.glob("*.avsc")) if schema.is_dir() else [schema]
        if not files or (schema.is_dir() and not all(each.stem.isdecimal() for each in files)):
            raise Refused(f"--schema {schema}: the files of a folder are named by the ids of their schemas: 7.avsc")
        ids = {each: int(each.stem) if each.stem.isdecimal() else 1 for each in files}
        schemas = {f"schemas/{id_}.avsc": _read(each, Path.read_bytes) for each, id_ in ids.items()}
    files_of_room = {"wire.py": _source("avro"), **schemas}
    try:
        wire = _imported(files_of_room)
    except Exception as error:
        raise Refused(f"--schema {schema or sample} is no schema of Avro: {error}") from error
    newest = max(wire.SCHEMAS)
    for top in wire.SCHEMAS.values():
        kind = top["type"] if isinstance(top, dict) else "union" if isinstance(top, list) else top
        if kind != "record":
            raise Refused(f"--schema {schema or sample}: its top is a {kind}, and the fields of a row need a record")
    exact = frozenset(each["name"] for each in wire.NEWEST["fields"] if "'decimal'" in repr(each["type"]))
    return Format("avro", wire.json_of, lambda octets: _framed(octets, newest, wire.NEWEST), files_of_room, exact)


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


def _records(path: Path) -> Iterator[tuple[int, bytes]]:
    from fastavro import reader

    with opened(path) as file:
        found = reader(file)
        try:
            for number, value in enumerate(found, 1):
                yield number, _frame(1, value, found.writer_schema)
        except (ValueError, EOFError) as error:
            raise Refused(f"{path} breaks off: {error!r}") from error


def _framed(octets: bytes, id_: int, schema: Any) -> bytes:
    from fastavro import parse_schema

    from hubledger.cli.formats.avro_values import value_of

    named: dict[str, Any] = {}
    return _frame(id_, value_of(octets, parse_schema(schema, named, _force=True), named), schema)


def _frame(id_: int, value: Any, schema: Any) -> bytes:
    from io import BytesIO

    from fastavro import schemaless_writer

    stream = BytesIO()
    schemaless_writer(stream, schema, value)
    return b"\0" + id_.to_bytes(4, "big") + stream.getvalue()


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
