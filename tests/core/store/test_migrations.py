"""core/store/migrations.py on SQLite: our sequence and those of rooms, and what is refused."""

from contextlib import closing
from pathlib import Path

import pytest

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.migrations import load_migrations, migrations_of
from core.store.sqlite.schema import migrate_sqlite, open_checked, open_file
from core.transforms.loading import Room
from tests.fakes.own_room import TEXTS, own_room

OURS = list(load_migrations("sqlite"))
NEWEST = OURS[-1].version
SECOND = {**TEXTS, "0002_more.sql": "ALTER TABLE parcel ADD COLUMN weight INTEGER"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def sql(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(open_file(path, 5.0)) as connection:
        return list(connection.execute(statement))


def listed(path: Path, app: str) -> list[tuple[object, ...]]:
    return sql(path, f"SELECT version, name FROM schema_migration WHERE app = '{app}' ORDER BY version")


def tables(path: Path) -> set[object]:
    return {name for (name,) in sql(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}


def opens(path: Path, *rooms: Room) -> None:
    open_checked(path, 5.0, rooms).close()


def test_ours_run_first_then_those_of_each_room_in_its_order(tmp_path: Path, path: Path) -> None:
    orders, sales = own_room(tmp_path, SECOND), own_room(tmp_path, {"0001_orders.sql": "SELECT 1"}, "apps.sales")
    told: list[str] = []
    applied = migrate_sqlite(path, [orders, sales], told.append)
    assert applied == [*OURS, *migrations_of(orders, "sqlite"), *migrations_of(sales, "sqlite")]
    assert told[-3:] == [
        "applied apps.orders 0001 orders",
        "applied apps.orders 0002 more",
        "applied apps.sales 0001 orders",
    ]
    assert listed(path, "apps.orders") == [(1, "orders"), (2, "more")]
    assert migrate_sqlite(path, [orders, sales], told.append) == []
    opens(path, orders, sales)


def test_a_later_migration_of_a_room_is_applied_alone(tmp_path: Path, path: Path) -> None:
    migrate_sqlite(path, [own_room(tmp_path)])
    assert [one.title for one in migrate_sqlite(path, [own_room(tmp_path, SECOND)])] == ["apps.orders 0002 more"]


def test_a_store_that_lacks_a_migration_of_a_room_is_not_opened(tmp_path: Path, path: Path) -> None:
    migrate_sqlite(path, [own_room(tmp_path)])
    later = own_room(tmp_path, SECOND)
    with pytest.raises(SchemaMismatch, match=r"lacks migration apps\.orders 0002 more: run `python -m core\.store\.mi"):
        opens(path, later)
    opens(path)


def test_a_migration_of_a_room_may_lack_the_last_semicolon(tmp_path: Path, path: Path) -> None:
    migrate_sqlite(path, [own_room(tmp_path, SECOND)])
    assert sql(path, "SELECT weight FROM parcel") == []


def test_a_migration_of_a_room_that_fails_is_named_and_leaves_nothing_of_the_run(tmp_path: Path, path: Path) -> None:
    room = own_room(tmp_path, {**TEXTS, "0002_wrong.sql": "CREATE TABLE parcel (a TEXT);"})
    with pytest.raises(StoreUnavailable, match=r"apps\.orders 0002 wrong failed, and nothing of this run stays: "):
        migrate_sqlite(path, [room])
    assert tables(path) == set()


@pytest.mark.parametrize("ending", ["COMMIT;", "ROLLBACK;", "BEGIN;", "END TRANSACTION;"])
def test_a_migration_that_ends_the_transaction_is_refused_and_leaves_nothing(
    tmp_path: Path, path: Path, ending: str
) -> None:
    with pytest.raises(
        StoreUnavailable, match=r"orders 0001 orders failed, and nothing of this run stays: .*transaction"
    ):
        migrate_sqlite(path, [own_room(tmp_path, {"0001_orders.sql": f"CREATE TABLE parcel (a TEXT);\n{ending}\n"})])
    assert tables(path) == set()


def test_a_migration_that_its_owner_kept_in_our_folder_is_refused(path: Path) -> None:
    migrate_sqlite(path)
    sql(path, "UPDATE schema_migration SET name = 'theirs'")
    for attempt in (opens, migrate_sqlite):
        with pytest.raises(SchemaMismatch, match=r"has migration 0001 theirs, .*yours belong to apps/NAME/migrations"):
            attempt(path)


def test_a_migration_of_theirs_after_ours_is_refused_while_one_of_ours_is_missing(path: Path) -> None:
    migrate_sqlite(path)
    sql(path, f"UPDATE schema_migration SET version = {NEWEST + 1}, name = 'theirs'")
    with pytest.raises(SchemaMismatch, match=rf"has migration {NEWEST + 1:04} theirs, which is not one of Hubledger"):
        migrate_sqlite(path)


class TestARoomOfNewerCode:
    def test_is_refused_when_its_migration_breaks_this_code(self, tmp_path: Path, path: Path) -> None:
        migrate_sqlite(path, [own_room(tmp_path)])
        sql(path, "INSERT INTO schema_migration VALUES (99, 'breaking_x', '2027', 'apps.orders', '')")
        for attempt in (opens, lambda path, room: migrate_sqlite(path, [room])):
            with pytest.raises(SchemaMismatch, match=r"apps\.orders 0099 breaking_x, .* up to 0001 .*newer code"):
                attempt(path, own_room(tmp_path))
        opens(path)  # for a different transform

    def test_is_worked_on_when_its_migration_only_adds(self, tmp_path: Path, path: Path) -> None:
        migrate_sqlite(path, [own_room(tmp_path)])
        sql(path, "INSERT INTO schema_migration VALUES (99, 'more', '2027', 'apps.orders', '')")
        opens(path, own_room(tmp_path))


def test_a_migration_that_was_renamed_is_refused_with_its_old_name(tmp_path: Path, path: Path) -> None:
    migrate_sqlite(path, [own_room(tmp_path)])
    renamed = own_room(tmp_path / "b", {"0001_parcels.sql": "SELECT 1;"})
    with pytest.raises(SchemaMismatch, match=r"orders 0001 orders, but its file is named 0001_parcels\.sql: "):
        migrate_sqlite(path, [renamed])


def test_a_migration_of_ours_whose_text_was_changed_is_refused(path: Path) -> None:
    migrate_sqlite(path)
    sql(path, "UPDATE schema_migration SET text_hash = 'of an older text'")
    for attempt in (opens, migrate_sqlite):
        with pytest.raises(SchemaMismatch, match=r"a different text of migration 0001 hubledger: .* the database anew"):
            attempt(path)


def test_a_migration_of_a_room_whose_text_was_changed_is_refused_for_this_room(tmp_path: Path, path: Path) -> None:
    migrate_sqlite(path, [own_room(tmp_path)])
    changed = own_room(tmp_path / "b", {"0001_orders.sql": f"-- A comment.\n{TEXTS['0001_orders.sql']}"})
    for attempt in (opens, lambda path, room: migrate_sqlite(path, [room])):
        with pytest.raises(SchemaMismatch, match=r"of migration apps\.orders 0001 orders: give the file its old text"):
            attempt(path, changed)
    opens(path, own_room(tmp_path))
    opens(path)


def test_the_ends_of_the_lines_of_a_migration_do_not_count(tmp_path: Path, path: Path) -> None:
    migrate_sqlite(path, [own_room(tmp_path, SECOND)])
    windows = own_room(tmp_path / "b", SECOND)
    for file in (windows.folder / "migrations").rglob("*.sql"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    opens(path, windows)


def test_a_room_without_migrations_needs_none(tmp_path: Path, path: Path) -> None:
    assert migrate_sqlite(path, [Room("apps.bare", tmp_path)]) == OURS
    opens(path, Room("apps.bare", tmp_path))


FAULTS = {
    "a number twice": ({"0001_a.sql": "", "0001_b.sql": ""}, r"sqlite/0001_b\.sql: a second migration 0001 beside a; "),
    "a gap": ({"0001_a.sql": "", "0003_b.sql": ""}, r"sqlite/0003_b\.sql: migration 0002 is missing"),
    "no first": ({"0099_a.sql": ""}, r"sqlite/0099_a\.sql: migration 0001 is missing"),
    "zero": ({"0000_a.sql": ""}, r"sqlite/0000_a\.sql: migration 0001 is missing"),
    "no number": ({"orders.sql": ""}, r"sqlite/orders\.sql: a migration is a file NNNN_name\.sql"),
    "few digits": ({"001_a.sql": ""}, r"sqlite/001_a\.sql: a migration is a file NNNN_name\.sql"),
    "a blank": ({"0001_a b.sql": ""}, r"sqlite/0001_a b\.sql: a migration is a file NNNN_name\.sql"),
    "a copy of an editor": ({"0001_a.sql~": ""}, r"sqlite/0001_a\.sql~: a migration is a file NNNN_name\.sql"),
    "a long name": ({f"0001_{'a' * 101}.sql": ""}, "its name has at most 100 characters"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_file_that_breaks_the_rules_is_named(tmp_path: Path, path: Path, case: str) -> None:
    texts, why = FAULTS[case]
    with pytest.raises(SchemaMismatch, match=why) as caught:
        migrate_sqlite(path, [own_room(tmp_path, texts)])
    assert "\n" not in str(caught.value)


def test_both_engines_have_the_same_files(tmp_path: Path, path: Path) -> None:
    with pytest.raises(SchemaMismatch, match=r"migrations has no folder sqlserver: write each migration"):
        migrate_sqlite(path, [own_room(tmp_path / "a", engines=("sqlite",))])
    own_room(tmp_path / "b", SECOND, engines=("sqlserver",))
    with pytest.raises(SchemaMismatch, match=r"migrations has 0002_more\.sql for one engine only"):
        migrate_sqlite(path, [own_room(tmp_path / "b", TEXTS, engines=("sqlite",))])


def test_the_name_of_a_room_fits_its_column(tmp_path: Path, path: Path) -> None:
    room = own_room(tmp_path)
    with pytest.raises(SchemaMismatch, match="has more than 200 characters"):
        migrate_sqlite(path, [Room("apps." + "a" * 196, room.folder)])
    assert migrate_sqlite(path, [Room("apps." + "a" * 195, room.folder)])[-1].name == "orders"
