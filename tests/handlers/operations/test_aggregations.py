"""handlers/operations/aggregations.py and the timer of handlers/timers.py, over an engine that does nothing."""

import json
from dataclasses import replace

import pytest

from core.aggregation.runs import Standing
from core.aggregation.store import Aggregations
from core.errors import StoreUnavailable
from handlers.app import aggregation
from handlers.timers import take_steps
from tests.core.aggregation.test_store import LOST
from tests.handlers.conftest import Aggregating
from tests.handlers.running import functions

PROBLEM = "application/problem+json"


def test_the_timer_submits_a_run_and_logs_one_line(aggregating: Aggregating) -> None:
    aggregating.commit()
    functions()["aggregate"](None)
    (line,) = aggregating.lines
    assert (line["msg"], line["action"], line["did"]) == ("aggregation advanced", "aggregate", ["submitted"])
    assert (line["number"], line["attempt"], line["status"]) == (1, 1, "submitted")


def test_a_job_of_a_different_transform_is_refused_and_the_jobs_of_the_app_are_named(aggregating: Aggregating) -> None:
    for refused in (
        aggregating.post("start_aggregation", {"job": "flight_punctuality"}),
        aggregating.listed(job="flight_punctuality"),
    ):
        assert (refused.status, refused.fields) == (400, ["job"])
        assert refused.body["errors"][0]["detail"] == "must be one of home_activity"
    assert aggregating.listed(job="home_activity").body["job"] == "home_activity"
    aggregating.restart(TRANSFORM="examples.flight_info")
    assert aggregating.listed().body["job"] == "flight_punctuality"
    functions()["aggregate"](None)
    steps = [(line["job"], line["did"]) for line in aggregating.lines if line["action"] == "aggregate"]
    assert steps == [("flight_punctuality", ["has nothing new"])]


def test_a_fault_of_one_job_leaves_the_others_to_take_their_step(aggregating: Aggregating) -> None:
    own = aggregation()
    assert own is not None
    tried: list[str] = []

    class Away(Aggregations):
        def read_standing(self, job: str) -> Standing:
            tried.append(job)
            if job == "first":
                raise StoreUnavailable("away")
            return super().read_standing(job)

    with pytest.raises(StoreUnavailable):
        take_steps(replace(own, store=Away(aggregating.sqlite.database()), jobs=("first", "second")))
    assert list(dict.fromkeys(tried)) == ["first", "second"]


def test_without_an_engine_the_timer_does_nothing_and_a_request_is_refused(aggregating: Aggregating) -> None:
    aggregating.restart(SPARK_ENGINE="none")
    functions()["aggregate"](None)
    assert aggregating.lines == []
    refused = aggregating.post("start_aggregation", {})
    assert (refused.status, refused.media, refused.body["type"]) == (409, PROBLEM, "urn:hubledger:problem:conflict")
    assert "SPARK_ENGINE" in refused.body["detail"]
    listed = aggregating.listed()
    assert (listed.status, listed.body["runs"]) == (200, [])


def test_a_request_starts_a_run_once_and_the_list_shows_it(aggregating: Aggregating) -> None:
    aggregating.commit()
    first, second = (
        aggregating.post("start_aggregation", {}),
        aggregating.post("start_aggregation", {"job": "home_activity"}),
    )
    assert (first.status, first.media, first.body["did"]) == (202, "application/json", ["submitted"])
    assert second.body["run"]["number"] == 1
    body = aggregating.listed().body
    assert (body["job"], body["cut"], body["reached"], body["next"]) == ("home_activity", {}, {"1/0": 1}, None)
    (run,) = body["runs"]
    assert (run["cut_to"], run["status"], run["engine"]) == ({"1/0": 1}, "submitted", "local")
    assert run["planned_at"].endswith("Z")
    assert run["closed_at"] is None
    logged = [(line["action"], line["who"]) for line in aggregating.lines if line["msg"] == "request done"]
    assert logged == [("start_aggregation", "unverified (key holder)")] * 2


def test_runs_come_in_pages_by_cursor(aggregating: Aggregating) -> None:
    for _ in range(3):
        run_id = aggregating.begin()
        aggregating.order("discard", {"reason": "by hand", "what": "run"}, run_id)
    first = aggregating.listed(limit="2").body
    second = aggregating.listed(limit="1", cursor=first["next"]).body
    assert [run["number"] for run in first["runs"]] == [3, 2]
    assert [run["number"] for run in second["runs"]] == [1]
    assert (second["runs"][0]["status"], second["next"]) == ("failed", None)
    damaged = aggregating.listed(cursor="A" + first["next"][1:-1] + "A")
    assert (damaged.status, damaged.fields) == (400, ["cursor"])


def test_faults_are_problems_and_show_no_secret(aggregating: Aggregating) -> None:
    aggregating.restart(SPARK_ENGINE="livy", LAKE_CONNECTION="AccountKey=hunter2")
    for reply in (aggregating.post("start_aggregation", {}), aggregating.listed()):
        assert (reply.status, reply.media, reply.body["fault"]) == (503, PROBLEM, "SettingsRefused")
        assert "LIVY_URL" in reply.body["detail"]
        assert "hunter2" not in json.dumps(reply.body)


def test_a_missing_engine_is_a_problem_that_names_its_setting(aggregating: Aggregating) -> None:
    aggregating.restart(SPARK_SUBMIT="/none/spark-submit")
    aggregating.commit()
    refused = aggregating.post("start_aggregation", {})
    assert (refused.status, refused.body["type"]) == (503, "urn:hubledger:problem:unavailable")
    assert refused.body["fault"] == "EngineRefused"
    assert refused.body["detail"].startswith("SPARK_SUBMIT: ")


def test_the_quality_of_a_committed_run_is_shown_everywhere(aggregating: Aggregating) -> None:
    run_id = aggregating.begin()
    assert aggregating.shown(run_id).body["run"]["quality"] is None
    aggregating.stage(json.dumps(LOST))
    assert aggregating.step()[0] == "committed"
    (line,) = [one for one in aggregating.lines if "quality_fault" in one]
    assert (line["levelname"], line["quality_fault"], line["quality_rows_late"]) == ("WARNING", LOST["fault"], 2)
    assert aggregating.listed().body["runs"][0]["quality"] == aggregating.shown(run_id).body["run"]["quality"] == LOST
