"""The quality of a run as the API, the command and the log line of the timer show it."""

import json

import pytest

from tests.fakes.aggregation_engines import SqliteAggregation, finish, stage
from tests.fakes.builders import EPOCH
from tests.unit.core.aggregation.test_quality import LOST
from tests.unit.handlers.operations.test_aggregation_orders import NOBODY, Ordering, ordering  # noqa: F401 - a fixture


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
    assert (line["levelname"], line["quality_fault"], line["quality_late_share"]) == ("WARNING", LOST["fault"], 0.25)
    (listed,) = ordering.listed().body["runs"]
    assert listed["quality"] == ordering.shown(run_id).body["run"]["quality"]
    assert (listed["quality"]["fault"], listed["quality"]["rows_difference"]) == (LOST["fault"], -1)
    assert listed["quality"]["partitions"] == [{"partition": "1/3", "ledger": 8, "found": 7}]
    assert (listed["quality"]["null_shares"], listed["quality"]["code"]) == ({"ppm": 0.75, "state": 0.375}, "0.1.7")


def test_only_the_revealing_route_names_the_largest_key_and_logs_it(
    ordering: Ordering,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    run_id = ordering.begin()
    tables = SqliteAggregation(ordering.sqlite)
    stage(tables, "s", run_id, [])
    finish(tables, "s", run_id, EPOCH, json.dumps(LOST))
    stepped = ordering.post("start_aggregation", {}).body["run"]
    (listed,) = ordering.listed().body["runs"]
    for shown in (stepped, listed, ordering.shown(run_id).body["run"]):
        assert shown["quality"]["largest_key"] is None
        assert shown["quality"]["largest_key_share"] > 0
    revealed = ordering.get("reveal_run", {"run_id": run_id})
    assert revealed.body["run"]["quality"]["largest_key"] == LOST["largest_key"]["key"]
    (line,) = [vars(one) for one in caplog.records if getattr(one, "action", "") == "reveal"]
    assert (line["route"], line["run_id"], line["who"]) == ("reveal_run", run_id, "unverified (key holder)")
    assert revealed.body["failures"] == ordering.shown(run_id).body["failures"]
    assert ordering.get("reveal_run", {"run_id": NOBODY}).status == 404
