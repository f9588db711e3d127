import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.migrations import Migration, load_migrations, migrations_of
from core.store.sqlserver.connections import Access
from core.store.sqlserver.schema import MigrationRun, in_schema, migrate_server
from core.transforms.loading import Room
from tests.fakes.odbc_driver import FakeDriver, Server, fault
from tests.fakes.own_room import own_room

CONNECTION = "SERVER=host;UID=app;PWD=secret"
ALL = list(load_migrations("sqlserver"))
MARKS = {
    "sp_getapplock": "lock",
    "BEGIN TRANSACTION;": "begin",
    "COMMIT TRANSACTION;": "commit",
    "INSERT INTO hubledger.schema_migration": "record",
    "CREATE TABLE hubledger.parcel": "table",
    "CREATE INDEX ix_parcel": "index",
    **{one.text: one.title for one in ALL},
}
OF_ROOM = {"record", "table", "index"}
MIGRATING = ("sp_getapplock", fault("42000", 51001, "a different migration is running"))


def driver_of(**server: Any) -> FakeDriver:
    return FakeDriver(Server(**server))


def texts(driver: FakeDriver) -> list[str]:
    return [text for text, _ in driver.server.executed]


def migrate(
    driver: FakeDriver, *rooms: Room, tell: Callable[[str], None] = lambda _: None, **run: Any
) -> list[Migration]:
    return migrate_server(CONNECTION, access=Access(lambda: driver), run=MigrationRun(tell, **run), rooms=rooms)


def steps(driver: FakeDriver) -> list[str]:
    return [name for text in texts(driver) for mark, name in MARKS.items() if mark in text]


def steps_of_room(driver: FakeDriver) -> list[str]:
    return [step for step in steps(driver) if step in OF_ROOM]


def waits(driver: FakeDriver) -> list[int]:
    return [given[0] for text, given in driver.server.executed if "sp_getapplock" in text]


def recorded(driver: FakeDriver) -> list[list[Any]]:
    found = [given for text, given in driver.server.executed if "INSERT INTO hubledger.schema_migration" in text]
    return [[given[3], *given[:2]] for given in found]


@pytest.mark.parametrize("version", range(len(ALL) + 1))
def test_each_missing_migration_is_applied_told_and_recorded_in_one_transaction_under_the_lock(version: int) -> None:
    driver, told = driver_of(version=version), list[str]()
    missing = ALL[version:]
    assert migrate(driver, tell=told.append) == missing
    assert steps(driver) == ["lock", *(s for one in missing for s in ("begin", one.title, "record", "commit"))]
    assert recorded(driver) == [["hubledger", one.version, one.name] for one in missing]
    assert [connection.timeout for connection in driver.connections] == [0]  # a migration has no deadline
    assert driver.open == []
    assert told[::2] == [f"applying {one.title}" for one in missing]
    for line, one in zip(told[1::2], missing, strict=True):
        assert re.fullmatch(rf"applied {one.title} in \d+\.\d s", line)


def test_the_lock_has_the_name_of_the_database_so_that_runs_in_two_databases_do_not_wait_for_each_other() -> None:
    driver = driver_of(version=len(ALL))
    migrate(driver)
    (lock,) = [text for text in texts(driver) if "sp_getapplock" in text]
    (name,) = re.findall(r"@Resource = (@\w+),", lock)
    assert f"{name} nvarchar(255) = CONCAT(N'hubledger_migration ', DB_NAME());" in lock


def test_a_second_run_tells_that_it_waits_and_goes_on_after_the_first() -> None:
    driver, told = driver_of(version=len(ALL) - 1, refused=MIGRATING), list[str]()

    def first_ends(line: str) -> None:
        driver.server.refused = None
        told.append(line)

    assert migrate(driver, tell=first_ends) == ALL[-1:]
    assert told[0] == "a different migration of this database is running: waiting for it, 60 s at most"
    assert waits(driver) == [0, 60_000]


@pytest.mark.parametrize(
    ("refused", "message", "waited"),
    [
        (MIGRATING, r"did not end within 2 s; this one changed nothing: run `python -m ", [0, 2_000]),
        (("sp_getapplock", fault("42000", 51002)), r"^the database cannot be migrated: .*\(51002\)", [0]),
    ],
    ids=["waited long enough", "refused for a different reason"],
)
def test_a_run_without_the_lock_says_so_and_changes_nothing(refused: Any, message: str, waited: list[int]) -> None:
    driver = driver_of(version=0, refused=refused)
    with pytest.raises(StoreUnavailable, match=message):
        migrate(driver, wait=timedelta(seconds=2))
    assert (waits(driver), set(steps(driver)), driver.open) == (waited, {"lock"}, [])


def test_everything_of_a_migration_goes_to_the_named_schema() -> None:
    driver = driver_of(schema="trial_7", version=0)
    migrate_server(CONNECTION, "trial_7", Access(lambda: driver))
    assert [text for text in texts(driver) if "hubledger" in text.replace("hubledger_migration", "")] == []
    assert "CREATE SCHEMA trial_7" in "".join(texts(driver))


def test_only_the_name_of_the_schema_is_replaced() -> None:
    replaced = "FROM hubledger.home AS t; OBJECT_ID(N'hubledger.home', N'U'); SCHEMA_ID(N'hubledger')"
    kept = "; N'hubledger', N'hubledger_migration' other_hubledger.home"
    assert in_schema(replaced + kept, "x") == replaced.replace("hubledger", "x") + kept
    assert in_schema(replaced + kept, "hubledger") == replaced + kept


@pytest.fixture
def room(tmp_path: Path) -> Room:
    index = "CREATE INDEX ix_parcel ON hubledger.parcel (a) WITH (ONLINE = ON);"
    texts = {"0001_orders.sql": "CREATE TABLE hubledger.parcel (a int NOT NULL);", "0002_more.sql": index}
    return own_room(tmp_path, texts)


def rows_of(room: Room) -> list[tuple[str, int, str, str]]:
    return [(one.app, one.version, one.name, one.text_hash) for one in migrations_of(room, "sqlserver")]


@pytest.mark.parametrize("edition", [1, 2, 3, 4, 5, 6, 8, 9, 11])
def test_an_index_is_built_online_in_an_edition_that_can(room: Room, edition: int) -> None:
    driver = driver_of(edition=edition)
    migrate(driver, room)
    (built,) = [text for text in texts(driver) if "CREATE INDEX ix_parcel" in text]
    assert re.findall(r"ONLINE = \w+", built) == ["ONLINE = ON" if edition in (3, 5, 8) else "ONLINE = OFF"]


def test_a_migration_that_fails_commits_nothing_and_is_named_and_those_before_it_stay(room: Room) -> None:
    first = driver_of(version=0, refused=("CREATE TABLE hubledger.batch_ledger ", fault("42000", 262)))
    with pytest.raises(StoreUnavailable, match=r"^migration 0001 hubledger failed; .*\(262\)"):
        migrate(first)
    assert (steps(first), first.open) == (["lock", "begin", ALL[0].title], [])
    second = driver_of(refused=("ix_parcel", fault("42000", 1913)))
    with pytest.raises(StoreUnavailable, match=r"^migration apps\.orders 0002 more failed; the migrations before it"):
        migrate(second, room)
    assert steps_of_room(second) == ["table", "record", "index"]


def test_a_changed_text_and_a_record_that_is_not_ours_are_refused_before_anything_changes(room: Room) -> None:
    first, second = rows_of(room)
    changed = driver_of(recorded=[first, (*second[:3], "of an older text")])
    with pytest.raises(
        SchemaMismatch, match=r"^the database was made with a different text of migration apps\.orders 0002"
    ):
        migrate(changed, room)
    theirs = driver_of(version=0, recorded=[("hubledger", 1, "orders", "")])
    with pytest.raises(SchemaMismatch, match="0001 orders, which is not one of Hubledger: yours belong to apps/NAME"):
        migrate(theirs)
    assert steps_of_room(changed) == steps_of_room(theirs) == []
