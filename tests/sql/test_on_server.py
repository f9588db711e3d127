"""What only a T-SQL server can show; MSSQL_CONNECTION names it, and all is done in a schema of its own."""

import os
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.errors import StoreMisconfigured
from core.store.odbc import connect
from core.store.queries import load_migrations
from core.store.server_commit import statement
from core.store.server_schema import in_schema, migrate_server
from core.store.sqlserver import SqlServerStore
from tests.fakes.server_schema import TABLES, drop_schema
from tests.sql.statements import commit_of
from tests.sql.values import ROW_CLASSES

CONNECTION = os.environ.get("MSSQL_CONNECTION", "")
pytestmark = pytest.mark.skipif(not CONNECTION, reason="MSSQL_CONNECTION names no T-SQL server")
COUNT = "SELECT COUNT(*) FROM sys.tables AS t WHERE t.schema_id = SCHEMA_ID(?);"


@pytest.fixture
def schema() -> Iterator[str]:
    """A name that nobody uses; dropped afterwards."""
    name = f"hubledger_test_{secrets.token_hex(4)}"
    yield name
    drop_schema(CONNECTION, name)


def tables(schema: str) -> int:
    session = connect(CONNECTION)
    ((count,),) = session.run(COUNT, [schema])
    session.close()
    return int(count)


def test_a_second_migration_finds_nothing_to_do(schema: str) -> None:
    assert migrate_server(CONNECTION, schema) == list(load_migrations("sqlserver"))
    assert migrate_server(CONNECTION, schema) == []
    assert tables(schema) == len(TABLES) + 1


def test_of_migrations_at_the_same_time_one_applies_all(schema: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        applied = [len(done) for done in pool.map(lambda _: migrate_server(CONNECTION, schema), range(4))]
    assert sorted(applied) == [0, 0, 0, len(load_migrations("sqlserver"))]


def test_a_schema_that_is_dropped_leaves_nothing(schema: str) -> None:
    migrate_server(CONNECTION, schema)
    drop_schema(CONNECTION, schema)
    drop_schema(CONNECTION, schema)
    assert tables(schema) == 0


@pytest.mark.parametrize("letters", [True, False])
def test_a_commit_of_every_row_class_is_taken(schema: str, letters: bool) -> None:
    migrate_server(CONNECTION, schema)
    store = SqlServerStore(CONNECTION, schema=schema)
    commit = commit_of(ROW_CLASSES, first=True, letters=letters)
    stream_id = store.read_partition(commit.partition).stream_id
    assert stream_id == commit.state.stream_id
    assert store.commit_batch(commit) == 1
    assert store.read_partition(commit.partition) == commit.state_after(1)
    store.close()


def test_a_transaction_that_fails_leaves_none_open(schema: str) -> None:
    migrate_server(CONNECTION, schema)
    session = connect(CONNECTION)
    with pytest.raises(session.fault):
        session.run(in_schema(statement("SET XACT_ABORT ON; BEGIN TRANSACTION; THROW 51000, 'no', 1;", ()), schema))
    assert session.run("SELECT @@TRANCOUNT AS open_transactions;")[0][0] == 0
    session.close()


def test_a_login_that_does_not_exist_names_the_setting() -> None:
    other = ";".join(part for part in CONNECTION.split(";") if part[:3].lower() not in ("uid", "pwd"))
    with pytest.raises(StoreMisconfigured, match=r"^STORE_CONNECTION: "):
        connect(f"{other};UID=nobody_{secrets.token_hex(4)};PWD=wrong")
