"""Slices on a server: a doubled row is ignored, and readers and other homes do not wait for a slice."""

from collections.abc import Iterator

import pytest

from core.aggregation.store import portion_script
from core.aggregation.tick import PORTION, next_portion
from core.model.aggregates import SLICES
from core.store.sqlserver.batch import run_batch
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.aggregation_engines import (
    AggregatingStore,
    ServerAggregation,
    committed,
)
from tests.fakes.builders import EPOCH
from tests.fakes.engines import CONNECTION
from tests.fakes.runs import NOW, opened_run, staged_result, window
from tests.fakes.server_engine import SqlServerEngine

pytestmark = pytest.mark.server

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
