"""The plan of a run on a T-SQL server: it reads a long ledger in time, and partitions differ by their exact names."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from core.aggregation.orders import Pipelines
from core.aggregation.runs import MOST_COMMITS, NO_CUT
from core.store.sqlserver.connections import Deadlines, Session
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.aggregation_engines import HOME_ACTIVITY, AggregatingStore, ingest
from tests.fakes.builders import reading
from tests.fakes.engines import CONNECTION
from tests.fakes.server_schema import shared_schema

pytestmark = pytest.mark.server

SOON = Deadlines(statement=timedelta(seconds=20))
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
def store(server_session: Session) -> Iterator[AggregatingStore]:
    opened = AggregatingStore(SqlServerDatabase(CONNECTION, SOON, schema=shared_schema(CONNECTION)))
    yield opened
    opened.close()


def test_a_run_over_a_long_ledger_is_planned_in_time_and_takes_its_share_of_each_partition(
    store: AggregatingStore, server_session: Session
) -> None:
    for partition_id in ("0", "1", "a", "A"):
        ingest(store, [reading()], of=partition_id)
    server_session.run(FILL.format(schema=shared_schema(CONNECTION), commits=COMMITS))
    whole = store.read_reach(NO_CUT, 10_000_000)
    assert whole is not None
    assert set(json.loads(whole.cut_to).values()) == {MOST_COMMITS}
    small = store.read_reach(whole.cut_to, 4_000)
    assert small is not None
    ends = json.loads(small.cut_to).values()
    assert (small.rows, set(ends), len(ends)) == (4_000, {MOST_COMMITS + 1_000}, PARTITIONS)


def test_the_oldest_commit_is_sought_by_its_key(store: AggregatingStore, server_session: Session) -> None:
    ingest(store, [reading()])
    store.read_standing(HOME_ACTIVITY)
    server_session.run(FILL.format(schema=shared_schema(CONNECTION), commits=COMMITS))
    assert Pipelines(store.database).read_oldest_commit(HOME_ACTIVITY) is not None
