"""core/aggregation/quality.py: the figures that the job stored become shares, fields of a log line, and words."""

import json
from dataclasses import replace
from typing import Any

from core.aggregation.quality import PartitionRows, quality_facts, quality_from
from core.aggregation.runs import NO_CUT, AggregationRun
from core.aggregation.tick import AggregationReport, report_facts
from tests.fakes.builders import EPOCH

LOST: dict[str, Any] = {
    "fault": "the ledger counts 12 rows, and the tables have 11: partition 3 has 7 of 8",
    "rows": {
        "ledger": 12,
        "read": 8,
        "removed": 1,
        "other_tables": 2,
        "difference": -1,
        "partitions": [{"partition": "1/3", "ledger": 8, "found": 7}],
    },
    "late": 2,
    "first_commit_at": "2026-01-02T00:00:00+00:00",
    "nulls": {"ppm": 6, "state": 3},
    "out_of_range": {"ppm": 1},
    "keys": 3,
    "largest_key": {"key": "home-1", "rows": 4},
    "transforms": {"home_security/3": 9, "home_security/4": 1},
    "code": "0.1.7",
}
NOTHING: dict[str, Any] = {
    **LOST,
    "fault": None,
    "rows": {"ledger": None, "read": 0, "removed": 0, "other_tables": 0, "difference": None, "partitions": []},
    "late": 0,
    "first_commit_at": None,
    "nulls": {},
    "out_of_range": {},
    "keys": 0,
    "largest_key": None,
}
RUN = AggregationRun("r", "home_activity", 4, NO_CUT, NO_CUT, "local", 1, 1, "committed", EPOCH, EPOCH)


def test_counts_become_shares_of_the_rows_that_were_read() -> None:
    found = quality_from(json.dumps(LOST))
    assert found is not None
    assert (found.late_share, found.largest_key, found.largest_key_share) == (0.25, "home-1", 0.5)
    assert (found.null_shares, found.out_of_range_shares) == ({"ppm": 0.75, "state": 0.375}, {"ppm": 0.125})
    assert (found.rows_ledger, found.rows_difference, found.partitions) == (12, -1, (PartitionRows("1/3", 8, 7),))
    assert found.first_commit_at is not None
    assert found.first_commit_at.isoformat() == LOST["first_commit_at"]
    assert quality_from(None) is None


def test_a_run_without_a_row_has_shares_of_zero_and_no_key() -> None:
    found = quality_from(json.dumps(NOTHING))
    assert found is not None
    assert (found.late_share, found.largest_key, found.largest_key_share, found.keys) == (0.0, None, 0.0, 0)
    assert "quality_rows_difference" not in quality_facts(found)


def test_the_log_line_of_the_tick_that_closed_a_run_has_its_figures() -> None:
    following = replace(RUN, run_id="s", status="submitted")
    report = AggregationReport(("committed", "submitted"), following, closed=replace(RUN, quality=json.dumps(LOST)))
    facts = report_facts("home_activity", report)
    assert {name: value for name, value in facts.items() if name.startswith("quality_")} == {
        "quality_run_id": "r",
        "quality_rows_read": 8,
        "quality_rows_difference": -1,
        "quality_late_share": 0.25,
        "quality_null_share": 0.75,
        "quality_out_of_range_share": 0.125,
        "quality_keys": 3,
        "quality_largest_key_share": 0.5,
        "quality_code": "0.1.7",
        "quality_fault": LOST["fault"],
    }
    assert facts["run_id"] == "s"
    silent = (AggregationReport(("waits",), following), replace(report, closed=RUN))
    assert not any(name.startswith("quality_") for one in silent for name in report_facts("home_activity", one))
