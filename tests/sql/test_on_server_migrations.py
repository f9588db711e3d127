"""Migrations on a T-SQL server: a database with rows is upgraded, a failed migration leaves those before it, a second
run waits, and what the server says of a batch that binds what it makes."""

import os
import re
import secrets
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from core.errors import StoreUnavailable
from core.store.migrations import load_migrations
from core.store.queries import SQL, load_queries
from core.store.sqlserver.faults import read_trouble
from core.store.sqlserver.odbc import Session, connect
from core.store.sqlserver.schema import MigrationRun, in_schema, migrate_server
from tests.fakes.own_room import own_room
from tests.fakes.rooms import EXAMPLES
from tests.fakes.server_schema import drop_schema
from tests.sql.statements import without_comments

CONNECTION = os.environ.get("MSSQL_CONNECTION", "")
pytestmark = pytest.mark.skipif(not CONNECTION, reason="MSSQL_CONNECTION names no T-SQL server")
ALL = list(load_migrations("sqlserver"))
BEFORE = 8  # the version of the aged schema: the next one reads the ledger, builds indexes and changes tables
RANGES = [("0", 1, 10, 14), ("0", 2, 15, 19), ("1", 1, 0, 4), ("1", 2, 7, 11)]  # 5 and 6 of partition 1 are missing


@pytest.fixture
def session() -> Iterator[Session]:
    opened = connect(CONNECTION)
    yield opened
    opened.close()


@pytest.fixture
def schema(session: Session) -> Iterator[str]:
    """A schema of version BEFORE with rows; dropped afterwards."""
    name = f"hubledger_test_{secrets.token_hex(4)}"
    session.run(in_schema((SQL / "sqlserver" / "create_schema.sql").read_text(encoding="utf-8"), name))
    session.run(in_schema(load_queries("sqlserver")["create_schema_migration"].text, name))
    for one in ALL[:BEFORE]:
        session.run(in_schema(f"SET NOCOUNT ON;\n{one.text}", name))
        values = f"({one.version}, N'{one.name}', SYSUTCDATETIME())"
        session.run(f"INSERT INTO {name}.schema_migration (version, name, applied_at) VALUES {values};")
    fill(session, name)
    yield name
    drop_schema(CONNECTION, name)


def fill(session: Session, schema: str) -> None:
    session.run(
        f"SET NOCOUNT ON; INSERT INTO {schema}.event_stream (event_hub, consumer_group, incarnation, anchored_at)"
        " VALUES (N'namespace/telemetry', N'hubledger', 1, SYSUTCDATETIME());"
    )
    for partition_id, commit_number, first, last in RANGES:
        session.run(
            f"SET NOCOUNT ON; INSERT INTO {schema}.batch_ledger (stream_id, partition_id, commit_number, kind,"
            " first_sequence_number, last_sequence_number, written, filtered, dead_lettered, held, absent,"
            " rows_written, transform_version, invocation_id, committed_at)"
            f" SELECT e.stream_id, '{partition_id}', {commit_number}, 'batch', {first}, {last}, 4, 1, 0, 0, 0, 4,"
            f" N'a/1', N'invocation', SYSUTCDATETIME() FROM {schema}.event_stream AS e;"
        )


def versions(session: Session, schema: str) -> list[int]:
    (rows,) = session.run(f"SELECT m.version FROM {schema}.schema_migration AS m ORDER BY m.version;")
    return [version for (version,) in rows]


def indexes(session: Session, schema: str) -> set[str]:
    text = "SELECT i.name FROM sys.indexes AS i JOIN sys.tables AS t ON t.object_id = i.object_id"
    (rows,) = session.run(f"{text} WHERE t.schema_id = SCHEMA_ID(N'{schema}') AND i.name IS NOT NULL;")
    return {name for (name,) in rows}


def test_a_database_with_rows_is_upgraded(session: Session, schema: str) -> None:
    told: list[str] = []
    assert migrate_server(CONNECTION, schema, run=MigrationRun(told.append)) == ALL[BEFORE:]
    assert [line for line in told if line.startswith("applying ")] == [f"applying {one.title}" for one in ALL[BEFORE:]]
    assert versions(session, schema) == [one.version for one in ALL]
    made = " ".join(without_comments(one.text) for one in ALL)
    dropped = set(re.findall(r"DROP INDEX (\w+)", made))
    created = set(re.findall(r"CREATE (?:UNIQUE )?(?:CLUSTERED )?INDEX (\w+)", made))
    assert created & indexes(session, schema) == created - dropped
    columns = "s.partition_id, s.first_sequence_number, s.last_sequence_number, s.commits, s.holes, s.written"
    (sums,) = session.run(f"SELECT {columns} FROM {schema}.ledger_sum AS s ORDER BY s.partition_id;")
    assert sums == [("0", 10, 19, 2, 0, 8), ("1", 0, 11, 2, 1, 8)]
    (anchors,) = session.run(
        f"SELECT a.partition_id, a.sequence_number FROM {schema}.partition_anchor AS a ORDER BY a.partition_id;"
    )
    assert anchors == [("0", 10), ("1", 0)]


def test_a_migration_that_fails_half_way_leaves_none_of_itself_and_all_before_it(session: Session, schema: str) -> None:
    session.run(f"CREATE INDEX ix_event_hub_dead_letter_held ON {schema}.event_hub_dead_letter (held_behind);")
    with pytest.raises(StoreUnavailable, match=r"^migration 0014 held_letters failed; .*\(1913\)"):
        migrate_server(CONNECTION, schema)
    assert versions(session, schema) == list(range(1, 14))
    assert "ix_event_hub_dead_letter_open" not in indexes(session, schema)  # the step before the one that failed
    session.run(f"DROP INDEX ix_event_hub_dead_letter_held ON {schema}.event_hub_dead_letter;")
    assert migrate_server(CONNECTION, schema) == ALL[13:]
    assert session.run("SELECT @@TRANCOUNT AS open_transactions;") == [[(0,)]]


@pytest.fixture
def other() -> Iterator[Session]:
    """A run that holds the lock of the migrations."""
    opened = connect(CONNECTION)
    opened.run((SQL / "sqlserver" / "lock_migrations.sql").read_text(encoding="utf-8"), [25_000])
    yield opened
    opened.close()


def test_a_second_run_gives_up_after_its_wait_and_says_why(session: Session, schema: str, other: Session) -> None:
    with pytest.raises(StoreUnavailable, match=r"^a different migration of this database did not end within 1 s"):
        migrate_server(CONNECTION, schema, run=MigrationRun(wait=timedelta(seconds=1)))
    assert versions(session, schema) == list(range(1, BEFORE + 1))


def test_a_second_run_goes_on_when_the_first_ends(schema: str, other: Session) -> None:
    told: list[str] = []

    def first_ends(line: str) -> None:
        other.close()
        told.append(line)

    assert migrate_server(CONNECTION, schema, run=MigrationRun(first_ends)) == ALL[BEFORE:]
    assert told[0].startswith("a different migration of this database is running: waiting for it, 60 s at most")


EARLY = {
    "the filter of an index": "CREATE INDEX ix_floors ON hubledger.home (home_id) WHERE floors IS NOT NULL;",
    "a selected column": "SELECT h.floors FROM hubledger.home AS h;",
    "an updated column": "UPDATE hubledger.home SET floors = 1;",
    "an inserted column": "INSERT INTO hubledger.home (home_id, floors) SELECT h.home_id, 1 FROM hubledger.home AS h;",
}


@pytest.mark.parametrize("case", EARLY)
def test_a_batch_that_binds_a_column_which_it_adds_is_refused_before_it_runs(
    session: Session, schema: str, case: str
) -> None:
    add = "ALTER TABLE hubledger.home ADD floors int;"
    with pytest.raises(session.fault) as caught:
        session.run(in_schema(f"{add} {EARLY[case]}", schema))
    assert read_trouble(caught.value).number == 207
    assert session.run(f"SELECT COL_LENGTH(N'{schema}.home', N'floors') AS width;") == [[(None,)]]
    if case.startswith("the filter"):
        session.run(in_schema(f"{add} EXEC(N'{EARLY[case]}');", schema))
        assert "ix_floors" in indexes(session, schema)


COLUMNS = """
SELECT t.name, c.name, y.name, c.max_length, c.precision, c.scale, c.is_nullable, c.collation_name
  FROM sys.tables AS t
  JOIN sys.columns AS c ON c.object_id = t.object_id
  JOIN sys.types AS y ON y.user_type_id = c.user_type_id
 WHERE t.schema_id = SCHEMA_ID(N'{0}');
"""
INDEXES = """
SELECT t.name, i.name, i.type_desc, i.is_unique, i.is_primary_key, i.ignore_dup_key, c.name, x.key_ordinal,
       p.data_compression_desc
  FROM sys.tables AS t
  JOIN sys.indexes AS i ON i.object_id = t.object_id
  JOIN sys.index_columns AS x ON x.object_id = t.object_id AND x.index_id = i.index_id
  JOIN sys.columns AS c ON c.object_id = t.object_id AND c.column_id = x.column_id
  JOIN sys.partitions AS p ON p.object_id = t.object_id AND p.index_id = i.index_id
 WHERE t.schema_id = SCHEMA_ID(N'{0}');
"""


def described(session: Session, schema: str) -> set[tuple[object, ...]]:
    """Return the columns and indexes of the tables of a schema; that of older code is left out."""
    (columns,), (keys,) = (session.run(text.format(schema)) for text in (COLUMNS, INDEXES))
    return {row for row in (*columns, *keys) if row[0] not in ("home_activity_staging", "schema_migration")}


def test_a_new_schema_has_the_tables_of_the_examples_that_an_old_one_has(session: Session, schema: str) -> None:
    new = f"hubledger_test_{secrets.token_hex(4)}"
    migrate_server(CONNECTION, schema, rooms=EXAMPLES)
    try:
        migrate_server(CONNECTION, new, rooms=EXAMPLES)
        old = described(session, schema)
        assert ("home_activity",) in {row[:1] for row in old}
        assert described(session, new) == old
    finally:
        drop_schema(CONNECTION, new)


WITHOUT_APP = (
    "ALTER TABLE {0}.schema_migration DROP CONSTRAINT pk_schema_migration;",
    "ALTER TABLE {0}.schema_migration DROP CONSTRAINT df_schema_migration_app;",
    "ALTER TABLE {0}.schema_migration DROP COLUMN app;",
    "ALTER TABLE {0}.schema_migration ADD CONSTRAINT pk_schema_migration PRIMARY KEY (version);",
)


def test_a_list_without_apps_is_upgraded_and_an_owners_record_is_handed_over(
    session: Session, schema: str, tmp_path: Path
) -> None:
    migrate_server(CONNECTION, schema)
    for statement in WITHOUT_APP:
        session.run(statement.format(schema))
    recorded = "(version, name, applied_at) VALUES ({}, N'orders', SYSUTCDATETIME());"
    session.run(f"DELETE FROM {schema}.schema_migration WHERE version = 26;")
    session.run(f"INSERT INTO {schema}.schema_migration {recorded.format(26)}")
    room = own_room(tmp_path, {"0001_orders.sql": "SELECT 1 / 0;"})
    assert [one.version for one in migrate_server(CONNECTION, schema, rooms=[room])] == [26]
    (rows,) = session.run(f"SELECT m.app, m.version FROM {schema}.schema_migration AS m ORDER BY m.app, m.version;")
    assert rows == [("apps.orders", 1), *(("hubledger", one.version) for one in ALL)]
    session.run(f"INSERT INTO {schema}.schema_migration {recorded.format(99)}")  # as code of before does
    assert versions(session, schema)[-1] == 99
