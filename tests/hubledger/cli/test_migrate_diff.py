"""`migrate-diff`: the next migration of a room, and what only a person can decide."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.hubledger.cli.project import Project

pytestmark = pytest.mark.slow
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


@pytest.fixture
def room(project: Project) -> Path:
    return project.parcels()


def change(room: Path, changes: dict[str, str]) -> None:
    """Change texts of the transform."""
    path = room / "transform.py"
    text = path.read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def test_a_new_field_becomes_the_next_migration_of_both_engines_and_missing_rights_are_written(
    project: Project, room: Path
) -> None:
    change(room, {
        "    grams: int\n": "    grams: int\n    lane: Annotated[str | None, Text(8)]\n",
        "    grams: Integer\n": "    grams: Integer\n    lane: Annotated[str, Meta(max_length=8)] | None\n",
        "        body.grams,\n": "        body.grams,\n        body.lane,\n",
    })  # fmt: skip
    found = project.hubledger("migrate-diff", *OF, "--check")
    assert (found.returncode, "0002" in found.stdout, [*room.rglob("0002*")]) == (1, True, [])
    out = project.done("hubledger", "migrate-diff", *OF, "--name", "add_lane")
    assert "Next:\n  .venv/bin/python -m core.store.migrate --transform apps.parcels\n  (make run and make serve" in out
    assert out.endswith(" a replay writes them again:\n  bin/hubledger replay start --reason WHY\n")
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
