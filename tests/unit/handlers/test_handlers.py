"""handlers/ingest.py and handlers/status.py, as the worker calls them: in a process with settings and a store."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.engines import SqliteEngine

pytestmark = pytest.mark.slow  # each starts a process
ROOT = Path(__file__).parents[3]
PRELUDE = """
import json, logging
from types import SimpleNamespace
import azure.functions as func
import function_app
from tests.fakes.host_events import decode, metadata_of

given = {one.get_function_name(): one.get_user_function() for one in function_app.app.get_functions()}
lines = []
class Keep(logging.Handler):
    def emit(self, record):
        lines.append(vars(record))
logging.getLogger("hubledger").addHandler(Keep())
logging.getLogger("hubledger").setLevel("INFO")

def ingest(numbers, bodies, partition_id="1"):
    events = decode(metadata_of(numbers, partition_id=partition_id), bodies)
    given["ingest"](events, SimpleNamespace(invocation_id="i-1"))

def status():
    return given["status"](func.HttpRequest("GET", "/api/status", body=b""))

HOME = b'{"kind":"registration","home_id":"home-1","time_zone":"Europe/Berlin","armed":true}'
MOTION = b'{"kind":"motion","home_id":"home-1","sensor_id":"h","state":"idle","observed_at":"2026-01-01T12:00:00Z"}'
"""


class App:
    """The app over an embedded store; its hub is a port that nobody listens on."""

    def __init__(self, sqlite: SqliteEngine) -> None:
        self.sqlite = sqlite
        self.environment = {
            "STORE_CONNECTION": f"sqlite:{sqlite.path}",
            "STORE_PATIENCE_SECONDS": "0",
            "EVENTHUB": "Endpoint=sb://localhost:1;SharedAccessKeyName=n;SharedAccessKey=azE=;UseDevelopmentEmulator=true",
            "EVENTHUB_NAME": "telemetry",
            "EVENTHUB_CONSUMER_GROUP": "cg",
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
def app(sqlite: SqliteEngine) -> App:
    return App(sqlite)


def test_a_batch_is_committed_and_one_line_is_logged(app: App) -> None:
    (line,) = app.run("""
ingest([0, 1, 2], [HOME, MOTION, b"{"])
print(json.dumps(lines, default=str))
""")
    assert (line["msg"], line["action"], line["levelname"]) == ("batch ingested", "ingest", "INFO")
    assert (line["partition"], line["first"], line["last"]) == ("telemetry/cg/1", 0, 2)
    assert (line["commits"], line["written"], line["filtered"], line["dead_lettered"]) == (1, 2, 0, 1)
    assert (line["redelivered"], line["gaps"], line["invocation_id"]) == (0, [], "i-1")
    assert (line["healed"], line["absent"]) == (0, 0)
    assert [(kept.first, kept.last) for kept in app.sqlite.ledger()] == [(0, 2)]


def test_a_gap_holds_the_batch_while_the_hub_cannot_be_asked(app: App) -> None:
    raised = app.run("""
ingest([0], [HOME])
raised = []
for _ in range(2):
    try:
        ingest([0, 4], [HOME, MOTION])
    except Exception as error:
        raised.append(type(error).__name__)
print(json.dumps(raised))
""")
    assert raised == ["HubUnreachable"] * 2
    assert [(kept.first, kept.last) for kept in app.sqlite.ledger()] == [(0, 0)]
    assert [(kept.first, kept.last, kept.status, kept.attempts) for kept in app.sqlite.gaps()] == [(1, 3, "open", 2)]


def test_the_look_for_gaps_fails_while_the_hub_cannot_be_asked(app: App) -> None:
    said = app.run("""
try:
    given["heal_gaps"](None, SimpleNamespace(invocation_id="t-1"))
except Exception as error:
    print(json.dumps([type(error).__name__, str(error)]))
""")
    assert said[0] == "HubUnreachable"
    assert "telemetry" in said[1]


def test_an_empty_receive_is_nothing(app: App) -> None:
    app.environment.clear()
    assert app.run('given["ingest"]([], None)\nprint(json.dumps(len(lines)))') == 0


def test_a_watch_that_cannot_ask_the_hub_logs_its_fault_and_fails(app: App) -> None:
    raised, (line,) = app.run("""
try:
    given["watch"](None)
except Exception as error:
    told = [{name: one[name] for name in ("action", "levelname", "msg", "error")} for one in lines]
    print(json.dumps([type(error).__name__, told]))
""")
    assert (raised, line["action"], line["levelname"]) == ("HubUnreachable", "watch_failed", "ERROR")
    assert line["error"].startswith("HubUnreachable: the hub did not answer: telemetry, ")


def test_a_fault_of_the_database_escapes_so_that_the_host_retries(app: App) -> None:
    app.sqlite.sql("DROP TABLE batch_ledger")
    assert app.run("""
try:
    ingest([0], [HOME])
except Exception as error:
    print(json.dumps([type(error).__name__, lines]))
""") == ["StoreUnavailable", []]


def test_faults_of_the_settings_escape_at_each_call_until_they_are_mended(app: App) -> None:
    mended = app.environment.pop("EVENTHUB_NAME")
    assert (
        app.run(f"""
import os
raised = []
for _ in range(2):
    try:
        ingest([0], [HOME])
    except Exception as error:
        raised.append(str(error))
os.environ["EVENTHUB_NAME"] = {mended!r}
ingest([0], [HOME])
print(json.dumps(raised))
""")
        == ["settings refused: EVENTHUB_NAME must be set"] * 2
    )
    assert len(app.sqlite.ledger()) == 1


def test_the_status_of_an_empty_store_is_balanced(app: App) -> None:
    answer = app.run("""
response = status()
print(json.dumps([response.status_code, response.mimetype, dict(response.headers), json.loads(response.get_body())]))
""")
    code, mimetype, headers, body = answer
    assert (code, mimetype, headers["Cache-Control"]) == (200, "application/json", "no-store")
    assert body.pop("hub_fault").startswith("the hub did not answer: telemetry, ")
    letters = body.pop("letters")
    assert (letters["open"], letters["dead_lettered"], bool(letters["counted_at"]), bool(body.pop("at"))) == (
        0,
        0,
        True,
        True,
    )
    assert body == {
        "event_hub": "telemetry",
        "consumer_group": "cg",
        "ledger_balanced": True,
        "numbers": 0,
        "accounted": 0,
        "written": 0,
        "filtered": 0,
        "dead_lettered": 0,
        "held": 0,
        "absent": 0,
        "lag": None,
        "open_gaps": 0,
        "oldest_open_letter": None,
        "partitions": [],
    }


def test_the_status_shows_the_books_of_each_partition_although_the_hub_cannot_be_asked(app: App) -> None:
    app.run("""
ingest([0, 1, 2], [HOME, MOTION, b"{"])
ingest([0], [HOME], partition_id="10")
for number in (0, 1):
    ingest([number], [HOME], partition_id="2")
print(0)
""")
    app.sqlite.sql("UPDATE event_hub_checkpoint SET sequence_number = ? WHERE partition_id = '2'", 2**62)
    body = app.run("print(status().get_body().decode())")
    assert (body["accounted"], body["written"], body["dead_lettered"], body["ledger_balanced"]) == (6, 5, 1, False)
    first, second, third = body["partitions"]
    assert first == {
        "partition_id": "1",
        "hub_end": None,
        "checkpoint": "2",
        "first": "0",
        "enqueued_at": "2026-11-21T02:15:00.295942Z",
        "lag": None,
        "lag_seconds": None,
        "balanced": True,
        "commits": 1,
        "open_gaps": 0,
        "numbers": 3,
        "accounted": 3,
        "written": 2,
        "filtered": 0,
        "dead_lettered": 1,
        "held": 0,
        "absent": 0,
    }
    assert (second["partition_id"], second["balanced"], second["checkpoint"]) == ("2", False, str(2**62))
    assert (third["partition_id"], third["checkpoint"]) == ("10", "0")


def test_the_status_shows_the_stream_of_the_settings_only(app: App) -> None:
    app.run("ingest([0], [HOME])\nprint(0)")
    app.environment["EVENTHUB_CONSUMER_GROUP"] = "other"
    body = app.run("print(status().get_body().decode())")
    assert (body["consumer_group"], body["accounted"], body["partitions"]) == ("other", 0, [])


@pytest.mark.parametrize(("keep", "body"), [("true", b"{}"), ("false", b"")])
def test_letters_are_kept_as_the_settings_say(app: App, keep: str, body: bytes) -> None:
    app.environment |= {"KEEP_BODIES": keep, "DEAD_LETTER_BASE_SECONDS": "3600"}
    look = b'{"kind":"motion","home_id":"nobody","sensor_id":"h","state":"idle","observed_at":"2026-01-01T12:00:00Z"}'
    app.run(f"ingest([0, 1], [b'{{}}', {look!r}]); print(json.dumps(None))")
    poison, reference = app.sqlite.letters()
    assert (poison.status, poison.body, poison.body_kept) == ("exhausted", body, keep == "true")
    assert reference.due_at is not None
    assert timedelta(0) < reference.due_at - reference.failed_at <= timedelta(hours=1)


def test_letters_that_the_look_for_gaps_makes_are_kept_as_the_settings_say(app: App) -> None:
    app.environment["KEEP_BODIES"] = "false"
    assert app.run("""
from handlers.services import services
print(json.dumps([each.letters.keep_bodies for each in (services().clock, services().silence.means.clock)]))
""") == [False, False]
