"""Migrations on a T-SQL server: a database with rows is upgraded, a failed migration leaves those before it, a second
run waits, and what the server says of a batch that binds what it makes."""

import secrets
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest

from core.errors import StoreUnavailable
from core.model.rows import Text
from core.store.migrations import load_migrations, migrations_of
from core.store.queries import SQL
from core.store.sqlserver.connections import Session, connect
from core.store.sqlserver.faults import read_trouble
from core.store.sqlserver.schema import MigrationRun, in_schema, migrate_server
from core.transforms.loading import Room
from hubledger.cli.ddl.migration import next_migration
from tests.fakes.declared import appended, forgotten
from tests.fakes.own_room import own_room
from tests.fakes.server_engine import CONNECTION, drop_schema

pytestmark = pytest.mark.server

OURS = [one.version for one in load_migrations("sqlserver")]
RANGES = [("0", 1, 10, 14), ("0", 2, 15, 19), ("1", 1, 0, 4)]
SUMS = """
CREATE TABLE hubledger.shop_sum (
    partition_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    written      bigint NOT NULL
);
INSERT INTO hubledger.shop_sum (partition_id, written)
SELECT l.partition_id, SUM(CONVERT(bigint, l.written)) FROM hubledger.batch_ledger AS l GROUP BY l.partition_id;
"""
NOTES = """
CREATE INDEX ix_shop_sum ON hubledger.shop_sum (written) WITH (ONLINE = ON);
ALTER TABLE hubledger.batch_ledger ADD shop_note int;
EXEC(N'CREATE INDEX ix_shop_note ON hubledger.batch_ledger (shop_note) WHERE shop_note IS NOT NULL;');
"""


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A room whose migrations read the ledger, build indexes and change a table of ours."""
    return own_room(tmp_path, {"0001_sums.sql": SUMS, "0002_notes.sql": NOTES})


@pytest.fixture
def session() -> Iterator[Session]:
    opened = connect(CONNECTION)
    yield opened
    opened.close()


@pytest.fixture
def schema(session: Session, room: Room) -> Iterator[str]:
    """A schema of our migrations with rows; dropped afterwards."""
    name = f"hubledger_test_{secrets.token_hex(4)}"
    migrate_server(CONNECTION, name)
    fill(session, name)
    yield name
    drop_schema(CONNECTION, name, (room,))


def fill(session: Session, schema: str) -> None:
    session.run(
        f"SET NOCOUNT ON; INSERT INTO {schema}.event_stream (event_hub, consumer_group, incarnation, anchored_at)"
        " VALUES (N'namespace/telemetry', N'hubledger', 1, SYSUTCDATETIME());"
    )
    for partition_id, commit_number, first, last in RANGES:
        session.run(
            f"SET NOCOUNT ON; INSERT INTO {schema}.batch_ledger (stream_id, partition_id, commit_number, kind,"
            " first_sequence_number, last_sequence_number, written, filtered, dead_lettered, held, absent,"
            " rows_written, rows_appended, transform_version, invocation_id, committed_at,"
            " total_commits, total_written, total_filtered, total_dead_lettered, total_held,"
            " total_absent)"
            f" SELECT e.stream_id, '{partition_id}', {commit_number}, 'batch', {first}, {last}, 4, 1, 0, 0, 0, 4, 4,"
            f" N'a/1', N'invocation', SYSUTCDATETIME(), 1, 4, 1, 0, 0, 0 FROM {schema}.event_stream AS e;"
        )


def recorded(session: Session, schema: str) -> list[tuple[str, int]]:
    (rows,) = session.run(
        f"SELECT m.app, m.version FROM {schema}.schema_migration AS m ORDER BY m.app DESC, m.version;"
    )
    return [(app, version) for app, version in rows]


def indexes(session: Session, schema: str) -> set[str]:
    text = "SELECT i.name FROM sys.indexes AS i JOIN sys.tables AS t ON t.object_id = i.object_id"
    (rows,) = session.run(f"{text} WHERE t.schema_id = SCHEMA_ID(N'{schema}') AND i.name IS NOT NULL;")
    return {name for (name,) in rows}


def test_a_database_with_rows_is_upgraded(session: Session, schema: str, room: Room) -> None:
    told: list[str] = []
    applied = migrate_server(CONNECTION, schema, run=MigrationRun(told.append), rooms=[room])
    assert applied == list(migrations_of(room, "sqlserver"))
    assert [line for line in told if line.startswith("applying ")] == [f"applying {one.title}" for one in applied]
    ours = [("hubledger", version) for version in OURS]
    assert recorded(session, schema) == [*ours, ("apps.orders", 1), ("apps.orders", 2)]
    assert {"ix_shop_sum", "ix_shop_note"} <= indexes(session, schema)
    (sums,) = session.run(f"SELECT s.partition_id, s.written FROM {schema}.shop_sum AS s ORDER BY s.partition_id;")
    assert sums == [("0", 8), ("1", 4)]


def test_a_migration_that_fails_half_way_leaves_none_of_itself_and_all_before_it(
    session: Session, schema: str, room: Room
) -> None:
    session.run(f"CREATE INDEX ix_shop_note ON {schema}.batch_ledger (committed_at);")
    with pytest.raises(StoreUnavailable, match=r"^migration apps\.orders 0002 notes failed; .*\(1913\)"):
        migrate_server(CONNECTION, schema, rooms=[room])
    assert recorded(session, schema)[-1] == ("apps.orders", 1)
    assert "ix_shop_sum" not in indexes(session, schema)  # the step before the one that failed
    session.run(f"DROP INDEX ix_shop_note ON {schema}.batch_ledger;")
    assert [one.version for one in migrate_server(CONNECTION, schema, rooms=[room])] == [2]
    assert session.run("SELECT @@TRANCOUNT AS open_transactions;") == [[(0,)]]


def test_columns_become_wider_and_keep_their_rows(session: Session, schema: str, tmp_path: Path) -> None:
    with forgotten():
        kinds: dict[str, Any] = {"amount": int, "exact": int, "note": Annotated[str, Text(20)], "gone": datetime}
        wider: dict[str, Any] = {"amount": float | None, "exact": Decimal, "note": Annotated[str | None, Text(40)]}
        wide = own_room(tmp_path, {}, "apps.wide")
        for engine, text in next_migration((appended("line", **kinds),), (), wide.folder).texts.items():
            (wide.folder / "migrations" / engine / "0001_line.sql").write_text(text, encoding="utf-8")
        migrate_server(CONNECTION, schema, rooms=[wide])
        session.run(
            f"SET NOCOUNT ON; INSERT INTO {schema}.line (stream_id, partition_id, sequence_number, ordinal,"
            " commit_number, amount, exact, note, gone)"
            " VALUES (1, '0', 5, 0, 9, 21, 9007199254740993, N'a', '2026-03-01T10:00:00');"
        )
        following = next_migration((appended("line", **wider),), (), wide.folder)
    assert following.cannot == ()
    for engine, text in following.texts.items():
        (wide.folder / "migrations" / engine / "0002_wider.sql").write_text(text, encoding="utf-8")
    assert [one.version for one in migrate_server(CONNECTION, schema, rooms=[wide])] == [2]
    session.run(
        f"SET NOCOUNT ON; INSERT INTO {schema}.line (stream_id, partition_id, sequence_number, ordinal, commit_number,"
        " amount, exact, note) VALUES (1, '0', 6, 0, 9, NULL, 21.5, NULL);"
    )
    (rows,) = session.run(f"SELECT l.amount, l.exact, l.note FROM {schema}.line AS l ORDER BY l.sequence_number;")
    session.run(f"DROP TABLE {schema}.line;")
    assert rows == [(21.0, Decimal("9007199254740993"), "a"), (None, Decimal("21.5"), None)]


@pytest.fixture
def other() -> Iterator[Session]:
    """A run that holds the lock of the migrations."""
    opened = connect(CONNECTION)
    opened.run((SQL / "sqlserver" / "lock_migrations.sql").read_text(encoding="utf-8"), [25_000])
    yield opened
    opened.close()


def test_a_second_run_gives_up_after_its_wait_and_says_why(
    session: Session, schema: str, room: Room, other: Session
) -> None:
    with pytest.raises(StoreUnavailable, match=r"^a different migration of this database did not end within 1 s"):
        migrate_server(CONNECTION, schema, run=MigrationRun(wait=timedelta(seconds=1)), rooms=[room])
    assert recorded(session, schema) == [("hubledger", version) for version in OURS]


def test_a_second_run_goes_on_when_the_first_ends(schema: str, room: Room, other: Session) -> None:
    told: list[str] = []

    def first_ends(line: str) -> None:
        other.close()
        told.append(line)

    run = MigrationRun(first_ends)
    assert [one.version for one in migrate_server(CONNECTION, schema, run=run, rooms=[room])] == [1, 2]
    assert told[0].startswith("a different migration of this database is running: waiting for it, 60 s at most")


EARLY = {
    "the filter of an index": "CREATE INDEX ix_floors ON hubledger.batch_ledger (kind) WHERE floors IS NOT NULL;",
    "a selected column": "SELECT l.floors FROM hubledger.batch_ledger AS l;",
    "an updated column": "UPDATE hubledger.batch_ledger SET floors = 1;",
    "an inserted column": "INSERT INTO hubledger.batch_ledger (floors) SELECT 1;",
}


@pytest.mark.parametrize("case", EARLY)
def test_a_batch_that_binds_a_column_which_it_adds_is_refused_before_it_runs(
    session: Session, schema: str, case: str
) -> None:
    add = "ALTER TABLE hubledger.batch_ledger ADD floors int;"
    with pytest.raises(session.fault) as caught:
        session.run(in_schema(f"{add} {EARLY[case]}", schema))
    assert read_trouble(caught.value).number == 207
    assert session.run(f"SELECT COL_LENGTH(N'{schema}.batch_ledger', N'floors') AS width;") == [[(None,)]]
    if case.startswith("the filter"):
        session.run(in_schema(f"{add} EXEC(N'{EARLY[case]}');", schema))
        assert "ix_floors" in indexes(session, schema)
