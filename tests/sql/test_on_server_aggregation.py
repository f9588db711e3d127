"""Runs on the T-SQL server of MSSQL_CONNECTION: a long ledger is planned in time, and a slice makes nobody wait."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from core.aggregation.orders import Pipelines
from core.aggregation.runs import MOST_COMMITS, NO_CUT
from core.aggregation.store import portion_script
from core.aggregation.tick import PORTION, next_portion
from core.model.aggregates import SLICES
from core.store.sqlserver.batch import run_batch
from core.store.sqlserver.connections import Deadlines, Session
from core.store.sqlserver.database import SqlServerDatabase
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.aggregation_engines import (
    HOME_ACTIVITY,
    AggregatingStore,
    ServerAggregation,
    committed,
    ingest,
)
from tests.fakes.builders import EPOCH, reading
from tests.fakes.runs import NOW, opened_run, staged_result, window
from tests.fakes.server_engine import CONNECTION, SqlServerEngine, shared_schema

pytestmark = pytest.mark.server

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
def store(database: ServerAggregation) -> Iterator[AggregatingStore]:
    opened = database.open()
    yield opened
    opened.close()


def test_a_task_that_runs_twice_stages_each_window_once(store: AggregatingStore, database: ServerAggregation) -> None:
    run = opened_run(store)
    staged = staged_result(store, database, run, [window("home-1"), window("home-2")])
    database.change(DOUBLED)
    assert database.count("home_activity_staged") == 2
    assert committed(store, run, staged, NOW)
    assert store.read_windows(HomeActivity, "home-1", EPOCH, NOW) == (window("home-1"),)


def test_a_slice_in_commit_leaves_the_rows_of_the_next_slice_readable(
    store: AggregatingStore, database: ServerAggregation
) -> None:
    windows = [window("home-1"), window("home-2")]
    run = opened_run(store)
    staged = staged_result(store, database, run, windows)
    assert committed(store, run, staged, NOW)
    run = opened_run(store)
    staged = staged_result(store, database, run, [window("home-1")])
    portion = next_portion(store.read_slices(staged), 0, PORTION)
    assert portion is not None
    assert portion.last == SLICES - 1
    text, given = run_batch(portion_script(run, staged, portion), rehearse=False)
    session = database.server.session
    session.run(text.replace("hubledger.", f"{database.server.schema}.").replace("COMMIT TRANSACTION;", ""), given)
    try:
        assert store.read_windows(HomeActivity, "home-2", EPOCH, NOW) == (window("home-2"),)
    finally:
        session.run("ROLLBACK TRANSACTION;")
    assert store.read_windows(HomeActivity, "home-1", EPOCH, NOW) == (window("home-1"),)
