"""Hot tables on a T-SQL server: their compression, and states that partitions write at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from core.model.events import Partition, PartitionId
from core.model.rows import PlacedRow
from core.store.sqlserver.connections import Deadlines, Session, connect
from core.store.sqlserver.database import SqlServerDatabase
from examples.home_security.transform import Home
from tests.fakes.engines import CONNECTION
from tests.fakes.server_schema import shared_schema
from tests.fakes.store import Store
from tests.sql.statements import commit_with

pytestmark = pytest.mark.server

COMPRESSED = """
SELECT OBJECT_NAME(p.object_id) FROM sys.partitions AS p
 WHERE OBJECT_SCHEMA_NAME(p.object_id) = ? AND p.index_id = 1 AND p.data_compression_desc = 'PAGE'
 ORDER BY 1;
"""
SOON = Deadlines(statement=timedelta(seconds=5))


@pytest.fixture
def store(server_session: Session) -> Iterator[Store]:
    opened = Store(SqlServerDatabase(CONNECTION, SOON, schema=shared_schema(CONNECTION)))
    yield opened
    opened.close()


def commit_homes(store: Store, partition_id: str, *home_ids: str) -> None:
    """Write these homes as the first commit of a partition."""
    homes: list[PlacedRow] = [(7, place, Home(home_id, "Etc/UTC", True)) for place, home_id in enumerate(home_ids)]
    partition = Partition("namespace/telemetry", "hubledger", PartitionId(partition_id))
    store.commit_batch(replace(commit_with({Home: homes}), state=store.read_partition(partition)))


@contextmanager
def held(home_id: str) -> Iterator[None]:
    """Lock the row of a home as an open transaction of a different partition does."""
    session = connect(CONNECTION)
    session.run(
        f"BEGIN TRANSACTION; UPDATE {shared_schema(CONNECTION)}.home SET armed = armed WHERE home_id = N'{home_id}';"
    )
    yield
    session.run("ROLLBACK TRANSACTION;")
    session.close()


def test_the_appended_tables_and_the_ledger_are_compressed_by_page(server_session: Session) -> None:
    ((*found,),) = server_session.run(COMPRESSED, [shared_schema(CONNECTION)])
    assert [name for (name,) in found] == ["batch_ledger", "flight_change", "home_alert", "sensor_reading"]


def test_a_new_state_of_a_small_table_waits_for_no_state_of_a_different_partition(store: Store) -> None:
    commit_homes(store, "0", *(f"home-{number}" for number in range(20)))
    with held("home-3"):
        commit_homes(store, "1", "home-99")


def test_a_changed_state_of_a_small_table_waits_for_no_state_of_a_different_partition(store: Store) -> None:
    commit_homes(store, "0", *(f"home-{number}" for number in range(20)))
    with held("home-3"):
        commit_homes(store, "1", "home-5", "home-7")
