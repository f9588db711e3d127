import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from core.api.route import LEVELS, linked
from examples.home_security.routes import LINK
from handlers.api import ROUTES
from tests.patience import allowed

ROOT = Path(__file__).parents[2]
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
    "aggregate", "claim_letters", "drive_task", "entrance", "find_wait", "heal_gaps", "ingest", "keep_dead_letters",
    "maintain_lake", "open_task", "retry_letters", "task_slice", "watch", "watch_dead_letters", "watch_tasks",
    "zz_no_such_route",
)  # fmt: skip
SCHEDULES = {  # of the timers whose schedule is a setting: its name, and its default
    "aggregate": ("AGGREGATION_SCHEDULE", "0 */5 * * * *"),
    "heal_gaps": ("WATCH_SCHEDULE", "15 * * * * *"),
    "watch": ("WATCH_SCHEDULE", "15 * * * * *"),
    "watch_tasks": ("TASK_SCHEDULE", "30 * * * * *"),
}


@cache
def index(**settings: str) -> Index:
    """The functions as the worker indexes them, in a process without any other setting of the app."""
    command = [sys.executable, "-c", INDEX]
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=allowed(60))
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def binding(function: str, kind: str, of: Index | None = None) -> dict[str, Any]:
    (found,) = [one for one in (of or index())[function]["bindings"] if one["type"] == kind]
    return dict(found)


def schedules(of: Index | None = None) -> dict[str, str]:
    return {name: binding(name, "timerTrigger", of)["schedule"] for name in SCHEDULES}


@pytest.mark.slow
def test_the_schedules_of_timers_are_settings_and_an_empty_one_is_the_default() -> None:
    given = {setting: f"{at} 0 0 1 1 *" for at, setting in enumerate(sorted({one for one, _ in SCHEDULES.values()}))}
    assert schedules(index(**given)) == {name: given[setting] for name, (setting, _) in SCHEDULES.items()}
    assert schedules(index(**dict.fromkeys(given, ""))) == schedules()


def test_a_timer_ticks_each_minute_and_only_the_aggregation_makes_up_for_a_missed_tick() -> None:
    assert schedules() == {name: default for name, (_, default) in SCHEDULES.items()}
    triggers = {name: binding(name, "timerTrigger") for name in SCHEDULES}
    assert {name for name, one in triggers.items() if one.get("useMonitor", True)} == {"aggregate"}
    assert not any(one.get("runOnStartup", False) for one in triggers.values())


def test_the_app_has_these_functions_and_no_other_and_needs_no_setting_to_say_so() -> None:
    routes = [name for names in BY_LEVEL.values() for name in names]
    assert sorted(index()) == sorted([*BESIDE_THE_API, *routes])


def test_ingest_takes_whole_batches_as_bytes_and_is_retried_eight_times_before_its_numbers_are_a_gap() -> None:
    assert binding("ingest", "eventHubTrigger") == {
        "name": "events", "type": "eventHubTrigger", "direction": "IN", "connection": "EVENTHUB",
        "eventHubName": "%EVENTHUB_NAME%", "consumerGroup": "%EVENTHUB_CONSUMER_GROUP%",
        "cardinality": "MANY", "dataType": "BINARY",
    }  # fmt: skip
    assert len(index()["ingest"]["bindings"]) == 1
    assert index()["ingest"]["settings"] == {
        "strategy": "exponential_backoff", "max_retry_count": "8", "setting_name": "retry_policy",
        "minimum_interval": "00:00:01", "maximum_interval": "00:00:30",
    }  # fmt: skip


def test_every_route_has_the_address_the_methods_and_the_level_of_its_row() -> None:
    for route in ROUTES:
        trigger = binding(route.name, "httpTrigger")
        methods = ["GET", "HEAD"] if route.method == "GET" else [route.method]
        assert (trigger["route"], trigger["methods"]) == (f"api/{route.template}", methods), route.name
        assert trigger["authLevel"] == ("FUNCTION" if route.level.needs_key else "ANONYMOUS"), route.name
        assert {one["direction"] for one in index()[route.name]["bindings"]} == {"IN", "OUT"}, route.name


def test_a_timer_watches_that_tasks_are_driven() -> None:
    assert binding("watch_tasks", "durableClient")["name"] == "client"
    assert binding("drive_task", "orchestrationTrigger")["name"] == "context"
    for activity in ("open_task", "task_slice"):
        assert [one["type"] for one in index()[activity]["bindings"]] == ["activityTrigger"]


ALL = (*LEVELS, linked(LINK))

# Each route by its level. A new route has to be added here: choose the level that shows the least and still works.
BY_LEVEL = {level: names.split() for level, names in {
    "open": "health_live health_ready home_page openapi ops ops_file",
    "counting": "health_ledger status status_history",
    "reading": "audit_ledger explain_number find_commits group_letters list_aggregations list_letters list_tasks "
    "preview_redrive show_aggregation show_letter show_task",
    "revealing": "find_homes reveal_groups reveal_letter reveal_letters reveal_number reveal_places reveal_preview "
    "reveal_stops show_activity show_replay_diff",
    "changing": "backfill_aggregation cancel_aggregation cancel_task discard_aggregation "
    "forget_erasure_keys open_next_incarnation "
    "pause_aggregation pause_task put_task repair_aggregation resume_aggregation resume_task "
    "start_aggregation withdraw_aggregation",
    "linking": "make_home_link",
    "linked": "show_own_activity",
}.items()}  # fmt: skip


def test_every_route_has_the_level_that_is_listed_here_with_its_key_role_and_method() -> None:
    assert {level.name: sorted(one.name for one in ROUTES if one.level == level) for level in ALL} == BY_LEVEL
    assert [level.name for level in ALL if not level.needs_key] == ["open", "linked"]
    roles = {"reading": "Hubledger.Read", "revealing": "Hubledger.Reveal", "changing": "Hubledger.Operate"}
    assert {level.name: level.role for level in ALL if level.role} == roles
    posted = {"changing", "linking"}
    assert {one.level.name for one in ROUTES if one.method == "POST"} == posted
    assert {one.level.name for one in ROUTES if one.method == "GET"} == set(BY_LEVEL) - posted
