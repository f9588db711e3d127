"""handlers/aggregation.py, as the worker calls it: in a process with settings and a store."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.engines import SqliteEngine

ROOT = Path(__file__).parents[3]
PRELUDE = """
import json, logging
import azure.functions as func
import function_app
from tests.fakes.builders import home, reading
from tests.fakes.aggregation_engines import ingest

functions = {one.get_function_name(): one for one in function_app.app.get_functions()}
given = {name: one.get_user_function() for name, one in functions.items()}
schedules = {name: one.get_bindings()[0].get_dict_repr().get("schedule") for name, one in functions.items()}
lines = []
class Keep(logging.Handler):
    def emit(self, record):
        lines.append(vars(record))
logging.getLogger("hubledger").addHandler(Keep())
logging.getLogger("hubledger").setLevel("INFO")

def ask(name, body=b"", **params):
    response = given[name](func.HttpRequest("GET", "/api/aggregations", params=params, body=body))
    return [response.status_code, response.mimetype, json.loads(response.get_body())]

def commit():
    from handlers.aggregation_services import aggregation_services
    ingest(aggregation_services().store, [reading()])
"""


class App:
    """The app over an embedded store, with a spark-submit that only notes that it was called."""

    def __init__(self, sqlite: SqliteEngine, folder: Path) -> None:
        script = folder / "spark-submit"
        script.write_text("#!/bin/sh\nexit 1\n")
        script.chmod(0o755)
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "STORE_CONNECTION": f"sqlite:{sqlite.path}",
            "EVENTHUB": "Endpoint=sb://localhost:1",
            "EVENTHUB_NAME": "telemetry",
            "EVENTHUB_CONSUMER_GROUP": "cg",
            "SPARK_ENGINE": "local",
            "SPARK_SUBMIT": str(script),
        }

    def run(self, script: str) -> Any:
        """What the last line of a script prints as JSON."""
        done = subprocess.run(
            [sys.executable, "-c", PRELUDE + script],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def app(sqlite: SqliteEngine, tmp_path: Path) -> App:
    return App(sqlite, tmp_path)


def test_the_timer_submits_a_run_and_logs_one_line(app: App) -> None:
    (line,) = app.run("""
commit()
given["aggregate"](None)
print(json.dumps(lines, default=str))
""")
    assert (line["msg"], line["action"], line["did"]) == ("aggregation looked after", "aggregate", ["submitted"])
    assert (line["number"], line["attempt"], line["status"]) == (1, 1, "submitted")


def test_without_an_engine_the_timer_does_nothing_and_a_request_is_told_so(app: App) -> None:
    app.environment["SPARK_ENGINE"] = "none"
    lines, answer, listed = app.run("""
given["aggregate"](None)
print(json.dumps([len(lines), ask("start_aggregation"), ask("list_aggregations")]))
""")
    assert lines == 0
    assert (answer[0], answer[1], answer[2]["title"]) == (409, "application/problem+json", "NoEngine")
    assert (listed[0], listed[2]["runs"]) == (200, [])


def test_a_request_starts_a_run_once_and_the_list_shows_it(app: App) -> None:
    first, second, listed = app.run("""
commit()
asked = [ask("start_aggregation"), ask("start_aggregation", b'{"job": "home_activity"}')]
print(json.dumps([*asked, ask("list_aggregations")]))
""")
    assert (first[0], first[1], first[2]["did"]) == (202, "application/json", ["submitted"])
    assert second[2]["run"]["number"] == 1
    body = listed[2]
    assert (body["job"], body["cut"], body["reached"], body["next_before"]) == ("home_activity", {}, {"1/0": 1}, None)
    (run,) = body["runs"]
    assert (run["cut_to"], run["status"], run["engine"]) == ({"1/0": 1}, "submitted", "local")
    assert run["planned_at"].endswith("Z")
    assert run["closed_at"] is None


BAD_BODIES = {
    "not JSON": b"{",
    "an array": b"[]",
    "an unknown field": b'{"jobs": "home_activity"}',
    "another job": b'{"job": "flight"}',
    "a number": b'{"job": 1}',
    "no text": b"\xff",
    "too long": b'{"job": "' + b"h" * 5000 + b'"}',
    "deep": b"[" * 4000,
}


def test_a_body_that_is_wrong_is_refused_and_starts_nothing(app: App) -> None:
    answers = app.run(f"""
commit()
asked = [ask("start_aggregation", body) for body in {list(BAD_BODIES.values())!r}]
print(json.dumps([*asked, ask("list_aggregations")]))
""")
    *refused, listed = answers
    assert [(one[0], one[1], one[2]["title"]) for one in refused] == [
        (400, "application/problem+json", "InvalidRequest")
    ] * len(BAD_BODIES)
    assert all(one[2]["detail"].startswith("the body ") for one in refused)
    assert listed[2]["runs"] == []


@pytest.mark.parametrize("name", ["limit", "before"])
def test_a_number_that_is_none_is_refused_by_its_name(app: App, name: str) -> None:
    values = ["", "0", "-1", "1.5", "x", "9" * 30, "\u0663", "1e2", " 1", str(2**63)]
    answers = app.run(f"print(json.dumps([ask('list_aggregations', **{{{name!r}: value}}) for value in {values!r}]))")
    assert [(one[0], one[2]["detail"].split()[0]) for one in answers] == [(400, name)] * len(values)


def test_runs_come_in_pages(app: App) -> None:
    first, second = app.run("""
from handlers.aggregation_services import aggregation_services
from core.aggregation import HOME_ACTIVITY
own = aggregation_services()
for _ in range(3):
    commit()
    ask("start_aggregation")
    run = own.store.read_standing(HOME_ACTIVITY).last_run
    own.store.fail_run(run, "by hand", run.planned_at)
page = ask("list_aggregations", limit="2")
print(json.dumps([page, ask("list_aggregations", limit="2", before=page[2]["next_before"])]))
""")
    assert [run["number"] for run in first[2]["runs"]] == [3, 2]
    assert first[2]["next_before"] == "2"
    assert [run["number"] for run in second[2]["runs"]] == [1]
    assert (second[2]["runs"][0]["failure"], second[2]["next_before"]) == ("by hand", None)


def test_faults_are_problems_and_show_no_secret(app: App) -> None:
    app.environment |= {"SPARK_ENGINE": "livy", "LAKE_CONNECTION": "AccountKey=hunter2"}
    answers = app.run("print(json.dumps([ask('start_aggregation'), ask('list_aggregations')]))")
    for status, mimetype, body in answers:
        assert (status, mimetype, body["title"]) == (503, "application/problem+json", "SettingsRefused")
        assert "LIVY_URL" in body["detail"]
        assert "hunter2" not in json.dumps(body)


def test_an_engine_that_is_not_there_is_a_problem_that_names_its_setting(app: App) -> None:
    app.environment["SPARK_SUBMIT"] = "/none/spark-submit"
    answer = app.run('commit()\nprint(json.dumps(ask("start_aggregation")))')
    assert (answer[0], answer[2]["title"]) == (503, "EngineRefused")
    assert answer[2]["detail"].startswith("SPARK_SUBMIT: ")


def test_the_schedule_is_a_setting(app: App) -> None:
    app.environment["AGGREGATION_SCHEDULE"] = "0 0 * * * *"
    schedule = app.run("""
print(json.dumps(schedules["aggregate"]))
""")
    assert schedule == "0 0 * * * *"
