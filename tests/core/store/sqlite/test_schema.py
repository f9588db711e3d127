"""core/store/sqlite/schema.py and migrate.py: a database is created, upgraded or refused, and it is said which."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing, suppress
from pathlib import Path

import pytest

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.migrate import main
from core.store.migrations import load_migrations
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite, open_checked, open_file
from tests.fakes.builders import commit, event, letter, partition, reading, settled
from tests.fakes.rooms import migrate_examples
from tests.fakes.store import Store
from tests.patience import MOMENT, ended

ROOT = Path(__file__).parents[4]
ALL = list(load_migrations("sqlite"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def sql(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(open_file(path, 5.0)) as connection:
        return list(connection.execute(statement))


def test_a_database_is_created_with_every_migration(path: Path) -> None:
    assert migrate_sqlite(path) == ALL
    assert sql(path, "SELECT version, name FROM schema_migration") == [(one.version, one.name) for one in ALL]


def test_a_run_waits_for_another_process_that_creates_the_database(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other, ThreadPoolExecutor(1) as pool:
        other.execute("BEGIN IMMEDIATE")  # SQLite answers a change to WAL with an error now, and does not wait
        running = pool.submit(migrate_sqlite, path)
        with suppress(FutureTimeout):
            running.result(timeout=5 * MOMENT)
        other.execute("COMMIT")
        assert running.result() == ALL


def test_a_database_that_another_process_keeps_is_refused_after_the_wait(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="cannot be opened: database is locked"):
            open_file(path, busy_timeout=0.05)


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    migrate_sqlite(tmp_path / "a" / "b" / "store.db")
    open_checked(tmp_path / "a" / "b" / "store.db", 5.0).close()


def test_a_migration_that_fails_leaves_nothing_of_any(path: Path) -> None:
    sql(path, "CREATE TABLE batch_ledger (in_the_way INTEGER)")
    with pytest.raises(StoreUnavailable, match="table batch_ledger already exists"):
        migrate_sqlite(path)
    assert sql(path, "SELECT name FROM sqlite_master WHERE type = 'table'") == [("batch_ledger",)]


def test_a_database_is_durable_at_each_commit_and_holds_foreign_keys(path: Path) -> None:
    assert sql(path, "PRAGMA journal_mode") == [("wal",)]
    assert sql(path, "PRAGMA synchronous") == [(2,)]
    assert sql(path, "PRAGMA foreign_keys") == [(1,)]


def newer(path: Path) -> None:
    """A schema with a migration that code of today does not run on, and one behind it that it would."""
    additive(path)
    sql(path, "INSERT INTO schema_migration VALUES (9998, 'breaking_future', '2027', 'hubledger', '')")


def additive(path: Path) -> None:
    """A schema of the future that adds to ours."""
    migrate_examples(path)
    sql(path, "CREATE TABLE parcel (parcel_id TEXT NOT NULL)")
    sql(path, "ALTER TABLE sensor_reading ADD COLUMN parcel_id TEXT")
    sql(path, "INSERT INTO schema_migration VALUES (9999, 'parcels', '2027', 'hubledger', '')")


def test_a_newer_schema_that_breaks_older_code_is_refused_and_left_alone(path: Path) -> None:
    newer(path)
    with pytest.raises(
        SchemaMismatch, match="has migration 9998 breaking_future, but this code knows only migrations up to"
    ):
        migrate_sqlite(path)
    with pytest.raises(SchemaMismatch, match="deploy the newer code"):
        open_checked(path, 5.0)


def test_a_newer_schema_that_only_adds_is_worked_on(path: Path) -> None:
    additive(path)
    assert migrate_sqlite(path) == []
    with closing(Store(SqliteDatabase(path))) as store:
        outcome = settled({0: [reading()]}, letters=[letter(event(1))], filtered=1)
        store.commit_batch(commit(store.read_partition(partition()), 0, 2, outcome))
    assert sql(path, "SELECT home_id, parcel_id FROM sensor_reading") == [("home-1", None)]


def test_an_empty_database_must_be_migrated_first(path: Path) -> None:
    path.touch()
    with pytest.raises(SchemaMismatch, match="is at schema 0 of"):
        open_checked(path, 5.0)


def test_a_database_that_is_not_there_is_not_created_by_reading(path: Path) -> None:
    with pytest.raises(SchemaMismatch, match="does not exist: create it with"):
        Store(SqliteDatabase(path)).read_partition(partition())
    assert not path.exists()


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    content = b"this is no database, and long enough to say so" * 100
    path.write_bytes(content)
    for attempt in (migrate_sqlite, lambda path: open_checked(path, 5.0)):
        with pytest.raises(StoreUnavailable, match="not a database"):
            attempt(path)
    assert path.read_bytes() == content


def test_a_store_goes_on_once_its_database_was_migrated(path: Path) -> None:
    store = Store(SqliteDatabase(path))
    with pytest.raises(SchemaMismatch):
        store.read_partition(partition())
    migrate_sqlite(path)
    assert store.read_partition(partition()).checkpoint is None
    store.close()


def start(*arguments: str, environment: dict[str, str] | None = None) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "core.store.migrate", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, env=environment or {})


@pytest.mark.slow
def test_processes_that_migrate_at_once_apply_each_step_once(path: Path) -> None:
    running = [start("--store", f"sqlite:{path}") for _ in range(4)]
    said = [(ended(each, 60), each.returncode) for each in running]
    assert [code for _, code in said] == [0] * 4, said
    assert [(sum(out.count("applied ") for (out, _), _ in said),)] == sql(path, "SELECT COUNT(*) FROM schema_migration")
    assert sql(path, "SELECT version FROM schema_migration WHERE app = 'hubledger'") == [(one.version,) for one in ALL]


class TestTheCommand:
    def test_says_what_it_applied_and_then_that_nothing_is_missing(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["--store", f"sqlite:{path}"]) == 0
        applied = "".join(f"applied {one.version:04} {one.name}\n" for one in ALL)
        applied += "applied examples.home_security 0001 home_security\n"
        assert capsys.readouterr() == (f"{applied}the store is up to date\n", "")
        assert main(["--store", f"sqlite:{path}"]) == 0
        assert capsys.readouterr() == ("the store is up to date\n", "")

    def test_migrates_the_rooms_of_all_named_transforms(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        names = ("examples.flight_info", "examples.home_security")
        given = [word for name in names for word in ("--transform", name)]
        assert main(["--store", f"sqlite:{path}", *given]) == 0
        assert capsys.readouterr().out.splitlines()[-3:-1] == [
            "applied examples.flight_info 0001 flight_info",
            "applied examples.home_security 0001 home_security",
        ]

    def test_reads_the_setting_when_no_store_is_given(self, path: Path) -> None:
        done = start(environment={"STORE_CONNECTION": f"sqlite:{path}"})
        assert ended(done, 60)[0].endswith("the store is up to date\n")
        assert done.returncode == 0

    @pytest.mark.parametrize(
        ("prepare", "why"),
        [
            (newer, "has migration 9998 breaking_future"),
            (lambda path: path.write_bytes(b"no database" * 100), "not a database"),
            (lambda path: path.mkdir(), "unable to open"),
        ],
        ids=["newer", "no database", "a folder"],
    )
    def test_fails_with_one_line(
        self, path: Path, capsys: pytest.CaptureFixture[str], prepare: Callable[[Path], object], why: str
    ) -> None:
        prepare(path)
        assert main(["--store", f"sqlite:{path}"]) == 1
        self.assert_one_line(capsys, why)

    def test_fails_with_one_line_when_a_file_is_in_the_way_of_a_folder(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path.touch()
        assert main(["--store", f"sqlite:{path}/store.db"]) == 1
        self.assert_one_line(capsys, "store.db")

    @pytest.mark.parametrize("connection", ["mysql:server", "sqlite:"])
    def test_fails_with_one_line_for_a_connection_it_does_not_know(
        self, connection: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["--store", connection]) == 1
        self.assert_one_line(capsys, "STORE_CONNECTION must be sqlite:PATH")

    def test_fails_with_one_line_without_any_connection(self) -> None:
        done = start()
        out, fault = ended(done, 60)
        assert (done.returncode, out) == (1, "")
        assert fault == "migrate: settings refused: STORE_CONNECTION must be set\n"

    def assert_one_line(self, capsys: pytest.CaptureFixture[str], why: str) -> None:
        out, fault = capsys.readouterr()
        assert out == ""
        assert fault.startswith("migrate: ")
        assert fault.count("\n") == 1
        assert why in fault
