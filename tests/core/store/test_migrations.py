"""core/store/migrations.py on SQLite: our sequence and those of rooms, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.migrations import load_migrations, migrations_of
from core.store.sqlite.schema import migrate_sqlite, open_checked
from core.transforms.loading import Room
from tests.core.store.sqlite.test_schema import sql
from tests.fakes.own_room import TEXTS, own_room

OURS = list(load_migrations("sqlite"))
NEWEST = OURS[-1].version
SECOND = {**TEXTS, "0002_more.sql": "ALTER TABLE parcel ADD COLUMN weight INTEGER"}  # without the last semicolon


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def orders(tmp_path: Path, path: Path) -> Room:
    """A room whose first migration the store has."""
    room = own_room(tmp_path / "a")
    migrate_sqlite(path, [room])
    return room


def opens(path: Path, *rooms: Room) -> None:
    open_checked(path, 5.0, rooms).close()


def migrates(path: Path, *rooms: Room) -> None:
    migrate_sqlite(path, rooms)


def assert_refused(
    path: Path, *rooms: Room, match: str, by: tuple[Callable[..., None], ...] = (opens, migrates)
) -> None:
    for attempt in by:
        with pytest.raises(SchemaMismatch, match=match) as caught:
            attempt(path, *rooms)
        assert "\n" not in str(caught.value)


def test_ours_run_first_then_those_of_each_room_in_its_order(tmp_path: Path, path: Path) -> None:
    orders, sales = own_room(tmp_path, SECOND), own_room(tmp_path, {"0001_orders.sql": "SELECT 1"}, "apps.sales")
    bare, told = Room("apps.bare", tmp_path / "bare"), list[str]()
    applied = migrate_sqlite(path, [orders, sales, bare], told.append)
    assert applied == [*OURS, *migrations_of(orders, "sqlite"), *migrations_of(sales, "sqlite")]
    titles = ("apps.orders 0001 orders", "apps.orders 0002 more", "apps.sales 0001 orders")
    assert told[-3:] == [f"applied {title}" for title in titles]
    listed = "SELECT version, name FROM schema_migration WHERE app = 'apps.orders' ORDER BY version"
    assert sql(path, listed) == [(1, "orders"), (2, "more")]
    assert sql(path, "SELECT weight FROM parcel") == []
    assert migrate_sqlite(path, [orders, sales, bare]) == []
    opens(path, orders, sales, bare)


def test_a_store_that_lacks_a_migration_of_a_room_is_not_opened_until_it_is_applied_alone(
    tmp_path: Path, path: Path, orders: Room
) -> None:
    later = own_room(tmp_path, SECOND)
    missing = r"lacks migration apps\.orders 0002 more: run `python -m core\.store\.mi"
    assert_refused(path, later, match=missing, by=(opens,))
    opens(path)
    assert [one.title for one in migrate_sqlite(path, [later])] == ["apps.orders 0002 more"]
    for file in (later.folder / "migrations").rglob("*.sql"):  # the ends of lines do not count
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    opens(path, later)


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ({**TEXTS, "0002_wrong.sql": "CREATE TABLE parcel (a TEXT);"}, "orders 0002 wrong failed, and nothing .*: "),
        *(
            ({"0001_orders.sql": f"CREATE TABLE parcel (a TEXT);\n{ending}\n"}, "orders 0001 orders .*: .*transaction")
            for ending in ("COMMIT;", "ROLLBACK;", "BEGIN;", "END TRANSACTION;")
        ),
    ],
    ids=["a table twice", "commit", "rollback", "begin", "end"],
)
def test_a_migration_that_fails_or_ends_the_transaction_is_named_and_leaves_nothing_of_the_run(
    tmp_path: Path, path: Path, texts: dict[str, str], why: str
) -> None:
    with pytest.raises(StoreUnavailable, match=rf"apps\.{why}"):
        migrate_sqlite(path, [own_room(tmp_path, texts)])
    assert sql(path, "SELECT name FROM sqlite_master WHERE type = 'table'") == []


def test_a_migration_that_its_owner_kept_in_our_folder_is_refused(path: Path) -> None:
    migrate_sqlite(path)
    sql(path, "UPDATE schema_migration SET name = 'theirs'")
    assert_refused(path, match=r"has migration 0001 theirs, .*yours belong to apps/NAME/migrations")
    sql(path, f"UPDATE schema_migration SET version = {NEWEST + 1}")  # while one of ours is missing
    named = rf"has migration {NEWEST + 1:04} theirs, which is not one of Hubledger"
    assert_refused(path, match=named, by=(migrates,))


def test_a_room_of_newer_code_is_refused_when_its_migration_breaks_this_code(path: Path, orders: Room) -> None:
    sql(path, "INSERT INTO schema_migration VALUES (99, 'more', '2027', 'apps.orders', '')")
    opens(path, orders)
    sql(path, "UPDATE schema_migration SET name = 'breaking_x' WHERE name = 'more'")
    assert_refused(path, orders, match=r"apps\.orders 0099 breaking_x, .* up to 0001 .*newer code")
    opens(path)  # for a different transform


def test_a_migration_of_ours_whose_text_was_changed_is_refused(path: Path) -> None:
    migrate_sqlite(path)
    sql(path, "UPDATE schema_migration SET text_hash = 'of an older text'")
    assert_refused(path, match=r"a different text of migration 0001 hubledger: .* the database anew")


def test_a_migration_of_a_room_whose_text_or_name_was_changed_is_refused_for_this_room(
    tmp_path: Path, path: Path, orders: Room
) -> None:
    changed = own_room(tmp_path / "b", {"0001_orders.sql": f"-- A comment.\n{TEXTS['0001_orders.sql']}"})
    assert_refused(path, changed, match=r"of migration apps\.orders 0001 orders: give the file its old text")
    renamed = own_room(tmp_path / "c", {"0001_parcels.sql": "SELECT 1;"})
    assert_refused(path, renamed, match=r"orders 0001 orders, but its file is named 0001_parcels\.sql: ")
    opens(path, orders)
    opens(path)


NO_NAME = r": a migration is a file NNNN_name\.sql"
FAULTS = {
    "a number twice": (["0001_a.sql", "0001_b.sql"], r"0001_b\.sql: a second migration 0001 beside a; "),
    "a gap": (["0001_a.sql", "0003_b.sql"], r"0003_b\.sql: migration 0002 is missing"),
    "no first": (["0099_a.sql"], r"0099_a\.sql: migration 0001 is missing"),
    "zero": (["0000_a.sql"], r"0000_a\.sql: migration 0001 is missing"),
    "no number": (["orders.sql"], rf"orders\.sql{NO_NAME}"),
    "few digits": (["001_a.sql"], rf"001_a\.sql{NO_NAME}"),
    "a blank": (["0001_a b.sql"], rf"0001_a b\.sql{NO_NAME}"),
    "a copy of an editor": (["0001_a.sql~"], rf"0001_a\.sql~{NO_NAME}"),
    "a long name": ([f"0001_{'a' * 101}.sql"], ".*its name has at most 100 characters"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_file_that_breaks_the_rules_is_named(tmp_path: Path, path: Path, case: str) -> None:
    files, why = FAULTS[case]
    assert_refused(path, own_room(tmp_path, dict.fromkeys(files, "")), match=rf"sqlite/{why}", by=(migrates,))


def test_both_engines_have_the_same_files_and_the_name_of_a_room_fits_its_column(tmp_path: Path, path: Path) -> None:
    alone = own_room(tmp_path / "a", engines=("sqlite",))
    assert_refused(path, alone, match="migrations has no folder sqlserver: write each migration", by=(migrates,))
    own_room(tmp_path / "b", SECOND, engines=("sqlserver",))
    uneven = own_room(tmp_path / "b", TEXTS, engines=("sqlite",))
    assert_refused(path, uneven, match=r"migrations has 0002_more\.sql for one engine only", by=(migrates,))
    folder = own_room(tmp_path).folder
    assert_refused(path, Room("apps." + "a" * 196, folder), match="has more than 200 characters", by=(migrates,))
    assert migrate_sqlite(path, [Room("apps." + "a" * 195, folder)])[-1].name == "orders"
