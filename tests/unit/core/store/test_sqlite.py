"""core/store/sqlite.py: what only the embedded engine does; the rest is in tests/contract."""

import sqlite3
from contextlib import closing

import pytest

from core.errors import CommitOutcomeUnknown, StoreUnavailable
from core.settings import read_settings
from core.store.connect import open_store
from core.store.sqlite import SqliteStore
from tests.fakes.builders import commit, partition, reading, settled
from tests.fakes.engines import SqliteEngine


def test_a_database_that_another_process_holds_is_unavailable_and_then_usable(sqlite: SqliteEngine) -> None:
    store = SqliteStore(sqlite.path, busy_timeout=0.0)
    state = store.read_partition(partition())
    with closing(sqlite3.connect(sqlite.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            store.commit_batch(commit(state, 0, 0, settled({0: [reading()]})))
        assert store.read_partition(partition()) == state  # readers go on beside a writer
    assert store.commit_batch(commit(state, 0, 0, settled({0: [reading()]}))) == 1
    store.close()


def test_a_table_that_is_missing_is_the_stores_fault_and_writes_nothing(sqlite: SqliteEngine) -> None:
    store = sqlite.open()
    state = store.read_partition(partition())
    sqlite.sql("DROP TABLE sensor_reading")
    with pytest.raises(StoreUnavailable, match="sensor_reading"):
        store.commit_batch(commit(state, 0, 0, settled({0: [reading()]})))
    assert sqlite.ledger() == []
    assert store.read_partition(partition()) == state
    store.close()


def test_times_are_stored_as_texts_of_one_length(sqlite: SqliteEngine) -> None:
    store = sqlite.open()
    store.commit_batch(commit(store.read_partition(partition()), 0, 0, settled({0: [reading()]})))
    store.close()
    assert sqlite.sql("SELECT observed_at FROM sensor_reading") == [("2026-01-01T00:00:00.000000Z",)]
    assert sqlite.sql("SELECT enqueued_at, updated_at FROM event_hub_checkpoint") == [
        ("2026-01-01T00:00:00.000000Z", "2026-01-02T00:00:00.000000Z")
    ]


def test_the_store_of_the_settings_reads_and_commits(sqlite: SqliteEngine) -> None:
    settings = read_settings(
        {
            "STORE_CONNECTION": f"sqlite:{sqlite.path}",
            "EVENTHUB": "Endpoint=sb://localhost",
            "EVENTHUB_NAME": "telemetry",
            "EVENTHUB_CONSUMER_GROUP": "hubledger",
        }
    )
    store = open_store(settings)
    assert store.commit_batch(commit(store.read_partition(partition()), 0, 4)) == 1
    assert [books.balanced for books in store.read_ledgers()] == [True]
    store.close()


def test_a_commit_that_fails_at_its_very_end_is_in_doubt_and_the_store_goes_on(sqlite: SqliteEngine) -> None:
    sqlite.sql("CREATE TABLE child (parent INTEGER REFERENCES event_stream DEFERRABLE INITIALLY DEFERRED)")
    sqlite.sql("CREATE TRIGGER spoil AFTER INSERT ON batch_ledger BEGIN INSERT INTO child VALUES (4711); END")
    store = sqlite.open()
    state = store.read_partition(partition())
    with pytest.raises(CommitOutcomeUnknown, match="the commit was not answered"):
        store.commit_batch(commit(state, 0, 0))
    sqlite.sql("DROP TRIGGER spoil")
    assert store.read_partition(partition()) == state
    assert store.commit_batch(commit(state, 0, 0)) == 1
    store.close()
