"""core/store/sqlserver/schema.py with rooms: the order and the texts of a run, and what is refused."""

import re
from pathlib import Path

import pytest

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.migrations import migrations_of
from core.store.sqlserver.connections import Access, connect
from core.store.sqlserver.schema import SCHEMA, MigrationRun, check_version, migrate_server
from core.transforms.loading import Room
from tests.fakes.odbc_driver import FakeDriver, Server, fault
from tests.fakes.own_room import own_room
from tests.fakes.rooms import EXAMPLES

CONNECTION = "SERVER=host;UID=app;PWD=secret"
TEXTS = {
    "0001_orders.sql": "CREATE TABLE hubledger.parcel (a int NOT NULL);",
    "0002_more.sql": "CREATE INDEX ix_parcel ON hubledger.parcel (a) WITH (ONLINE = ON);",
}
STEPS = {
    "BEGIN TRANSACTION;\n": "begin",
    "INSERT INTO hubledger.schema_migration": "record",
    "CREATE TABLE hubledger.parcel": "table",
    "CREATE INDEX ix_parcel": "index",
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


def recorded_of(room: Room) -> list[tuple[str, int, str, str]]:
    return [(one.app, one.version, one.name, one.text_hash) for one in migrations_of(room, "sqlserver")]


def test_a_migration_whose_text_was_changed_is_refused_before_anything_changes(tmp_path: Path) -> None:
    first, second = recorded_of(own_room(tmp_path, TEXTS))
    driver = FakeDriver(Server(recorded=[first, (*second[:3], "of an older text")]))
    with pytest.raises(
        SchemaMismatch, match=r"^the database was made with a different text of migration apps\.orders 0002"
    ):
        migrate(driver, own_room(tmp_path, TEXTS))
    assert steps(driver) == []


def test_the_migrations_of_a_room_follow_ours_each_in_a_transaction(tmp_path: Path) -> None:
    driver = FakeDriver()
    assert migrate(driver, own_room(tmp_path, TEXTS)) == [
        f"{word} apps.orders {title}" for title in ("0001 orders", "0002 more") for word in ("applying", "applied")
    ]
    assert steps(driver) == ["table", "record", "index", "record"]
    recorded = [given for text, given in driver.server.executed if "INSERT INTO hubledger.schema_migration" in text]
    assert [[*given[:2], given[3]] for given in recorded] == [[1, "orders", "apps.orders"], [2, "more", "apps.orders"]]


@pytest.mark.parametrize("edition", [1, 2, 3, 4, 5, 6, 8, 9, 11])
def test_an_index_is_built_online_in_an_edition_that_can(tmp_path: Path, edition: int) -> None:
    driver = FakeDriver(Server(edition=edition))
    migrate(driver, own_room(tmp_path, TEXTS))
    (built,) = [text for text, _ in driver.server.executed if "CREATE INDEX ix_parcel" in text]
    assert re.findall(r"ONLINE = \w+", built) == ["ONLINE = ON" if edition in (3, 5, 8) else "ONLINE = OFF"]


def test_a_migration_of_a_room_that_fails_is_named_and_those_before_it_stay(tmp_path: Path) -> None:
    driver = FakeDriver(Server(refused=("ix_parcel", fault("42000", 1913))))
    with pytest.raises(StoreUnavailable, match=r"^migration apps\.orders 0002 more failed; the migrations before it"):
        migrate(driver, own_room(tmp_path, TEXTS))
    assert steps(driver) == ["table", "record", "index"]


def test_a_record_that_is_not_ours_is_refused_before_anything_changes() -> None:
    driver = FakeDriver(Server(version=0, recorded=[("hubledger", 1, "orders", "")]))
    with pytest.raises(SchemaMismatch, match="0001 orders, which is not one of Hubledger: yours belong to apps/NAME"):
        migrate(driver)
    assert steps(driver) == []


def test_a_database_that_lacks_the_migrations_of_a_room_is_not_opened(tmp_path: Path) -> None:
    room = own_room(tmp_path, TEXTS)
    with pytest.raises(SchemaMismatch, match=r"^the database lacks migration apps\.orders 0002 more: run `python -m"):
        check(FakeDriver(Server(recorded=recorded_of(room)[:1])), room)
    check(FakeDriver(Server(recorded=recorded_of(room))), room)
    with pytest.raises(SchemaMismatch, match=r"lacks migration examples\.flight_info 0001 flight_info"):
        check(FakeDriver(), EXAMPLES[1])
