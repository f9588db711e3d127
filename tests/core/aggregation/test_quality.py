"""The quality of a run: every store keeps that of its committed result, and the log line of a tick has its figures."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

from core.aggregation.orders import Pipelines
from core.aggregation.runs import NO_CUT, AggregationRun, PartitionRows, quality_from
from core.aggregation.tick import COMMITTED, AggregationReport, TickStep, report_facts
from tests.fakes.aggregation_engines import HOME_ACTIVITY, AggregatingStore, AggregationEngine, committed, finish
from tests.fakes.builders import EPOCH
from tests.fakes.runs import LATER, NOW, opened_run

LOST: dict[str, Any] = {
    "fault": "the ledger counts 12 rows, and the tables have 11: partition 3 has 7 of 8",
    "rows_ledger": 12,
    "rows_read": 8,
    "rows_removed": 1,
    "rows_elsewhere": 2,
    "rows_difference": -1,
    "rows_late": 2,
    "partitions": [{"partition": "1/3", "ledger": 8, "found": 7}],
}
RUN = AggregationRun("r", "home_activity", 4, NO_CUT, NO_CUT, "local", 1, 1, "committed", EPOCH, EPOCH)


def test_the_counts_of_the_job_are_read_back() -> None:
    found = quality_from(json.dumps(LOST))
    assert found is not None
    assert (found.rows_ledger, found.rows_difference, found.partitions) == (12, -1, (PartitionRows("1/3", 8, 7),))
    assert quality_from(None) is None


def test_the_log_line_of_the_tick_that_closed_a_run_has_its_figures() -> None:
    following = replace(RUN, run_id="s", status="submitted")
    report = AggregationReport(
        (COMMITTED, TickStep("submitted")), following, closed=replace(RUN, quality=json.dumps(LOST))
    )
    facts = report_facts("home_activity", report)
    assert {name: value for name, value in facts.items() if name.startswith("quality_")} == {
        "quality_run_id": "r",
        **{f"quality_{name}": value for name, value in LOST.items() if name != "partitions"},
    }
    assert facts["run_id"] == "s"
    silent = (AggregationReport((TickStep("waits"),), following), replace(report, closed=RUN))
    assert not any(name.startswith("quality_") for one in silent for name in report_facts("home_activity", one))


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
