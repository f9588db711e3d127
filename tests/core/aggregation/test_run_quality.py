"""Every store keeps the quality of a run, which is that of its committed result, and counts the runs with a fault."""

import json
from datetime import timedelta

from core.aggregation.orders import Pipelines
from tests.fakes.aggregation_engines import HOME_ACTIVITY, AggregatingStore, AggregationEngine, committed, finish
from tests.fakes.runs import LATER, NOW, opened_run

SOUND, FAULTY = json.dumps({"fault": None}), json.dumps({"fault": "rows differ 👩" + "x" * 900, "rows": {}})


def commit_run(store: AggregatingStore, database: AggregationEngine, quality: str | None) -> None:
    """Commit a run whose result has this quality, beside a later result that has none."""
    run = opened_run(store)
    finish(database, f"{run.run_id}-a", run.run_id, NOW, quality)
    finish(database, f"{run.run_id}-b", run.run_id, LATER, None)
    staged = store.read_staged(run.run_id)
    assert staged is not None
    assert committed(store, run, staged, LATER)


def test_a_run_has_the_quality_of_the_result_that_was_committed(
    store: AggregatingStore, database: AggregationEngine
) -> None:
    for quality in (None, SOUND, FAULTY):
        commit_run(store, database, quality)
    found = [run.quality for run in store.read_runs(HOME_ACTIVITY, 10, 10)]
    assert found == [FAULTY, SOUND, None]
    assert [run.quality for run in store.read_committed_runs(HOME_ACTIVITY, 0)] == found[::-1]
    newest = store.read_runs(HOME_ACTIVITY, 10, 1)[0]
    assert Pipelines(store.database).find_run(HOME_ACTIVITY, newest.run_id) == newest
    assert store.read_standing(HOME_ACTIVITY).last_run == newest


def test_runs_with_a_fault_are_counted_from_a_time_on(store: AggregatingStore, database: AggregationEngine) -> None:
    pipelines = Pipelines(store.database)
    for quality in (None, SOUND):
        commit_run(store, database, quality)
    assert pipelines.count_quality_faults(NOW) == 0
    for _ in range(2):
        commit_run(store, database, FAULTY)
    assert pipelines.count_quality_faults(LATER) == 2
    assert pipelines.count_quality_faults(LATER + timedelta(seconds=1)) == 0
