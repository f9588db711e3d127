"""Behaviour that only a T-SQL server can show: MSSQL_CONNECTION names it, and the tests have a separate schema.

Migrations, sessions, plans and the wire; and a run over a long ledger is planned in time, and makes nobody wait.
"""

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from core.aggregation.orders import Pipelines
from core.aggregation.runs import MOST_COMMITS, NO_CUT
from core.aggregation.store import portion_script
from core.aggregation.tick import PORTION, next_portion
from core.errors import CheckpointConflict, CommitOutcomeUnknown, SchemaMismatch, StoreMisconfigured
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.aggregates import SLICES
from core.model.ports import Clock
from core.store.columns import place_of
from core.store.memory import Memory
from core.store.script import Script, Step
from core.store.sqlserver.batch import run_batch
from core.store.sqlserver.connections import Deadlines, LongText, Session, connect, load_driver
from core.store.sqlserver.database import SqlServerDatabase
from core.store.sqlserver.schema import in_schema, migrate_server
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.aggregation_engines import (
    HOME_ACTIVITY,
    AggregatingStore,
    ServerAggregation,
    committed,
    ingest,
)
from tests.fakes.builders import EPOCH, batch, commit, events, partition, reading, stamps
from tests.fakes.plain_transform import PLAIN
from tests.fakes.rooms import EXAMPLES, all_migrations
from tests.fakes.runs import NOW, opened_run, staged_result, window
from tests.fakes.server_engine import CONNECTION, TABLES, SqlServerEngine, drop_schema, shared_schema
from tests.fakes.store import Store
from tests.sql.statements import commit_of
from tests.sql.values import ROW_CLASSES
from tests.sql.wire import Cut, Wire

pytestmark = pytest.mark.server

COUNT = "SELECT COUNT(*) FROM sys.tables AS t WHERE t.schema_id = SCHEMA_ID(?);"


@pytest.fixture
def schema() -> Iterator[str]:
    """A name that nobody uses; dropped afterwards."""
    name = f"hubledger_test_{secrets.token_hex(4)}"
    yield name
    drop_schema(CONNECTION, name)


def tables(schema: str) -> int:
    session = connect(CONNECTION)
    (((count,),),) = session.run(COUNT, [schema])
    session.close()
    return int(count)


def test_of_migrations_at_the_same_time_one_applies_all(schema: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        applied = list(pool.map(lambda _: migrate_server(CONNECTION, schema, rooms=EXAMPLES), range(4)))
    assert sorted(applied, key=len) == [[], [], [], all_migrations("sqlserver")]
    assert tables(schema) == len(TABLES) + 1


def test_a_transaction_that_fails_leaves_none_open(schema: str) -> None:
    migrate_server(CONNECTION, schema, rooms=EXAMPLES)
    session = connect(CONNECTION)
    unmet = Step("count_commit", {"stream_id": 1, "partition_id": "none"}, expect=1, keeps="commit_number")
    text, given = run_batch(Script("a test", (unmet, unmet)), rehearse=False)
    with pytest.raises(session.fault):
        session.run(in_schema(text, schema), given)
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
    steps = (Step("count_commit", place, keeps="commit_number"), Step("read_retracted", place, answers=True))
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


def test_a_run_over_a_long_ledger_is_planned_in_time_and_takes_its_share_of_each_partition(
    planner: AggregatingStore, server_session: Session
) -> None:
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


def test_a_task_that_runs_twice_stages_each_window_once(
    aggregating: AggregatingStore, database: ServerAggregation
) -> None:
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
