"""function_app.py: exactly the functions that there are, with the bindings that the promise needs."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.unit.handlers.test_api import BY_LEVEL

ROOT = Path(__file__).parents[3]
INDEX = """
import json
import function_app
print(json.dumps({
    one.get_function_name(): {
        "bindings": [binding.get_dict_repr() for binding in one.get_bindings()],
        "settings": one.get_settings_dict("retry_policy"),
    }
    for one in function_app.app.get_functions()
}, default=lambda choice: choice.name))
"""


Index = dict[str, dict[str, Any]]
BESIDE_THE_API = (
    "aggregate", "claim_letters", "drive_redrive", "drive_replay", "find_wait", "heal_gaps", "ingest",
    "keep_dead_letters", "maintain_lake", "open_replay_job", "redrive_pieces", "replay_pieces", "retry_letters",
    "run_audits", "run_purges", "watch", "watch_dead_letters", "watch_redrives", "watch_replays", "zz_no_such_route",
)  # fmt: skip
SCHEDULES = {  # of the timers whose schedule is a setting
    "aggregate": "AGGREGATION_SCHEDULE",
    "heal_gaps": "GAP_CHECK_SCHEDULE",
    "maintain_lake": "LAKE_SCHEDULE",
    "run_audits": "AUDIT_SCHEDULE",
    "run_purges": "PURGE_SCHEDULE",
    "watch": "WATCH_SCHEDULE",
    "watch_redrives": "REDRIVE_CHECK_SCHEDULE",
    "watch_replays": "REPLAY_CHECK_SCHEDULE",
}


@cache
def index(**settings: str) -> Index:
    """The functions as the worker indexes them, in a process without any other setting of the app."""
    done = subprocess.run(
        [sys.executable, "-c", INDEX], cwd=ROOT, env=settings, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def binding(function: str, kind: str, of: Index | None = None) -> dict[str, Any]:
    (found,) = [one for one in (of or index())[function]["bindings"] if one["type"] == kind]
    return dict(found)


@pytest.mark.slow
def test_the_schedules_of_timers_are_settings() -> None:
    given = {setting: f"{at} 0 0 1 1 *" for at, setting in enumerate(SCHEDULES.values())}
    indexed = index(**given)
    assert {setting: binding(name, "timerTrigger", indexed)["schedule"] for name, setting in SCHEDULES.items()} == given


@pytest.mark.slow
def test_a_schedule_that_is_empty_or_not_set_is_the_default() -> None:
    defaults = {
        "aggregate": "0 */5",
        "heal_gaps": "0 *",
        "watch": "15 *",
        "watch_redrives": "45 *",
        "watch_replays": "30 *",
    }
    defaults |= {"run_audits": "*/10 *", "run_purges": "15 *", "watch_redrives": "45 *"}
    wanted = {name: f"{begin} * * * *" for name, begin in defaults.items()}
    for settings in ({}, dict.fromkeys(SCHEDULES.values(), "")):
        indexed = index(**settings)
        assert {name: binding(name, "timerTrigger", indexed)["schedule"] for name in wanted} == wanted


def test_the_app_has_these_functions_and_no_other_and_needs_no_setting_to_say_so() -> None:
    routes = [name for names in BY_LEVEL.values() for name in names]
    assert sorted(index()) == sorted([*BESIDE_THE_API, *routes])


def test_gaps_are_looked_for_every_minute() -> None:
    trigger = binding("heal_gaps", "timerTrigger")
    assert (trigger["schedule"], trigger["useMonitor"], trigger.get("runOnStartup", False)) == (
        "0 * * * * *",
        False,
        False,
    )


def test_the_watch_is_a_timer_that_ticks_beside_the_others() -> None:
    trigger = binding("watch", "timerTrigger")
    assert (trigger["schedule"], trigger["useMonitor"]) == ("15 * * * * *", False)


def test_ingest_takes_whole_batches_as_bytes_from_the_hub_that_the_settings_name() -> None:
    assert binding("ingest", "eventHubTrigger") == {
        "name": "events",
        "type": "eventHubTrigger",
        "direction": "IN",
        "connection": "EVENTHUB",
        "eventHubName": "%EVENTHUB_NAME%",
        "consumerGroup": "%EVENTHUB_CONSUMER_GROUP%",
        "cardinality": "MANY",
        "dataType": "BINARY",
    }
    assert len(index()["ingest"]["bindings"]) == 1


def test_ingest_is_retried_without_end_for_an_outage_must_not_lose_a_batch() -> None:
    assert index()["ingest"]["settings"] == {
        "strategy": "exponential_backoff",
        "max_retry_count": "-1",
        "minimum_interval": "00:00:01",
        "maximum_interval": "00:00:30",
        "setting_name": "retry_policy",
    }


def test_status_is_read_by_get_and_needs_a_key() -> None:
    trigger = binding("status", "httpTrigger")
    assert (trigger["route"], trigger["methods"], trigger["authLevel"]) == ("status", ["GET", "HEAD"], "FUNCTION")
    assert [one["direction"] for one in index()["status"]["bindings"]] == ["IN", "OUT"]


def test_replays_are_read_and_changed_with_a_key_of_the_function() -> None:
    routes = {
        "list_replays": ("replays", "GET"),
        "show_replay": ("replays/{job_id}", "GET"),
        "show_replay_diff": ("replays/{job_id}/diff", "GET"),
        "start_replay": ("replays", "POST"),
        "pause_replay": ("replays/{job_id}/pause", "POST"),
        "resume_replay": ("replays/{job_id}/resume", "POST"),
        "cancel_replay": ("replays/{job_id}/cancel", "POST"),
    }
    for name, (route, method) in routes.items():
        trigger = binding(name, "httpTrigger")
        methods = ["GET", "HEAD"] if method == "GET" else ["POST"]
        assert (trigger["route"], trigger["methods"], trigger["authLevel"]) == (route, methods, "FUNCTION")


def test_every_route_that_is_read_by_get_is_read_by_head_too() -> None:
    methods = {tuple(one["methods"]) for each in index().values() for one in each["bindings"] if "methods" in one}
    assert methods == {("GET", "HEAD"), ("POST",)}


def test_a_timer_watches_that_replays_are_driven() -> None:
    assert binding("watch_replays", "timerTrigger")["schedule"] == "30 * * * * *"
    assert binding("watch_replays", "durableClient")["name"] == "client"
    assert binding("drive_replay", "orchestrationTrigger")["name"] == "context"
    for activity in ("open_replay_job", "replay_pieces"):
        assert [one["type"] for one in index()[activity]["bindings"]] == ["activityTrigger"]


def test_a_timer_watches_that_redrives_are_driven() -> None:
    assert binding("watch_redrives", "timerTrigger")["schedule"] == "45 * * * * *"
    assert binding("watch_redrives", "durableClient")["name"] == "client"
    assert binding("drive_redrive", "orchestrationTrigger")["name"] == "context"
    assert [one["type"] for one in index()["redrive_pieces"]["bindings"]] == ["activityTrigger"]


def test_aggregation_is_a_timer_every_five_minutes_and_changed_with_a_key_of_the_function() -> None:
    assert binding("aggregate", "timerTrigger")["schedule"] == "0 */5 * * * *"
    routes = {
        "list_aggregations": ("aggregations", "GET"),
        "show_aggregation": ("aggregations/runs/{run_id}", "GET"),
        "start_aggregation": ("aggregations", "POST"),
        "pause_aggregation": ("aggregations/pause", "POST"),
        "resume_aggregation": ("aggregations/resume", "POST"),
        "repair_aggregation": ("aggregations/repair", "POST"),
        "backfill_aggregation": ("aggregations/backfill", "POST"),
        "withdraw_aggregation": ("aggregations/withdraw", "POST"),
        "cancel_aggregation": ("aggregations/runs/{run_id}/cancel", "POST"),
        "discard_aggregation": ("aggregations/runs/{run_id}/discard", "POST"),
    }
    for name, (route, method) in routes.items():
        trigger = binding(name, "httpTrigger")
        methods = ["GET", "HEAD"] if method == "GET" else ["POST"]
        assert (trigger["route"], trigger["methods"], trigger["authLevel"]) == (route, methods, "FUNCTION")
