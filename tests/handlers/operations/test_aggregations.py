import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from core.aggregation.runs import Standing
from core.aggregation.store import Aggregations
from core.errors import EngineRefused, StoreUnavailable
from handlers import commands
from handlers.app import aggregation
from handlers.timers import take_steps
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.handlers.conftest import Aggregating
from tests.handlers.running import functions


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


def test_without_an_engine_the_timer_does_nothing_and_a_run_can_only_be_discarded(aggregating: Aggregating) -> None:
    run_id, lines = aggregating.begin(), len(aggregating.lines)
    aggregating.restart(SPARK_ENGINE="none")
    functions()["aggregate"](None)
    assert len(aggregating.lines) == lines
    refused = aggregating.post("start_aggregation", {})
    assert (refused.status, refused.body["type"]) == (409, CONFLICT)
    assert "SPARK_ENGINE" in refused.body["detail"]
    assert "is in the engine local" in aggregating.order("cancel", WHY, run_id).body["detail"]
    assert aggregating.order("discard", {**WHY, "what": "run"}, run_id).status == 200
    listed = aggregating.listed()
    assert (listed.status, listed.body["runs"][0]["status"]) == (200, "failed")


def test_a_fault_of_the_engine_is_a_problem_that_names_its_setting_and_no_secret(aggregating: Aggregating) -> None:
    aggregating.commit()
    aggregating.restart(SPARK_SUBMIT="/none/spark-submit")
    refused = aggregating.post("start_aggregation", {})
    assert (refused.status, refused.body["type"]) == (503, "urn:hubledger:problem:unavailable")
    assert refused.body["fault"] == "EngineRefused"
    assert refused.body["detail"].startswith("SPARK_SUBMIT: ")
    aggregating.restart(SPARK_ENGINE="livy", LAKE_CONNECTION="AccountKey=hunter2")
    for reply in (aggregating.post("start_aggregation", {}), aggregating.listed()):
        assert (reply.status, reply.body["fault"]) == (503, "SettingsRefused")
        assert "LIVY_URL" in reply.body["detail"]
        assert "hunter2" not in json.dumps(reply.body)


def test_a_request_starts_a_run_once_and_the_list_shows_it_with_its_lag(aggregating: Aggregating) -> None:
    assert aggregating.listed().body["lag_seconds"] == 0.0
    aggregating.commit()
    first, second = (aggregating.post("start_aggregation", body) for body in ({}, {"job": HOME_ACTIVITY}))
    assert (first.status, first.media, first.body["did"]) == (202, "application/json", ["submitted"])
    assert second.body["run"]["number"] == 1
    body = aggregating.listed().body
    assert (body["job"], body["cut"], body["reached"], body["next"]) == (HOME_ACTIVITY, {}, {"1/0": 1}, None)
    (run,) = body["runs"]
    assert (run["cut_to"], run["status"], run["engine"]) == ({"1/0": 1}, "submitted", "local")
    assert (run["planned_at"].endswith("Z"), run["closed_at"]) == (True, None)
    logged = [(line["action"], line["who"]) for line in aggregating.lines if line["msg"] == "request done"]
    assert logged == [("start_aggregation", "unverified (key holder)")] * 2
    assert body["lag_seconds"] > 86_400  # the tests' commits are of a fixed day
    aggregating.stage()
    aggregating.step()
    assert aggregating.listed().body["lag_seconds"] == 0.0


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


WHY = {"reason": "by hand"}
CONFLICT = "urn:hubledger:problem:conflict"
NOBODY = "0123456789abcdef"


def test_a_paused_job_does_nothing_until_it_is_resumed(aggregating: Aggregating) -> None:
    aggregating.begin()
    aggregating.stage()
    once = {**WHY, "order_id": str(uuid4())}
    paused = aggregating.order("pause", once)
    assert (paused.status, paused.body["paused"]["reason"]) == (200, "by hand")
    assert aggregating.order("pause", once) == paused
    assert aggregating.step() == ["is paused"]
    listed = aggregating.listed().body
    assert (listed["paused"]["who"], listed["runs"][0]["status"]) == ("unverified (key holder)", "submitted")
    assert aggregating.order("resume", WHY).body == {"job": HOME_ACTIVITY, "paused": None}
    assert aggregating.order("pause", once).body["paused"] is None
    for name, body in (("pause", {**once, "reason": "a different one"}), ("withdraw", once)):
        (detail,) = refused_by(aggregating, (name, body))
        assert "is that of a different order" in detail
    assert aggregating.step() == ["committed", "has nothing new"]
    assert aggregating.listed().body["paused"] is None
    assert [one["move"] for one in aggregating.listed().body["history"]] == ["resume", "pause"]


def refused_by(aggregating: Aggregating, *orders: tuple[Any, ...]) -> list[str]:
    replies = [aggregating.order(*order) for order in orders]
    assert [(one.status, one.body["type"]) for one in replies] == [(409, CONFLICT)] * len(orders)
    return [one.body["detail"] for one in replies]


def test_an_order_that_does_not_fit_is_a_conflict_and_changes_nothing(aggregating: Aggregating) -> None:
    run_id = aggregating.begin()
    result, run = (("discard", {**WHY, "what": what}, run_id) for what in ("result", "run"))
    told = ["home_activity is not paused", "run 1 has no staged result"]
    assert refused_by(aggregating, ("resume", WHY), result) == told
    aggregating.order("pause", WHY)
    assert refused_by(aggregating, ("pause", WHY)) == ["home_activity is paused already"]
    aggregating.order(*run)
    assert refused_by(aggregating, run, ("cancel", WHY, run_id)) == ["run 1 is failed"] * 2
    assert len(aggregating.listed().body["history"]) == 2
    for reply in (aggregating.shown(NOBODY), *(aggregating.order(*one[:2], NOBODY) for one in (run, ("cancel", WHY)))):
        assert (reply.status, reply.fields) == (404, ["run_id"])
    assert (aggregating.shown("../x").status, aggregating.shown("../x").fields) == (400, ["run_id"])
    assert aggregating.order("discard", WHY, NOBODY).fields == ["what"]


def test_a_discarded_result_is_never_committed(aggregating: Aggregating) -> None:
    run_id = aggregating.begin()
    aggregating.stage()
    done = aggregating.order("discard", {**WHY, "what": "result"}, run_id).body
    assert (done["run"]["status"], done["staged_at"]) == ("submitted", None)
    assert done["failures"][0]["why"] == "its result was discarded by unverified (key holder): by hand"
    assert aggregating.step() == ["waits"]


def test_an_engine_that_refuses_to_cancel_is_reported_and_stops_no_discard(
    aggregating: Aggregating, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = aggregating.begin()
    own = aggregation()
    assert own is not None

    def refuse(self: object, job_id: str) -> None:
        raise EngineRefused("DELETE answered 403")

    with monkeypatch.context() as patched:
        patched.setattr(type(own.engine), "cancel", refuse)
        told = aggregating.order("cancel", WHY, run_id)
        assert (told.status, told.body["detail"]) == (503, "DELETE answered 403")
        assert aggregating.order("discard", {**WHY, "what": "run"}, run_id).status == 200


DAYS = {"since_day": "2026-02-01", "until_day": "2026-02-03"}


def test_a_repair_or_a_backfill_that_does_not_fit_is_a_conflict(aggregating: Aggregating) -> None:
    none = "no order about home_activity waits: discard its run, if it has one"
    assert refused_by(aggregating, ("withdraw", WHY)) == [none]
    placed = aggregating.order("backfill", WHY)
    assert (placed.status, placed.headers["Location"]) == (202, "/api/aggregations")
    assert aggregating.listed().body["waiting"] == placed.body["waiting"]
    turned = {**WHY, "since_day": DAYS["until_day"], "until_day": DAYS["since_day"]}
    assert refused_by(aggregating, ("repair", WHY), ("backfill", WHY), ("backfill", turned)) == [
        "home_activity has no commit yet: order a backfill",
        "a different order about home_activity waits already: let it begin, or withdraw it",
        "the days are in the wrong order: 2026-02-03 to 2026-02-01",
    ]
    assert aggregating.order("withdraw", WHY).body == {"job": HOME_ACTIVITY, "waiting": None}
    assert aggregating.listed().body["waiting"] is None
    assert aggregating.order("backfill", {**WHY, "since_day": "yesterday"}).fields == ["since_day"]
    assert aggregating.order("backfill", {**WHY, "job": "odd"}).fields == ["job"]


def test_the_job_that_keeps_rows_in_the_lake_is_paused_and_listed_and_takes_no_repair(aggregating: Aggregating) -> None:
    job: dict[str, Any] = {"job": "rows.sensor_reading"}
    assert aggregating.order("pause", {**WHY, **job}).fields == ["job"]
    aggregating.restart(LAKE_ROWS="true")
    assert aggregating.order("pause", {**WHY, **job}).status == 200
    assert aggregating.get("list_aggregations", **job).body["paused"]["reason"] == "by hand"
    refused = aggregating.order("repair", {**WHY, **job})
    why = "rows.sensor_reading keeps rows and no windows: order a repair of an aggregate"
    assert (refused.status, refused.body["detail"]) == (409, why)


def test_the_command_hands_over_the_rows_of_the_lake_where_it_keeps_them(
    aggregating: Aggregating, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands.main(["rebuild-arguments"]) == 1
    assert "the lake does not keep the rows of home_activity: set SPARK_ENGINE" in capsys.readouterr().err
    aggregating.restart(LAKE_ROWS="true")
    assert commands.main(["rebuild-arguments", "--job", "none"]) == 1
    assert "--job is one of home_activity" in capsys.readouterr().err
    assert commands.main(["rebuild-arguments"]) == 0
    named, transform, _, folder, _, state = shlex.split(capsys.readouterr().out)
    assert (named, transform) == ("--transform", "examples.home_security")
    tables = sorted(json.loads((Path(folder) / state).read_text()))
    assert tables == ["silver/sensor_reading", "silver/sensor_reading_removed"]
    assert commands.main(["remake-table", "silver/else", "--accept-loss"]) == 1
    assert "silver/else is no table of the lake: the table is one of gold/home_activity, " in capsys.readouterr().err
    assert commands.main(["remake-table", tables[0]]) == 0
    assert f"{tables[0]}: the next run of rows.sensor_reading makes it anew" in capsys.readouterr().out
    order = json.loads((Path(folder) / tables[0] / "_remake" / "_remake.txt").read_text())
    assert order == {"after": 0, "files": None, "accepts_loss": False}
