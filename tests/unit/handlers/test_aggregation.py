"""handlers/aggregation.py, as the worker calls it: in a process with settings and a store."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.engines import SqliteEngine

pytestmark = pytest.mark.slow  # each starts a process
ROOT = Path(__file__).parents[3]
PROBLEM = "application/problem+json"
PRELUDE = """
import json, logging
from uuid import uuid4
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

def get(**params):
    response = given["list_aggregations"](func.HttpRequest("GET", "/api/aggregations", params=params, body=b""))
    return [response.status_code, response.mimetype, json.loads(response.get_body())]

def post(body=b"{}", key=None, content="application/json"):
    headers = {"Content-Type": content, "Idempotency-Key": uuid4().hex if key is None else key}
    response = given["start_aggregation"](func.HttpRequest("POST", "/api/aggregations", headers=headers, body=body))
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
print(json.dumps([len(lines), post(), get()]))
""")
    assert lines == 0
    assert (answer[0], answer[1], answer[2]["type"]) == (409, PROBLEM, "urn:hubledger:problem:conflict")
    assert "SPARK_ENGINE" in answer[2]["detail"]
    assert (listed[0], listed[2]["runs"]) == (200, [])


def test_a_request_starts_a_run_once_and_the_list_shows_it(app: App) -> None:
    first, second, listed, logged = app.run("""
commit()
answers = [post(), post(b'{"job": "home_activity"}'), get()]
print(json.dumps([*answers, [[line["action"], line["who"]] for line in lines if line["msg"] == "request done"]]))
""")
    assert (first[0], first[1], first[2]["did"]) == (202, "application/json", ["submitted"])
    assert second[2]["run"]["number"] == 1
    body = listed[2]
    assert (body["job"], body["cut"], body["reached"], body["next"]) == ("home_activity", {}, {"1/0": 1}, None)
    (run,) = body["runs"]
    assert (run["cut_to"], run["status"], run["engine"]) == ({"1/0": 1}, "submitted", "local")
    assert run["planned_at"].endswith("Z")
    assert run["closed_at"] is None
    assert logged == [["start_aggregation", "unknown (a holder of the key)"]] * 2


def test_the_same_request_under_a_key_is_answered_the_same_and_another_one_is_refused(app: App) -> None:
    first, again, other, listed = app.run("""
from handlers.aggregation_services import aggregation_services
from core.aggregation.tick import HOME_ACTIVITY
commit()
answers = [post(key="k-1")]
run = aggregation_services().store.read_standing(HOME_ACTIVITY).last_run
aggregation_services().store.fail_run(run, "by hand", run.planned_at)
answers += [post(b'{ "job" : "home_activity" }', key="k-1")]
print(json.dumps([*answers, post(b'{"job": "other"}', key="k-1"), get()]))
""")
    assert again == first
    assert (other[0], other[2]["errors"][0]["field"]) == (400, "job")
    assert [run["number"] for run in listed[2]["runs"]] == [1]


BAD_BODIES = {
    "not JSON": (b"{", "body"),
    "nothing": (b"", "body"),
    "an array": (b"[]", "body"),
    "null": (b"null", "body"),
    "an unknown field": (b'{"jobs": "home_activity"}', "jobs"),
    "another job": (b'{"job": "flight"}', "job"),
    "a hostile job": (b'{"job": "\'; DROP TABLE aggregation_run; --"}', "job"),
    "a number": (b'{"job": 1}', "job"),
    "no text": (b"\xff", "body"),
    "a long job": (b'{"job": "' + b"h" * 5000 + b'"}', "job"),
    "deep": (b"[" * 4000, "body"),
}


def test_a_body_that_is_wrong_is_refused_and_starts_nothing(app: App) -> None:
    answers = app.run(f"""
commit()
asked = [post(body) for body in {[body for body, _ in BAD_BODIES.values()]!r}]
asked += [post(b'{{"job": "' + b"h" * 300_000 + b'"}}')]
print(json.dumps([*asked, get()]))
""")
    *refused, too_large, listed = answers
    assert (too_large[0], too_large[2]["type"]) == (413, "urn:hubledger:problem:body-too-large")
    for (case, (_, field)), (code, mimetype, body) in zip(BAD_BODIES.items(), refused, strict=True):
        assert (code, mimetype) == (400, PROBLEM), case
        assert [one["field"] for one in body["errors"]] == [field], case
        assert "Traceback" not in json.dumps(body), case
    assert listed[2]["runs"] == []


def test_a_request_without_a_key_or_not_of_json_is_refused_and_starts_nothing(app: App) -> None:
    without, spaced, plain, listed = app.run("""
commit()
print(json.dumps([post(key=""), post(key="a b"), post(content="text/plain"), get()]))
""")
    for one in (without, spaced):
        assert (one[0], one[2]["errors"][0]["field"]) == (400, "Idempotency-Key")
    assert (plain[0], plain[2]["type"]) == (415, "urn:hubledger:problem:not-json")
    assert listed[2]["runs"] == []


BAD_PARAMETERS = {
    "limit": ["0", "-1", "101", "1.5", "x", "9" * 30, "\u0663", "1e2", " 1", str(2**63)],
    "cursor": ["x", "!", "9" * 1001, "WyJhIixbMV1d", "' OR 1=1", "<script>"],
    "before": ["1"],
}


@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_a_parameter_that_is_wrong_is_refused_by_its_name(app: App, name: str) -> None:
    values = BAD_PARAMETERS[name]
    answers = app.run(f"print(json.dumps([get(**{{{name!r}: value}}) for value in {values!r}]))")
    assert [(one[0], [fault["field"] for fault in one[2]["errors"]]) for one in answers] == [(400, [name])] * len(
        values
    )


def test_runs_come_in_pages_by_cursor(app: App) -> None:
    first, second, damaged = app.run("""
from handlers.aggregation_services import aggregation_services
from core.aggregation.tick import HOME_ACTIVITY
own = aggregation_services()
for _ in range(3):
    commit()
    post()
    run = own.store.read_standing(HOME_ACTIVITY).last_run
    own.store.fail_run(run, "by hand", run.planned_at)
page = get(limit="2")
print(json.dumps([page, get(limit="1", cursor=page[2]["next"]), get(cursor="A" + page[2]["next"][1:-1] + "A")]))
""")
    assert [run["number"] for run in first[2]["runs"]] == [3, 2]
    assert [run["number"] for run in second[2]["runs"]] == [1]
    assert (second[2]["runs"][0]["failure"], second[2]["next"]) == ("by hand", None)
    assert (damaged[0], damaged[2]["errors"][0]["field"]) == (400, "cursor")


def test_faults_are_problems_and_show_no_secret(app: App) -> None:
    app.environment |= {"SPARK_ENGINE": "livy", "LAKE_CONNECTION": "AccountKey=hunter2"}
    for status, mimetype, body in app.run("print(json.dumps([post(), get()]))"):
        assert (status, mimetype, body["fault"]) == (503, PROBLEM, "SettingsRefused")
        assert "LIVY_URL" in body["detail"]
        assert "hunter2" not in json.dumps(body)


def test_an_engine_that_is_not_there_is_a_problem_that_names_its_setting(app: App) -> None:
    app.environment["SPARK_SUBMIT"] = "/none/spark-submit"
    answer = app.run("commit()\nprint(json.dumps(post()))")
    assert (answer[0], answer[2]["type"]) == (503, "urn:hubledger:problem:unavailable")
    assert answer[2]["fault"] == "EngineRefused"
    assert answer[2]["detail"].startswith("SPARK_SUBMIT: ")


def test_the_schedule_is_a_setting(app: App) -> None:
    app.environment["AGGREGATION_SCHEDULE"] = "0 0 * * * *"
    schedule = app.run("""
print(json.dumps(schedules["aggregate"]))
""")
    assert schedule == "0 0 * * * *"
