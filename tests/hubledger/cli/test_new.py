"""`new`: a room that is whole, formatted, typed and green from its first minute, or no room at all."""

import gzip
import json
import os
import signal
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import fastavro
import pytest

from local.capture import SCHEMA
from tests.hubledger.cli.project import PARCELS, Project, refusal

pytestmark = pytest.mark.slow
INTERRUPTED = """
import sys
from hubledger.cli.main import main
sys.exit(main(["new", "x", "--from", "long.jsonl"]))
"""
STRANGE = {
    "select": "a b", "class": "x", "sequence_number": 5, "Order": 1, "größe": 1e300, "日本": "語", "_id": "ab12",
    "date": "2026-01-01", "datetime": "2026-01-01T10:00:00.123456789+05:30", "field": "q", "str": "s", "int": 3,
    "None": "n", "window_start": "w", "big": 12345678901234567890, "long": "x y'\" " * 100, "huge": "y" * 5000,
    "very long " + "n" * 85: "v'\"\n\u2028\\", "naive": "2026-01-01T10:00:00", "9lives": True, "list": [1, {"a": []}],
    "events": 7, "obj": {"k": "é"}, "neg": -0.0, "null": None, "old": "0001-01-01T00:00:00Z", "emoji": "😀😀",
    "self": "me", "it's": "q", "run_id": "r", "hubledger_level": 3,
}  # fmt: skip
LESS = {**{name: value for name, value in STRANGE.items() if name not in ("list", "int")}, "date": None, "obj": None}
GRID = tuple(
    f'[{{"topic": "/x", "subject": "a/{each}", "eventTime": "2026-04-05T17:31:00.1234567Z", "id": "1", "data":'
    ' {"api": "PutBlob"}, "dataVersion": ""}]'
    for each in "bc"
)
EVERY = (
    "id:text(32)", "amount:integer?", "price:decimal", "placedAt:instant", "note:text(200)?", "raw:json", "opt:json?",
    "od:decimal?", "oi:instant?", "day:date", "code:ascii(8)?", "ok:boolean", "n:float", "d2:date?", "b2:boolean?",
)  # fmt: skip


def names_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if one.name != "__pycache__")


def test_a_room_of_each_kind_is_sound_and_its_migrations_fit(project: Project) -> None:
    project.parcels()
    project.write("strange.jsonl", json.dumps(STRANGE, ensure_ascii=False), json.dumps(LESS))
    project.done("hubledger", "new", "strange_things", "--from", "strange.jsonl", "--key", "run_id,_id,select")
    project.write("wide.jsonl", json.dumps({f"field_number_{number}": number for number in range(300)}))
    project.done("hubledger", "new", "wide", "--from", "wide.jsonl")
    (project.folder / "one.jsonl").write_text('{"only": null}')
    project.done("hubledger", "new", "ones", "--from", "one.jsonl")
    fields = [part for one in EVERY for part in ("--field", one)]
    project.done("hubledger", "new", "flags", *fields, "--key", "id,day", "--table", "flag")
    rooms = ("parcels", "strange_things", "wide", "ones", "flags")
    project.assert_sound(*rooms)


def test_a_room_of_several_elements_in_a_body_is_sound_and_a_letter_names_the_element(project: Project) -> None:
    project.write("grid.jsonl", *GRID)
    project.done("hubledger", "new", "grid", "--from", "grid.jsonl", "--each", "array", "--key", "subject")
    logs = '{"records": [{"größe": 1.5, "at": "2026-01-01T00:00:00Z"}, {"größe": 2, "at": "2026-01-01T00:00:00Z"}]}'
    project.write("logs.jsonl", logs)
    project.done("hubledger", "new", "logs", "--from", "logs.jsonl", "--each", "records", "--strict")
    project.write("readings.base64", b64encode(b'{"id": "a", "n": 1}\r\n{"id": "b"}\r\n').decode())
    project.done("hubledger", "new", "readings", "--from", "readings.base64", "--each", "lines")
    project.done("hubledger", "new", "named", "--field", "id:text", "--each", "größe", "--key", "id")
    project.assert_sound("grid", "logs", "readings", "named", trials_of_each=7)
    assert (project.folder / "apps/readings/events.base64").is_file()
    one, other = GRID[0][1:-1], GRID[1][1:-1]
    newer, wrong = one.replace("PutBlob", "CopyBlob"), one.replace('"id": "1"', '"id": 1')
    project.write("more.jsonl", f"[{one}, {newer}, {other}]", "[]", f"[{one}, {wrong}]", "{}")
    tried = project.tried("more.jsonl", "--transform", "grid")
    assert [tried[name] for name in ("events", "written", "filtered", "dead_lettered")] == [4, 1, 1, 2]
    assert [each["error"].partition(":")[0] for each in tried["letters"]] == [
        "element 2",
        "the body has no list of grid",
    ]
    assert tried["tables"]["grid_event"]["count"] == 3
    states = {each["row"]["subject"]: each["row"]["data"] for each in tried["tables"]["grid_state"]["rows"]}
    assert states == {"a/b": '{"api": "CopyBlob"}', "a/c": '{"api": "PutBlob"}'}


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {  # by the reason: the options, and the lines of the file
    "many.jsonl, line 1 does not fit: the event becomes more than 10000 rows; nothing was written": (
        ("many", "--from", "many.jsonl", "--each", "array"),
        "[" + ", ".join(['{"n": 1}'] * 10_001) + "]",
    ),
    "--each array parts bodies in JSON: leave out --format gzip, or --each": (
        ("x", "--from", "many.jsonl", "--each", "array", "--format", "gzip"),
        '[{"n": 1}]',
    ),
    "write lines, array, or the name of a field": (("x", "--from", "many.jsonl", "--each", ""), '[{"n": 1}]'),
    "no quote or backslash": (("x", "--from", "many.jsonl", "--each", 'a"b'), '[{"n": 1}]'),
    "line 2 does not fit": (("x", "--from", "many.jsonl", "--field", "n:integer"), '{"n": 1}\n{"n": 1.5}'),
    "at most 900": (("x", "--field", "a:text(400)", "--field", "b:text(400)", "--key", "a,b"), ""),
}


def test_what_no_room_can_be_made_of_is_refused_in_a_sentence_and_leaves_nothing(project: Project) -> None:
    for said, (options, lines) in REFUSED.items():
        project.write("many.jsonl", lines)
        assert said in refusal(project.hubledger("new", *options)), options
        assert names_in(project.folder / "apps") == ["__init__.py"], options


def test_a_room_that_exists_stays_as_it_is_and_its_tables_are_its_own(project: Project) -> None:
    (project.folder / "apps" / "parcels").mkdir()
    assert "exists already" in refusal(project.hubledger("new", "parcels", "--field", "id:text"))
    assert names_in(project.folder / "apps" / "parcels") == []
    project.done("hubledger", "new", "depots", "--field", "id:text")
    assert "apps/depots" in refusal(project.hubledger("new", "depot_events", "--field", "id:text"))


def test_a_file_of_capture_makes_a_room_of_its_bodies_in_any_format(project: Project) -> None:
    pretty = json.dumps(json.loads(PARCELS[0]), indent=2)
    for name, bodies in {"capture": (pretty, PARCELS[1]), "zipped": PARCELS}.items():
        records = [
            {
                "SequenceNumber": 0, "Offset": "1", "EnqueuedTimeUtc": "1/2/2026 3:04:05 PM", "SystemProperties": {},
                "Properties": {}, "Body": gzip.compress(each.encode()) if name == "zipped" else each.encode(),
            }
            for each in bodies
        ]  # fmt: skip
        with (project.folder / f"{name}.avro").open("wb") as file:
            fastavro.writer(file, SCHEMA, records)
    project.done("hubledger", "new", "parcels", "--from", "capture.avro", "--key", "parcelId")
    project.done("hubledger", "new", "zipped", "--from", "zipped.avro", "--format", "gzip")
    assert (project.folder / "apps/parcels/events.base64").is_file(), "a body of several lines is no line"
    for room, events in (("parcels", 2), ("zipped", 3)):
        assert project.tried("--transform", room)["written"] == events
    assert project.tried("capture.avro", "--transform", "parcels")["written"] == 2
    assert "10 passed" in project.done("pytest", "-q", "-n", "0", "-o", "addopts=", "apps", "-k", "not any_body")


def test_the_room_has_these_files_and_the_next_commands_are_printed(project: Project) -> None:
    project.write("one.jsonl", '{"id": "a", "at": "2026-01-01T00:00:00Z"}')
    out = project.done("hubledger", "new", "parcels", "--from", "one.jsonl")
    room = project.folder / "apps" / "parcels"
    written = sorted(str(one.relative_to(room)) for one in room.rglob("*") if one.is_file())
    assert written == [
        "README.md", "__init__.py", "aggregates/__init__.py", "aggregates/parcels_by_hour.py", "events.jsonl",
        "migrations/sqlite/0001_parcels.sql", "migrations/sqlserver/0001_parcels.sql", "permissions.sql",
        "tests/__init__.py", "tests/test_parcels.py", "transform.py",
    ]  # fmt: skip
    assert all(f"apps/parcels/{name}" in out for name in written)
    following = out.partition("Next:")[2].strip().splitlines()
    assert [line.split()[1] for line in following] == ["try", "check-room", "demo"]
    assert names_in(project.folder / "apps") == ["__init__.py", "parcels"]


def test_malformed_lines_are_left_out_and_named_and_advice_is_given(project: Project) -> None:
    good = '{"type": "%s", "id": "a", "price": 2.5, "at": "2026-01-01T00:00:00Z"}'
    project.write("shop.jsonl", good % "sold", "{", *["[]"] * 6, good % "returned")
    out = project.done("hubledger", "new", "sales", "--from", "shop.jsonl", "--key", "id")
    assert "Left out: 7 lines of shop.jsonl" in out
    assert "shop.jsonl, line 2 is not JSON" in out
    assert "and 2 more" in out
    assert 'Consider: price looks like money, and a float rounds it: --field "price:decimal" keeps it exactly.' in out
    assert "To add an option: rm -r apps/" in out
    assert "the field type has 2 values (returned, sold)" in out
    assert "The aggregate sums by hour and id into the table sales_by_hour." in out
    assert (project.folder / "apps" / "sales" / "events.jsonl").read_text().count("\n") == 2


@pytest.mark.parametrize(("options", "letters"), [((), 0), (("--strict",), 1)])
def test_an_added_field_is_ignored_and_told_and_poison_only_in_a_strict_room(
    project: Project, options: tuple[str, ...], letters: int
) -> None:
    project.write("old.jsonl", '{"id": "a"}')
    project.done("hubledger", "new", "orders", "--from", "old.jsonl", *options)
    project.write("new.jsonl", '{"id": "a"}', '{"id": "b", "coupon": 1}')
    out = project.done("hubledger", "try", "new.jsonl", "--transform", "orders")
    assert f"letters {letters}" in out
    told = "1 event has the unknown field `coupon`: add it to the body, or ignore it"
    assert (told in out) is not bool(options)
    assert "1 passed" in project.done("pytest", "-q", "-n", "0", "-o", "addopts=", "apps", "-k", "nobody_knows")


def test_an_interruption_leaves_nothing(project: Project) -> None:
    lines = ['{"id": 1}'] * 60_000
    project.write("long.jsonl", *lines)
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        cwd=project.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    while process.poll() is None and not any((project.folder / "apps").glob(".x.*/README.md")):
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    assert process.communicate()[1] == "hubledger: interrupted; nothing was written\n"
    assert process.returncode == 130
    assert names_in(project.folder / "apps") == ["__init__.py"]
