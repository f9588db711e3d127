"""handlers/operations/aggregations.py, and the command that hands over the rows of the lake."""

import json
import shlex
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from core.errors import EngineRefused
from handlers import commands
from handlers.app import aggregation
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.handlers.conftest import Aggregating

WHY = {"reason": "by hand"}
CONFLICT = "urn:hubledger:problem:conflict"
NOBODY = "0123456789abcdef"


def test_a_paused_job_begins_submits_and_commits_nothing_until_it_is_resumed(aggregating: Aggregating) -> None:
    aggregating.begin()
    aggregating.stage()
    paused = aggregating.order("pause", WHY)
    assert (paused.status, paused.body["paused"]["reason"]) == (200, "by hand")
    assert aggregating.step() == ["is paused"]
    listed = aggregating.listed().body
    assert (listed["paused"]["who"], listed["runs"][0]["status"]) == ("unverified (key holder)", "submitted")
    assert aggregating.order("resume", WHY).body == {"job": HOME_ACTIVITY, "paused": None}
    assert aggregating.step() == ["committed", "has nothing new"]
    assert aggregating.listed().body["paused"] is None
    assert [one["move"] for one in aggregating.listed().body["history"]] == ["resume", "pause"]


def test_an_order_that_does_not_fit_is_a_conflict_and_changes_nothing(aggregating: Aggregating) -> None:
    run_id = aggregating.begin()
    refused = [aggregating.order("resume", WHY), aggregating.order("discard", {**WHY, "what": "result"}, run_id)]
    aggregating.order("pause", WHY)
    refused.append(aggregating.order("pause", WHY))
    aggregating.order("discard", {**WHY, "what": "run"}, run_id)
    refused.append(aggregating.order("discard", {**WHY, "what": "run"}, run_id))
    refused.append(aggregating.order("cancel", WHY, run_id))
    assert [(one.status, one.body["type"]) for one in refused] == [(409, CONFLICT)] * 5
    assert [one.body["detail"] for one in refused] == [
        "home_activity is not paused",
        "run 1 has no staged result",
        "home_activity is paused already",
        "run 1 is failed",
        "run 1 is failed",
    ]
    assert len(aggregating.listed().body["history"]) == 2


def test_a_run_that_does_not_exist_is_not_found_and_a_wrong_id_or_body_is_refused(aggregating: Aggregating) -> None:
    discarded = aggregating.order("discard", {**WHY, "what": "run"}, NOBODY)
    for reply in (aggregating.shown(NOBODY), aggregating.order("cancel", WHY, NOBODY), discarded):
        assert (reply.status, reply.fields) == (404, ["run_id"])
    assert (aggregating.shown("../x").status, aggregating.shown("../x").fields) == (400, ["run_id"])
    assert aggregating.order("discard", WHY, NOBODY).fields == ["what"]


def test_an_order_is_carried_out_once_under_its_id_which_no_other_order_may_have(aggregating: Aggregating) -> None:
    once = {**WHY, "order_id": str(uuid4())}
    first = aggregating.order("pause", once)
    assert aggregating.order("pause", once) == first
    aggregating.order("resume", WHY)
    assert aggregating.order("pause", once).body["paused"] is None
    for name, body in (("pause", {**once, "reason": "a different one"}), ("withdraw", once)):
        refused = aggregating.order(name, body)
        assert (refused.status, refused.body["type"]) == (409, "urn:hubledger:problem:conflict")
        assert "is that of a different order" in refused.body["detail"]
    assert [one["move"] for one in aggregating.listed().body["history"]] == ["resume", "pause"]


def test_a_discarded_run_is_closed_and_the_next_one_takes_over_its_commits(aggregating: Aggregating) -> None:
    run_id = aggregating.begin()
    done = aggregating.order("discard", {**WHY, "what": "run"}, run_id).body
    why = "the run was discarded by unverified (key holder): by hand"
    assert (done["run"]["status"], done["run"]["failure"], done["failures"][0]["why"]) == ("failed", why, why)
    assert aggregating.step() == ["submitted"]
    runs = aggregating.listed().body["runs"]
    assert [(run["cut_from"], run["rows_limit"]) for run in runs] == [({}, 5_000_000), ({}, 10_000_000)]


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


def test_without_an_engine_a_run_can_be_discarded_but_its_job_not_cancelled(aggregating: Aggregating) -> None:
    run_id = aggregating.begin()
    aggregating.restart(SPARK_ENGINE="none")
    assert "is in the engine local" in aggregating.order("cancel", WHY, run_id).body["detail"]
    assert aggregating.order("discard", {**WHY, "what": "run"}, run_id).status == 200


def test_the_lag_is_the_age_of_the_oldest_commit_that_is_not_in_the_aggregate(aggregating: Aggregating) -> None:
    assert aggregating.listed().body["lag_seconds"] == 0.0
    aggregating.begin()
    lag = aggregating.listed().body["lag_seconds"]
    assert lag > 86_400  # the tests' commits are of a fixed day
    aggregating.stage()
    aggregating.step()
    assert aggregating.listed().body["lag_seconds"] == 0.0


DAYS = {"since_day": "2026-02-01", "until_day": "2026-02-03"}


def test_a_backfill_and_a_repair_are_ordered_shown_and_begun_by_the_next_step(aggregating: Aggregating) -> None:
    placed = aggregating.order("backfill", {**WHY, **DAYS})
    assert (placed.status, placed.headers["Location"]) == (202, "/api/aggregations")
    waiting = aggregating.listed().body["waiting"]
    assert waiting == placed.body["waiting"]
    assert (waiting["kind"], waiting["since_day"]) == ("backfill", "2026-02-01")
    assert waiting["who"] == "unverified (key holder)"
    assert aggregating.listed().body["history"][0]["days"] == "2026-02-01 to 2026-02-03"
    aggregating.commit()
    assert aggregating.step() == ["submitted"]
    aggregating.stage()
    assert aggregating.step() == ["committed", "has nothing new"]
    assert aggregating.listed().body["waiting"] is None
    assert aggregating.order("repair", WHY).status == 202
    assert aggregating.step() == ["submitted"]
    told = [(run["kind"], run["since_day"], run["rows_from"]) for run in aggregating.listed().body["runs"]]
    assert told == [("repair", None, "sql"), ("backfill", "2026-02-01", "sql")]


def test_a_repair_or_a_backfill_that_does_not_fit_is_a_conflict_and_wrong_days_are_named(
    aggregating: Aggregating,
) -> None:
    nothing = aggregating.order("withdraw", WHY)
    assert nothing.status == 409
    assert nothing.body["detail"] == "no order about home_activity waits: discard its run, if it has one"
    aggregating.order("backfill", WHY)
    turned = {"since_day": DAYS["until_day"], "until_day": DAYS["since_day"]}
    refused = [
        aggregating.order(*given) for given in (("repair", WHY), ("backfill", WHY), ("backfill", {**WHY, **turned}))
    ]
    assert [(one.status, one.body["type"]) for one in refused] == [(409, CONFLICT)] * 3
    assert [one.body["detail"] for one in refused] == [
        "home_activity has no commit yet: order a backfill",
        "a different order about home_activity waits already: let it begin, or withdraw it",
        "the days are in the wrong order: 2026-02-03 to 2026-02-01",
    ]
    assert aggregating.order("withdraw", WHY).body == {"job": HOME_ACTIVITY, "waiting": None}
    assert aggregating.listed().body["waiting"] is None
    assert aggregating.order("backfill", {**WHY, "since_day": "yesterday"}).fields == ["since_day"]


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
