"""core/store/sqlserver/schema.py: the order and the texts of a migration, of ours and of rooms, and what is refused."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.migrations import Migration, load_migrations, migrations_of
from core.store.sqlserver.connections import Access, connect
from core.store.sqlserver.schema import SCHEMA, MigrationRun, check_version, in_schema, migrate_server
from core.transforms.loading import Room
from tests.fakes.odbc_driver import FakeDriver, Server, fault
from tests.fakes.own_room import own_room
from tests.fakes.rooms import EXAMPLES

CONNECTION = "SERVER=host;UID=app;PWD=secret"
ALL = list(load_migrations("sqlserver"))


def texts(driver: FakeDriver) -> list[str]:
    return [text for text, _ in driver.server.executed]


def migrate(driver: FakeDriver, told: list[str] | None = None) -> list[Migration]:
    return migrate_server(
        CONNECTION, access=Access(lambda: driver), run=MigrationRun(([] if told is None else told).append)
    )


def steps(driver: FakeDriver) -> list[str]:
    """Name the steps of a run that change something, in order."""
    marks = {
        "sp_getapplock": "lock",
        "BEGIN TRANSACTION;": "begin",
        "COMMIT TRANSACTION;": "commit",
        "INSERT INTO hubledger.schema_migration": "record",
        **{f"{one.text}": one.title for one in ALL},
    }
    return [name for text in texts(driver) for mark, name in marks.items() if mark in text]


@pytest.mark.parametrize("version", range(len(ALL) + 1))
def test_each_missing_migration_is_applied_and_recorded_in_one_transaction_under_the_lock(version: int) -> None:
    driver = FakeDriver(Server(version=version))
    assert migrate(driver) == ALL[version:]
    each = [["begin", one.title, "record", "commit"] for one in ALL[version:]]
    assert steps(driver) == ["lock", *(step for one in each for step in one)]
    recorded = [given[:2] for text, given in driver.server.executed if "INSERT INTO hubledger.schema_migration" in text]
    assert recorded == [[one.version, one.name] for one in ALL[version:]]
    assert driver.open == []


def test_a_migration_that_fails_commits_nothing() -> None:
    driver = FakeDriver(Server(version=0, refused=("CREATE TABLE hubledger.batch_ledger ", fault("42000", 262))))
    with pytest.raises(StoreUnavailable, match=r"^migration 0001 hubledger failed; .*\(262\)"):
        migrate(driver)
    assert steps(driver) == ["lock", "begin", ALL[0].title]
    assert driver.open == []


def test_a_migration_has_no_deadline() -> None:
    driver = FakeDriver(Server(version=0))
    migrate(driver)
    assert [connection.timeout for connection in driver.connections] == [0]


def test_each_migration_tells_when_it_begins_and_how_long_it_took() -> None:
    driver, told = FakeDriver(Server(version=0)), list[str]()
    migrate(driver, told)
    assert [line.rpartition(" in ")[0] or line for line in told] == [
        f"{word} {one.title}" for one in ALL for word in ("applying", "applied")
    ]
    assert all(re.fullmatch(r"applied .* in \d+\.\d s", line) for line in told[1::2])


MIGRATING = ("sp_getapplock", fault("42000", 51001, "a different migration is running"))


def waits(driver: FakeDriver) -> list[int]:
    """Return how many milliseconds each request for the lock waits on the server."""
    return [given[0] for text, given in driver.server.executed if "sp_getapplock" in text]


def test_the_lock_has_the_name_of_the_database_so_that_runs_in_two_databases_do_not_wait_for_each_other() -> None:
    driver = FakeDriver(Server(version=len(ALL)))
    migrate(driver)
    (lock,) = [text for text in texts(driver) if "sp_getapplock" in text]
    (name,) = re.findall(r"@Resource = (@\w+),", lock)
    assert f"{name} nvarchar(255) = CONCAT(N'hubledger_migration ', DB_NAME());" in lock


def test_a_second_run_tells_that_it_waits_and_goes_on_after_the_first() -> None:
    driver, told = FakeDriver(Server(version=len(ALL) - 1, refused=MIGRATING)), list[str]()

    def first_ends(line: str) -> None:
        driver.server.refused = None
        told.append(line)

    assert migrate_server(CONNECTION, access=Access(lambda: driver), run=MigrationRun(first_ends)) == ALL[-1:]
    assert told[0] == "a different migration of this database is running: waiting for it, 60 s at most"
    assert waits(driver) == [0, 60_000]


def test_a_second_run_that_has_waited_long_enough_says_so_and_changes_nothing() -> None:
    driver = FakeDriver(Server(version=0, refused=MIGRATING))
    with pytest.raises(StoreUnavailable, match=r"did not end within 2 s; this one changed nothing: run `python -m "):
        migrate_server(CONNECTION, access=Access(lambda: driver), run=MigrationRun(wait=timedelta(seconds=2)))
    assert (waits(driver), steps(driver), driver.open) == ([0, 2_000], ["lock", "lock"], [])


def test_a_lock_that_is_refused_for_a_different_reason_is_not_waited_for() -> None:
    driver = FakeDriver(Server(version=0, refused=("sp_getapplock", fault("42000", 51002))))
    with pytest.raises(StoreUnavailable, match=r"^the database cannot be migrated: .*\(51002\)"):
        migrate(driver)
    assert waits(driver) == [0]


def test_older_code_leaves_a_newer_schema_alone_and_refuses_one_that_breaks_it() -> None:
    driver = FakeDriver(Server(recorded=[("hubledger", 99, "parcels", "")]))
    assert migrate_server(CONNECTION, access=Access(lambda: driver)) == []
    driver = FakeDriver(Server(recorded=[("hubledger", 99, "breaking_x", "")]))
    with pytest.raises(SchemaMismatch, match="0099 breaking_x"):
        migrate_server(CONNECTION, access=Access(lambda: driver))
    assert driver.open == []


def test_everything_of_a_migration_goes_to_the_named_schema() -> None:
    driver = FakeDriver(Server(schema="trial_7", version=0))
    migrate_server(CONNECTION, "trial_7", Access(lambda: driver))
    left = [text for text in texts(driver) if "hubledger" in text.replace("hubledger_migration", "")]
    assert left == []
    assert "CREATE SCHEMA trial_7" in "".join(texts(driver))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("FROM hubledger.home AS t", "FROM x.home AS t"),
        ("OBJECT_ID(N'hubledger.home', N'U')", "OBJECT_ID(N'x.home', N'U')"),
        ("SCHEMA_ID(N'hubledger')", "SCHEMA_ID(N'x')"),
        ("N'hubledger',", "N'hubledger',"),
        ("N'hubledger_migration'", "N'hubledger_migration'"),
        ("other_hubledger.home", "other_hubledger.home"),
    ],
)
def test_only_the_name_of_the_schema_is_replaced(text: str, named: str) -> None:
    assert in_schema(text, "x") == named
    assert in_schema(text, "hubledger") == text


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


def steps_of_room(driver: FakeDriver) -> list[str]:
    found = [next((step for mark, step in STEPS.items() if mark in text), "") for text, _ in driver.server.executed]
    return [step for step in found if step not in ("", "begin")]


def migrate_rooms(driver: FakeDriver, *rooms: Room) -> list[str]:
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
        migrate_rooms(driver, own_room(tmp_path, TEXTS))
    assert steps_of_room(driver) == []


def test_the_migrations_of_a_room_follow_ours_each_in_a_transaction(tmp_path: Path) -> None:
    driver = FakeDriver()
    assert migrate_rooms(driver, own_room(tmp_path, TEXTS)) == [
        f"{word} apps.orders {title}" for title in ("0001 orders", "0002 more") for word in ("applying", "applied")
    ]
    assert steps_of_room(driver) == ["table", "record", "index", "record"]
    recorded = [given for text, given in driver.server.executed if "INSERT INTO hubledger.schema_migration" in text]
    assert [[*given[:2], given[3]] for given in recorded] == [[1, "orders", "apps.orders"], [2, "more", "apps.orders"]]


@pytest.mark.parametrize("edition", [1, 2, 3, 4, 5, 6, 8, 9, 11])
def test_an_index_is_built_online_in_an_edition_that_can(tmp_path: Path, edition: int) -> None:
    driver = FakeDriver(Server(edition=edition))
    migrate_rooms(driver, own_room(tmp_path, TEXTS))
    (built,) = [text for text, _ in driver.server.executed if "CREATE INDEX ix_parcel" in text]
    assert re.findall(r"ONLINE = \w+", built) == ["ONLINE = ON" if edition in (3, 5, 8) else "ONLINE = OFF"]


def test_a_migration_of_a_room_that_fails_is_named_and_those_before_it_stay(tmp_path: Path) -> None:
    driver = FakeDriver(Server(refused=("ix_parcel", fault("42000", 1913))))
    with pytest.raises(StoreUnavailable, match=r"^migration apps\.orders 0002 more failed; the migrations before it"):
        migrate_rooms(driver, own_room(tmp_path, TEXTS))
    assert steps_of_room(driver) == ["table", "record", "index"]


def test_a_record_that_is_not_ours_is_refused_before_anything_changes() -> None:
    driver = FakeDriver(Server(version=0, recorded=[("hubledger", 1, "orders", "")]))
    with pytest.raises(SchemaMismatch, match="0001 orders, which is not one of Hubledger: yours belong to apps/NAME"):
        migrate_rooms(driver)
    assert steps_of_room(driver) == []


def test_a_database_that_lacks_the_migrations_of_a_room_is_not_opened(tmp_path: Path) -> None:
    room = own_room(tmp_path, TEXTS)
    with pytest.raises(SchemaMismatch, match=r"^the database lacks migration apps\.orders 0002 more: run `python -m"):
        check(FakeDriver(Server(recorded=recorded_of(room)[:1])), room)
    check(FakeDriver(Server(recorded=recorded_of(room))), room)
    with pytest.raises(SchemaMismatch, match=r"lacks migration examples\.flight_info 0001 flight_info"):
        check(FakeDriver(), EXAMPLES[1])
