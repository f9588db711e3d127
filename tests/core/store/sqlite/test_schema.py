import sqlite3
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing, suppress
from pathlib import Path

import pytest

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.migrations import load_migrations
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite, open_checked, open_file
from tests.fakes.builders import commit, event, letter, partition, reading, settled
from tests.fakes.rooms import migrate_examples
from tests.fakes.store import Store
from tests.patience import MOMENT

ALL = list(load_migrations("sqlite"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def sql(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(open_file(path, 5.0)) as connection:
        return list(connection.execute(statement))


def test_a_database_is_made_with_every_migration_in_its_folders_and_is_durable_at_each_commit(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "store.db"
    assert migrate_sqlite(path) == ALL
    assert sql(path, "SELECT version, name FROM schema_migration") == [(one.version, one.name) for one in ALL]
    open_checked(path, 5.0).close()
    modes = {name: sql(path, f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous", "foreign_keys")}
    assert modes == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_a_run_waits_for_another_process_and_is_refused_after_the_wait(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other, ThreadPoolExecutor(1) as pool:
        other.execute("BEGIN IMMEDIATE")  # SQLite answers a change to WAL with an error now, and does not wait
        with pytest.raises(StoreUnavailable, match="cannot be opened: database is locked"):
            open_file(path, busy_timeout=0.05)
        running = pool.submit(migrate_sqlite, path)
        with suppress(FutureTimeout):
            running.result(timeout=5 * MOMENT)
        other.execute("COMMIT")
        assert running.result() == ALL


def newer(path: Path) -> None:
    migrate_examples(path)
    sql(path, "CREATE TABLE parcel (parcel_id TEXT NOT NULL)")
    sql(path, "ALTER TABLE sensor_reading ADD COLUMN parcel_id TEXT")
    sql(path, "INSERT INTO schema_migration VALUES (9999, 'parcels', '2027', 'hubledger', '')")
    sql(path, "INSERT INTO schema_migration VALUES (9998, 'breaking_future', '2027', 'hubledger', '')")


def test_a_newer_schema_that_breaks_older_code_is_refused_and_one_that_only_adds_is_worked_on(path: Path) -> None:
    newer(path)
    named = "has migration 9998 breaking_future, but this code knows only migrations up to"
    with pytest.raises(SchemaMismatch, match=named):
        migrate_sqlite(path)
    with pytest.raises(SchemaMismatch, match="deploy the newer code"):
        open_checked(path, 5.0)
    sql(path, "DELETE FROM schema_migration WHERE version = 9998")
    assert migrate_sqlite(path) == []
    with closing(Store(SqliteDatabase(path))) as store:
        outcome = settled({0: [reading()]}, letters=[letter(event(1))], filtered=1)
        store.commit_batch(commit(store.read_partition(partition()), 0, 2, outcome))
    assert sql(path, "SELECT home_id, parcel_id FROM sensor_reading") == [("home-1", None)]


def test_an_empty_database_must_be_migrated_first(path: Path) -> None:
    store = Store(SqliteDatabase(path))
    with pytest.raises(SchemaMismatch, match="does not exist: create it with"):
        store.read_partition(partition())
    assert not path.exists()
    path.touch()
    with pytest.raises(SchemaMismatch, match="is at schema 0 of"):
        open_checked(path, 5.0)
    migrate_sqlite(path)
    assert store.read_partition(partition()).checkpoint is None
    store.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    content = b"this is no database, and long enough to say so" * 100
    path.write_bytes(content)
    for attempt in (migrate_sqlite, lambda path: open_checked(path, 5.0)):
        with pytest.raises(StoreUnavailable, match="not a database"):
            attempt(path)
    assert path.read_bytes() == content
