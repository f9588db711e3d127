"""handlers/operations/aggregations.py, and the command that hands over the rows of the lake."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from core.aggregation.spark_engine import JobState
from core.aggregation.store import Aggregations
from core.errors import EngineRefused
from handlers import commands
from handlers.app import aggregation, app
from tests.fakes.aggregation_engines import HOME_ACTIVITY, SqliteAggregation, finish, ingest, stage
from tests.fakes.builders import EPOCH, reading
from tests.fakes.engines import SqliteEngine
from tests.handlers.running import Reply, Running
from tests.patience import until

WHY = {"reason": "by hand"}
CONFLICT = "urn:hubledger:problem:conflict"
NOBODY = "0123456789abcdef"


class Ordering(Running):
    """The app with a spark-submit whose jobs run until they are killed."""

    def order(self, name: str, body: object, run_id: str | None = None, **headers: str) -> Reply:
        given = {"order_id": str(uuid4()), **body} if isinstance(body, dict) else body
        return self.post(f"{name}_aggregation", given, None if run_id is None else {"run_id": run_id}, **headers)

    def step(self) -> list[str]:
        return list(self.post("start_aggregation", {}).body["did"])

    def begin(self) -> str:
        """Begin a run, and return its id."""
        ingest(app().core.ingestion.store, [reading()])
        assert self.step() == ["submitted"]
        return self.run_id

    def stage(self) -> None:
        tables = SqliteAggregation(self.sqlite)
        stage(tables, f"s-{self.run_id}", self.run_id, [])
        finish(tables, f"s-{self.run_id}", self.run_id, EPOCH)

    def wait_for_the_end(self) -> None:
        """Wait until the killed job of the open run is gone."""
        own, job_id = aggregation(), f"agg-{self.run_id}-1"
        assert own is not None
        until(lambda: own.engine.state(job_id) is JobState.FAILED, 20)

    @property
    def run_id(self) -> str:
        run = Aggregations(app().brief).read_standing(HOME_ACTIVITY).last_run
        assert run is not None
        return run.run_id

    def shown(self, run_id: str) -> Reply:
        return self.get("show_aggregation", {"run_id": run_id})

    def listed(self) -> Reply:
        return self.get("list_aggregations")


@pytest.fixture
def ordering(
    sqlite: SqliteEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ordering]:
    script = tmp_path / "spark-submit"
    script.write_text("#!/bin/sh\necho the reason >&2\nexec sleep 600\n")
    script.chmod(0o755)
    made = Ordering(sqlite, caplog, monkeypatch)
    made.restart(SPARK_ENGINE="local", SPARK_SUBMIT=str(script))
    yield made
    own = aggregation()
    if own is not None:
        for job in (sqlite.path.parent / "spark").glob("*/"):
            own.engine.cancel(job.name)
    made.close()


def test_a_paused_job_begins_submits_and_commits_nothing_until_it_is_resumed(ordering: Ordering) -> None:
    ordering.begin()
    ordering.stage()
    paused = ordering.order("pause", WHY)
    assert (paused.status, paused.body["paused"]["reason"]) == (200, "by hand")
    assert ordering.step() == ["is paused"]
    listed = ordering.listed().body
    assert (listed["paused"]["who"], listed["runs"][0]["status"]) == ("unverified (key holder)", "submitted")
    assert ordering.order("resume", WHY).body == {"job": HOME_ACTIVITY, "paused": None}
    assert ordering.step() == ["committed", "has nothing new"]
    assert ordering.listed().body["paused"] is None
    assert [one["move"] for one in ordering.listed().body["history"]] == ["resume", "pause"]


def test_a_job_that_never_ran_can_be_paused(ordering: Ordering) -> None:
    assert ordering.order("pause", WHY).status == 200
    ingest(app().core.ingestion.store, [reading()])
    assert ordering.step() == ["is paused"]
    assert ordering.listed().body["runs"] == []


def test_an_order_that_does_not_fit_is_a_conflict_and_changes_nothing(ordering: Ordering) -> None:
    run_id = ordering.begin()
    refused = [
        ordering.order("resume", WHY),
        ordering.order("discard", {**WHY, "what": "result"}, run_id),
    ]
    ordering.order("pause", WHY)
    refused.append(ordering.order("pause", WHY))
    ordering.order("discard", {**WHY, "what": "run"}, run_id)
    refused.append(ordering.order("discard", {**WHY, "what": "run"}, run_id))
    refused.append(ordering.order("cancel", WHY, run_id))
    assert [(one.status, one.body["type"]) for one in refused] == [(409, CONFLICT)] * 5
    assert [one.body["detail"] for one in refused] == [
        "home_activity is not paused",
        "run 1 has no staged result",
        "home_activity is paused already",
        "run 1 is failed",
        "run 1 is failed",
    ]
    assert len(ordering.listed().body["history"]) == 2


def test_a_run_that_does_not_exist_is_not_found_and_a_wrong_id_or_body_is_refused(ordering: Ordering) -> None:
    for reply in (
        ordering.shown(NOBODY),
        ordering.order("cancel", WHY, NOBODY),
        ordering.order("discard", {**WHY, "what": "run"}, NOBODY),
    ):
        assert (reply.status, reply.fields) == (404, ["run_id"])
    assert (ordering.shown("../x").status, ordering.shown("../x").fields) == (400, ["run_id"])
    assert ordering.order("discard", WHY, NOBODY).fields == ["what"]
    assert ordering.order("discard", {**WHY, "what": "all"}, NOBODY).fields == ["what"]
    assert ordering.order("pause", {"reason": "no"}).fields == ["reason"]
    assert ordering.order("pause", {**WHY, "order_id": "1"}).fields == ["order_id"]


@pytest.mark.slow
def test_a_cancelled_job_is_ended_and_the_next_attempt_follows(ordering: Ordering) -> None:
    run_id = ordering.begin()
    done = ordering.order("cancel", WHY, run_id)
    assert (done.status, done.body["run"]["status"]) == (200, "submitted")
    ordering.wait_for_the_end()
    assert ordering.step() == ["submitted"]
    shown = ordering.shown(run_id).body
    assert (shown["run"]["attempt"], shown["staged_at"]) == (2, None)
    (failure,) = shown["failures"]
    assert (failure["attempt"], failure["why"], failure["reason"]) == (1, "its job failed", "its processes were killed")
    assert failure["link"].endswith(f"agg-{run_id}-1")
    assert ordering.listed().body["history"][0]["run_id"] == run_id


def test_an_order_is_carried_out_once_under_its_id_which_no_other_order_may_have(ordering: Ordering) -> None:
    once = {**WHY, "order_id": str(uuid4())}
    first = ordering.order("pause", once)
    assert ordering.order("pause", once) == first
    ordering.order("resume", WHY)
    assert ordering.order("pause", once).body["paused"] is None
    for name, body in (("pause", {**once, "reason": "a different one"}), ("withdraw", once)):
        refused = ordering.order(name, body)
        assert (refused.status, refused.body["type"]) == (409, "urn:hubledger:problem:conflict")
        assert "is that of a different order" in refused.body["detail"]
    assert [one["move"] for one in ordering.listed().body["history"]] == ["resume", "pause"]


def test_a_discarded_run_is_closed_and_the_next_one_takes_over_its_commits(ordering: Ordering) -> None:
    run_id = ordering.begin()
    done = ordering.order("discard", {**WHY, "what": "run"}, run_id).body
    why = "the run was discarded by unverified (key holder): by hand"
    assert (done["run"]["status"], done["run"]["failure"], done["failures"][0]["why"]) == ("failed", why, why)
    assert ordering.step() == ["submitted"]
    runs = ordering.listed().body["runs"]
    assert [(run["cut_from"], run["rows_limit"]) for run in runs] == [({}, 5_000_000), ({}, 10_000_000)]


def test_a_discarded_result_is_never_committed(ordering: Ordering) -> None:
    run_id = ordering.begin()
    ordering.stage()
    done = ordering.order("discard", {**WHY, "what": "result"}, run_id).body
    assert (done["run"]["status"], done["staged_at"]) == ("submitted", None)
    assert done["failures"][0]["why"] == "its result was discarded by unverified (key holder): by hand"
    assert ordering.step() == ["waits"]


def test_an_engine_that_refuses_to_cancel_is_reported_and_stops_no_discard(
    ordering: Ordering, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = ordering.begin()
    own = aggregation()
    assert own is not None

    def refuse(self: object, job_id: str) -> None:
        raise EngineRefused("DELETE answered 403")

    with monkeypatch.context() as patched:
        patched.setattr(type(own.engine), "cancel", refuse)
        told = ordering.order("cancel", WHY, run_id)
        assert (told.status, told.body["detail"]) == (503, "DELETE answered 403")
        assert ordering.order("discard", {**WHY, "what": "run"}, run_id).status == 200


def test_without_an_engine_a_run_can_be_discarded_but_its_job_not_cancelled(ordering: Ordering) -> None:
    run_id = ordering.begin()
    ordering.restart(SPARK_ENGINE="none")
    assert "is in the engine local" in ordering.order("cancel", WHY, run_id).body["detail"]
    assert ordering.order("discard", {**WHY, "what": "run"}, run_id).status == 200
    ordering.restart(SPARK_ENGINE="local")


def test_the_lag_is_the_age_of_the_oldest_commit_that_is_not_in_the_aggregate(ordering: Ordering) -> None:
    assert ordering.listed().body["lag_seconds"] == 0.0
    ordering.begin()
    lag = ordering.listed().body["lag_seconds"]
    assert lag > 86_400  # the tests' commits are of a fixed day
    ordering.stage()
    ordering.step()
    assert ordering.listed().body["lag_seconds"] == 0.0


DAYS = {"since_day": "2026-02-01", "until_day": "2026-02-03"}


def test_a_backfill_and_a_repair_are_ordered_shown_and_begun_by_the_next_step(ordering: Ordering) -> None:
    placed = ordering.order("backfill", {**WHY, **DAYS})
    assert (placed.status, placed.headers["Location"]) == (202, "/api/aggregations")
    waiting = ordering.listed().body["waiting"]
    assert waiting == placed.body["waiting"]
    assert (waiting["kind"], waiting["since_day"], waiting["who"]) == (
        "backfill",
        "2026-02-01",
        "unverified (key holder)",
    )
    assert ordering.listed().body["history"][0]["days"] == "2026-02-01 to 2026-02-03"
    ingest(app().core.ingestion.store, [reading()])
    assert ordering.step() == ["submitted"]
    ordering.stage()
    assert ordering.step() == ["committed", "has nothing new"]
    assert ordering.listed().body["waiting"] is None
    assert ordering.order("repair", WHY).status == 202
    assert ordering.step() == ["submitted"]
    told = [(run["kind"], run["since_day"], run["rows_from"]) for run in ordering.listed().body["runs"]]
    assert told == [("repair", None, "sql"), ("backfill", "2026-02-01", "sql")]


def test_a_repair_or_a_backfill_that_does_not_fit_is_a_conflict_and_wrong_days_are_named(ordering: Ordering) -> None:
    nothing = ordering.order("withdraw", WHY)
    assert nothing.status == 409
    assert nothing.body["detail"] == "no order about home_activity waits: discard its run, if it has one"
    ordering.order("backfill", WHY)
    turned = {"since_day": DAYS["until_day"], "until_day": DAYS["since_day"]}
    refused = [
        ordering.order(*given) for given in (("repair", WHY), ("backfill", WHY), ("backfill", {**WHY, **turned}))
    ]
    assert [(one.status, one.body["type"]) for one in refused] == [(409, CONFLICT)] * 3
    assert [one.body["detail"] for one in refused] == [
        "home_activity has no commit yet: order a backfill",
        "a different order about home_activity waits already: let it begin, or withdraw it",
        "the days are in the wrong order: 2026-02-03 to 2026-02-01",
    ]
    assert ordering.order("withdraw", WHY).body == {"job": HOME_ACTIVITY, "waiting": None}
    assert ordering.listed().body["waiting"] is None
    assert ordering.order("backfill", {**WHY, "since_day": "yesterday"}).fields == ["since_day"]
    assert ordering.order("backfill", {**WHY, "job": "none"}).fields == ["job"]
    assert ordering.order("backfill", DAYS).fields == ["reason"]


def test_the_job_that_keeps_rows_in_the_lake_is_paused_and_listed_and_takes_no_repair(ordering: Ordering) -> None:
    job: dict[str, Any] = {"job": "rows.sensor_reading"}
    assert ordering.order("pause", {**WHY, **job}).fields == ["job"]
    ordering.restart(LAKE_ROWS="true")
    assert ordering.order("pause", {**WHY, **job}).status == 200
    assert ordering.get("list_aggregations", **job).body["paused"]["reason"] == "by hand"
    refused = ordering.order("repair", {**WHY, **job})
    assert (refused.status, refused.body["detail"]) == (
        409,
        "rows.sensor_reading keeps rows and no windows: order a repair of an aggregate",
    )


def test_the_command_hands_over_the_rows_of_the_lake_where_it_keeps_them(
    ordering: Ordering, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands.main(["rebuild-arguments"]) == 1
    assert "the lake does not keep the rows of home_activity: set SPARK_ENGINE" in capsys.readouterr().err
    ordering.restart(LAKE_ROWS="true")
    assert commands.main(["rebuild-arguments", "--job", "none"]) == 1
    assert "--job is one of home_activity" in capsys.readouterr().err
    assert commands.main(["rebuild-arguments"]) == 0
    named, transform, _, folder, _, state = shlex.split(capsys.readouterr().out)
    assert (named, transform) == ("--transform", "examples.home_security")
    assert sorted(json.loads((Path(folder) / state).read_text())) == [
        "silver/sensor_reading",
        "silver/sensor_reading_removed",
    ]
