"""`new` and `migrate-diff`: a room that is whole, formatted, typed and green from its first minute, or no room at all.

No guess of `new` about a file, as others publish them, refuses what a later event brings.
"""

import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastavro import writer

from hubledger.cli.scaffold.sample import read_sample
from local.capture import SCHEMA
from tests.hubledger.cli.project import PARCELS, Project, refusal

pytestmark = pytest.mark.slow
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


def made(project: Project, room: str, *lines: str, options: str = "") -> str:
    project.write(f"{room}.jsonl", *lines)
    return project.done("hubledger", "new", room, "--from", f"{room}.jsonl", *options.split())


def tried(project: Project, room: str, *lines: str) -> Any:
    project.write("later.jsonl", *lines)
    return project.tried("later.jsonl", "--transform", f"apps.{room}")


def capture(file: Path, *bodies: bytes) -> None:
    at: dict[str, Any] = {"SequenceNumber": 0, "Offset": "1", "EnqueuedTimeUtc": "1/2/2026 3:04:05 PM"}
    with file.open("wb") as to:
        writer(to, SCHEMA, [{**at, "SystemProperties": {}, "Properties": {}, "Body": each} for each in bodies])


def test_a_room_of_each_kind_is_sound_and_its_migrations_fit(project: Project) -> None:
    project.parcels()
    strange = json.dumps(STRANGE, ensure_ascii=False), json.dumps(LESS)
    made(project, "strange_things", *strange, options="--key run_id,_id,select")
    made(project, "wide", json.dumps({f"field_number_{number}": number for number in range(300)}))
    made(project, "ones", '{"only": null}')
    made(project, "epochs", *EPOCH, options="--key id")
    made(project, "loose", *INTEGERS, options="--loose")
    fields = [part for one in EVERY for part in ("--field", one)]
    project.done("hubledger", "new", "flags", *fields, "--key", "id,day", "--table", "flag")
    project.assert_sound("parcels", "strange_things", "wide", "ones", "epochs", "loose", "flags")


def test_a_room_of_several_elements_in_a_body_is_sound_and_a_letter_names_the_element(project: Project) -> None:
    logs = '{"records": [{"größe": 1.5, "at": "2026-01-01T00:00:00Z"}, {"größe": 2, "at": "2026-01-01T00:00:00Z"}]}'
    made(project, "grid", *GRID, options="--each array --key subject")
    made(project, "logs", logs, options="--each records --strict")
    project.write("readings.base64", b64encode(b'{"id": "a", "n": 1}\r\n{"id": "b"}\r\n').decode())
    project.done("hubledger", "new", "readings", "--from", "readings.base64", "--each", "lines")
    project.done("hubledger", "new", "named", "--field", "id:text", "--each", "größe", "--key", "id")
    project.assert_sound("grid", "logs", "readings", "named", trials_of_each=7)
    assert (project.folder / "apps/readings/events.base64").is_file()
    one, other = GRID[0][1:-1], GRID[1][1:-1]
    newer, wrong = one.replace("PutBlob", "CopyBlob"), one.replace('"id": "1"', '"id": 1')
    found = tried(project, "grid", f"[{one}, {newer}, {other}]", "[]", f"[{one}, {wrong}]", "{}")
    assert [found[name] for name in ("events", "written", "filtered", "dead_lettered")] == [4, 1, 1, 2]
    said = [each["error"].partition(":")[0] for each in found["letters"]]
    assert said == ["element 2", "the body has no list of grid"]
    states = {row["subject"]: row["data"] for row in rows_of(found, "grid_state")}
    assert states == {"a/b": '{"api": "CopyBlob"}', "a/c": '{"api": "PutBlob"}'}
    assert found["tables"]["grid_event"]["count"] == 3


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
    project.done("hubledger", "new", "depots", "--field", "id:text")
    before = names_in(project.folder / "apps" / "depots")
    assert "exists already" in refusal(project.hubledger("new", "depots", "--field", "n:integer"))
    assert "apps/depots" in refusal(project.hubledger("new", "depot_events", "--field", "id:text"))
    assert names_in(project.folder / "apps" / "depots") == before


def test_a_file_of_capture_makes_a_room_of_its_bodies_in_any_format(project: Project) -> None:
    pretty = json.dumps(json.loads(PARCELS[0]), indent=2)
    capture(project.folder / "capture.avro", pretty.encode(), PARCELS[1].encode())
    capture(project.folder / "zipped.avro", *(gzip.compress(each.encode()) for each in PARCELS))
    project.done("hubledger", "new", "parcels", "--from", "capture.avro", "--key", "parcelId")
    project.done("hubledger", "new", "zipped", "--from", "zipped.avro", "--format", "gzip")
    assert (project.folder / "apps/parcels/events.base64").is_file(), "a body of several lines is no line"
    for given in (("--transform", "parcels"), ("capture.avro", "--transform", "parcels")):
        assert project.tried(*given)["written"] == 2
    assert project.tried("--transform", "zipped")["written"] == 3
    assert "10 passed" in project.done("pytest", "-q", "-n", "0", "-o", "addopts=", "apps", "-k", "not any_body")


def test_the_files_and_the_next_commands_are_printed_with_the_lines_left_out_and_advice(project: Project) -> None:
    good = '{"type": "%s", "id": "a", "price": 2.5, "at": "2026-01-01T00:00:00Z"}'
    out = made(project, "sales", good % "sold", "{", *["[]"] * 6, good % "returned", options="--key id")
    room = project.folder / "apps" / "sales"
    written = sorted(str(one.relative_to(room)) for one in room.rglob("*") if one.is_file())
    assert written == [
        "README.md", "__init__.py", "aggregates/__init__.py", "aggregates/sales_by_hour.py", "events.jsonl",
        "migrations/sqlite/0001_sales.sql", "migrations/sqlserver/0001_sales.sql", "permissions.sql",
        "tests/__init__.py", "tests/test_sales.py", "transform.py",
    ]  # fmt: skip
    assert all(f"apps/sales/{name}" in out for name in written)
    following = out.partition("Next:")[2].strip().splitlines()
    assert [line.split()[1] for line in following] == ["try", "check-room", "demo"]
    for told in (
        *("Left out: 7 lines of sales.jsonl", "sales.jsonl, line 2 is not JSON", "and 2 more", "rm -r apps/"),
        *("Consider: price looks like money", "The aggregate sums by hour and id into the table sales_by_hour."),
    ):
        assert told in out
    assert (room / "events.jsonl").read_text().count("\n") == 2


@pytest.mark.parametrize(("options", "letters"), [("", 0), ("--strict", 1)])
def test_an_added_field_is_ignored_and_told(project: Project, options: str, letters: int) -> None:
    made(project, "orders", '{"id": "a"}', options=options)
    project.write("new.jsonl", '{"id": "a"}', '{"id": "b", "coupon": 1}')
    out = project.done("hubledger", "try", "new.jsonl", "--transform", "orders")
    assert f"letters {letters}" in out
    told = "1 event has the unknown field `coupon`: add it to the body, or ignore it"
    assert (told in out) is not bool(options)
    assert "1 passed" in project.done("pytest", "-q", "-n", "0", "-o", "addopts=", "apps", "-k", "nobody_knows")


def test_an_interruption_leaves_nothing(project: Project) -> None:
    project.write("long.jsonl", *['{"id": 1}'] * 60_000)
    command = [sys.executable, "-m", "hubledger", "new", "x", "--from", "long.jsonl"]
    process = subprocess.Popen(
        command, cwd=project.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    while process.poll() is None and not any((project.folder / "apps").glob(".x.*/README.md")):
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    assert process.communicate()[1] == "hubledger: interrupted; nothing was written\n"
    assert process.returncode == 130
    assert names_in(project.folder / "apps") == ["__init__.py"]


AT = '"at": "2026-03-01T10:00:0'
INTEGERS = (f'{{"id": "S-1", "temperature": 21, {AT}0Z"}}', f'{{"id": "S-2", "temperature": 22, {AT}1Z"}}')
LATER = (
    f'{{"id": "S-1", "temperature": 21.5, {AT}2Z"}}', f'{{"id": "S-2", "temperature": 22.0, {AT}3Z"}}',
    f'{{"id": "S-2", "temperature": null, {AT}4Z"}}', f'{{"id": "S 3", "temperature": 20, {AT}5Z"}}',
)  # fmt: skip
EPOCH = tuple(f'{{"id": "A-{n}", "kind": "x y", "ts": 158567398{n}, "value": 2{n}}}' for n in range(2))
CLOUD_EVENT = {
    "specversion": "1.0", "id": "A234-1", "source": "/sensors/tn-1", "type": "com.example.reading",
    "time": "2026-04-05T17:31:05.1234567Z", "datacontenttype": "application/json", "data": {"value": 22},
}  # fmt: skip


def rows_of(found: Any, table: str) -> list[Any]:
    return [one["row"] for one in found["tables"][table]["rows"]]


def test_texts_may_be_empty_or_longer_or_end_with_a_blank_and_objects_are_kept_as_json(project: Project) -> None:
    said = made(project, "notes", json.dumps(CLOUD_EVENT), json.dumps({**CLOUD_EVENT, "id": "dev 2"}))
    assert "Note: data: kept whole as JSON text, so no field inside becomes a column." in said
    assert "time of the event" in said
    later = [json.dumps({**CLOUD_EVENT, "source": text}) for text in ("door open", "", "gute Tür ", "x" * 3000)]
    found = tried(project, "notes", *later)
    assert (found["written"], found["letters"]) == (4, [])
    assert [json.loads(row["data"]) for row in rows_of(found, "note_event")] == [CLOUD_EVENT["data"]] * 4


def test_a_blank_at_the_end_is_refused_by_a_grouping_and_a_key_as_new_says(project: Project) -> None:
    lines = [f'{{"site": "{site}", "note": "a ", {AT}0Z"}}' for site in ("north", "south")]
    padded = f'{{"site": "north ", "note": "", {AT}0Z"}}'
    said = made(project, "sites", *lines)
    assert "  without a blank at the end, because it groups the aggregate: site\n" in said
    (letter,) = tried(project, "sites", *lines, padded)["letters"]
    assert (letter["line"], letter["class"]) == (3, "refused")
    said = made(project, "places", *lines, options="--key site")
    assert "  neither empty nor with a blank at the end, because it is a key: site\n" in said
    (letter,) = tried(project, "places", *lines, padded)["letters"]
    assert (letter["line"], letter["class"]) == (3, "poison")
    project.write("padded.jsonl", padded, padded.replace("north ", ""))
    said = refusal(project.hubledger("new", "x", "--from", "padded.jsonl", "--key", "site"))
    assert said == "--key site: its texts are too long for a key, or one ends with a blank, which no key has"
    project.write("empty.jsonl", padded.replace("north ", ""))
    said = refusal(project.hubledger("new", "x", "--from", "empty.jsonl", "--key", "site"))
    assert said.endswith("at `$.site`; a key has no empty text, and no blank at its end; nothing was written")


def test_new_says_what_it_assumes_of_integers_and_a_loose_room_takes_fractions_and_null(project: Project) -> None:
    said = made(project, "strict", *INTEGERS)
    for told in (
        "Assumed, because each line of strict.jsonl shows it (an event that differs becomes a letter):\n",
        "  always present: id, temperature, at\n",
        '  whole numbers, so neither 21.5 nor 10.0 nor "10": temperature\n',
        "--loose takes numbers with a fraction, and events without a value.\n",
    ):
        assert told in said
    assert [one["line"] for one in tried(project, "strict", *LATER)["letters"]] == [1, 2, 3]
    said = made(project, "loose", *INTEGERS, options="--loose --key id --at at")
    assert "always present: id, at\n" in said and "--loose takes" not in said
    found = tried(project, "loose", *LATER)
    assert (found["written"], found["letters"]) == (4, [])
    assert [row["temperature"] for row in rows_of(found, "loose_event")] == [21.5, 22.0, None, 20.0]
    said = made(project, "looser", *INTEGERS, options="--loose")
    assert "that every event has: name them by --at and --key." in said
    said = refusal(project.hubledger("new", "x", "--field", "a:text", "--loose"), 2)
    assert said.startswith("--loose is about the fields of a file")


def test_seconds_since_1970_are_instants_and_a_flag_that_contradicts_the_file_is_one_sentence(project: Project) -> None:
    said = made(project, "epochs", *EPOCH)
    assert "Note: ts is a time" in said
    assert "The aggregate sums by hour and id" in said
    assert rows_of(project.tried("--transform", "apps.epochs"), "epoch_event")[0]["ts"] == "2020-03-31T16:59:40Z"
    for given, why in {
        "ts:instant": "Expected `datetime`, got `int` - at `$.ts`; the lines show epoch_s, and --field ts:instant was",
        "kind:ascii": "- at `$.kind`; the lines show text(4000), and --field kind:ascii(40) was given",
        "id:text(2)": "line 1 does not fit: the body is no event of x: Expected `str` of length <= 2 - at `$.id`",
    }.items():
        assert why in refusal(project.hubledger("new", "x", "--from", "epochs.jsonl", "--field", given)), given


def test_a_number_since_1970_of_any_unit_is_cut_to_microseconds_and_what_is_none_is_poison(project: Project) -> None:
    fields = [part for unit in ("s", "ms", "us", "ns") for part in ("--field", f"{unit}:epoch_{unit}?")]
    project.done("hubledger", "new", "clocks", *fields, "--field", "id:integer", "--strict")
    good = {
        '"s": 1585673980.9999999999999999999': "2020-03-31T16:59:40.999999Z",
        '"s": -0.0000001': "1969-12-31T23:59:59.999999Z",
        '"s": 253402300799.9999999': "9999-12-31T23:59:59.999999Z",
        '"s": -62135596800': "0001-01-01T00:00:00Z",
        '"ms": 1585673980123.4567': "2020-03-31T16:59:40.123456Z",
        '"us": 1585673980123456.7': "2020-03-31T16:59:40.123456Z",
        '"ns": 1585673980123456999': "2020-03-31T16:59:40.123456Z",
        '"s": "1585673980"': "2020-03-31T16:59:40Z",
    }
    bad = ('"s": 253402300800', '"s": 1e300', '"ns": 1e30', '"s": "NaN"', '"s": "Infinity"', '"s": true', '"s": [1]')
    found = tried(project, "clocks", *(f'{{"id": 1, {each}}}' for each in (*good, *bad)))
    assert [(each["line"], each["class"]) for each in found["letters"]] == [
        (len(good) + place, "poison") for place in range(1, len(bad) + 1)
    ]
    rows = rows_of(found, "clock_event")
    values = [next(row[unit] for unit in ("s", "ms", "us", "ns") if row[unit] is not None) for row in rows]
    assert values == list(good.values())


FORMS = {  # of a time, a number and a day
    "at": (
        *("2026-03-01T10:00:00Z", "2026-03-01 10:00:00Z", "2026-03-01t10:00:00z", "2026-03-01T10:00:00+0100"),
        *("2026-03-01T10:00:00.123456789-01:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
        *("2016-12-31T23:59:60Z", "2016-12-31T24:00:00Z", "2016-12-31T23:59Z", "2016-12-31T23:59:59+01"),
        *("2016-12-31T23:59:59", "20161231T235959Z", "2016-12-31", 1585673980),
    ),
    "n": (10, -1, 10.0, "10", True),
    "day": ("2026-03-01", "2026-02-30", "2026-03-01T10:00:00Z", "20260301"),
}
KINDS = {"at": "instant", "n": "integer", "day": "date"}


def test_new_and_the_app_decide_alike_what_is_a_time_an_integer_and_a_day(project: Project) -> None:
    sound = {"at": "2026-03-01T10:00:00Z", "n": 10, "day": "2026-03-01"}
    made(project, "forms", json.dumps(sound))
    lines = [(name, json.dumps({**sound, name: value})) for name, values in FORMS.items() for value in values]
    lines += [("n", json.dumps(sound).replace("10,", f"{each},")) for each in ("1e1", "10.00")]
    letters = {one["line"] for one in tried(project, "forms", *(text for _, text in lines))["letters"]}
    for number, (name, text) in enumerate(lines, 1):
        file = project.write("one.jsonl", text)
        kinds = {one.name: one.kind for one in read_sample(file, {}).fields}
        assert (kinds[name] == KINDS[name]) is (number not in letters), text
    assert len(letters) == 16


ENDS = {  # the stored text of the time of each event
    "2026-02-28T23:59:59.9999999Z": "2026-02-28T23:59:59.999999Z",
    "2026-12-31T23:59:59.9999995Z": "2026-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59.9999999Z": "9999-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00Z": "0001-01-01T00:00:00Z",
}
AFTER = "9999-12-31T23:59:59.9999999-05:00"


def test_the_end_of_a_day_stays_on_its_day_and_the_year_10000_is_a_letter(project: Project) -> None:
    event = '{{"meter_id": "M-{}", "reading": 1, "at": "{}"}}'
    made(project, "meters", event.format(1, "2026-03-01T10:00:00Z"), options="--key meter_id --strict")
    found = tried(project, "meters", *(event.format(at, text) for at, text in enumerate((*ENDS, AFTER))))
    assert [row["at"] for row in rows_of(found, "meter_event")] == list(ENDS.values())
    ((line, kind, error),) = ((one["line"], one["class"], one["error"]) for one in found["letters"])
    assert (line, kind) == (len(ENDS) + 1, "poison")
    assert error.endswith("9999-12-31T23:59:59.999999-05:00 is not in the years 1 to 9999 of UTC")


OF = ("--transform", "apps.parcels")
INGEST = """
from pathlib import Path
from core.store.sqlite.database import SqliteDatabase
from core.transforms.loading import load_transform
from hubledger.cli.trial import EventFile
from hubledger.cli.trial import ingest_file, means_of
transform = load_transform("apps.sensors")
means = means_of(SqliteDatabase(Path("store.db"), needed=transform.row_classes), transform)
assert all(report.commits for report in ingest_file(EventFile(Path("sample.jsonl")), means))
"""


def change(room: Path, changes: dict[str, str]) -> None:
    path = room / "transform.py"
    text = path.read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def test_a_new_field_is_the_next_migration_of_both_engines_and_missing_rights_are_written(project: Project) -> None:
    room = project.parcels()
    change(room, {
        "    grams: int\n": "    grams: int\n    lane: Annotated[str | None, Text(8)]\n",
        "    grams: Integer\n": "    grams: Integer\n    lane: Annotated[str, Meta(max_length=8)] | None\n",
        "        body.grams,\n": "        body.grams,\n        body.lane,\n",
    })  # fmt: skip
    found = project.hubledger("migrate-diff", *OF, "--check")
    assert (found.returncode, "0002" in found.stdout, [*room.rglob("0002*")]) == (1, True, [])
    out = project.done("hubledger", "migrate-diff", *OF, "--name", "add_lane")
    assert "Next:\n  .venv/bin/python -m core.store.migrate --transform apps.parcels\n  (make run and make serve" in out
    assert out.endswith(" a replay writes them again:\n  bin/hubledger replay start\n")
    for engine in ("sqlite", "sqlserver"):
        assert f"migrations/{engine}/0002_add_lane.sql" in out
        written = sorted(one.name for one in (room / "migrations" / engine).iterdir())
        assert written == ["0001_parcels.sql", "0002_add_lane.sql"]
    assert "nothing to do" in project.done("hubledger", "migrate-diff", *OF)
    store = ("core.store.migrate", "--store", "sqlite:store.db")
    assert project.python("-m", *store, TRANSFORM="apps.parcels").returncode == 0
    checked = project.done("core.store.migrate", "--check", *OF, "--store", "sqlite:store.db")
    assert "the store has their tables" in checked
    before = (room / "permissions.sql").read_text()
    (room / "permissions.sql").write_text("")
    assert project.hubledger("migrate-diff", *OF, "--check").returncode == 1
    out = project.done("hubledger", "migrate-diff", *OF)
    assert "on SQL Server, run permissions.sql" in out and "core.store.migrate" not in out
    assert ((room / "permissions.sql").read_text(), [*room.rglob("0003*")]) == (before, [])


def test_an_integer_of_new_becomes_wider_and_the_store_of_the_room_keeps_its_rows(project: Project) -> None:
    sample = [f'{{"id": "S-{n}", "temperature": 2{n}, "at": "2026-03-01T10:00:0{n}Z"}}' for n in range(2)]
    later = [sample[0].replace("20,", f"{value},") for value in ("21.5", "22.0", "null", "20")]
    project.write("sample.jsonl", *sample)
    project.done("hubledger", "new", "sensors", "--from", "sample.jsonl")
    room, of = project.folder / "apps" / "sensors", ("--transform", "apps.sensors")
    at_store = ("core.store.migrate", "--store", "sqlite:store.db")
    assert project.python("-m", *at_store, TRANSFORM="apps.sensors").returncode == 0
    assert project.python("-c", INGEST).returncode == 0
    new = "    temperature: float | None\n"
    change(room, {"    temperature: int\n": new, "    temperature: Integer\n": new, "sensors/1": "sensors/2"})
    refused = project.hubledger("migrate-diff", *of)
    assert "temperature holds no integers: remove the measure" in refused.stderr and refused.returncode == 1
    aggregate = room / "aggregates" / "sensors_by_hour.py"
    lines = aggregate.read_text(encoding="utf-8").splitlines(keepends=True)
    aggregate.write_text("".join(one for one in lines if "Sum(" not in one).replace(", Sum,", ","), encoding="utf-8")
    said = project.done("hubledger", "migrate-diff", *of)
    assert "retry the letters of events that the narrower columns refused" in said
    assert "SensorsByHour has no field sum_of_temperature" in said
    assert "SensorEvent.temperature becomes a float, which rounds stored whole numbers beyond 2^53" in said
    assert "nothing to do" in project.done("hubledger", "migrate-diff", "--check", *of)
    assert project.python("-m", *at_store, TRANSFORM="apps.sensors").returncode == 0
    with closing(sqlite3.connect(project.folder / "store.db")) as connection:
        found = connection.execute("SELECT id, temperature FROM sensor_event ORDER BY sequence_number").fetchall()
    assert found == [("S-0", 20.0), ("S-1", 21.0)]
    project.write("later.jsonl", *later)
    tried = project.tried("later.jsonl", *of)
    assert (tried["written"], tried["letters"]) == (4, [])
