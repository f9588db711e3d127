"""The quality of a run as the API, the command and the log line of the timer show it."""

import json

import pytest

from tests.core.aggregation.test_quality import LOST
from tests.fakes.aggregation_engines import SqliteAggregation, finish, stage
from tests.fakes.builders import EPOCH
from tests.handlers.operations.test_aggregation_orders import NOBODY, Ordering, ordering  # noqa: F401 - a fixture


def test_the_quality_of_a_committed_run_is_shown_everywhere(
    ordering: Ordering,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    run_id = ordering.begin()
    assert ordering.shown(run_id).body["run"]["quality"] is None
    tables = SqliteAggregation(ordering.sqlite)
    stage(tables, "s", run_id, [])
    finish(tables, "s", run_id, EPOCH, json.dumps(LOST))
    assert ordering.step()[0] == "committed"
    (line,) = [vars(one) for one in caplog.records if hasattr(one, "quality_fault")]
    assert (line["levelname"], line["quality_fault"], line["quality_rows_late"]) == ("WARNING", LOST["fault"], 2)
    (listed,) = ordering.listed().body["runs"]
    assert listed["quality"] == ordering.shown(run_id).body["run"]["quality"]
    assert listed["quality"] == LOST
