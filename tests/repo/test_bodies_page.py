import gzip
import json
import re
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

from core.transforms.loading import check_transform
from hubledger.cli.formats.format import format_of
from hubledger.testing import assert_poison, event_of
from tests.fakes.written_modules import written_modules
from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "bodies.md").read_text(encoding="utf-8")
BODIES = ROOT / "core" / "model" / "transforms.py"


def block(section: str, kind: str) -> str:
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M)
    (found,) = re.findall(rf"```{kind}\n(.*?)```", text, re.S)
    return str(found)


AZ = """#!/bin/sh
printf '%s\\n' "$*" >> "$ASKED"
while [ "$1" != --output-file ]; do shift; done
printf '{"type": "record", "name": "Order", "fields": []}' > "$2"
"""


def test_the_command_of_the_page_fetches_each_version_to_where_the_transform_reads_it(tmp_path: Path) -> None:
    """A stand-in of `az` records what it is asked. The path and the version of the API are those of Azure's clients."""
    (tmp_path / "az").write_text(AZ, encoding="utf-8")
    (tmp_path / "az").chmod(0o755)
    schemas, asked = tmp_path / "apps" / "orders" / "schemas", tmp_path / "asked"
    schemas.mkdir(parents=True)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "ASKED": str(asked)}
    subprocess.run(["sh", "-euc", block("Avro", "sh")], cwd=tmp_path, env=environment, check=True)
    ids = {7: "052e7046f99f4a6a82f38b5902ebf5e3", 12: "e086b25cd8344fad9fc9e1dc3d8363f9"}
    assert {path.name for path in schemas.iterdir()} == {f"{number}-{id_}.avsc" for number, id_ in ids.items()}
    registry = "https://NAMESPACE.servicebus.windows.net/$schemaGroups/$schemas"
    urls = [line.rpartition("--url ")[2] for line in asked.read_text(encoding="utf-8").splitlines()]
    assert urls == [f"{registry}/{id_}?api-version=2023-07-01" for id_ in ids.values()]


def test_each_sample_of_the_page_is_read_by_its_format(tmp_path: Path) -> None:
    """The bodies are made by hand: by gzip, and from the specification of Avro."""
    parcel, file = {"parcelId": "P-1", "grams": 520}, tmp_path / "events.jsonl"
    schema = tmp_path / "7-052e7046f99f4a6a82f38b5902ebf5e3.avsc"
    fields = [{"name": "parcelId", "type": "string"}, {"name": "grams", "type": "long"}]
    schema.write_text(json.dumps({"type": "record", "name": "P", "fields": fields}), encoding="utf-8")
    for section, format_ in {"gzip": "gzip", "CloudEvents": "cloudevents", "Avro": "avro"}.items():
        file.write_text(block(section, "json"), encoding="utf-8")
        form = format_of(format_, schema if format_ == "avro" else None, file)
        read = [(event, json.loads(octets)) for event, octets in form.read(file)]
        attributes = {"specversion": "1.0", "id": "A-1", "source": "/depot/7", "type": "parcel.weighed"}
        about = {**attributes, "time": "2026-03-01T10:00:00Z"} if format_ == "cloudevents" else {}
        assert [one for _, one in read] == len(read) * [{f"ce_{name}": each for name, each in about.items()} | parcel]
        assert [event.is_bare for event, _ in read] == len(read) * [False]


def test_each_record_of_a_body_is_a_row_and_a_bad_one_is_named_in_a_letter_of_all(tmp_path: Path) -> None:
    with written_modules(tmp_path) as modules:
        modules.write("", "room_of_bodies.__init__")
        name = modules.write(block("Several events in one body", "python"), "room_of_bodies.transform")
        assert check_transform(name) == (1, 0)
        module = import_module(name)

        def columns(body: bytes) -> list[tuple[Any, ...]]:
            return [
                tuple(getattr(row, name) for name in row.__slots__) for row in module.transform(event_of(body), None)
            ]

        one, other = b'{"category": "a", "level": "Error", "new": 1}', b'{"category": "b"}'
        assert columns(b'{"records": [%b, %b]}' % (one, other)) == [("a", "Error"), ("b", None)]
        assert columns(b'{"records": []}') == []
        for body, why in {
            b'{"records": [%b, {"category": 1}]}' % one: r"element 2: Expected `str`, got `int` - at `\$\.category`",
            b'[{"records": []}]': "the body has no records: it is a list: `new --each array` reads it",
            b'{"value": [%b]}' % one: "its only field is a list: `new --each FIELD` reads it",
            gzip.compress(one): "it is compressed by gzip",
        }.items():
            assert_poison(module, body, why)


def test_the_page_has_a_remedy_for_each_fault() -> None:
    (table,) = re.findall(r"\| fault \| remedy \|\n\|---\|---\|\n((?:\|.*\n)*)", PAGE)
    listed = re.findall(r"^\| (.*?) \|", table, re.M)
    found = re.findall(r'"(it is|its|it has|it begins)( [^":(]*)', BODIES.read_text(encoding="utf-8"))
    assert sorted(listed) == sorted("".join(each).rstrip() for each in found)
