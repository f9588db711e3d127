"""Behaviour that only a T-SQL server can show: MSSQL_CONNECTION names it, and the tests have a separate schema.

Migrations, sessions, plans and the wire. A database with rows is upgraded, a failed migration leaves those before it,
and a second run waits. A run over a long ledger is planned in time, and makes nobody wait.
"""

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import pytest

from core.aggregation.orders import Pipelines
from core.aggregation.runs import MOST_COMMITS, NO_CUT
from core.aggregation.store import portion_script
from core.aggregation.tick import PORTION, next_portion
from core.errors import CheckpointConflict, CommitOutcomeUnknown, SchemaMismatch, StoreMisconfigured, StoreUnavailable
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.aggregates import SLICES
from core.model.ports import Clock
from core.model.rows import Text
from core.settle.partition_store import known_erasures
from core.store.columns import place_of
from core.store.memory import Memory
from core.store.migrations import load_migrations, migrations_of
from core.store.queries import SQL
from core.store.script import Script, Step
from core.store.sqlserver.batch import run_batch
from core.store.sqlserver.connections import Deadlines, LongText, Session, connect, load_driver
from core.store.sqlserver.database import SqlServerDatabase
from core.store.sqlserver.faults import read_trouble
from core.store.sqlserver.schema import MigrationRun, in_schema, migrate_server
from core.transforms.loading import Room
from examples.home_security.aggregates.home_activity import HomeActivity
from hubledger.cli.ddl.migration import next_migration
from tests.fakes.aggregation_engines import HOME_ACTIVITY, AggregatingStore, ServerAggregation, committed, ingest
from tests.fakes.builders import EPOCH, batch, commit, events, partition, reading, stamps
from tests.fakes.declared import appended, forgotten
from tests.fakes.engines import CONNECTION, TABLES, SqlServerEngine, drop_schema, shared_schema
from tests.fakes.own_room import own_room
from tests.fakes.plain_transform import PLAIN
from tests.fakes.rooms import EXAMPLES, all_migrations
from tests.fakes.runs import NOW, opened_run, staged_result, window
from tests.fakes.store import Store
from tests.sql.statements import commit_of
from tests.sql.values import ROW_CLASSES
from tests.sql.wire import Cut, Wire

pytestmark = pytest.mark.server

COUNT = "SELECT COUNT(*) FROM sys.tables AS t WHERE t.schema_id = SCHEMA_ID(?);"


@pytest.fixture
def unused() -> Iterator[str]:
    """The name of a schema that does not exist. A test may make it, and it is dropped afterwards."""
    name = f"hubledger_test_{secrets.token_hex(4)}"
    yield name
    drop_schema(CONNECTION, name)


def tables(schema: str) -> int:
    session = connect(CONNECTION)
    (((count,),),) = session.run(COUNT, [schema])
    session.close()
    return int(count)


def test_of_migrations_at_the_same_time_one_applies_all(unused: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        applied = list(pool.map(lambda _: migrate_server(CONNECTION, unused, rooms=EXAMPLES), range(4)))
    assert sorted(applied, key=len) == [[], [], [], all_migrations("sqlserver")]
    assert tables(unused) == len(TABLES) + 1


def test_a_transaction_that_fails_leaves_none_open(unused: str) -> None:
    migrate_server(CONNECTION, unused, rooms=EXAMPLES)
    session = connect(CONNECTION)
    known = {"known_erasures": 0}
    unmet = Step("count_commit", {"stream_id": 1, "partition_id": "none", **known}, expect=1, keeps="commit_number")
    text, given = run_batch(Script("a test", (unmet, unmet)), rehearse=False)
    with pytest.raises(session.fault):
        session.run(in_schema(text, unused), given)
    assert session.run("SELECT @@TRANCOUNT AS open_transactions;") == [[(0,)]]
    session.close()


def test_a_database_without_our_schema_says_how_to_make_it() -> None:
    store = Store(SqlServerDatabase(CONNECTION, schema=f"hubledger_none_{secrets.token_hex(4)}"))
    with pytest.raises(SchemaMismatch, match=r"core\.store\.migrate"):
        store.read_partition(partition())
    store.close()


def test_a_login_that_does_not_exist_names_the_setting() -> None:
    other = ";".join(part for part in CONNECTION.split(";") if part[:3].lower() not in ("uid", "pwd"))
    with pytest.raises(StoreMisconfigured, match=r"^STORE_CONNECTION: "):
        connect(f"{other};UID=nobody_{secrets.token_hex(4)};PWD=wrong")


RETRACTED = (
    "SET NOCOUNT ON;\nINSERT INTO hubledger.retracted_row\n"
    "       (stream_id, partition_id, commit_number, table_name, sequence_number, ordinal, row_commit_number, row)\n"
    "SELECT ?, ?, 2, 'home', n.number, 0, 1, REPLICATE(CONVERT(nvarchar(max), N'x'), 4000)\n"
    "  FROM OPENJSON(?) WITH (number bigint '$') AS n;"
)


def test_a_rehearsal_locks_nothing_while_its_client_reads(server_store: Store, server_session: Session) -> None:
    """The answer is larger than the buffers of the line, so the server waits for the client."""
    schema, state = shared_schema(), server_store.read_partition(partition())
    server_store.commit_batch(commit(state, 0, 4))
    place, numbers = place_of(state), LongText(json.dumps([*range(4_000)]))
    server_session.run(in_schema(RETRACTED, schema), [*place.values(), numbers])
    steps = (
        Step("count_commit", {**place, **known_erasures(state)}, keeps="commit_number"),
        Step("read_retracted", place, answers=True),
    )
    text, given = run_batch(Script("a test", steps), rehearse=True)
    reading = load_driver().connect(CONNECTION, autocommit=True)
    cursor = reading.cursor()
    assert cursor.execute(in_schema(text, schema), given).fetchone()[1] == 0
    locking = "UPDATE hubledger.event_hub_checkpoint SET commit_number = commit_number;"
    server_session.run(in_schema(f"SET NOCOUNT ON; SET LOCK_TIMEOUT 2000; {locking}", schema))
    assert [row[1] for row in cursor.fetchall()] == [*range(1, 4_000)]
    reading.close()


PLANS = (
    "SELECT t.text FROM sys.dm_exec_cached_plans AS p CROSS APPLY sys.dm_exec_sql_text(p.plan_handle) AS t\n"
    " WHERE p.objtype = 'Prepared' AND CHARINDEX(?, t.text) > 0;"
)


def test_batches_of_all_sizes_leave_one_plan_for_each_text(server_store: Store, server_session: Session) -> None:
    """The server puts the types of the parameters before the text. The login needs VIEW SERVER STATE."""
    remembering, own, first = Store(server_store.database, Memory(timedelta(seconds=60))), stamps(), 0
    for size in (1, 2, 3, 9, 27, 81, 243, 729):
        log = events(first, first + size - 1, "double home-1")
        ingest_batch(batch(log), Ingestion(remembering, PLAIN, own))
        first += size
    (found,) = server_session.run(PLANS, [f"{shared_schema()}.batch_ledger"])
    types_and_texts = [text.partition(")SET NOCOUNT ON;")[::2] for (text,) in found]
    texts = [text for types, text in types_and_texts if types.startswith("(@P1 ")]
    assert len(texts) == len(set(texts)) > 0


class TestOnTheWire:
    """The rules of tests/sql/test_on_the_wire.py, whose server knows no T-SQL."""

    @pytest.mark.parametrize("size", [1, 500, 2_000])
    def test_in_the_steady_state_a_batch_is_one_request(self, server_store: Store, wire: Wire, size: int) -> None:
        remembering, own = Store(server_store.database, Memory(timedelta(seconds=60))), stamps()
        for number in range(3):
            before = wire.requests
            log = events(number * size, (number + 1) * size - 1, "double home-1")
            ingest_batch(batch(log), Ingestion(remembering, PLAIN, own))
            assert number == 0 or wire.requests - before == 1

    @pytest.mark.parametrize("letters", [True, False])
    def test_a_commit_that_carries_everything_is_one_request(
        self, server_store: Store, wire: Wire, letters: bool
    ) -> None:
        whole = commit_of(ROW_CLASSES, first=True, letters=letters)
        state = server_store.read_partition(whole.partition)
        before = wire.requests
        assert server_store.commit_batch(replace(whole, state=state)) == 1
        assert wire.requests - before == 1

    @pytest.mark.parametrize("where", list(Cut), ids=["not committed", "committed"])
    def test_an_unknown_outcome_is_settled_and_each_event_committed_once(
        self, server_store: Store, wire: Wire, where: Cut
    ) -> None:
        remembering, own = Store(server_store.database, Memory(timedelta(seconds=60))), Clock(lambda: EPOCH, uuid4)
        ingest_batch(batch(events(0, 4, "double a")), Ingestion(remembering, PLAIN, own))
        wire.cut(where)
        report = ingest_batch(batch(events(5, 9, "double a")), Ingestion(remembering, PLAIN, own))
        assert ([one.events for one in report.commits], report.redelivered) == ([5], 0)
        (books,) = server_store.read_ledgers()
        assert (books.checkpoint, books.commits, books.written, books.balanced) == (9, 2, 10, True)

    @pytest.mark.parametrize(("where", "stands"), [(Cut.BEFORE, False), (Cut.AFTER, True)])
    def test_the_line_cut_around_a_commit_leaves_all_of_it_or_nothing(
        self, server_store: Store, wire: Wire, where: Cut, stands: bool
    ) -> None:
        state = server_store.read_partition(partition())
        first = commit(state, 0, 4)
        wire.cut(where)
        with pytest.raises(CommitOutcomeUnknown):
            server_store.commit_batch(first)
        if stands:
            assert server_store.read_partition(partition()) == first.state_after(1)
            with pytest.raises(CheckpointConflict):
                server_store.commit_batch(first)
        else:
            assert server_store.read_partition(partition()) == state
            assert server_store.commit_batch(first) == 1


LONG = Deadlines(statement=timedelta(seconds=20))
COMMITS, PARTITIONS = 2 * MOST_COMMITS, 4
FILL = """
SET NOCOUNT ON;
INSERT INTO {schema}.batch_ledger
       (stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number, written, filtered,
        dead_lettered, held, absent, rows_written, rows_appended, transform_version, invocation_id, committed_at,
        total_commits, total_written, total_filtered, total_dead_lettered, total_held,
        total_absent)
SELECT l.stream_id, l.partition_id, 1 + n.number, 'batch', n.number, n.number, 1, 0, 0, 0, 0, 1, 1, 'test/1', 'i',
       l.committed_at, 1 + n.number, 1 + n.number, 0, 0, 0, 0
  FROM {schema}.batch_ledger AS l
 CROSS JOIN (SELECT TOP ({commits}) ROW_NUMBER() OVER (ORDER BY (SELECT NULL)) AS number
               FROM sys.all_columns AS a CROSS JOIN sys.all_columns AS b) AS n;
UPDATE {schema}.event_hub_checkpoint SET commit_number = 1 + {commits}, sequence_number = {commits};
"""


@pytest.fixture
def planner(server_session: Session) -> Iterator[AggregatingStore]:
    opened = AggregatingStore(SqlServerDatabase(CONNECTION, LONG, schema=shared_schema()))
    yield opened
    opened.close()


def test_a_run_over_a_long_ledger_is_planned_in_time(planner: AggregatingStore, server_session: Session) -> None:
    for partition_id in ("0", "1", "a", "A"):
        ingest(planner, [reading()], of=partition_id)
    server_session.run(FILL.format(schema=shared_schema(), commits=COMMITS))
    whole = planner.read_reach(NO_CUT, 10_000_000)
    assert whole is not None
    assert set(json.loads(whole.cut_to).values()) == {MOST_COMMITS}
    small = planner.read_reach(whole.cut_to, 4_000)
    assert small is not None
    ends = json.loads(small.cut_to).values()
    assert (small.rows, set(ends), len(ends)) == (4_000, {MOST_COMMITS + 1_000}, PARTITIONS)


def test_the_oldest_commit_is_sought_by_its_key(planner: AggregatingStore, server_session: Session) -> None:
    ingest(planner, [reading()])
    planner.read_standing(HOME_ACTIVITY)
    server_session.run(FILL.format(schema=shared_schema(), commits=COMMITS))
    assert Pipelines(planner.database).read_oldest_commit(HOME_ACTIVITY) is not None


DOUBLED = (
    "INSERT INTO {p}home_activity_staged (staging_id, slice, home_id, window_start, kind, run_id, is_whole,"
    " readings, active, ppm_hundredths, least_ppm_hundredths, most_ppm_hundredths, first_observed_at,"
    " last_observed_at) SELECT g.staging_id, g.slice, g.home_id, g.window_start, g.kind, g.run_id,"
    " g.is_whole, g.readings, g.active, g.ppm_hundredths, g.least_ppm_hundredths, g.most_ppm_hundredths,"
    " g.first_observed_at, g.last_observed_at FROM {p}home_activity_staged AS g"
)


@pytest.fixture
def database() -> ServerAggregation:
    return ServerAggregation(SqlServerEngine.on(CONNECTION))


@pytest.fixture
def aggregating(database: ServerAggregation) -> Iterator[AggregatingStore]:
    opened = database.open()
    yield opened
    opened.close()


def test_a_task_run_twice_stages_each_window_once(aggregating: AggregatingStore, database: ServerAggregation) -> None:
    run = opened_run(aggregating)
    staged = staged_result(aggregating, database, run, [window("home-1"), window("home-2")])
    database.change(DOUBLED)
    assert database.count("home_activity_staged") == 2
    assert committed(aggregating, run, staged, NOW)
    assert aggregating.read_windows(HomeActivity, "home-1", EPOCH, NOW) == (window("home-1"),)


def test_a_slice_in_commit_leaves_the_rows_of_the_next_slice_readable(
    aggregating: AggregatingStore, database: ServerAggregation
) -> None:
    windows = [window("home-1"), window("home-2")]
    run = opened_run(aggregating)
    staged = staged_result(aggregating, database, run, windows)
    assert committed(aggregating, run, staged, NOW)
    run = opened_run(aggregating)
    staged = staged_result(aggregating, database, run, [window("home-1")])
    portion = next_portion(aggregating.read_slices(staged), 0, PORTION)
    assert portion is not None
    assert portion.last == SLICES - 1
    text, given = run_batch(portion_script(run, staged, portion), rehearse=False)
    session = database.server.session
    session.run(text.replace("hubledger.", f"{database.server.schema}.").replace("COMMIT TRANSACTION;", ""), given)
    try:
        assert aggregating.read_windows(HomeActivity, "home-2", EPOCH, NOW) == (window("home-2"),)
    finally:
        session.run("ROLLBACK TRANSACTION;")
    assert aggregating.read_windows(HomeActivity, "home-1", EPOCH, NOW) == (window("home-1"),)


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
    return own_room(tmp_path, {"0001_sums.sql": SUMS, "0002_notes.sql": NOTES})


@pytest.fixture
def session() -> Iterator[Session]:
    opened = connect(CONNECTION)
    yield opened
    opened.close()


@pytest.fixture
def schema(session: Session, room: Room) -> Iterator[str]:
    """A schema of our migrations with rows, which is dropped afterwards."""
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


def test_a_migration_that_fails_half_way_leaves_none_of_itself(session: Session, schema: str, room: Room) -> None:
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
    opened = connect(CONNECTION)
    opened.run((SQL / "sqlserver" / "lock_migrations.sql").read_text(encoding="utf-8"), [25_000])
    yield opened
    opened.close()


def test_a_second_run_gives_up_after_its_wait(session: Session, schema: str, room: Room, other: Session) -> None:
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
def test_a_batch_that_binds_a_column_which_it_adds_is_refused_unrun(session: Session, schema: str, case: str) -> None:
    add = "ALTER TABLE hubledger.batch_ledger ADD floors int;"
    with pytest.raises(session.fault) as caught:
        session.run(in_schema(f"{add} {EARLY[case]}", schema))
    assert read_trouble(caught.value).number == 207
    assert session.run(f"SELECT COL_LENGTH(N'{schema}.batch_ledger', N'floors') AS width;") == [[(None,)]]
    if case.startswith("the filter"):
        session.run(in_schema(f"{add} EXEC(N'{EARLY[case]}');", schema))
        assert "ix_floors" in indexes(session, schema)
