"""core/store/sqlserver/schema.py with rooms: the order and the texts of a run, a list without apps, rows that change
hands, and a migration that is only for new databases."""

from pathlib import Path

import pytest

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.migrations import load_migrations
from core.store.sqlserver.odbc import Access, connect
from core.store.sqlserver.schema import SCHEMA, MigrationRun, check_version, migrate_server
from core.transforms.rooms import Room
from tests.fakes.odbc_driver import FakeDriver, Server, fault
from tests.fakes.own_room import own_room
from tests.fakes.rooms import EXAMPLES

CONNECTION = "SERVER=host;UID=app;PWD=secret"
ALL = len(load_migrations("sqlserver"))
LATER = ["record"] * (ALL - 26)  # the migrations after those that the steps show
TEXTS = {
    "0001_orders.sql": "CREATE TABLE hubledger.parcel (a int NOT NULL);",
    "0002_more.sql": "CREATE INDEX ix_parcel ON hubledger.parcel (a) WITH (ONLINE = ON);",
}
STEPS = {
    "ADD app nvarchar(200)": "column",
    "BEGIN TRANSACTION;\n": "begin",
    "INSERT INTO hubledger.schema_migration": "record",
    "UPDATE hubledger.schema_migration": "hand over",
    "CREATE TABLE hubledger.parcel": "table",
    "CREATE INDEX ix_parcel": "index",
    "DROP TABLE IF EXISTS hubledger.home;": "drop",
}


def steps(driver: FakeDriver) -> list[str]:
    found = [next((step for mark, step in STEPS.items() if mark in text), "") for text, _ in driver.server.executed]
    return [step for step in found if step not in ("", "begin")]


def migrate(driver: FakeDriver, *rooms: Room) -> list[str]:
    told: list[str] = []
    migrate_server(CONNECTION, access=Access(lambda: driver), run=MigrationRun(told.append), rooms=rooms)
    return [line.partition(" in ")[0] for line in told]


def check(driver: FakeDriver, *rooms: Room) -> None:
    check_version(connect(CONNECTION, access=Access(lambda: driver)), SCHEMA, rooms)


def test_the_migrations_of_a_room_follow_ours_each_in_a_transaction(tmp_path: Path) -> None:
    driver = FakeDriver()
    assert migrate(driver, own_room(tmp_path, TEXTS)) == [
        f"{word} apps.orders {title}" for title in ("0001 orders", "0002 more") for word in ("applying", "applied")
    ]
    assert steps(driver) == ["table", "record", "index", "record"]
    recorded = [given for text, given in driver.server.executed if "INSERT INTO hubledger.schema_migration" in text]
    assert [[*given[:2], given[3]] for given in recorded] == [[1, "orders", "apps.orders"], [2, "more", "apps.orders"]]


def test_an_edition_that_cannot_build_online_builds_the_index_of_a_room_offline(tmp_path: Path) -> None:
    driver = FakeDriver(Server(edition=2))
    migrate(driver, own_room(tmp_path, TEXTS))
    (built,) = [text for text, _ in driver.server.executed if "CREATE INDEX ix_parcel" in text]
    assert "ONLINE = OFF" in built


def test_a_migration_of_a_room_that_fails_is_named_and_those_before_it_stay(tmp_path: Path) -> None:
    driver = FakeDriver(Server(refused=("ix_parcel", fault("42000", 1913))))
    with pytest.raises(StoreUnavailable, match=r"^migration apps\.orders 0002 more failed; the migrations before it"):
        migrate(driver, own_room(tmp_path, TEXTS))
    assert steps(driver) == ["table", "record", "index"]


def test_a_list_without_apps_gets_the_column_before_anything_is_recorded() -> None:
    driver = FakeDriver(Server(version=25, has_app=False))
    migrate(driver)
    assert steps(driver) == ["column", "drop", "record", *LATER]


def test_a_list_without_apps_is_read_as_ours_when_a_store_opens() -> None:
    with pytest.raises(SchemaMismatch, match=f"^the database is at schema 25 of {ALL}: run `python -m"):
        check(FakeDriver(Server(version=25, has_app=False)))


def test_a_record_of_an_owner_is_handed_over_to_the_room_of_its_name(tmp_path: Path) -> None:
    driver = FakeDriver(Server(version=25, has_app=False, recorded=[("hubledger", 26, "orders")]))
    told = migrate(driver, own_room(tmp_path, TEXTS))
    assert told[0] == "handed 0026 orders over: it is apps.orders 0001 orders now"
    assert steps(driver) == ["column", "hand over", "drop", "record", *LATER, "index", "record"]
    (given,) = [given for text, given in driver.server.executed if "UPDATE hubledger.schema_migration" in text]
    assert given == ["apps.orders", 1, "hubledger", 26]


def test_records_of_an_owner_are_handed_over_before_ours_of_the_same_numbers_are_recorded(tmp_path: Path) -> None:
    names = [f"own_{version}" for version in range(26, ALL + 2)]  # the last one is beyond ours
    recorded = [("hubledger", version, name) for version, name in enumerate(names, 26)]
    driver = FakeDriver(Server(version=25, has_app=False, recorded=recorded))
    room = own_room(tmp_path, {f"{place:04}_{name}.sql": "SELECT 1;" for place, name in enumerate(names, 1)})
    migrate(driver, room)
    assert steps(driver) == ["column", *["hand over"] * len(names), "drop", "record", *LATER]


def test_a_record_of_an_owner_that_no_room_has_is_refused_before_anything_changes() -> None:
    driver = FakeDriver(Server(version=25, has_app=False, recorded=[("hubledger", 26, "orders")]))
    with pytest.raises(SchemaMismatch, match="0026 orders, which is not one of Hubledger: move its file to apps/NAME"):
        migrate(driver)
    assert steps(driver) == []


def test_the_tables_of_the_examples_are_dropped_only_before_the_first_stream() -> None:
    old = FakeDriver(Server(version=25, stream_id=1))
    assert "recorded 0026 examples_apart, which is only for a database without a stream" in migrate(old)
    assert steps(old) == ["record", *LATER]
    new = FakeDriver(Server(version=25))
    assert "applied 0026 examples_apart" in migrate(new)
    order = [text for text, _ in new.server.executed]
    begun = next(at for at, text in enumerate(order) if text.endswith("BEGIN TRANSACTION;\n"))
    assert "WITH (TABLOCK, HOLDLOCK)" in order[begun + 1]  # so that no stream is opened until the commit


def test_a_database_that_lacks_the_migrations_of_a_room_is_not_opened(tmp_path: Path) -> None:
    room = own_room(tmp_path, TEXTS)
    with pytest.raises(SchemaMismatch, match=r"^the database lacks migration apps\.orders 0002 more: run `python -m"):
        check(FakeDriver(Server(recorded=[("apps.orders", 1, "orders")])), room)
    check(FakeDriver(Server(recorded=[("apps.orders", 1, "orders"), ("apps.orders", 2, "more")])), room)
    with pytest.raises(SchemaMismatch, match=r"lacks migration examples\.flight_info 0001 flight_info"):
        check(FakeDriver(), EXAMPLES[1])
