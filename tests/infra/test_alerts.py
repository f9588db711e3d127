"""The alerts: each query reads facts of the watch, the page explains each alert, and log values become properties."""

import gzip
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest
from croniter import croniter

from core.ledger.totals import Books, LetterBooks
from core.ledger.watch import ABSENT_WITHIN, STOPPED_AFTER, Observation
from tests.fakes.builders import EPOCH, STREAM
from tests.handlers.test_function_app import binding
from tests.infra.test_policies import ALERTS, FILES
from tests.offenders import holds_for
from tests.patience import allowed
from tests.repo.product import ROOT

OF_THE_WORKSPACE = {"log-cap"}  # its query reads the workspace's own table
QUERIES = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "infra" / "alerts").glob("*.kql")}
PAGE = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
FACTS = dict(re.findall(r"^\| `(\w+)` \| (truth|number|text) \|", PAGE, flags=re.MULTILINE))
KINDS = {bool: "truth", int: "number", float: "number", str: "text"}
CONVERTED = {"truth": "tobool", "number": "to(?:long|double)", "text": "tostring"}


def test_every_alert_has_a_query_and_every_query_an_alert() -> None:
    assert set(QUERIES) == ALERTS


@holds_for(QUERIES)
def test_a_query_says_its_purpose_and_asks_the_watch(name: str) -> None:
    first, *rest = QUERIES[name].splitlines()
    assert re.fullmatch(r"// [A-Z].*\.", first)
    asked = "Usage" if name in OF_THE_WORKSPACE else 'AppTraces\n| where Properties.action == "watch"'
    assert "\n".join(rest).startswith(f"{asked}\n")


@holds_for(QUERIES)
def test_a_query_reads_facts_of_the_page_as_what_they_are(name: str) -> None:
    read = dict(re.findall(r"(to\w+)\(Properties\.(\w+)\)", QUERIES[name]))
    asked = set(re.findall(r"Properties\.(\w+)", QUERIES[name])) - {"action"}
    assert set(read.values()) == asked <= set(FACTS)
    assert all(re.fullmatch(CONVERTED[FACTS[fact]], conversion) for conversion, fact in read.items())


@holds_for(QUERIES)
def test_a_query_has_no_limit_left_to_fill_in(name: str) -> None:
    limits = set(re.findall(r"\{(\w+)\}", QUERIES[name]))
    text = FILES["app/alerts.bicep"].text
    alert = text[text.index(f"name: '{name}'") :]
    filled = set(re.findall(r"'\{(\w+)\}'", alert[: alert.index("\n  }")]))
    assert limits == filled


def test_the_alert_on_a_loss_is_silent_where_the_app_does_not_know_the_retention() -> None:
    sight = Observation(STREAM, EPOCH, Books((), LetterBooks({}, 0)), (), EPOCH, 0)
    assert sight.facts()["loss_hours"] == -1.0
    assert "| where todouble(Properties.loss_hours) >= 0 and " in QUERIES["events-expiring"]


def test_the_page_explains_each_alert() -> None:
    assert [name for name in QUERIES if f"| [`{name}`](runbook.md#{name}) |" not in PAGE] == []


def test_the_line_of_the_watch_has_the_facts_of_the_page_as_what_they_are() -> None:
    sight = Observation(STREAM, EPOCH, Books((), LetterBooks({}, 0)), (), EPOCH, 0)
    facts = sight.facts()
    assert facts.pop("action") == "watch"
    assert {name: KINDS[type(value)] for name, value in facts.items()} == FACTS


def test_the_watch_is_logged_as_often_as_the_page_says_and_faults_are_no_watch() -> None:
    assert "Every minute the app logs one line" in PAGE
    schedule = croniter(binding("watch", "timerTrigger")["schedule"], EPOCH, second_at_beginning=True)
    first, second = schedule.get_next(datetime), schedule.get_next(datetime)
    assert second - first == timedelta(minutes=1)
    handler = (ROOT / "handlers" / "timers.py").read_text(encoding="utf-8").partition("def watch(")[2]
    assert re.findall(r'"action": "(\w+)"', handler) == ["watch_failed", "minute_failed"]


def test_absent_events_are_told_as_long_as_the_alert_on_silence_waits() -> None:
    minutes = ABSENT_WITHIN // timedelta(minutes=1)
    (name,) = OF_THE_WORKSPACE
    windows = re.findall(r"windowSize: (.*)", FILES["app/alerts.bicep"].text)
    assert windows == [f"alert.name == '{name}' ? 'P1D' : 'PT{minutes}M'"]
    assert f"| events that batches of the last {minutes} minutes found absent |" in PAGE


def test_a_partition_has_stopped_after_as_long_as_the_page_says() -> None:
    minutes = STOPPED_AFTER // timedelta(minutes=1)
    assert f"gone or older than {minutes} minutes, and that have committed no batch for {minutes} minutes" in PAGE


SENDER = """
import logging, sys
from azure.monitor.opentelemetry import configure_azure_monitor
from opentelemetry._logs import get_logger_provider
key = "InstrumentationKey=00000000-0000-0000-0000-000000000000"
configure_azure_monitor(
    connection_string=f"{key};IngestionEndpoint={sys.argv[1]}", logger_name="hubledger", disable_offline_storage=True
)
log = logging.getLogger("hubledger.timers")
log.setLevel(logging.INFO)
log.info("books watched", extra={"action": "watch", "ledger_balanced": False, "lag_seconds": 3.5, "letters_open": 12})
get_logger_provider().force_flush()
"""


@contextmanager
def ingestion() -> Iterator[tuple[str, list[dict]]]:
    """Serve an endpoint that takes telemetry as Application Insights does; give its address and its telemetry."""
    got: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.extend(json.loads(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body))
            answer = b'{"itemsReceived": 1, "itemsAccepted": 1, "errors": []}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", got
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.skipif(
    find_spec("azure.monitor") is None,
    reason="azure-monitor-opentelemetry is not installed: pip install -r requirements.txt",
)
def test_the_values_of_a_log_line_arrive_as_properties(tmp_path: Path) -> None:
    environment = {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "azure_sdk,django,fastapi,flask,psycopg2,requests,urllib"}
    environment["APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL"] = "true"
    with ingestion() as (address, got):
        command = [sys.executable, "-c", SENDER, address]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=allowed(60), check=False
        )
    assert done.returncode == 0, done.stderr
    (line,) = [each["data"]["baseData"] for each in got if each["data"]["baseType"] == "MessageData"]
    properties = line["properties"]
    assert line["message"] == "books watched"
    assert properties["action"] == "watch"
    assert properties["ledger_balanced"].lower() == "false"
    assert (float(properties["lag_seconds"]), int(properties["letters_open"])) == (3.5, 12)
