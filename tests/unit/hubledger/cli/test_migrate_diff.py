"""`migrate-diff`: the next migration of a room, and what only a person can decide."""

from pathlib import Path

import pytest

from tests.unit.hubledger.cli.project import Project

pytestmark = pytest.mark.slow
OF = ("--transform", "apps.parcels")


@pytest.fixture
def room(project: Project) -> Path:
    return project.parcels()


def change(room: Path, old: str, new: str) -> None:
    path = room / "transform.py"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def add_a_field(room: Path) -> None:
    change(room, "    grams: int\n", "    grams: int\n    lane: Annotated[str | None, Text(8)]\n")
    change(room, "    grams: Integer\n", "    grams: Integer\n    lane: Annotated[str, Meta(max_length=8)] | None\n")
    change(room, "        body.grams,\n", "        body.grams,\n        body.lane,\n")


def migrations(room: Path) -> list[str]:
    return sorted(str(one.relative_to(room / "migrations")) for one in (room / "migrations").rglob("*"))


def test_a_new_field_becomes_the_next_migration_of_both_engines(project: Project, room: Path) -> None:
    add_a_field(room)
    out = project.done("hubledger", "migrate-diff", *OF, "--name", "add_lane")
    assert "migrations/sqlserver/0002_add_lane.sql" in out
    assert "Next:\n  .venv/bin/python -m core.store.migrate --transform apps.parcels\n  (make run and make serve" in out
    assert out.endswith(" a replay writes them again:\n  bin/hubledger replay start --reason WHY\n")
    assert migrations(room) == [
        "sqlite", "sqlite/0001_parcels.sql", "sqlite/0002_add_lane.sql",
        "sqlserver", "sqlserver/0001_parcels.sql", "sqlserver/0002_add_lane.sql",
    ]  # fmt: skip
    assert "nothing to do" in project.done("hubledger", "migrate-diff", *OF)
    store = ("core.store.migrate", "--store", "sqlite:store.db")
    assert project.python("-m", *store, TRANSFORM="apps.parcels").returncode == 0
    checked = project.done("core.store.check", *OF, "--store", "sqlite:store.db")
    assert "the store has their tables" in checked


def test_a_check_writes_nothing_and_exits_with_1(project: Project, room: Path) -> None:
    add_a_field(room)
    found = project.hubledger("migrate-diff", *OF, "--check")
    assert (found.returncode, "0002" in found.stdout) == (1, True)
    assert len(migrations(room)) == 4


def test_rights_that_are_missing_are_written_again(project: Project, room: Path) -> None:
    before = (room / "permissions.sql").read_text()
    (room / "permissions.sql").write_text("")
    assert project.hubledger("migrate-diff", *OF, "--check").returncode == 1
    out = project.done("hubledger", "migrate-diff", *OF)
    assert "on SQL Server, run permissions.sql" in out and "core.store.migrate" not in out
    assert (room / "permissions.sql").read_text() == before
    assert len(migrations(room)) == 4


def test_a_removed_field_is_left_to_a_person(project: Project, room: Path) -> None:
    change(room, "    grams: int\n", "")
    change(room, "        body.grams,\n", "")
    (room / "aggregates" / "parcels_by_hour.py").unlink()
    found = project.hubledger("migrate-diff", *OF)
    assert found.returncode == 1
    assert "ParcelEvent has no field grams" in found.stderr
    assert len(migrations(room)) == 4


def test_a_room_of_hubledger_has_no_difference(project: Project) -> None:
    for name in ("home_security", "flight_info"):
        found = project.hubledger("migrate-diff", "--check", "--transform", f"examples.{name}")
        assert (found.returncode, "nothing to do" in found.stdout) == (0, True), found.stdout + found.stderr
