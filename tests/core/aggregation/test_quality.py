"""core/aggregation/runs.py: the counts that the job stored are read, and become fields of a log line."""

import json
from dataclasses import replace
from typing import Any

from core.aggregation.runs import NO_CUT, AggregationRun, PartitionRows, quality_from
from core.aggregation.tick import COMMITTED, AggregationReport, TickStep, report_facts
from tests.fakes.builders import EPOCH

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
