"""The schema of SQLite, and each statement finds its rows by an index, as SQLite's plans show.

The plans on an empty store are those on a store with millions of rows, because the store keeps no statistics.
tests/sql has the indexes of the server.
"""

import re
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing, suppress
from pathlib import Path

import pytest

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.migrations import load_migrations
from core.store.queries import load_queries
from core.store.script import RowVerb, of_rows
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite, open_checked, open_file
from core.store.sqlite.statements import rows_text
from examples.home_security.transform import Home, HomeAlert, SensorReading
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


LETTERS = "event_hub_dead_letter"
GROWING = {LETTERS, "dead_letter_attempt", "batch_ledger", "retracted_row", "staged_event", "replay_diff"}
STATUS = f"ix_{LETTERS}_status"
# The statements that read such a table of a whole partition or stream: by an index that has few of its rows, in one
# step from its end, or because an audit reads all.
WHOLE = {
    *("find_held_faults", "find_attempt_faults", "find_retry_faults", "find_replay_faults"),
    *("find_first_replay", "count_open_letters", "count_replay_letters", "count_held", "read_ledger_ends"),
    *("read_last_batches", "read_replayable", "next_due_at", "count_old_ledger_rows"),
    *("group_letters", "group_letters_of_kind", "cause_matching", "resolve_letters", "delete_retracted"),
}
OF_NEWER = {"next_due_at", "delete_retracted"}  # newer SQLite than 3.40 finds their rows without a whole read
PAGES = (
    "find_texts_to_search",
    "list_letters",
    "list_letters_of_status",
    "list_letters_of_cause",
    "find_oldest_letter",
    "walk_up",
    "walk_down",
)


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("plans") / "store.db"
    migrate_examples(path)
    with closing(open_file(path, 5.0)) as connection:
        connection.create_function("store_time", 0, str)
        yield connection


def plan_of(planner: sqlite3.Connection, text: str) -> list[str]:
    values = dict.fromkeys((name for query in load_queries("sqlite").values() for name in query.params), "x")
    return [row[3] for row in planner.execute(f"EXPLAIN QUERY PLAN {text}", values)]


def texts_of(name: str) -> set[str]:
    """Return the texts of a statement, with and without its filters."""
    query = load_queries("sqlite")[name]
    return {query.text_without(missing) for missing in (frozenset(), query.optional)}


def reads_whole(text: str, step: str) -> bool:
    found = re.fullmatch(r"SCAN (\w+)\b.*|SEARCH (\w+) USING .*\(stream_id=\?(?: AND partition_id=\?)?\)", step)
    if found is None:
        return False
    alias = found[1] or found[2]
    return bool(GROWING & {alias, *re.findall(rf"\b(\w+) (?:AS )?{alias}\b", text)})


def test_no_statement_reads_a_growing_table_whole_but_those_that_must(planner: sqlite3.Connection) -> None:
    found = {
        name
        for name in load_queries("sqlite")
        for text in texts_of(name)
        if any(reads_whole(text, step) for step in plan_of(planner, text))
    }
    assert found | OF_NEWER == WHOLE
    scanning = load_queries("sqlite")["list_letters_of_status"].text.replace(f"INDEXED BY {STATUS}", "NOT INDEXED")
    assert any(reads_whole(scanning, step) for step in plan_of(planner, scanning))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_read_in_its_order_and_not_sorted(planner: sqlite3.Connection, name: str) -> None:
    plans = [plan_of(planner, text) for text in texts_of(name)]
    assert [step for plan in plans for step in plan if "TEMP B-TREE" in step] == []


@pytest.mark.parametrize("row_class", [SensorReading, HomeAlert, Home])
@pytest.mark.parametrize("verb", ["select_placed", "count_rows"])
def test_rows_are_found_by_their_place(planner: sqlite3.Connection, row_class: type, verb: RowVerb) -> None:
    plan = plan_of(planner, rows_text(of_rows(verb, row_class)))
    assert [step for step in plan if "(stream_id=? AND partition_id=? AND sequence_number" in step], plan
